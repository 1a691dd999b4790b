//! `publish`: writes a recorded fleet to a Kafka topic.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use fleetdiff_connectors::files::{RecordedFleet, RejectedLine};
use fleetdiff_formats::Options;

use crate::configuration::{Configuration, Flags, OfTopic};
use crate::failure::Failure;
use crate::progress::bar;
use crate::publisher::{self, PartitionArgs};

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff publish fleets/kv-snapshot --brokers kafka:9092 --topic profiles --key pod
  fleetdiff publish fleets/rd-listpack --brokers kafka:9092 --topic deltas --format delta \\
      --key none --partitions 8
  fleetdiff publish fleets/kv-snapshot --brokers kafka:9092 --topic otlp --format otlp
  fleetdiff publish fleets/rd-listpack --brokers kafka:9092 --topic perf --format perf_script";

/// Arguments of `publish`.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// Folder with a manifest.jsonl
    #[arg(value_name = "FLEET_DIR")]
    pub(crate) fleet: PathBuf,
    /// Configuration file.
    #[arg(long, value_name = "FILE", help = "Configuration file; only its section [kafka] is used")]
    pub(crate) config: Option<PathBuf>,
    /// Topic and how to reach it.
    #[command(flatten)]
    pub(crate) flags: Flags<OfTopic>,
    /// Which partition a record goes to.
    #[command(flatten)]
    pub(crate) onto: PartitionArgs,
}

/// Publishes a fleet, and prints how much brokers have acknowledged.
pub(crate) fn run(args: &PublishArgs) -> Result<(), Failure> {
    let configuration = Configuration::load(args.config.as_deref(), &args.flags).map_err(Failure::of_configuration)?;
    let fleet = RecordedFleet::open(&args.fleet).map_err(Failure::of_fleet)?;
    let publisher = publisher::open(&configuration, args.onto)?;
    let bar = bar(fleet.len(), "profiles");
    // The files are read as files, and written so that readers of the topic can read them.
    let options = Options { symbols: configuration.of_files().symbols, ..configuration.of_records() };
    let published = publisher.publish_fleet(&fleet, &options, |progress| {
        bar.set_position(u64::try_from(progress.lines).unwrap_or(u64::MAX));
        bar.set_message(format!("{} records acknowledged", progress.acknowledged.records));
    });
    bar.finish_and_clear();
    let published = published.map_err(Failure::of_broker)?;
    warn_of_skipped(&published.skipped);
    let summary = publisher::summary(&configuration, args.onto, published.acknowledged)?;
    writeln!(std::io::stdout(), "{summary}; {} lines of the manifest left out", published.skipped.len())?;
    Ok(())
}

/// One line on stderr for each reason, however many lines it affects.
fn warn_of_skipped(skipped: &[RejectedLine]) {
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
