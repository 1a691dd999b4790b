//! What was closed, evaluated and sent.

use std::time::Duration;

use fleetdiff_schemas::time::Nanos;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::{Reading, advance};
use crate::command::watch::console::Overview;

/// Seconds from the end of an interval to its close: the lateness, the transport and the evaluation, and backlogs.
const CLOSE: [f64; 9] = [15.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 900.0, 3600.0];

/// Seconds of an evaluation.
const EVALUATION: [f64; 10] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

type Labels = Vec<(&'static str, &'static str)>;

/// How long closes take, as the sink sees them.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    close: Histogram,
    evaluation: Histogram,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self { close: Histogram::new(CLOSE), evaluation: Histogram::new(EVALUATION) }
    }

    /// A hop was closed so long after its end, by the wall clock, and evaluated in so long.
    pub(crate) fn closed(&self, after_end: Nanos, evaluation: Option<Duration>) {
        self.close.observe(after_end.as_seconds());
        if let Some(evaluation) = evaluation {
            self.evaluation.observe(evaluation.as_secs_f64());
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct HopMetrics {
    profiles: Counter,
    booked: Family<Labels, Counter>,
    clocks: Family<Labels, Gauge>,
    samples: Family<Labels, Counter>,
    together: Family<Labels, Counter>,
    above: Family<Labels, Gauge>,
    flags: Counter,
    hops: Counter,
    looks: Counter,
    families: Counter,
    alerts: Counter,
    files: Counter,
    retries: Counter,
    comparisons: Gauge,
    cells: Gauge,
    tested: Gauge,
    closed_through: Reading,
    closed_at: Reading,
    alerted_at: Reading,
    flushed_at: Reading,
    checkpointed_at: Reading,
    checkpoint_through: Reading,
    checks: Counter,
    false_positives: Counter,
    rate: Family<Labels, Reading>,
}

impl HopMetrics {
    pub(super) fn register(registry: &mut Registry, latencies: &Latencies) -> Self {
        let metrics = Self::default();
        metrics.register_counters(registry);
        let rejected = "Rejected parts of records that are in rows of closed hops, by reason";
        registry.register("rows_rejected", rejected, metrics.booked.clone());
        let samples = "Samples of closed hops, by what became of them; those that are late are counted too";
        registry.register("samples", samples, metrics.samples.clone());
        let together = "Samples of closed hops that were counted as _overflow, by the limit that their service exceeds";
        registry.register("samples_overflow", together, metrics.together.clone());
        let above = "Services that have exceeded a limit, by limit";
        registry.register("services_above_limit", above, metrics.above.clone());
        registry.register("pods_wrong_clock", "Pods whose clock was wrong, by direction", metrics.clocks.clone());
        registry.register("comparisons_open", "Comparisons at the last look", metrics.comparisons.clone());
        registry.register("cells", "Cells at the last look, over all comparisons", metrics.cells.clone());
        let tested = "Functions that were tested at the last look, over all cells";
        registry.register("functions_tested", tested, metrics.tested.clone());
        for (name, help, gauge) in [
            ("closed_through", "End of the last hop that was closed, since 1970", &metrics.closed_through),
            ("last_close", "When the last hop was closed, since 1970", &metrics.closed_at),
            ("last_alert", "When the last alert was sent, since 1970", &metrics.alerted_at),
            ("last_flush", "When files were last completed, since 1970", &metrics.flushed_at),
            ("last_checkpoint", "When the last checkpoint was written, since 1970", &metrics.checkpointed_at),
            (
                "checkpoint_through",
                "Event time up to which the last checkpoint has everything",
                &metrics.checkpoint_through,
            ),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        }
        registry.register_with_unit(
            "aa_check_rate",
            "Fraction of these tests that were significant, and its 95 % interval",
            Unit::Ratios,
            metrics.rate.clone(),
        );
        let close = "From the end of an interval to its close, by the wall clock";
        registry.register_with_unit("close_latency", close, Unit::Seconds, latencies.close.clone());
        let evaluation = "From the moment at which all records of a hop have come to its rows";
        registry.register_with_unit("evaluation_latency", evaluation, Unit::Seconds, latencies.evaluation.clone());
        metrics
    }

    fn register_counters(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("profiles_decoded", "Profiles of closed hops", &self.profiles),
            ("flag_changes", "Flags raised, updated and cleared", &self.flags),
            ("hops_closed", "Hops that were closed and had rows", &self.hops),
            ("looks", "Evaluations of comparisons", &self.looks),
            ("families", "Epochs of comparisons that were begun, each a family of tests", &self.families),
            ("alerts", "Alerts that were sent to the topic or file", &self.alerts),
            ("files", "Files of tables that are complete", &self.files),
            ("output_retries", "Attempts to write or send results that failed and are repeated", &self.retries),
            ("aa_check_tests", "Tests of one half of the baseline's pods against the other", &self.checks),
            ("aa_check_flags", "Those of them that were significant, each a false positive", &self.false_positives),
        ] {
            registry.register(name, help, counter.clone());
        }
    }

    pub(super) fn take(&self, overview: &Overview) {
        let (done, clock) = (&overview.done, overview.now.clock);
        advance(&self.profiles, u64::try_from(done.decoded).unwrap_or(0));
        advance(&self.flags, done.flags);
        advance(&self.hops, done.hops);
        advance(&self.looks, done.looks);
        advance(&self.families, done.families);
        advance(&self.alerts, done.alerts);
        advance(&self.files, done.files);
        advance(&self.retries, overview.vitals.output.retries);
        advance(&self.checks, done.aa_check.tests);
        advance(&self.false_positives, done.aa_check.flags);
        for (reason, &count) in &done.rejected {
            advance(&self.booked.get_or_create(&vec![("reason", reason.name())]), count);
        }
        for (fate, &count) in &done.samples {
            advance(&self.samples.get_or_create(&vec![("fate", *fate)]), count);
        }
        for (what, (samples, services)) in &done.exceeded {
            let of_limit = vec![("limit", what.name())];
            advance(&self.together.get_or_create(&of_limit), *samples);
            self.above.get_or_create(&of_limit).set(i64::try_from(services.len()).unwrap_or(i64::MAX));
        }
        for (direction, pods) in [("ahead", &done.clocks.ahead), ("behind", &done.clocks.behind)] {
            let of = self.clocks.get_or_create(&vec![("direction", direction)]);
            of.set(i64::try_from(pods.len()).unwrap_or(i64::MAX));
        }
        self.comparisons.set(i64::try_from(done.open.len()).unwrap_or(i64::MAX));
        self.cells.set(i64::try_from(done.cells).unwrap_or(i64::MAX));
        self.tested.set(done.tested);
        if done.hops > 0 {
            self.closed_through.set(clock.end_of(done.through).as_seconds());
        }
        for (gauge, at) in [
            (&self.closed_at, overview.vitals.output.closed.map(|closed| overview.now.wall_of(closed.at))),
            (&self.alerted_at, done.alerted_at),
            (&self.flushed_at, done.flushed_at),
            (&self.checkpointed_at, done.checkpoint.map(|checkpoint| checkpoint.at)),
            (&self.checkpoint_through, done.checkpoint.map(|checkpoint| checkpoint.through)),
        ] {
            at.into_iter().for_each(|at| {
                gauge.set(at.as_seconds());
            });
        }
        if let Some((rate, low, high)) = done.aa_check.rate() {
            for (bound, value) in [("estimate", rate), ("low", low), ("high", high)] {
                self.rate.get_or_create(&vec![("bound", bound)]).set(value);
            }
        }
    }
}
