//! The result for other programs.

use std::path::{Path, PathBuf};

use fleetdiff_diff::compare::{Compared, Recording, Settings};
use fleetdiff_diff::export::{Export, NotExported};
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Values;

use super::super::arguments::{DiffArgs, MethodName, OutputFormat};
use super::super::report;
use super::file;
use crate::failure::Failure;

/// Note on the variation between runs if it is measured.
const KNOWN: &str = "the variation between runs is measured, and every significant change exceeds it";
/// Note on the variation between runs under the article's rule.
const NOT_ASKED: &str = "the article's rule ignores the variation between runs and is not calibrated";

/// A format that cannot be combined with another setting.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("--format {0} writes binary data and needs a file")]
    NeedsFile(&'static str),
    #[error("--format {0} writes all rows or none, so --top {1} does not apply")]
    NoRows(&'static str, usize),
    #[error("plain differences (--compute, --period, --formula, --columns, --order) need --format table")]
    NoColumns,
}

/// Refuses a format that cannot be combined with another setting.
pub(crate) fn check(args: &DiffArgs) -> Result<(), Failure> {
    use OutputFormat::{Csv, Difffolded, Html, Json, Markdown, Parquet, Pprof, Speedscope, Svg, Table};
    let format = args.output.format()?;
    if args.columns.are_wanted() && format != Table {
        return Err(Failure::usage(
            Unfit::NoColumns,
            "remove --format, give --output the ending .txt, or the options of plain differences",
        ));
    }
    let (name, needs_file) = match format {
        Table | Html | Svg | Markdown => return Ok(()),
        Json => ("json", false),
        Csv => ("csv", false),
        Parquet => ("parquet", true),
        Difffolded => ("difffolded", false),
        Speedscope => ("speedscope", false),
        Pprof => ("pprof", true),
    };
    if needs_file && args.output.output.is_none() {
        let hint = if name == "pprof" {
            "name both files with --output NAME: NAME.base.pb.gz and NAME.head.pb.gz"
        } else {
            "name it with --output FILE"
        };
        return Err(Failure::usage(Unfit::NeedsFile(name), hint));
    }
    if let Some(top) = args.table.asked_rows() {
        return Err(Failure::usage(Unfit::NoRows(name, top), "remove --top; only table and markdown have it"));
    }
    Ok(())
}

/// Findings, with the notes on them.
pub(crate) fn export<'a>(
    sides: &'a Sides<Vec<Recording>>,
    compared: &'a Compared,
    args: &DiffArgs,
    headline: &'a str,
    spread: &'a str,
    decides: &'a Settings,
) -> Export<'a> {
    let labels = |side: &'a [Recording]| side.iter().map(|run| run.label.as_str()).collect();
    Export {
        compared,
        settings: decides,
        labels: Sides { base: labels(&sides.base), head: labels(&sides.head) },
        headline,
        count_kind: args.table.count_kind(),
        spread,
    }
}

/// What is known about the variation between runs, in a sentence without its full stop.
pub(crate) fn spread(compared: &Compared, args: &DiffArgs) -> String {
    match report::caution(compared) {
        _ if args.method == MethodName::Article => NOT_ASKED.to_owned(),
        _ if compared.values() == Values::Times => KNOWN.to_owned(),
        nothing if nothing.is_empty() => KNOWN.to_owned(),
        caution => caution.trim_end_matches('.').to_owned(),
    }
}

/// Writes the two files of a pair.
pub(crate) fn put_pair(pair: &Sides<Vec<u8>>, args: &DiffArgs) -> Result<(), Failure> {
    let Some(name) = &args.output.output else { return check(args) };
    file::put(&of_side(name, "base"), &pair.base)?;
    file::put(&of_side(name, "head"), &pair.head)
}

/// `NAME.SIDE.pb.gz`; if the name already ends in `.pb.gz`, it is not added again.
fn of_side(name: &Path, side: &str) -> PathBuf {
    let file = name.file_name().unwrap_or_default().to_string_lossy();
    let stem = file.strip_suffix(".pb.gz").unwrap_or(&file);
    name.with_file_name(format!("{stem}.{side}.pb.gz"))
}

/// Why something was not written, and what to do.
pub(crate) fn explained(fault: NotExported) -> Failure {
    let hint = match &fault {
        NotExported::NoStacks(_) => {
            "give profiles with whole stacks, or one of the formats of findings: json, csv, parquet, markdown"
        }
        NotExported::TooLarge { .. } => "give fewer runs per side",
        NotExported::NotANumber { .. } | NotExported::Json(_) | NotExported::Csv(_) | NotExported::Parquet(_) => {
            "this is an error in fleetdiff, please report it"
        }
    };
    Failure::with_hint(fault, hint)
}
