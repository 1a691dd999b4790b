//! How records are written to the configured topic, for the commands that do so.

use std::path::Path;

use clap::{Args, ValueEnum};
use fleetdiff_connectors::kafka::publish::{Acknowledged, Key, PublishSettings, Publisher, RecordForm};
use fleetdiff_connectors::kafka::topic;

use crate::configuration::{Configuration, Flags, OfTopic};
use crate::failure::Failure;
use crate::ranges::whole;

/// Which partition a record goes to.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Partitions")]
pub(crate) struct PartitionArgs {
    /// Key of a record, which decides its partition
    #[arg(long, value_enum, default_value_t = RecordKey::Pod)]
    pub(crate) key: RecordKey,
    /// Number of partitions of the topic if it is created
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = |text: &str| whole(text, 1..=i32::MAX))]
    pub(crate) partitions: i32,
    /// Write only to the first COUNT partitions and leave the others empty
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| whole(text, 1..=i32::MAX))]
    pub(crate) partitions_used: Option<i32>,
}

/// What decides the partition of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordKey {
    /// All records of a pod go to one partition
    Pod,
    /// Records go to the partitions in turn
    None,
}

/// Whether a command line names a topic, by itself or in a file.
pub(crate) fn is_named(config: Option<&Path>, flags: &Flags<OfTopic>) -> bool {
    config.is_some() || flags.has("kafka.brokers") || flags.has("kafka.topic")
}

/// A publisher to the configured topic, which is created if it does not exist.
pub(crate) fn open(configuration: &Configuration, onto: PartitionArgs) -> Result<Publisher, Failure> {
    let form = RecordForm::of(configuration.kafka.format).ok_or_else(|| {
        let refusal = format!("records cannot be written as {}", configuration.kafka.format.name());
        let forms = RecordForm::ALL.map(|form| form.format().name()).join(", ");
        Failure::usage(refusal, format!("use --format with one of {forms}"))
    })?;
    let key = match onto.key {
        RecordKey::Pod => Key::Pod,
        RecordKey::None => Key::None,
    };
    let settings = PublishSettings {
        partitions: onto.partitions,
        spread: onto.partitions_used,
        identity: configuration.kafka.identity(),
        ..PublishSettings::new(&configuration.kafka.topic, form, key)
    };
    Publisher::open(&configuration.kafka.client, settings).map_err(Failure::of_broker)
}

/// What was published, in one line.
pub(crate) fn summary(
    configuration: &Configuration,
    onto: PartitionArgs,
    acknowledged: Acknowledged,
) -> Result<String, Failure> {
    let kafka = &configuration.kafka;
    let partitions = topic::partition_count(&kafka.client, &kafka.topic).map_err(Failure::of_broker)?;
    let used =
        onto.partitions_used.map_or_else(String::new, |first| format!("the first {} of ", first.clamp(1, partitions)));
    let key = match onto.key {
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
