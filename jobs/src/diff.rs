//! `diff`: recorded profiles of two sides, and which of their differences are real.

mod files;
mod output;
mod report;
mod table;

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Compared, Method, NotCompared, Settings, Spread, compare};

use self::files::{FileSettings, Read, read};
use self::output::{OutputFormat, OutputSettings};
use self::table::TableSettings;
use crate::failure::Failure;

/// Settings of `diff`.
#[derive(Debug, Args)]
pub struct DiffSettings {
    #[command(flatten)]
    files: FileSettings,
    #[command(flatten)]
    output: OutputSettings,
    #[command(flatten)]
    table: TableSettings,
    /// What calls a function changed
    #[arg(long, value_enum, default_value_t = MethodName::Honest)]
    method: MethodName,
    /// Smallest change that is called, as a log ratio
    #[arg(long, default_value_t = 0.01)]
    delta: f64,
    /// False-discovery rate
    #[arg(long, default_value_t = 0.05)]
    q: f64,
    /// Smallest count of both sides together that is tested
    #[arg(long, default_value_t = 30)]
    min_count: u64,
}

/// What calls a function changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Runs as replicates, a robust scale, false discovery controlled
    Honest,
    /// G on merged counts, p below 1e-4: for comparison, not calibrated
    Article,
}

/// Compares, and writes what was found.
pub fn diff(settings: &DiffSettings) -> Result<(), Failure> {
    let Read { sides, notes } = read(&settings.files)?;
    notes.iter().for_each(|note| tracing::warn!("{note}"));
    let method = match settings.method {
        MethodName::Honest => Method::Honest,
        MethodName::Article => Method::Article,
    };
    let decides = Settings { method, q: settings.q, delta: settings.delta, min_count: settings.min_count };
    let compared = compare(&sides, &decides).map_err(explained)?;
    output::write(&sides, &compared, settings)?;
    if compared.spread == Spread::Unknown && method == Method::Honest && settings.output.format != OutputFormat::Table {
        tracing::warn!("{}", report::UNKNOWN_SPREAD);
    }
    Ok(())
}

/// The headline: how many shares moved, and how many of them are real.
fn headline(compared: &Compared, settings: &DiffSettings) -> String {
    let findings = || compared.of_kind(settings.table.count_kind).filter(|finding| finding.functions.is_none());
    let shifted = findings().filter(|finding| finding.has_shifted()).count();
    let called = findings().filter(|finding| finding.verdict.is_called()).count();
    let of = findings().count();
    let are = if called == 1 { "is" } else { "are" };
    match settings.method {
        MethodName::Honest => format!("{shifted} of {of} functions shifted by more than 1 %, {called} {are} real"),
        MethodName::Article => format!("{shifted} of {of} functions shifted by more than 1 %, {called} {are} called by the article's rule, which is not calibrated"),
    }
}

fn explained(failure: NotCompared) -> Failure {
    let hint = match &failure {
        NotCompared::Empty(_) => "see that the files are profiles of the type asked for (--profile-type)",
        NotCompared::Types { .. } => "give files of one type, or say which with --profile-type",
        NotCompared::Units { .. } => "give files whose weights are of one unit",
        NotCompared::Strangers => "see that both sides are profiles of the same program, with symbols",
        NotCompared::Failed(_) => return Failure::from(failure),
    };
    Failure::with_hint(failure, hint)
}
