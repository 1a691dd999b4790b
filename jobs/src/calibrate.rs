//! `calibrate`: how often the statistics are wrong, measured on simulated fleets whose truth is known.

mod report;

use std::io::Write;
use std::num::NonZeroUsize;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use fleetdiff_simulation::calibration::{Effort, Row, measure, runs_of, table};
use report::Report;

use crate::failure::Failure;
use crate::publish::bar;

/// Settings of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateSettings {
    /// Runs of each row; some cheap rows make more of them
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Seed of all chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads that share the runs; figures do not depend on it (default: one for each processor)
    #[arg(long)]
    pub threads: Option<NonZeroUsize>,
    /// Only these rows
    #[arg(long, num_args = 1.., value_name = "NAME", value_parser = names())]
    pub row: Vec<String>,
    /// Print what is simulated and required, and stop
    #[arg(long)]
    pub list: bool,
    /// Whose figures must keep to the bounds
    #[arg(long, value_enum, default_value_t = Judged::Honest)]
    pub method: Judged,
    /// How the table is written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// Whose figures must keep to the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Judged {
    /// Those of fleetdiff's statistics
    Honest,
    /// Those of plain G on merged counts with Benjamini-Hochberg, to see that the bounds can be missed
    Article,
}

/// How the table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One JSON object a row
    Json,
    /// A Markdown table
    Markdown,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(table().into_iter().map(|row| row.name))
}

/// Measures the rows, prints each as soon as it is known, and fails if one is outside its bounds.
pub fn calibrate(settings: &CalibrateSettings) -> Result<(), Failure> {
    let chosen = |row: &Row| settings.row.is_empty() || settings.row.iter().any(|name| name == row.name);
    let rows: Vec<Row> = table().into_iter().filter(chosen).collect();
    let effort = Effort { runs: settings.runs, seed: settings.seed, threads: threads(settings) };
    let mut report = Report::new(settings.format, settings.method);
    let mut out = std::io::stdout();
    if settings.list {
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

fn threads(settings: &CalibrateSettings) -> usize {
    let asked = settings.threads.map(NonZeroUsize::get);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
}
