//! What became of requests and events, by receiver.

use fleetdiff_connectors::receivers::ReceiverCounts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::advance;

type OfReceiver = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
pub(super) struct ReceiverMetrics {
    sent: Family<OfReceiver, Counter>,
    retried: Family<OfReceiver, Counter>,
    failed: Family<OfReceiver, Counter>,
    dropped: Family<OfReceiver, Counter>,
    waiting: Family<OfReceiver, Gauge>,
}

impl ReceiverMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, counts) in [
            ("receiver_sent", "Requests that receivers accepted", &metrics.sent),
            ("receiver_retried", "Requests to receivers that failed and are repeated", &metrics.retried),
            (
                "receiver_failed",
                "Requests that receivers refused for good, and events that could not be written",
                &metrics.failed,
            ),
            ("receiver_dropped", "Events that were dropped because too many waited", &metrics.dropped),
        ] {
            registry.register(name, help, counts.clone());
        }
        registry.register("receiver_waiting", "Events or alerts that wait for a receiver", metrics.waiting.clone());
        metrics
    }

    pub(super) fn take(&self, receivers: &[(String, ReceiverCounts)]) {
        for (name, counts) in receivers {
            let labels = vec![("receiver", name.clone())];
            advance(&self.sent.get_or_create(&labels), counts.sent);
            advance(&self.retried.get_or_create(&labels), counts.retried);
            advance(&self.failed.get_or_create(&labels), counts.failed);
            advance(&self.dropped.get_or_create(&labels), counts.dropped);
            self.waiting.get_or_create(&labels).set(i64::try_from(counts.waiting).unwrap_or(i64::MAX));
        }
    }
}
