//! What the commands that reach a cluster have in common: the configured topic, and its failures in words.

use std::path::Path;

use fleetdiff_connectors::kafka::error::BrokerError;
use fleetdiff_connectors::kafka::publish::{Acknowledged, Key, PublishSettings, Publisher, RecordForm};
use fleetdiff_connectors::kafka::topic;
use fleetdiff_formats::Format;

use crate::command::{RecordKey, SpreadSettings};
use crate::configuration::{Configuration, Flags};
use crate::failure::Failure;

/// A configuration from a file, the environment and flags.
///
/// # Errors
/// All its problems, as a failure of usage.
pub fn configure<S>(path: Option<&Path>, flags: &Flags<S>) -> Result<Configuration, Failure> {
    Configuration::load(path, flags).map_err(|problems| {
        Failure::usage(problems, "`fleetdiff watch --show-config` prints every key with its meaning")
    })
}

/// A failure of the cluster, with what to do.
pub fn broker_failure(failure: BrokerError) -> Failure {
    let hint = failure.hint();
    Failure::with_hint(failure, hint)
}

/// A publisher to the configured topic, which is made if it is absent.
pub fn open_publisher(configuration: &Configuration, spread: SpreadSettings) -> Result<Publisher, Failure> {
    let form = match configuration.kafka.format {
        Format::Pprof => RecordForm::Pprof,
        Format::Delta => RecordForm::Delta,
        other => {
            let refusal = format!("records cannot be written as {}", other.name());
            return Err(Failure::usage(refusal, "use --format pprof or --format delta"));
        }
    };
    let key = match spread.key {
        RecordKey::Pod => Key::Pod,
        RecordKey::None => Key::None,
    };
    let settings = PublishSettings {
        partitions: spread.partitions,
        spread: spread.spread,
        identity: configuration.kafka.identity(),
        ..PublishSettings::new(&configuration.kafka.topic, form, key)
    };
    Publisher::open(&configuration.kafka.client, settings).map_err(broker_failure)
}

/// What was published, in one line.
pub fn summary(
    configuration: &Configuration,
    spread: SpreadSettings,
    acknowledged: Acknowledged,
) -> Result<String, Failure> {
    let kafka = &configuration.kafka;
    let partitions = topic::partition_count(&kafka.client, &kafka.topic).map_err(broker_failure)?;
    let used =
        spread.spread.map_or_else(String::new, |spread| format!("the first {} of ", spread.clamp(1, partitions)));
    let key = match spread.key {
        RecordKey::Pod => "keyed by pod",
        RecordKey::None => "without keys",
    };
    Ok(format!(
        "published {} records, {} bytes as {} {key}, to {used}{partitions} partitions of topic {} at {}",
        acknowledged.records,
        acknowledged.bytes,
        kafka.format.name(),
        kafka.topic,
        kafka.client.brokers,
    ))
}
