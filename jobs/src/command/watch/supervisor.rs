//! What the service says to systemd, if it runs under it: that it has started, lives, reloads and stops.

use std::time::Duration;

use sd_notify::NotifyState;

use super::console::Overview;

/// How long systemd waits for the next word of a standby.
const PATIENCE: Duration = Duration::from_secs(60);

/// It has started, or it has taken another configuration.
pub(crate) fn ready() {
    say(&[NotifyState::Ready]);
}

/// It waits until another process has ended, which may take for ever: it has not started, and that is no failure to start.
pub(crate) fn standing_by() {
    let microseconds = u32::try_from(PATIENCE.as_micros()).unwrap_or(u32::MAX);
    say(&[
        NotifyState::ExtendTimeoutUsec(microseconds),
        NotifyState::Status("standby: another process has the folder"),
    ]);
}

/// It reads its configuration again.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => say(&[NotifyState::Reloading, now]),
        Err(_) => say(&[NotifyState::Reloading]),
    }
}

/// It ends.
pub(crate) fn stopping() {
    say(&[NotifyState::Stopping]);
}

/// How it is, for `systemctl status`; and that it lives, unless it hangs, so that systemd starts it again.
pub(crate) fn alive(overview: &Overview) {
    let diagnosis = &overview.diagnosis;
    let status = format!("{}: {}", diagnosis.condition.name(), diagnosis.reason);
    match overview.hangs() {
        None => say(&[NotifyState::Watchdog, NotifyState::Status(&status)]),
        Some(why) => say(&[NotifyState::Status(&why)]),
    }
}

/// NB: without systemd nothing is said, which is no error.
fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("systemd does not listen: {error}");
    }
}
