//! Takes changes of the configuration while the service runs: after SIGHUP, and when a file has changed.
//!
//! What a running service can take, it takes as a whole or not at all; for the rest, the log and `/status` name the keys that
//! need a restart. Files are compared by what they mean, so a volume whose links are exchanged is noticed as well as an editor.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_connectors::store::Place;
use fleetdiff_pipeline::run::wall::wall_now;

use super::console::Console;
use super::decisions::Limiter;
use super::supervisor;
use crate::configuration::{Changes, Everything, Flags, Loaded};
use crate::logging::Log;
use crate::output::guidance::GuidanceLog;

/// How often the configuration is read. A change is taken once it was read twice, so that no file counts of which a half is written.
const EVERY: Duration = Duration::from_secs(1);

/// A thread that follows the configuration.
pub(crate) struct Reload {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Where a configuration comes from.
pub(crate) struct Origin {
    pub(crate) file: Option<PathBuf>,
    pub(crate) flags: Flags<Everything>,
}

/// What takes it.
pub(crate) struct Takers {
    pub(crate) console: Arc<Console>,
    pub(crate) guidance: GuidanceLog,
    pub(crate) receivers: Receivers,
    pub(crate) limits: Limiter,
    /// Where receivers keep what they have got.
    pub(crate) place: Place,
    /// Whether other processes count too, which would not hear of other limits.
    pub(crate) in_company: bool,
    pub(crate) log: Log,
}

/// Follows a configuration.
struct Follower {
    origin: Origin,
    takers: Takers,
    in_use: Loaded,
    /// What was read last, or why it cannot be used.
    last: Result<Loaded, String>,
    /// Whether that was taken, or refused.
    is_settled: bool,
}

impl Reload {
    /// Starts the thread; `asked` is set by SIGHUP.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        origin: Origin,
        in_use: Loaded,
        takers: Takers,
        asked: Arc<AtomicBool>,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let mut follower = Follower { origin, takers, last: Ok(in_use.clone()), in_use, is_settled: true };
        let follow = move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                follower.look(asked.swap(false, Ordering::AcqRel));
            }
        };
        let thread = std::thread::Builder::new().name("reload".to_owned()).spawn(follow)?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread.
    pub(crate) fn finish(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread that follows the configuration has failed");
        }
    }
}

impl Follower {
    fn look(&mut self, asked: bool) {
        let read =
            Loaded::read(self.origin.file.as_deref(), &self.origin.flags).map_err(|problems| problems.to_string());
        if !is_same(&read, &self.last) {
            self.last = read;
            self.is_settled = false;
            if !asked {
                return;
            }
        }
        if asked || !self.is_settled {
            self.is_settled = true;
            supervisor::reloading();
            self.settle();
            supervisor::ready();
        }
    }

    /// Takes what was read, or says why not.
    fn settle(&mut self) {
        let taken = self.last.clone().and_then(|new| {
            let changes = self.in_use.changes_to(&new);
            self.take(&self.in_use.taking(&new)).map(|in_use| (changes, in_use))
        });
        let console = Arc::clone(&self.takers.console);
        match taken {
            Ok((changes, in_use)) => {
                let (before, after) = (self.in_use.configuration.log_level, in_use.configuration.log_level);
                self.in_use = in_use;
                // It is said at the more talkative of the two levels.
                self.takers.log.follow(before.max(after));
                say(&changes);
                self.takers.log.follow(after);
                console.in_use().reloaded(&self.in_use.configuration, changes.after_restart, wall_now());
            }
            Err(why) => {
                tracing::error!("{why}; the service goes on with the configuration that it has");
                console.in_use().refused(why);
            }
        }
    }

    /// Has everything else taken, or nothing.
    fn take(&self, new: &Loaded) -> Result<Loaded, String> {
        let Takers { receivers, guidance, limits, place, in_company, .. } = &self.takers;
        if *in_company && new.configuration.dataflow.limits != self.in_use.configuration.dataflow.limits {
            return Err("limits of a service in several processes change only when all are started again".to_owned());
        }
        receivers.change(&new.receivers, place).map_err(|error| error.to_string())?;
        let texts = &new.configuration.alerts.guidance;
        let logged = guidance.change(texts).map_err(|error| error.to_string());
        let logged = logged.and_then(|()| {
            // NB: the last that can fail. What it has logged holds also in a later run.
            limits.change(new.configuration.dataflow.limits).map_err(|error| {
                let back = guidance.change(&self.in_use.configuration.alerts.guidance);
                format!("{error}{}", back.err().map_or_else(String::new, |error| format!("; {error}")))
            })
        });
        if let Err(error) = logged {
            let back = receivers.change(&self.in_use.receivers, place);
            let back =
                back.map_or_else(|error| format!(", nor can receivers be as before: {error}"), |()| String::new());
            return Err(format!("{error}{back}"));
        }
        Ok(new.clone())
    }
}

fn say(changes: &Changes) {
    if !changes.at_once.is_empty() {
        tracing::info!("configuration reloaded: {} changed", changes.at_once.join(", "));
    } else if changes.after_restart.is_empty() {
        tracing::info!("configuration reloaded: it is the one in use");
    }
    for key in &changes.after_restart {
        tracing::warn!("{key} has changed in the configuration and needs a restart; the service goes on as before");
    }
}

fn is_same(one: &Result<Loaded, String>, other: &Result<Loaded, String>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.changes_to(other).is_empty(),
        (Err(one), Err(other)) => one == other,
        _ => false,
    }
}
