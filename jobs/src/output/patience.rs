//! Waits until what cannot be written for now can be: until a disk has room, or brokers are back.
//!
//! A service that ended instead would be started again, read some minutes anew, and find the same disk. While it waits it reads on only as far
//! as a partition may run ahead, it says what it waits for, and a signal still ends it.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fleetdiff_connectors::kafka::error::BrokerError;
use fleetdiff_connectors::output::OutputError;
use fleetdiff_pipeline::run::pulse::Pulse;

use super::lines::LinesError;

/// The first pause, and the longest, which it comes to by doubling (guess: room is made by people, brokers are back within seconds).
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// How often a pause looks whether the run must end.
const STEP: Duration = Duration::from_millis(50);

/// A failure of which it is known whether the same may succeed later.
pub(crate) trait MayPass: Error + 'static {
    /// Whether it may.
    fn may_pass(&self) -> bool;
}

impl MayPass for OutputError {
    fn may_pass(&self) -> bool {
        self.may_pass()
    }
}

impl MayPass for BrokerError {
    fn may_pass(&self) -> bool {
        self.may_pass()
    }
}

impl MayPass for LinesError {
    fn may_pass(&self) -> bool {
        self.may_pass()
    }
}

/// Whether a run waits, and who is told.
#[derive(Clone, Debug)]
pub(crate) struct Patience(Option<Wait>);

#[derive(Clone, Debug)]
struct Wait {
    stop: Arc<AtomicBool>,
    pulse: Pulse,
}

impl Patience {
    /// The first failure is the last: somebody waits for the end of the run.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// It waits until it succeeds, or `stop` is set.
    pub(crate) fn of_service(stop: Arc<AtomicBool>, pulse: Pulse) -> Self {
        Self(Some(Wait { stop, pulse }))
    }

    /// Tries until it succeeds, if it may; `what` is being written.
    ///
    /// # Errors
    /// What cannot pass, and the last failure once the run must end.
    pub(crate) fn insist<T, E: MayPass>(
        &self,
        what: &'static str,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(wait) = &self.0 else { return attempt() };
        let (mut since, mut pause) = (None, FIRST);
        let done = loop {
            let error = match attempt() {
                Err(error) if error.may_pass() => error,
                done => break done,
            };
            let since = *since.get_or_insert_with(|| {
                let error = said(&error);
                tracing::error!("{error}; {what} are tried again until they are written, and nothing closes before");
                Instant::now()
            });
            wait.pulse.retries(what, said(&error), since);
            if wait.is_ended_within(pause) {
                break Err(error);
            }
            pause = (pause * 2).min(LONGEST);
        };
        if let Some(since) = since {
            wait.pulse.retries_no_more(what);
            if done.is_ok() {
                tracing::warn!("{what} are written again, after {} s; nothing is lost", since.elapsed().as_secs());
            }
        }
        done
    }
}

impl Wait {
    /// Pauses; whether the run must end.
    fn is_ended_within(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !self.stop.load(Ordering::Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(STEP));
        }
        true
    }
}

/// The failure with its cause.
fn said(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> OutputError {
        let (path, detail) = ("out/cells".to_owned(), "No space left on device".to_owned());
        OutputError::Unwritable { path, detail, hint: "make room" }
    }

    fn patient() -> (Patience, Arc<AtomicBool>, Pulse) {
        let (stop, pulse) = (Arc::default(), Pulse::default());
        (Patience::of_service(Arc::clone(&stop), pulse.clone()), stop, pulse)
    }

    #[test]
    fn it_is_tried_until_there_is_room_and_seen_meanwhile() {
        let (patience, _, pulse) = patient();
        let mut left = 3;
        let done = patience.insist("tables", || {
            left -= 1;
            let waits = pulse.read().output.waiting.get("tables").map(|waits| waits.detail.clone());
            assert_eq!(waits.is_some(), left < 2, "{waits:?}");
            assert!(waits.is_none_or(|detail| detail.contains("No space left on device")));
            if left > 0 { Err(full()) } else { Ok("done") }
        });
        assert_eq!(done.unwrap(), "done");
        let output = pulse.read().output;
        assert_eq!((output.waiting.len(), output.retries), (0, 2));
    }

    #[test]
    fn what_cannot_pass_ends_the_run_at_once_and_so_does_anything_where_nobody_waits() {
        let (patience, _, pulse) = patient();
        let mut attempts = 0;
        let differs = OutputError::Nondeterministic { path: String::new(), difference: String::new(), hint: "" };
        let mut differs = Some(differs);
        let ended = patience.insist("tables", || {
            attempts += 1;
            Err::<(), _>(differs.take().unwrap())
        });
        assert_eq!((ended.unwrap_err().code(), attempts), ("nondeterministic_output", 1));
        let ended = Patience::none().insist("tables", || {
            attempts += 1;
            Err::<(), _>(full())
        });
        assert_eq!((ended.unwrap_err().code(), attempts), ("unwritable_output", 2));
        assert!(pulse.read().output.waiting.is_empty());
    }

    #[test]
    fn a_signal_ends_the_wait_with_the_reason() {
        let (patience, stop, pulse) = patient();
        let ended = patience.insist("tables", || {
            stop.store(true, Ordering::Release);
            Err::<(), _>(full())
        });
        assert_eq!(ended.unwrap_err().code(), "unwritable_output");
        assert!(pulse.read().output.waiting.is_empty());
    }
}
