//! `diff`: recorded profiles of two sides, and which of their differences are real.

mod files;
mod report;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Compared, Method, NotCompared, Settings, Spread, compare};
use fleetdiff_diff::page::page;
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;
use fleetdiff_schemas::profile::{CountKind, ProfileType};

use self::files::read;
use crate::failure::Failure;

/// Settings of `diff`.
#[derive(Debug, Args)]
pub struct DiffSettings {
    /// Profiles of how it was, each a run
    #[arg(short, long, required = true, num_args = 1.., value_name = "FILE")]
    pub base: Vec<PathBuf>,
    /// Profiles of how it is, each a run
    #[arg(short = 'H', long, required = true, num_args = 1.., value_name = "FILE")]
    pub head: Vec<PathBuf>,
    /// What of the profiles is compared; without it, what the first file holds: cpu, else heap, mutex, wall, off_cpu
    #[arg(long)]
    pub profile_type: Option<ProfileType>,
    /// How the result is written
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,
    /// File for the result instead of stdout; one that is there is overwritten
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Which counts the table shows: of functions at the leaf (self), or anywhere on the stack (total)
    #[arg(long, default_value = "self")]
    pub count_kind: CountKind,
    /// Rows that the table shows at most; 0: all
    #[arg(long, default_value_t = 20)]
    pub top: usize,
    /// What calls a function changed
    #[arg(long, value_enum, default_value_t = MethodName::Honest)]
    pub method: MethodName,
    /// Smallest change that is called, as a log ratio
    #[arg(long, default_value_t = 0.01)]
    pub delta: f64,
    /// False-discovery rate
    #[arg(long, default_value_t = 0.05)]
    pub q: f64,
    /// Smallest count of both sides together that is tested
    #[arg(long, default_value_t = 30)]
    pub min_count: u64,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Columns for people
    Table,
    /// A page with a differential flame graph, for a browser
    Html,
    /// A picture of the same
    Svg,
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
    let sides = read(settings)?;
    let method = match settings.method {
        MethodName::Honest => Method::Honest,
        MethodName::Article => Method::Article,
    };
    let decides = Settings { method, q: settings.q, delta: settings.delta, min_count: settings.min_count };
    let compared = compare(&sides, &decides).map_err(explained)?;
    let mut text = Vec::new();
    match settings.format {
        OutputFormat::Table => table::print(&mut text, &compared, settings)?,
        OutputFormat::Html => text = page(&report::report(&sides, &compared, settings))?.into_bytes(),
        OutputFormat::Svg => text = svg(&report::report(&sides, &compared, settings), Palette::OrangeBlue).into_bytes(),
    }
    write(settings, &text)?;
    if compared.spread == Spread::Unknown && method == Method::Honest && settings.format != OutputFormat::Table {
        tracing::warn!("{}", report::UNKNOWN_SPREAD);
    }
    Ok(())
}

/// The headline: how many shares moved, and how many of them are real.
fn headline(compared: &Compared, settings: &DiffSettings) -> String {
    let findings = || compared.of_kind(settings.count_kind).filter(|finding| finding.functions.is_none());
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
        NotCompared::Strangers => "see that both sides are profiles of the same program, with symbols",
        NotCompared::Failed(_) => return Failure::from(failure),
    };
    Failure::with_hint(failure, hint)
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}", path = .path.display())]
struct Unwritable {
    path: PathBuf,
    source: io::Error,
}

fn write(settings: &DiffSettings, text: &[u8]) -> Result<(), Failure> {
    match &settings.output {
        Some(path) => fs::write(path, text).map_err(|source| {
            Failure::with_hint(Unwritable { path: path.clone(), source }, "see that its folder is there and may be written to")
        }),
        None => Ok(io::stdout().write_all(text)?),
    }
}
