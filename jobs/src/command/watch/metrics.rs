//! The metrics of a service, for a monitoring system: a file in the text format of Prometheus and OpenMetrics.
//!
//! The file is replaced as a whole, so that a reader (the textfile collector of Prometheus' node exporter, or `cat`) never sees
//! half of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_schemas::time::HopClock;

use super::done::Done;

type Labels = Vec<(&'static str, &'static str)>;
type OfReceiver = Vec<(&'static str, String)>;

/// The metrics of a service and the file that they are written to.
#[derive(Debug)]
pub(crate) struct Metrics {
    path: PathBuf,
    registry: Registry,
    profiles: Counter,
    rejected: Family<Labels, Counter>,
    clocks: Family<Labels, Gauge>,
    flags: Counter,
    closed_through: Gauge<f64, AtomicU64>,
    checks: Counter,
    false_positives: Counter,
    rate: Family<Labels, Gauge<f64, AtomicU64>>,
    receivers: ReceiverMetrics,
}

/// What became of requests and events, by receiver.
#[derive(Debug, Default)]
struct ReceiverMetrics {
    sent: Family<OfReceiver, Counter>,
    retried: Family<OfReceiver, Counter>,
    failed: Family<OfReceiver, Counter>,
    dropped: Family<OfReceiver, Counter>,
    waiting: Family<OfReceiver, Gauge>,
}

impl Metrics {
    /// Metrics of a service that has done nothing yet.
    pub(crate) fn new(path: &Path) -> Self {
        let mut registry = Registry::with_prefix("fleetdiff");
        let metrics = Self {
            path: path.to_owned(),
            profiles: Counter::default(),
            rejected: Family::default(),
            clocks: Family::default(),
            flags: Counter::default(),
            closed_through: Gauge::default(),
            checks: Counter::default(),
            false_positives: Counter::default(),
            rate: Family::default(),
            receivers: ReceiverMetrics::default(),
            registry: Registry::default(),
        };
        registry.register("profiles_decoded", "Profiles that were decoded", metrics.profiles.clone());
        registry.register("records_rejected", "Records that were rejected, by reason", metrics.rejected.clone());
        registry.register("pods_wrong_clock", "Pods whose clock was wrong, by direction", metrics.clocks.clone());
        registry.register("flag_changes", "Flags raised, updated and cleared", metrics.flags.clone());
        registry.register_with_unit(
            "closed_through",
            "End of the last hop that was closed, since 1970",
            Unit::Seconds,
            metrics.closed_through.clone(),
        );
        registry.register(
            "aa_check_tests",
            "Tests of one half of the baseline's pods against the other",
            metrics.checks.clone(),
        );
        registry.register(
            "aa_check_flags",
            "Those of them that were significant, each a false positive",
            metrics.false_positives.clone(),
        );
        registry.register_with_unit(
            "aa_check_rate",
            "Fraction of these tests that were significant, and its 95 % interval",
            Unit::Ratios,
            metrics.rate.clone(),
        );
        metrics.receivers.register(&mut registry);
        Self { registry, ..metrics }
    }

    /// Writes what was done so far.
    ///
    /// # Errors
    /// The file cannot be written or replaced.
    pub(crate) fn write(&self, done: &Done, receivers: &Receivers, clock: HopClock) -> std::io::Result<()> {
        self.receivers.take(receivers);
        advance(&self.profiles, u64::try_from(done.decoded).unwrap_or(0));
        advance(&self.flags, done.flags);
        advance(&self.checks, done.aa_check.tests);
        advance(&self.false_positives, done.aa_check.flags);
        for (reason, &count) in &done.rejected {
            advance(&self.rejected.get_or_create(&vec![("reason", reason.name())]), count);
        }
        for (direction, pods) in [("ahead", &done.clocks.ahead), ("behind", &done.clocks.behind)] {
            self.clocks
                .get_or_create(&vec![("direction", direction)])
                .set(i64::try_from(pods.len()).unwrap_or(i64::MAX));
        }
        if done.hops > 0 {
            self.closed_through.set(clock.end_of(done.through).as_seconds());
        }
        if let Some((rate, low, high)) = done.aa_check.rate() {
            for (bound, value) in [("estimate", rate), ("low", low), ("high", high)] {
                self.rate.get_or_create(&vec![("bound", bound)]).set(value);
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).map_err(std::io::Error::other)?;
        let unfinished = self.path.with_extension("unfinished");
        std::fs::write(&unfinished, text)?;
        std::fs::rename(&unfinished, &self.path)
    }
}

impl ReceiverMetrics {
    fn register(&self, registry: &mut Registry) {
        for (name, help, counts) in [
            ("receiver_sent", "Requests that receivers accepted", &self.sent),
            ("receiver_retried", "Requests to receivers that failed and are repeated", &self.retried),
            (
                "receiver_failed",
                "Requests that receivers refused for good, and events that could not be written",
                &self.failed,
            ),
            ("receiver_dropped", "Events that were dropped because too many waited", &self.dropped),
        ] {
            registry.register(name, help, counts.clone());
        }
        registry.register("receiver_waiting", "Events or alerts that wait for a receiver", self.waiting.clone());
    }

    fn take(&self, receivers: &Receivers) {
        for (name, counts) in receivers.counts() {
            let labels = vec![("receiver", name.to_owned())];
            advance(&self.sent.get_or_create(&labels), counts.sent);
            advance(&self.retried.get_or_create(&labels), counts.retried);
            advance(&self.failed.get_or_create(&labels), counts.failed);
            advance(&self.dropped.get_or_create(&labels), counts.dropped);
            self.waiting.get_or_create(&labels).set(i64::try_from(counts.waiting).unwrap_or(i64::MAX));
        }
    }
}

/// Raises a counter to the given total.
fn advance(counter: &Counter, all: u64) {
    counter.inc_by(all.saturating_sub(counter.get()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::watch::done::WrongClocks;
    use fleetdiff_report::AaCheckRate;
    use fleetdiff_schemas::rejected::Reason;
    use fleetdiff_schemas::time::{Hop, Nanos};

    #[test]
    fn the_file_holds_what_was_done_in_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleetdiff.prom");
        let metrics = Metrics::new(&path);
        let clock = HopClock::new(Nanos::from_seconds(10));
        metrics.write(&Done::default(), &Receivers::default(), clock).unwrap();
        assert!(!std::fs::read_to_string(&path).unwrap().contains("bound="), "no rate before the first test");
        let aa_check = AaCheckRate { reports: 2, tests: 1000, flags: 1 };
        let done = Done {
            hops: 3,
            through: Hop(5),
            decoded: 70,
            rejected: [(Reason::FromFuture, 2)].into(),
            clocks: WrongClocks { ahead: ["shop/p7".to_owned()].into(), ..WrongClocks::default() },
            flags: 4,
            aa_check,
        };
        for _ in 0..2 {
            metrics.write(&done, &Receivers::default(), clock).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in [
            "fleetdiff_profiles_decoded_total 70",
            "fleetdiff_records_rejected_total{reason=\"from_future\"} 2",
            "fleetdiff_pods_wrong_clock{direction=\"ahead\"} 1",
            "fleetdiff_pods_wrong_clock{direction=\"behind\"} 0",
            "fleetdiff_flag_changes_total 4",
            "fleetdiff_closed_through_seconds 60.0",
            "fleetdiff_aa_check_tests_total 1000",
            "fleetdiff_aa_check_flags_total 1",
            "fleetdiff_aa_check_rate_ratios{bound=\"estimate\"} 0.001",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}
