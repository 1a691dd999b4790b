//! `replay`: a recorded fleet through the dataflow.

mod uncalibrated;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_connectors::files::{Filter, RecordedFleet};
use fleetdiff_pipeline::run::run;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::time::TimeRange;

use crate::command::ReplaySettings;
use crate::failure::Failure;
use crate::grid::{self, Paint};
use crate::kafka::configure;
use crate::output::Keeper;

/// Replays a fleet, writes its tables and alerts, and prints the verdicts of the last look.
pub fn replay(settings: &ReplaySettings) -> Result<(), Failure> {
    let configuration = configure(settings.config.as_deref(), &settings.flags)?;
    let config = configuration.dataflow();
    let filter = Filter { service: settings.service.as_deref().map(Into::into), profile_type: settings.profile_type };
    let fleet = RecordedFleet::open(&settings.fleet).map_err(Failure::of_fleet)?.filtered(&filter);
    let keep = |folder, written| match config.method.is_calibrated() {
        true => Keeper::new(Some(folder), written, config.clock(), span(&fleet)),
        false => Keeper::without_alerts(folder, written, config.clock(), span(&fleet)),
    };
    let keeper = keep(&settings.output, configuration.of_fleet_as_json())?;
    // A folder is one partition: one worker reads it.
    let unread = Mutex::new(Some(fleet));
    let sources = move |_, _| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let fleet = unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(fleet.into_iter().map(|fleet| -> Box<dyn Source> { Box::new(fleet) }).collect())
    };
    run(&config, configuration.workers, Arc::new(sources), Box::new(keeper.clone()))?;
    let (tables, self_check) = keeper.finish()?;
    tell_rejected(&tables);
    let mut out = std::io::stdout().lock();
    if tables.comparisons.is_empty() {
        let builds = "no comparison was open at the end: name one with --base and --head, or record a fleet in which a build appears later";
        writeln!(out, "{builds}")?;
    } else if config.method.is_calibrated() {
        grid::print(&mut out, &tables, &config, Paint::of_stdout())?;
        writeln!(out, "{self_check}")?;
    } else {
        uncalibrated::print(&mut out, &tables, config.method)?;
    }
    let written = if config.method.is_calibrated() { "tables and alerts.jsonl" } else { "tables" };
    writeln!(out, "{written} are in {}", settings.output.display())?;
    Ok(())
}

/// From the first event time that the manifest names to the last.
fn span(fleet: &RecordedFleet) -> TimeRange {
    let events = || fleet.labels().filter_map(|labels| Some(labels.temporality.window(labels.window?).midpoint()));
    TimeRange { start: events().min().unwrap_or_default(), end: events().max().unwrap_or_default() }
}

/// One line on stderr for each reason, however many records it hit.
fn tell_rejected(tables: &Tables) {
    let mut by_reason: std::collections::BTreeMap<Reason, (usize, &str)> = std::collections::BTreeMap::new();
    for row in &tables.rejected {
        by_reason.entry(row.rejection.reason).or_insert((0, &row.rejection.detail)).0 += 1;
    }
    for (reason, (count, detail)) in by_reason {
        tracing::warn!("{count} rejected as {}: {detail} (all are in the table rejected)", reason.name());
    }
}
