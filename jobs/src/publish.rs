//! `publish`: a recorded fleet onto a Kafka topic.

use std::collections::BTreeMap;
use std::io::Write;

use fleetdiff_connectors::files::{RecordedFleet, RejectedLine};
use indicatif::{ProgressBar, ProgressStyle};

use crate::command::PublishSettings;
use crate::failure::Failure;
use crate::kafka::{broker_failure, configure, open_publisher, summary};

/// Publishes a fleet, and prints what brokers have acknowledged.
pub fn publish(settings: &PublishSettings) -> Result<(), Failure> {
    let configuration = configure(settings.config.as_deref(), &settings.flags)?;
    let fleet = RecordedFleet::open(&settings.fleet).map_err(Failure::of_fleet)?;
    let publisher = open_publisher(&configuration, settings.spread)?;
    let bar = bar(fleet.len(), "profiles");
    let published = publisher.publish_fleet(&fleet, &configuration.of_records(), |progress| {
        bar.set_position(u64::try_from(progress.lines).unwrap_or(u64::MAX));
        bar.set_message(format!("{} records acknowledged", progress.acknowledged.records));
    });
    bar.finish_and_clear();
    let published = published.map_err(broker_failure)?;
    tell_skipped(&published.skipped);
    let summary = summary(&configuration, settings.spread, published.acknowledged)?;
    writeln!(std::io::stdout(), "{summary}; {} lines of the manifest left out", published.skipped.len())?;
    Ok(())
}

/// A bar on a terminal, nothing elsewhere.
pub fn bar(length: usize, of: &str) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {of}, {{msg}}, {{eta}} left"))
    {
        bar.set_style(style);
    }
    bar
}

/// One line on stderr for each reason, however many lines it hit.
fn tell_skipped(skipped: &[RejectedLine]) {
    let mut by_reason: BTreeMap<_, (usize, &RejectedLine)> = BTreeMap::new();
    for line in skipped {
        by_reason.entry(line.rejection.reason).or_insert((0, line)).0 += 1;
    }
    for (reason, (count, first)) in by_reason {
        let (line, detail) = (first.line, &first.rejection.detail);
        tracing::warn!(
            "{count} lines of the manifest left out as {}, the first of them line {line}: {detail}",
            reason.name()
        );
    }
}
