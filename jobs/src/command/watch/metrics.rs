//! The metrics of a service, for a monitoring system, in the text format of Prometheus and OpenMetrics.

mod configuration;
mod hops;
mod memory;
mod partitions;
mod receivers;

use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use fleetdiff_pipeline::run::pulse::diagnosis::Condition;

use self::configuration::ConfigurationMetrics;
use self::hops::HopMetrics;
pub(crate) use self::hops::Latencies;
use self::memory::MemoryMetrics;
use self::partitions::PartitionMetrics;
use self::receivers::ReceiverMetrics;
use super::console::Overview;

/// The media type of [`Metrics::text`].
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Reading = Gauge<f64, std::sync::atomic::AtomicU64>;

/// The metrics of a service.
#[derive(Debug)]
pub(crate) struct Metrics(Mutex<Registered>);

#[derive(Debug)]
struct Registered {
    registry: Registry,
    condition: Family<Vec<(&'static str, &'static str)>, Gauge>,
    started: Reading,
    memory: MemoryMetrics,
    partitions: PartitionMetrics,
    hops: HopMetrics,
    receivers: ReceiverMetrics,
    configuration: ConfigurationMetrics,
}

impl Metrics {
    /// Metrics of a service that has done nothing yet; `latencies` are those of its sink.
    pub(crate) fn new(latencies: &Latencies) -> Self {
        let mut registry = Registry::with_prefix("fleetdiff");
        let mut metrics = Registered {
            registry: Registry::default(),
            condition: Family::default(),
            started: Gauge::default(),
            memory: MemoryMetrics::register(&mut registry),
            partitions: PartitionMetrics::register(&mut registry),
            hops: HopMetrics::register(&mut registry, latencies),
            receivers: ReceiverMetrics::register(&mut registry),
            configuration: ConfigurationMetrics::register(&mut registry),
        };
        registry.register(
            "condition",
            "How the service is: 1 for its condition, 0 for others",
            metrics.condition.clone(),
        );
        let started = metrics.started.clone();
        registry.register_with_unit("started", "Start of the run, since 1970", Unit::Seconds, started);
        metrics.registry = registry;
        Self(Mutex::new(metrics))
    }

    /// All metrics of a state, as text. Counters never fall, whatever the order of the states.
    pub(crate) fn text(&self, overview: &Overview) -> Result<String, std::fmt::Error> {
        let metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        metrics.take(overview);
        let mut text = String::new();
        encode(&mut text, &metrics.registry)?;
        Ok(text)
    }
}

impl Registered {
    fn take(&self, overview: &Overview) {
        for condition in Condition::ALL {
            let is = i64::from(condition == overview.diagnosis.condition);
            self.condition.get_or_create(&vec![("condition", condition.name())]).set(is);
        }
        self.started.set(overview.now.wall_of(overview.vitals.started_at).as_seconds());
        self.memory.take(overview);
        self.partitions.take(overview);
        self.hops.take(overview);
        self.receivers.take(&overview.receivers);
        self.configuration.take(&overview.in_use);
    }
}

/// Raises a counter to the given total.
fn advance(counter: &Counter, all: u64) {
    counter.inc_by(all.saturating_sub(counter.get()));
}

fn level(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(super) mod tests;
