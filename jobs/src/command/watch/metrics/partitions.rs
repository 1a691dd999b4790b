//! What partitions give, and how far they are, at the moment at which they are read.

use fleetdiff_pipeline::run::pulse::{PartitionState, PartitionVitals};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{Reading, advance, level};
use crate::command::watch::console::Overview;

type OfPartition = Vec<(&'static str, String)>;
type OfReason = Vec<(&'static str, &'static str)>;

#[derive(Debug, Default)]
pub(super) struct PartitionMetrics {
    records: Family<OfPartition, Counter>,
    lost: Family<OfPartition, Counter>,
    lag: Family<OfPartition, Gauge>,
    lag_time: Family<OfPartition, Reading>,
    watermark: Family<OfPartition, Reading>,
    watermark_age: Family<OfPartition, Reading>,
    holds_frontier: Family<OfPartition, Gauge>,
    taken: Counter,
    late: Counter,
    too_late: Counter,
    rejected: Family<OfReason, Counter>,
    unreachable: Gauge,
}

impl PartitionMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("partition_records", "Records that were read", metrics.records.clone());
        let help = "Records that the brokers deleted before they were read, by their offsets";
        registry.register("partition_lost_records", help, metrics.lost.clone());
        registry.register("partition_lag_records", "Records that are still to be read", metrics.lag.clone());
        for (name, help, gauge) in [
            ("partition_lag", "Age of the last record if more are to be read, else 0", &metrics.lag_time),
            ("partition_watermark", "Watermark: nothing is applied before it any more, since 1970", &metrics.watermark),
            ("partition_watermark_age", "How far the watermark is behind the wall clock", &metrics.watermark_age),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        }
        registry.register(
            "partition_holds_frontier",
            "1 if event time waits for this partition",
            metrics.holds_frontier.clone(),
        );
        registry.register("profiles_taken", "Profiles and counts of requests that were read", metrics.taken.clone());
        registry.register("profiles_late", "Profiles that were late, but within the window", metrics.late.clone());
        registry.register("profiles_too_late", "Profiles that were older than the window", metrics.too_late.clone());
        registry.register("records_rejected", "Parts of records that were rejected", metrics.rejected.clone());
        registry.register(
            "brokers_unreachable",
            "1 if the brokers of a topic do not answer",
            metrics.unreachable.clone(),
        );
        metrics
    }

    pub(super) fn take(&self, overview: &Overview) {
        let vitals = &overview.vitals;
        let frontier = vitals.frontier().map(|frontier| frontier.name);
        let (mut late, mut too_late) = (0, 0);
        for (name, partition) in &vitals.partitions {
            let labels = vec![("topic", name.0.to_string()), ("partition", name.1.to_string())];
            self.holds_frontier.get_or_create(&labels).set(i64::from(frontier == Some(name)));
            self.take_partition(&labels, partition, overview);
            late += partition.given.late;
            too_late += partition.given.too_late;
        }
        advance(&self.taken, vitals.taken());
        advance(&self.late, late);
        advance(&self.too_late, too_late);
        for (reason, count) in vitals.refused() {
            advance(&self.rejected.get_or_create(&vec![("reason", reason.name())]), count);
        }
        self.unreachable.set(i64::from(vitals.transports.values().any(|health| health.trouble.is_some())));
    }

    fn take_partition(&self, labels: &OfPartition, partition: &PartitionVitals, overview: &Overview) {
        advance(&self.records.get_or_create(labels), partition.given.records);
        advance(&self.lost.get_or_create(labels), partition.given.lost);
        if let Some(lag) = partition.lag() {
            self.lag.get_or_create(labels).set(level(lag));
        }
        if let Some(lag) = overview.lag_time(partition) {
            self.lag_time.get_or_create(labels).set(lag.as_seconds());
        }
        if let PartitionState::Watermark(hop) = partition.state {
            let at = overview.now.clock.start_of(hop);
            self.watermark.get_or_create(labels).set(at.as_seconds());
            self.watermark_age.get_or_create(labels).set(overview.now.wall.since(at).as_seconds());
        }
    }
}
