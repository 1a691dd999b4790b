//! `demo`: a synthetic fleet with a canary through the dataflow.

use std::io::Write;
use std::sync::Arc;

use fleetdiff_pipeline::run::run;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_simulation::fleet::{Cells, Fleet};

use crate::command::DemoSettings;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::grid::{self, Paint};
use crate::output::Keeper;

/// Runs the demonstration and prints the fan-out grid and the verdict in words.
pub fn demo(settings: &DemoSettings) -> Result<(), Failure> {
    let cells: Cells =
        settings.cells.parse().map_err(|failure| Failure::with_hint(failure, "cells are written REGION:COHORT,..."))?;
    // Whole stacks, so that callers are put down to what they call.
    let fleet = Fleet::demo(settings.seed)
        .stacks()
        .unchanged()
        .regress(settings.regress.as_str(), cells, settings.by)
        .requests_per_second(settings.requests)
        .partition_count(u32::try_from(settings.workers.max(1)).unwrap_or(1))
        .try_build()?;
    let config = Config::default();
    let keeper = Keeper::new(
        settings.output.as_deref(),
        Configuration::of_dataflow(config.clone()).of_fleet_as_json(),
        config.clock(),
        fleet.time(),
    )?;
    let readers = fleet.clone();
    let sources = move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(readers.source(worker, workers))])
    };
    run(&config, settings.workers, Arc::new(sources), Box::new(keeper.clone()))?;
    let (tables, self_check) = keeper.finish()?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} pods, build {} deployed beside {}; {} costs x {} in {}",
        fleet.pods(),
        fleet.head(),
        fleet.base(),
        settings.regress,
        settings.by,
        settings.cells
    )?;
    grid::print(&mut out, &tables, &config, Paint::of_stdout())?;
    if let Some(folder) = &settings.output {
        writeln!(out, "tables and alerts.jsonl are in {}", folder.display())?;
    }
    writeln!(out, "{self_check}")?;
    Ok(())
}
