//! What was found, written as asked for.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Compared, Recording};
use fleetdiff_diff::flame::Sides;
use fleetdiff_diff::page::page;
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;

use super::{DiffSettings, report::report, table};
use crate::failure::Failure;

/// Where the result goes, and how it is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputSettings {
    /// How the result is written
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,
    /// File for the result instead of stdout; one that is there is overwritten
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
}

/// Writes what was found.
pub fn write(sides: &Sides<Vec<Recording>>, compared: &Compared, settings: &DiffSettings) -> Result<(), Failure> {
    let mut text = Vec::new();
    match settings.output.format {
        OutputFormat::Table => table::print(&mut text, sides, compared, settings)?,
        OutputFormat::Html => text = page(&report(sides, compared, settings))?.into_bytes(),
        OutputFormat::Svg => text = svg(&report(sides, compared, settings), Palette::OrangeBlue).into_bytes(),
    }
    put(&settings.output, &text)
}

/// Writes bytes to where the result goes.
pub fn put(settings: &OutputSettings, text: &[u8]) -> Result<(), Failure> {
    match &settings.output {
        Some(path) => fs::write(path, text).map_err(|source| {
            Failure::with_hint(Unwritable { path: path.clone(), source }, "see that its folder is there and may be written to")
        }),
        None => Ok(io::stdout().write_all(text)?),
    }
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}", path = .path.display())]
struct Unwritable {
    path: PathBuf,
    source: io::Error,
}
