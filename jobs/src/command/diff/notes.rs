//! Notes on a result, on stderr.

use std::io::{self, Write};

use fleetdiff_diff::compare::contained::head_holds_base;
use fleetdiff_diff::compare::{Compared, Overlap, Recording};
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Values;

use super::arguments::{DiffArgs, MethodName, OutputFormat};
use super::report;

/// Prints them, unless only rows are requested.
pub(crate) fn print(notes: &[String], args: &DiffArgs) {
    if !args.table.is_quiet() {
        let mut stderr = io::stderr().lock();
        for note in notes {
            // If stderr is closed, they are not wanted.
            let _ = writeln!(stderr, "note: {note}");
        }
    }
}

/// Notes on a comparison. The table itself says what is known about the variation between runs.
pub(crate) fn of(sides: &Sides<Vec<Recording>>, compared: &Compared, args: &DiffArgs) -> Vec<String> {
    let mut notes = Vec::new();
    let Overlap { common, fewer, samples } = compared.overlap;
    if compared.overlap.is_doubtful() {
        notes.push(format!(
            "base and head have only {common} of {fewer} functions and {:.1} % of their {} in common: are they of one program and type?",
            100.0 * samples,
            if compared.values() == Values::Times { "time" } else { "samples" }
        ));
    }
    if head_holds_base(sides) {
        notes.push(
            "the head has every stack of the base at least as often: if both count since the start of one process, compare the increments between snapshots instead (fleetdiff delta)"
                .to_owned(),
        );
    }
    let caution = report::caution(compared);
    if args.method == MethodName::Honest && args.output.format != OutputFormat::Table && !caution.is_empty() {
        notes.push(caution);
    }
    notes
}
