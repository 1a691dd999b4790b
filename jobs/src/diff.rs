//! `diff`: recorded profiles of two sides, and which of their differences are real.

mod columns;
mod files;
mod headline;
mod lines;
mod notes;
mod output;
mod report;
mod table;

use std::io::Write;

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Method, NotCompared, Recording, Settings, compare};
use fleetdiff_diff::flame::Sides;

use self::columns::{Column, ColumnSettings};
use self::files::{FileSettings, Read, read};
use self::headline::headline;
use self::output::OutputSettings;
use self::table::TableSettings;
use crate::failure::Failure;

/// Heading of the options that decide what is called.
const WHAT_IS_CALLED: &str = "What is called";

/// Settings of `diff`.
#[derive(Debug, Args)]
pub struct DiffSettings {
    #[command(flatten)]
    files: FileSettings,
    #[command(flatten)]
    output: OutputSettings,
    #[command(flatten)]
    table: TableSettings,
    #[command(flatten)]
    columns: ColumnSettings,
    /// What calls a function changed
    #[arg(long, help_heading = WHAT_IS_CALLED, value_enum, default_value_t = MethodName::Honest)]
    method: MethodName,
    /// Smallest change that is called, as a log ratio
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 0.01)]
    delta: f64,
    /// False-discovery rate
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 0.05)]
    q: f64,
    /// Smallest count of both sides together that is tested
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 30)]
    min_count: u64,
    /// With one run a side: by how much functions differ from run to run beyond what independent samples do, as a standard deviation
    /// of log ratios (0.03: 3 %); without it, what most functions show; 0: samples alone decide
    #[arg(long, help_heading = WHAT_IS_CALLED, value_name = "DEVIATION")]
    background: Option<f64>,
}

/// What calls a function changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Runs as replicates, a robust scale, false discovery controlled
    Honest,
    /// G on merged counts, p below 1e-4: for comparison, not calibrated
    Article,
}

impl DiffSettings {
    fn decides(&self) -> Settings {
        let method = match self.method {
            MethodName::Honest => Method::Honest,
            MethodName::Article => Method::Article,
        };
        Settings { method, q: self.q, delta: self.delta, min_count: self.min_count, background: self.background }
    }
}

/// Compares, and writes what was found.
pub fn diff(settings: &DiffSettings) -> Result<(), Failure> {
    output::check(settings)?;
    let Read { sides, notes } = read(&settings.files)?;
    settings.columns.check(sides.head.len())?;
    notes::tell(&notes, settings);
    if settings.columns.splits_heads() {
        return each_head(sides, settings);
    }
    let compared = compare(&sides, &settings.decides()).map_err(explained)?;
    output::write(&sides, &compared, settings)?;
    notes::tell(&notes::of(&sides, &compared, settings), settings);
    Ok(())
}

/// Compares each head by itself with the base, and writes a column for each.
fn each_head(sides: Sides<Vec<Recording>>, settings: &DiffSettings) -> Result<(), Failure> {
    let (mut text, mut compared) = (Vec::new(), Vec::new());
    let mut pair = Sides { base: sides.base, head: Vec::new() };
    for (head, number) in sides.head.into_iter().zip(1..) {
        pair.head = vec![head];
        let found = compare(&pair, &settings.decides()).map_err(explained)?;
        if !settings.table.is_quiet() {
            writeln!(text, "Column {number}: {}", report::label(&pair.head))?;
            table::say(&mut text, &pair, &found, settings)?;
        }
        compared.push((std::mem::take(&mut pair.head), found));
    }
    let columns: Vec<Column<'_>> = compared.iter().map(|(runs, compared)| Column { runs, compared }).collect();
    columns::print(&mut text, &pair.base, &columns, settings)?;
    output::put(settings, &text)
}

fn explained(failure: NotCompared) -> Failure {
    let hint = match &failure {
        NotCompared::Empty(_) => "see that the files are profiles of the type asked for (--profile-type)",
        NotCompared::Types { .. } => "give files of one type, or say which with --profile-type",
        NotCompared::Units { .. } => "give files whose weights are of one unit",
        NotCompared::DifferentPrograms(_) => {
            "see that both sides are profiles of the same program and type, with symbols"
        }
        NotCompared::Failed(_) => return Failure::from(failure),
    };
    Failure::with_hint(failure, hint)
}
