//! Pods that are asked for, several at a time: one server has the profiles of all of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use fleetdiff_connectors::pull::pyroscope::{Pyroscope, StoredPod};
use fleetdiff_connectors::pull::{Pull, PullError};
use fleetdiff_formats::{Labels, Period};
use fleetdiff_schemas::profile::Temporality;
use fleetdiff_schemas::time::TimeRange;

use super::super::labels;
use super::super::pods::Profile;
use super::super::warnings::Warnings;
use super::patience::{is_of_server, patiently};
use crate::failure::Failure;

/// How many requests the server has from here at a time.
const AT_ONCE: usize = 4;

/// What came of a request.
pub(super) enum Answer {
    Profile(Profile),
    /// It did nothing in that time.
    Empty,
    /// The server gives it to nobody.
    Nothing {
        pod: String,
        what: &'static str,
        why: PullError,
    },
    /// The server gives nothing any more.
    Lost(PullError),
}

/// What is asked for.
pub(super) struct Asking<'a> {
    pub(super) server: &'a Pyroscope,
    pub(super) types: &'a [Pull],
    /// From one sample of the processor to the next, where it is declared.
    pub(super) period: Option<Period>,
    pub(super) stop: &'a AtomicBool,
    pub(super) warnings: &'a Warnings,
}

impl Asking<'_> {
    /// Asks for what pods did in a slice, and gives away each answer as it comes.
    pub(super) fn slice(
        &self,
        pods: &[StoredPod],
        slice: TimeRange,
        mut take: impl FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let of_pod = |pod| self.types.iter().map(move |what| (pod, *what));
        let requests: Vec<(&StoredPod, Pull)> =
            pods.iter().flat_map(of_pod).filter(|(pod, what)| pod.has(*what)).collect();
        let next = AtomicUsize::new(0);
        let (sender, receiver) = sync_channel(AT_ONCE);
        thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(requests.len()) {
                let sender = sender.clone();
                scope.spawn(|| {
                    let sender = sender;
                    while let Some((pod, what)) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Nobody waits for it any more.
                        if self.stop.load(Ordering::Relaxed) || sender.send(self.ask(pod, *what, slice)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            // NB: an error drops the receiver, so that the threads end with the answer that they wait for.
            receiver.into_iter().try_for_each(&mut take)
        })
    }

    fn ask(&self, pod: &StoredPod, what: Pull, slice: TimeRange) -> Answer {
        match patiently(self.stop, self.warnings, || self.server.profile(pod, what, slice)) {
            Ok(Some(bytes)) => {
                let labels = Labels {
                    // What is stored happened in that time, of whatever type it is.
                    temporality: Temporality::Delta,
                    period: self.period.filter(|_| what == Pull::Cpu),
                    ..labels(&pod.identity, what, slice)
                };
                Answer::Profile(Profile { labels, bytes })
            }
            Ok(None) => Answer::Empty,
            Err(fault) if is_of_server(&fault) => Answer::Lost(fault),
            Err(why) => Answer::Nothing { pod: pod.identity.pod.to_string(), what: what.profile_type().name(), why },
        }
    }
}
