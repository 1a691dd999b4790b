//! The metrics of a service, for a monitoring system, in the text format of Prometheus and OpenMetrics.

mod hops;
mod partitions;
mod receivers;

use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use fleetdiff_pipeline::run::pulse::diagnosis::Condition;

use self::hops::HopMetrics;
pub(crate) use self::hops::Latencies;
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
    resident: Gauge,
    fetched: Gauge,
    functions: Gauge,
    partitions: PartitionMetrics,
    hops: HopMetrics,
    receivers: ReceiverMetrics,
}

impl Metrics {
    /// Metrics of a service that has done nothing yet; `latencies` are those of its sink.
    pub(crate) fn new(latencies: &Latencies) -> Self {
        let mut registry = Registry::with_prefix("fleetdiff");
        let mut metrics = Registered {
            registry: Registry::default(),
            condition: Family::default(),
            started: Gauge::default(),
            resident: Gauge::default(),
            fetched: Gauge::default(),
            functions: Gauge::default(),
            partitions: PartitionMetrics::register(&mut registry),
            hops: HopMetrics::register(&mut registry, latencies),
            receivers: ReceiverMetrics::register(&mut registry),
        };
        registry.register(
            "condition",
            "How the service is: 1 for its condition, 0 for others",
            metrics.condition.clone(),
        );
        let started = metrics.started.clone();
        registry.register_with_unit("started", "Start of the run, since 1970", Unit::Seconds, started);
        let resident = metrics.resident.clone();
        registry.register_with_unit("resident_memory", "Memory of the process in use", Unit::Bytes, resident);
        let fetched = metrics.fetched.clone();
        registry.register_with_unit("fetched", "Records that were fetched and not read yet", Unit::Bytes, fetched);
        registry.register("function_names", "Distinct names of functions", metrics.functions.clone());
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
        if let Some(bytes) = overview.resident_bytes {
            self.resident.set(level(bytes));
        }
        self.fetched.set(level(overview.vitals.transports.values().map(|health| health.fetched_bytes).sum()));
        self.functions.set(i64::try_from(overview.vitals.functions).unwrap_or(i64::MAX));
        self.partitions.take(overview);
        self.hops.take(overview);
        self.receivers.take(&overview.receivers);
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
mod tests;
