//! `generate`: a synthetic fleet whose truth is known, written to a folder or a Kafka topic.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fleetdiff_connectors::files::{FileFormat, FleetWriter};
use fleetdiff_connectors::kafka::publish::Outgoing;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder};

use crate::configuration::{Configuration, Flags, OfTopic};
use crate::failure::Failure;
use crate::progress::bar;
use crate::publisher::{self, PartitionArgs};
use crate::ranges::{factor, length, part, requests, seed, whole};

/// Heading of the flags that say what the fleet is.
const FLEET: &str = "Fleet";
/// Heading of the flags that say what changes.
const CHANGE: &str = "What changes in the canary";
/// Heading of the flags that say what goes wrong.
const FAULTS: &str = "Faults";

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff generate --output fleet --seed 7 --pods 5:20 --duration 10m
  fleetdiff generate --brokers kafka:9092 --topic profiles --format delta \\
      --late 0.02 --late-by 7m --duplicates 0.01
  fleetdiff generate --output quiet --preset null-cells --duration 10m";

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// New folder for the fleet: pprof files with a manifest
    #[arg(long, help_heading = "Output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Configuration file.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "output",
        help = "Configuration file; only its section [kafka] is used"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Topic and how to reach it.
    #[command(flatten)]
    pub(crate) flags: Flags<OfTopic>,
    /// Which partition a record goes to.
    #[command(flatten)]
    pub(crate) onto: PartitionArgs,
    /// Seed of the fleet
    #[arg(long, help_heading = FLEET, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Regions, cohorts, builds and pods of the fleet, and what changes
    #[arg(long, help_heading = FLEET, value_enum, default_value_t = Preset::Demo)]
    pub(crate) preset: Preset,
    /// Number of canary and baseline pods in each cell, as in 5:20 [default: those of the preset]
    #[arg(long, help_heading = FLEET, value_name = "HEAD:BASE", value_parser = pods)]
    pub(crate) pods: Option<(u32, u32)>,
    /// Event time that the fleet covers [default: that of the preset]
    #[arg(long, help_heading = FLEET, value_parser = length)]
    pub(crate) duration: Option<Nanos>,
    /// Requests per second that each pod serves; 0: requests are not counted
    #[arg(long, help_heading = FLEET, value_name = "PER_SECOND", default_value_t = 0.0, value_parser = requests)]
    pub(crate) requests: f64,
    /// Function that costs more in the canary; (all) for every function
    #[arg(long, help_heading = CHANGE, value_name = "FUNCTION")]
    pub(crate) regress: Option<String>,
    /// Cells in which the function costs more; * stands for every region or cohort
    #[arg(long, help_heading = CHANGE, value_name = "REGION:COHORT,...")]
    pub(crate) cells: Option<String>,
    /// Factor by which the cost grows; 1.0: nothing changes
    #[arg(long, help_heading = CHANGE, value_parser = factor)]
    pub(crate) factor: Option<f64>,
    /// Fraction of profiles that arrive late
    #[arg(long, help_heading = FAULTS, value_name = "FRACTION", default_value_t = 0.0, value_parser = part, requires = "late_by")]
    pub(crate) late: f64,
    /// Longest delay of a late profile; the shortest is half of it
    #[arg(long, help_heading = FAULTS, value_name = "DURATION", value_parser = length, default_value = "0s")]
    pub(crate) late_by: Nanos,
    /// Fraction of profiles that arrive twice
    #[arg(long, help_heading = FAULTS, value_name = "FRACTION", default_value_t = 0.0, value_parser = part)]
    pub(crate) duplicates: f64,
    /// Number of pods that restart once
    #[arg(long, help_heading = FAULTS, value_name = "PODS", default_value_t = 0, value_parser = |text: &str| whole(text, 0_u32..=1_000_000))]
    pub(crate) restarts: u32,
}

/// What a synthetic fleet is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// 3 regions x 3 cohorts; one function costs 10 % more in two cells of the canary
    Demo,
    /// Nothing changes; 9 cells of 5 canary and 84 baseline pods
    NullCells,
    /// Nothing changes; cohorts are labels of requests
    NullRequestLabels,
    /// Nothing changes; the hour of the day changes half way through
    NullHourEdge,
    /// Nothing changes while 100 pods are rolled out
    Rollout,
}

/// Makes a fleet and prints a summary of it.
pub(crate) fn run(args: &GenerateArgs) -> Result<(), Failure> {
    let to_topic = publisher::is_named(args.config.as_deref(), &args.flags);
    match &args.output {
        Some(_) if to_topic => {
            Err(Failure::usage("a fleet goes to one place", "give either --output or --brokers and --topic"))
        }
        Some(folder) => into_folder(args, folder),
        None if to_topic => onto_topic(args),
        None => Err(Failure::usage("nowhere to put the fleet", "give --output DIR, or --brokers and --topic")),
    }
}

fn into_folder(args: &GenerateArgs, folder: &Path) -> Result<(), Failure> {
    let fleet = built(builder(args)?.stacks())?;
    let mut writer = FleetWriter::create(folder, FileFormat::Pprof).map_err(Failure::of_fleet)?;
    let written = each_profile(&fleet, |profile| writer.write(&profile).map_err(Failure::of_fleet))?;
    writer.finish().map_err(Failure::of_fleet)?;
    writeln!(
        std::io::stdout(),
        "{written} profiles of {} pods, build {} beside {}, are in {}",
        fleet.pods(),
        fleet.head(),
        fleet.base(),
        folder.display()
    )?;
    Ok(())
}

fn onto_topic(args: &GenerateArgs) -> Result<(), Failure> {
    let configuration = Configuration::load(args.config.as_deref(), &args.flags).map_err(Failure::of_configuration)?;
    let fleet = built(builder(args)?.stacks())?;
    let mut publisher = publisher::open(&configuration, args.onto)?;
    let sent =
        each_profile(&fleet, |profile| publisher.publish(Outgoing::Profile(profile)).map_err(Failure::of_broker))?;
    let acknowledged = publisher.finish(|_| {}).map_err(Failure::of_broker)?;
    let summary = publisher::summary(&configuration, args.onto, acknowledged)?;
    writeln!(
        std::io::stdout(),
        "{sent} profiles of {} pods, build {} beside {}: {summary}",
        fleet.pods(),
        fleet.head(),
        fleet.base()
    )?;
    Ok(())
}

/// Gives each profile in the order of delivery; returns their number.
fn each_profile(fleet: &Fleet, mut take: impl FnMut(Profile) -> Result<(), Failure>) -> Result<u64, Failure> {
    let bar = bar(usize::try_from(fleet.profiles()).unwrap_or(usize::MAX), "profiles");
    let mut given = 0;
    for profile in fleet.partition(0, 1).flat_map(|record| record.parts).flatten() {
        take(profile)?;
        given += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(given)
}

fn built(builder: FleetBuilder) -> Result<Fleet, Failure> {
    builder.try_build().map_err(|failure| Failure::usage(failure, "`fleetdiff generate --help` says what can be set"))
}

fn builder(args: &GenerateArgs) -> Result<FleetBuilder, Failure> {
    let seed = args.seed;
    let mut builder = match args.preset {
        Preset::Demo => Fleet::demo(seed),
        Preset::NullCells => Fleet::null_cells(seed),
        Preset::NullRequestLabels => Fleet::null_request_labels(seed),
        Preset::NullHourEdge => Fleet::null_hour_edge(seed),
        Preset::Rollout => Fleet::rollout(seed),
    };
    if let Some((head, base)) = args.pods {
        builder = builder.pods_per_cell(head, base);
    }
    if let Some(length) = args.duration {
        builder = builder.lasts(length);
    }
    if args.regress.is_some() || args.cells.is_some() || args.factor.is_some() {
        let cells = args.cells.as_deref().unwrap_or(Fleet::DEMO_CELLS);
        let cells: Cells =
            cells.parse().map_err(|failure: String| Failure::usage(failure, "cells are written REGION:COHORT,..."))?;
        let function = args.regress.as_deref().unwrap_or(Fleet::DEMO_FUNCTION);
        builder = builder.unchanged().regress(function, cells, args.factor.unwrap_or(Fleet::DEMO_FACTOR));
    }
    Ok(builder
        .requests_per_second(args.requests)
        .late(args.late, args.late_by)
        .duplicates(args.duplicates)
        .restarts(args.restarts))
}

fn pods(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once(':').and_then(|(head, base)| Some((head.parse().ok()?, base.parse().ok()?)));
    parsed.ok_or_else(|| "expected HEAD:BASE, as in 5:20".to_owned())
}
