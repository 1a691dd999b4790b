//! What was found, written as asked for.

mod exported;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Compared, Recording};
use fleetdiff_diff::export::csv::csv;
use fleetdiff_diff::export::difffolded::difffolded;
use fleetdiff_diff::export::json::json;
use fleetdiff_diff::export::markdown::markdown;
use fleetdiff_diff::export::parquet::parquet;
use fleetdiff_diff::export::pprof::pprof;
use fleetdiff_diff::export::speedscope::speedscope;
use fleetdiff_diff::flame::Sides;
use fleetdiff_diff::page::page;
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;

use super::{DiffSettings, headline, report::report, table};
use crate::failure::Failure;

pub use exported::check;

/// Where the result goes, and how it is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputSettings {
    /// How the result is written
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,
    /// File for the result instead of stdout; one that is there is overwritten. With pprof, what comes before .base.pb.gz and .head.pb.gz
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
    /// All that was found as one document, for programs
    Json,
    /// Findings as a table, for spreadsheets
    Csv,
    /// The same as a Parquet file; needs --output
    Parquet,
    /// A comment for a pull request
    Markdown,
    /// Stacks of both sides, STACK BASE HEAD a line, as FlameGraph's difffolded.pl writes them
    Difffolded,
    /// Stacks of both sides, as two profiles for speedscope.app
    Speedscope,
    /// Stacks of both sides, as two files for go tool pprof -diff_base; needs --output
    Pprof,
}

/// Writes what was found.
pub fn write(sides: &Sides<Vec<Recording>>, compared: &Compared, settings: &DiffSettings) -> Result<(), Failure> {
    let headline = headline(compared, settings);
    let (decides, spread) = (settings.decides(), exported::spread(compared, settings));
    let export = exported::export(sides, compared, settings, &headline, &spread, &decides);
    let bytes = match settings.output.format {
        OutputFormat::Table => {
            let mut text = Vec::new();
            table::print(&mut text, sides, compared, settings)?;
            Ok(text)
        }
        OutputFormat::Html => Ok(page(&report(sides, compared, settings))?.into_bytes()),
        OutputFormat::Svg => Ok(svg(&report(sides, compared, settings), Palette::OrangeBlue).into_bytes()),
        OutputFormat::Json => json(&export).map(String::into_bytes),
        OutputFormat::Csv => csv(&compared.findings),
        OutputFormat::Parquet => parquet(&export),
        OutputFormat::Markdown => Ok(markdown(&export, settings.table.shown(table::ROWS)).into_bytes()),
        OutputFormat::Difffolded => difffolded(sides).map(String::into_bytes),
        OutputFormat::Speedscope => speedscope(sides, &headline).map(String::into_bytes),
        OutputFormat::Pprof => {
            let pair = pprof(sides, &export).map_err(exported::explained)?;
            return exported::put_pair(&pair, settings);
        }
    };
    put(settings, &bytes.map_err(exported::explained)?)
}

/// To the file that was asked for, else to stdout.
pub fn put(settings: &DiffSettings, bytes: &[u8]) -> Result<(), Failure> {
    match &settings.output.output {
        Some(path) => put_file(path, bytes),
        None => Ok(io::stdout().write_all(bytes)?),
    }
}

fn put_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|source| {
        Failure::with_hint(
            Unwritable { path: path.to_owned(), source },
            "see that its folder is there and may be written to",
        )
    })
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}", path = .path.display())]
struct Unwritable {
    path: PathBuf,
    source: io::Error,
}
