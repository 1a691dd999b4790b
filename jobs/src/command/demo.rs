//! `demo`: a synthetic fleet with a canary through the dataflow.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fleetdiff_pipeline::run;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_simulation::fleet::{Cells, Fleet};

use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::grid;
use crate::output::Keeper;
use crate::written_report;

/// Heading of the flags that say what changes.
const CHANGE: &str = "What changes in the canary";

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff demo
  fleetdiff demo --output out --report
  fleetdiff demo --factor 1.0 --seed 7
  fleetdiff demo --regress cache::probe --cells eu-west-1:Web-Desktop --factor 1.2";

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Seed of the fleet
    #[arg(long, help_heading = "Fleet", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Requests per second that each pod serves; 0: requests are not counted
    #[arg(long, help_heading = "Fleet", value_name = "PER_SECOND", default_value_t = 0.0)]
    pub(crate) requests: f64,
    /// Function that costs more in the canary; (all) for every function
    #[arg(long, help_heading = CHANGE, value_name = "FUNCTION", default_value = Fleet::DEMO_FUNCTION)]
    pub(crate) regress: String,
    /// Cells in which the function costs more; * stands for every region or cohort
    #[arg(long, help_heading = CHANGE, value_name = "REGION:COHORT,...", default_value = Fleet::DEMO_CELLS)]
    pub(crate) cells: String,
    /// Factor by which the cost grows; 1.0: nothing changes
    #[arg(long, help_heading = CHANGE, default_value_t = Fleet::DEMO_FACTOR)]
    pub(crate) factor: f64,
    /// Number of worker threads; results do not depend on it
    #[arg(long, help_heading = "Running", value_name = "THREADS", default_value_t = 2)]
    pub(crate) workers: usize,
    /// Folder for Parquet tables and alerts.jsonl; must not hold the output of another run
    #[arg(long, help_heading = "Output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Also write report.html and report.md into the output folder
    #[arg(long, help_heading = "Output", requires = "output")]
    pub(crate) report: bool,
}

/// Runs the demonstration and prints the fan-out grid and the verdict in words.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let cells: Cells =
        args.cells.parse().map_err(|failure| Failure::with_hint(failure, "cells are written REGION:COHORT,..."))?;
    // Whole stacks, so that callers are explained by their callees.
    let fleet = Fleet::demo(args.seed)
        .stacks()
        .unchanged()
        .regress(args.regress.as_str(), cells, args.factor)
        .requests_per_second(args.requests)
        .partition_count(u32::try_from(args.workers.max(1)).unwrap_or(1))
        .try_build()?;
    let config = Config::default();
    let keeper = Keeper::new(
        args.output.as_deref(),
        Configuration::of_dataflow(config.clone()).of_fleet_as_json(),
        config.clock(),
        fleet.time(),
    )?;
    let readers = fleet.clone();
    let sources = move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(readers.source(worker, workers))])
    };
    run::run(&config, args.workers, Arc::new(sources), Box::new(keeper.clone()))?;
    let (tables, aa_check) = keeper.finish()?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} pods, build {} deployed beside {}; {} costs x {} in {}",
        fleet.pods(),
        fleet.head(),
        fleet.base(),
        args.regress,
        args.factor,
        args.cells
    )?;
    grid::print(&mut out, &tables)?;
    if let Some(folder) = &args.output {
        writeln!(out, "tables and alerts.jsonl are in {}", folder.display())?;
        if args.report {
            written_report::announce(&mut out, &written_report::write_all(folder)?)?;
        }
    }
    writeln!(out, "{aa_check}")?;
    Ok(())
}
