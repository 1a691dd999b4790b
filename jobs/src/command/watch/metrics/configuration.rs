//! How changes of the configuration went.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{Reading, advance};
use crate::command::watch::console::InUse;

#[derive(Debug, Default)]
pub(super) struct ConfigurationMetrics {
    reloads: Family<Vec<(&'static str, &'static str)>, Counter>,
    read: Reading,
    successful: Gauge,
    needs_restart: Gauge,
}

impl ConfigurationMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Configurations that were read again, by what became of them";
        registry.register("configuration_reloads", help, metrics.reloads.clone());
        let help = "When the configuration in use was read, since 1970";
        registry.register_with_unit("configuration_last_reload", help, Unit::Seconds, metrics.read.clone());
        let help = "Whether the configuration that was read last could be used";
        registry.register("configuration_last_reload_successful", help, metrics.successful.clone());
        let help = "Keys of the configuration that have changed and need a restart";
        registry.register("configuration_needs_restart", help, metrics.needs_restart.clone());
        metrics
    }

    pub(super) fn take(&self, in_use: &InUse) {
        for (result, count) in [("success", in_use.reloads), ("failure", in_use.refusals)] {
            advance(&self.reloads.get_or_create(&vec![("result", result)]), count);
        }
        self.read.set(in_use.read_at.as_seconds());
        self.successful.set(i64::from(in_use.refused.is_none()));
        self.needs_restart.set(i64::try_from(in_use.needs_restart.len()).unwrap_or(i64::MAX));
    }
}
