//! `calibrate`: how often the statistics are wrong, measured on simulated fleets whose truth is known.

mod report;

use std::io::Write;
use std::num::NonZeroUsize;

use clap::Args;
use clap::builder::PossibleValuesParser;
use fleetdiff_simulation::calibration::{Effort, Row, measure, runs_of, table};

use crate::failure::Failure;
use crate::progress::bar;
use crate::ranges::{seed, whole};
use report::{Format, Judged, Report};

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff calibrate --runs 20
  fleetdiff calibrate --row aa looks --runs 1000 --seed 7
  fleetdiff calibrate --method article --runs 20
  fleetdiff calibrate --list";

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Number of simulations for each row; some cheap rows run more
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = |text: &str| whole(text, 1_u64..=1_000_000))]
    pub(crate) runs: u64,
    /// Seed of the simulations
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Number of threads that share the simulations; figures do not depend on it [default: one for each processor]
    #[arg(long, value_parser = |text: &str| whole(text, NonZeroUsize::MIN..=NonZeroUsize::MIN.saturating_add(1023)))]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Rows to measure [default: all]
    #[arg(long, num_args = 1.., value_name = "NAME", value_parser = names())]
    pub(crate) row: Vec<String>,
    /// Method whose figures are compared with the bounds
    #[arg(long, value_enum, default_value_t = Judged::Honest)]
    pub(crate) method: Judged,
    /// Print what is simulated and required, and exit
    #[arg(long)]
    pub(crate) list: bool,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(table().into_iter().map(|row| row.name))
}

/// Measures the rows, prints each as soon as it is known, and fails if one is outside its bounds.
pub(crate) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let chosen = |row: &Row| args.row.is_empty() || args.row.iter().any(|name| name == row.name);
    let rows: Vec<Row> = table().into_iter().filter(chosen).collect();
    let effort = Effort { runs: args.runs, seed: args.seed, threads: threads(args) };
    let mut report = Report::new(args.format, args.method);
    let mut out = std::io::stdout();
    if args.list {
        return rows.iter().try_for_each(|row| Ok(out.write_all(report.listed(row).as_bytes())?));
    }
    let all: u64 = rows.iter().map(|row| runs_of(row, effort)).sum();
    let bar = bar(usize::try_from(all).unwrap_or(usize::MAX), "runs");
    for row in &rows {
        bar.set_message(row.name);
        let measured = measure(row, effort, || bar.inc(1))?;
        let text = report.row(row, &measured);
        bar.suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    }
    bar.finish_and_clear();
    out.write_all(report.end(effort).as_bytes())?;
    match report.outside() {
        [] => Ok(()),
        outside => Err(Failure::with_hint(
            format!("outside what is required: {}", outside.join(", ")),
            "with few runs a bound is missed by chance in 1 of some 1,000; measure such a row alone with more --runs and another --seed",
        )),
    }
}

fn threads(args: &CalibrateArgs) -> usize {
    let asked = args.threads.map(NonZeroUsize::get);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
}
