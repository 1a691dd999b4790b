//! `replay`: a recorded fleet through the dataflow.

mod named;
mod uncalibrated;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use fleetdiff_connectors::files::{Filter, RecordedFleet};
use fleetdiff_connectors::receivers::{ReceiverSettings, Receivers};
use fleetdiff_pipeline::run;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::{LimitRow, Tables};
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::time::TimeRange;

use crate::configuration::{Configuration, Flags, OfDataflow};
use crate::failure::Failure;
use crate::grid;
use crate::heap;
use crate::output::GRACE;
use crate::output::guidance::GuidanceLog;
use crate::output::keeper::Keeper;
use crate::rings;
use crate::scaling;
use crate::waiting;
use crate::written_report;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Example:
  fleetdiff replay fleets/rd-listpack --output out --warm-up 0s \\
      --cell cohort --base A,A2 --head B --count-kind self";

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Folder with a manifest.jsonl
    #[arg(value_name = "FLEET_DIR")]
    pub(crate) fleet: PathBuf,
    /// Configuration file.
    #[arg(
        long,
        value_name = "FILE",
        help = "Configuration file; only its sections [dataflow] and [run] are used, and [[receivers]] with --receivers"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Only profiles of this service
    #[arg(long, help_heading = "Input", value_name = "SERVICE")]
    pub(crate) service: Option<String>,
    /// Only profiles of this type
    #[arg(long, help_heading = "Input", value_name = "TYPE")]
    pub(crate) profile_type: Option<ProfileType>,
    /// What decides rows.
    #[command(flatten)]
    pub(crate) flags: Flags<OfDataflow>,
    /// Folder for Parquet tables and alerts.jsonl; must not hold the output of another run
    #[arg(long, help_heading = "Output", value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Also write report.html and report.md into the output folder
    #[arg(long, help_heading = "Output")]
    pub(crate) report: bool,
    /// Also send incidents to the receivers of the configuration file; without it nobody is notified
    #[arg(long, help_heading = "Output", requires = "config")]
    pub(crate) receivers: bool,
}

/// Replays a fleet, writes its tables and alerts, and prints the verdicts of the last look.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let configuration = Configuration::load(args.config.as_deref(), &args.flags).map_err(Failure::of_configuration)?;
    let config = configuration.dataflow();
    let filter = Filter { service: args.service.as_deref().map(Into::into), profile_type: args.profile_type };
    let fleet = RecordedFleet::open(&args.fleet).map_err(Failure::of_fleet)?.with_options(configuration.of_files());
    named::check(&fleet, filter.service.as_ref(), &config.comparing)?;
    let fleet = fleet.filtered(&filter);
    let keep = |folder, written| match config.method.is_calibrated() {
        true => Keeper::new(Some(folder), written, config.clock(), span(&fleet)),
        false => Keeper::without_alerts(folder, written, config.clock(), span(&fleet)),
    };
    let keeper = keep(&args.output, configuration.of_fleet_as_json())?
        .guided(GuidanceLog::always(&configuration.alerts.guidance))
        .archived(&configuration, configuration.of_fleet_as_json())?;
    let receivers = if args.receivers { start_receivers(&configuration, &args.output)? } else { Receivers::default() };
    let keeper = keeper.announced_to(receivers.clone());
    // A folder is one partition: one worker reads it.
    let unread = Mutex::new(Some(fleet));
    let sources = move |_, _| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let fleet = unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(fleet.into_iter().map(|fleet| -> Box<dyn Source> { Box::new(fleet) }).collect())
    };
    run::run(&config, configuration.workers, Arc::new(sources), Box::new(keeper.clone()))?;
    let finished = keeper.finish();
    receivers.finish(GRACE);
    let (tables, aa_check) = finished?;
    warn_of_rejected(&tables);
    warn_of_limits(&tables);
    let mut out = std::io::stdout().lock();
    if tables.comparisons.is_empty() {
        writeln!(out, "{}", named::nothing_compared(&config.comparing))?;
    } else if config.method.is_calibrated() {
        grid::print(&mut out, &tables)?;
        rings::print(&mut out, &tables.rings)?;
        scaling::print(&mut out, &tables.scaling)?;
        heap::print(&mut out, &tables.heap)?;
        waiting::print(&mut out, &tables.waiting)?;
        writeln!(out, "{aa_check}")?;
    } else {
        uncalibrated::print(&mut out, &tables, config.method)?;
    }
    let written = if config.method.is_calibrated() { "tables and alerts.jsonl" } else { "tables" };
    writeln!(out, "{written} are in {}", args.output.display())?;
    if args.report {
        written_report::announce(&mut out, &written_report::write_all(&args.output)?)?;
    }
    Ok(())
}

/// The receivers of the configuration, for events of any age: a recorded fleet is old.
fn start_receivers(configuration: &Configuration, output: &Path) -> Result<Receivers, Failure> {
    let settings = configuration.receivers().map_err(Failure::of_configuration)?;
    let settings: Vec<ReceiverSettings> =
        settings.into_iter().map(|receiver| ReceiverSettings { maximum_age: Duration::ZERO, ..receiver }).collect();
    Receivers::start(&settings, output).map_err(Failure::of_receiver)
}

/// From the first event time in the manifest to the last.
fn span(fleet: &RecordedFleet) -> TimeRange {
    let events = || fleet.windows().map(TimeRange::midpoint);
    TimeRange { start: events().min().unwrap_or_default(), end: events().max().unwrap_or_default() }
}

/// One line on stderr for each service and limit that it exceeds.
fn warn_of_limits(tables: &Tables) {
    let warnings: BTreeSet<String> = tables.limits.iter().map(LimitRow::warning).collect();
    warnings.iter().for_each(|warning| tracing::warn!("{warning} (see the table limits)"));
}

/// One line on stderr for each reason, however many records it affects.
fn warn_of_rejected(tables: &Tables) {
    let mut by_reason: BTreeMap<Reason, (usize, &str)> = BTreeMap::new();
    for row in &tables.rejected {
        by_reason.entry(row.rejection.reason).or_insert((0, &row.rejection.detail)).0 += 1;
    }
    for (reason, (count, detail)) in by_reason {
        tracing::warn!("{count} rejected as {}: {detail} (all are in the table rejected)", reason.name());
    }
}
