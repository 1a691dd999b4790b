//! `demo`: a synthetic fleet with a canary through the dataflow.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fleetdiff_pipeline::run;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::rows::ALL_FUNCTIONS;
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder};

use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::grid;
use crate::heap;
use crate::output::keeper::Keeper;
use crate::ranges::{factor, requests, seed, whole};
use crate::scaling;
use crate::written_report;

/// Requests per second and pod under load, unless another number is asked for.
const WITH_LOAD: f64 = 40.0;
/// Heading of the flags that say what changes.
const CHANGE: &str = "What changes in the canary";

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff demo
  fleetdiff demo --output out --report
  fleetdiff demo --factor 1.0 --seed 7
  fleetdiff demo --load 2
  fleetdiff demo --regress cache::probe --cells eu-west-1:Web-Desktop --factor 1.2";

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Seed of the fleet
    #[arg(long, help_heading = "Fleet", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Requests per second that each pod serves; 0: requests are not counted
    ///
    /// [default: 0, with --load 40]
    #[arg(long, help_heading = "Fleet", value_name = "PER_SECOND", value_parser = requests)]
    pub(crate) requests: Option<f64>,
    /// Load rises to this many times what it was and falls back, twice, and the function costs more in the canary the higher it is
    ///
    /// At twice the load it costs 1.23 times as much per request (load to the power of 0.3). Nothing else changes, unless --factor is given.
    /// Another function, gc::mark_object, costs the same at any load in both builds, so that shares of all others rise and fall with load
    #[arg(long, help_heading = "Fleet", value_name = "TIMES", num_args = 0..=1, default_missing_value = "2", value_parser = factor)]
    pub(crate) load: Option<f64>,
    /// Function that costs more in the canary; (all) for every function
    #[arg(long, help_heading = CHANGE, value_name = "FUNCTION", default_value = Fleet::DEMO_FUNCTION)]
    pub(crate) regress: String,
    /// Cells in which the function costs more; * stands for every region or cohort
    #[arg(long, help_heading = CHANGE, value_name = "REGION:COHORT,...", default_value = Fleet::DEMO_CELLS)]
    pub(crate) cells: String,
    /// Factor by which the cost grows; 1.0: nothing changes
    ///
    /// [default: 1.1, with --load 1.0]
    #[arg(long, help_heading = CHANGE, value_parser = factor)]
    pub(crate) factor: Option<f64>,
    /// Number of worker threads; results do not depend on it
    #[arg(long, help_heading = "Running", value_name = "THREADS", default_value_t = 2, value_parser = |text: &str| whole(text, 1_usize..=1024))]
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
    let unasked = if args.load.is_some() { 1.0 } else { Fleet::DEMO_FACTOR };
    let factor = args.factor.unwrap_or(unasked);
    let (fleet, requests) = match args.load {
        Some(peak) => (under_load(args, &cells, peak), WITH_LOAD),
        None => (Fleet::demo(args.seed).unchanged(), 0.0),
    };
    let fleet = fleet
        .stacks()
        .regress(args.regress.as_str(), cells, factor)
        .requests_per_second(args.requests.unwrap_or(requests))
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
    let (pods, head, base) = (fleet.pods(), fleet.head(), fleet.base());
    writeln!(out, "{pods} pods, build {head} deployed beside {base}; {}", changes(args, factor))?;
    grid::print(&mut out, &tables)?;
    scaling::print(&mut out, &tables.scaling)?;
    heap::print(&mut out, &tables.heap)?;
    if let Some(folder) = &args.output {
        writeln!(out, "tables and alerts.jsonl are in {}", folder.display())?;
        if args.report {
            written_report::announce(&mut out, &written_report::write_all(folder)?)?;
        }
    }
    writeln!(out, "{aa_check}")?;
    Ok(())
}

/// Whether one function scales worse: whatever all functions have in common is no function of its own.
fn scales(args: &DemoArgs) -> bool {
    args.regress != ALL_FUNCTIONS
}

fn under_load(args: &DemoArgs, cells: &Cells, peak: f64) -> FleetBuilder {
    let fleet = Fleet::demo_under_load(args.seed, peak);
    if scales(args) { fleet.scales_worse(args.regress.as_str(), cells.clone(), Fleet::DEMO_ELASTICITY) } else { fleet }
}

/// What differs between the builds, in words.
fn changes(args: &DemoArgs, factor: f64) -> String {
    let DemoArgs { regress, cells, .. } = args;
    match args.load {
        None => format!("{regress} costs x {factor} in {cells}"),
        Some(peak) => {
            let power = Fleet::DEMO_ELASTICITY;
            let also = args.factor.map_or_else(String::new, |factor| format!(", and x {factor}"));
            let scaled =
                if scales(args) { format!("load to the power of {power}") } else { "the same at any load".to_owned() };
            format!(
                "load rises to {peak} times what it was and falls back; a request costs {scaled} in {regress} in {cells}{also}"
            )
        }
    }
}
