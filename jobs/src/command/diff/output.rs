//! The result, in the requested format.

mod exported;
mod file;

use std::io::{self, Write};

use fleetdiff_diff::answer::headline;
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

use super::arguments::{DiffArgs, OutputFormat, ROWS};
use super::report::report;
use super::table;

use crate::failure::Failure;

pub(crate) use exported::check;

/// Writes the result.
pub(crate) fn write(sides: &Sides<Vec<Recording>>, compared: &Compared, args: &DiffArgs) -> Result<(), Failure> {
    let (decides, spread) = (args.decides(), exported::spread(compared, args));
    let headline = headline(compared, &decides);
    let export = exported::export(sides, compared, args, &headline, &spread, &decides);
    let bytes = match args.output.format()? {
        OutputFormat::Table => {
            let mut text = Vec::new();
            table::print(&mut text, sides, compared, args)?;
            Ok(text)
        }
        OutputFormat::Html => Ok(page(&report(sides, compared, args))?.into_bytes()),
        OutputFormat::Svg => Ok(svg(&report(sides, compared, args), Palette::OrangeBlue).into_bytes()),
        OutputFormat::Json => json(&export).map(String::into_bytes),
        OutputFormat::Csv => csv(&compared.findings),
        OutputFormat::Parquet => parquet(&export),
        OutputFormat::Markdown => Ok(markdown(&export, args.table.shown(ROWS)).into_bytes()),
        OutputFormat::Difffolded => difffolded(sides).map(String::into_bytes),
        OutputFormat::Speedscope => speedscope(sides, &headline).map(String::into_bytes),
        OutputFormat::Pprof => {
            let pair = pprof(sides, &export).map_err(exported::explained)?;
            return exported::put_pair(&pair, args);
        }
    };
    put(args, &bytes.map_err(exported::explained)?)
}

/// To the requested file, otherwise to stdout.
pub(crate) fn put(args: &DiffArgs, bytes: &[u8]) -> Result<(), Failure> {
    match &args.output.output {
        Some(path) => file::put(path, bytes),
        None => Ok(io::stdout().write_all(bytes)?),
    }
}
