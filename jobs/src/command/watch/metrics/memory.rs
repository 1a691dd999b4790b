//! What takes memory.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::level;
use crate::command::watch::console::Overview;

#[derive(Debug, Default)]
pub(super) struct MemoryMetrics {
    resident: Gauge,
    fetched: Gauge,
    window: Gauge,
    functions: Gauge,
    paths: Gauge,
    cells: Gauge,
    builds: Gauge,
    pods: Gauge,
}

impl MemoryMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { resident, fetched, window, functions, paths, cells, builds, pods } = &metrics;
        for (name, help, gauge) in [
            ("resident_memory", "Memory of the process in use", resident),
            ("fetched", "Records that were fetched and not read yet", fetched),
            ("window", "Counts within the window of all services, as limits.bytes estimates them", window),
        ] {
            registry.register_with_unit(name, help, Unit::Bytes, gauge.clone());
        }
        for (name, help, gauge) in [
            ("function_names", "Distinct names of functions", functions),
            ("call_paths", "Distinct call paths", paths),
            ("cells_held", "Cells of all services that have a place within their limits", cells),
            ("builds_held", "Builds of all services that have a place within their limits", builds),
            ("pods_held", "Pods of all services that have a place within their limits", pods),
        ] {
            registry.register(name, help, gauge.clone());
        }
        metrics
    }

    pub(super) fn take(&self, overview: &Overview) {
        let memory = &overview.vitals.memory;
        if let Some(bytes) = overview.resident_bytes {
            self.resident.set(level(bytes));
        }
        self.fetched.set(level(overview.vitals.transports.values().map(|health| health.fetched_bytes).sum()));
        self.window.set(level(memory.held.window_bytes));
        self.functions.set(i64::try_from(memory.functions).unwrap_or(i64::MAX));
        self.paths.set(i64::try_from(memory.paths).unwrap_or(i64::MAX));
        self.cells.set(level(memory.held.cells));
        self.builds.set(level(memory.held.builds));
        self.pods.set(level(memory.held.pods));
    }
}
