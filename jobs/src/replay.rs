//! `replay`: a recorded fleet through the dataflow.

use std::io::Write;
use std::sync::Arc;

use fleetdiff_connectors::files::{Filter, RecordedFleet};
use fleetdiff_pipeline::run::run;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::source::{Source, SourceError};

use crate::command::ReplaySettings;
use crate::failure::Failure;
use crate::grid;
use crate::output::Keeper;

/// Replays a fleet, writes its tables and alerts, and prints the verdicts of the last look.
pub fn replay(settings: &ReplaySettings) -> Result<(), Failure> {
    let config = settings.config();
    let open = || RecordedFleet::open(&settings.fleet).map_err(|failure| {
        let hint = failure.hint();
        Failure::with_hint(failure, hint)
    });
    drop(open()?);
    let configuration = format!("{config:?}");
    let keeper = Keeper::new(Some(&settings.output), serde_json::to_string(&configuration)?, config.clock(), 0)?;
    let filter = Filter { service: settings.service.as_deref().map(Into::into), profile_type: settings.profile_type };
    let folder = settings.fleet.clone();
    let sources = move |worker, _| -> Result<Vec<Box<dyn Source>>, SourceError> {
        if worker > 0 {
            return Ok(Vec::new());
        }
        let fleet = RecordedFleet::open(&folder).map_err(|failure| SourceError {
            source_name: folder.display().to_string(),
            detail: failure.to_string(),
            hint: failure.hint().to_owned(),
        })?;
        Ok(vec![Box::new(fleet.filtered(&filter))])
    };
    run(&config, settings.workers, Arc::new(sources), Box::new(keeper.clone()))?;
    let tables = keeper.finish()?;
    tell_rejected(&tables);
    let mut out = std::io::stdout().lock();
    if tables.comparisons.is_empty() {
        let builds = "no comparison was open at the end: name one with --base and --head, or record a fleet in which a build appears later";
        writeln!(out, "{builds}")?;
    } else {
        grid::print(&mut out, &tables)?;
    }
    writeln!(out, "tables and alerts.jsonl are in {}", settings.output.display())?;
    Ok(())
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
