//! Notes on a result, on stderr.

use std::io::{self, Write};

use fleetdiff_diff::answer::reach;
use fleetdiff_diff::compare::contained::head_holds_base;
use fleetdiff_diff::compare::{Compared, Overlap, Recording};
use fleetdiff_diff::flame::Sides;
use fleetdiff_diff::pairs::Pairs;
use fleetdiff_formats::Values;

use super::arguments::{DiffArgs, MethodName, OutputFormat};
use super::report;

/// How many pairs of functions are named.
const PAIRS_LISTED: usize = 5;

/// The part of the samples of a side from which on it is said that they have no symbols. A guess.
const MANY_UNNAMED: f64 = 0.5;

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
pub(crate) fn of(sides: &Sides<Vec<Recording>>, compared: &Compared, pairs: &Pairs, args: &DiffArgs) -> Vec<String> {
    let mut notes: Vec<String> = of_pairs(pairs).into_iter().collect();
    let Overlap { common, fewer, samples, without_symbols } = compared.overlap;
    if compared.overlap.is_doubtful() {
        notes.push(format!(
            "base and head have only {common} of {fewer} functions and {:.1} % of their {} in common: are they of one program and type?",
            100.0 * samples,
            if compared.values() == Values::Times { "time" } else { "samples" }
        ));
    }
    if without_symbols.base.max(without_symbols.head) >= MANY_UNNAMED {
        notes.push(format!(
            "{:.0} % of the samples of the base and {:.0} % of those of the head are in functions without symbols, so what differs in them has no name: symbolise first (samply: open the file at profiler.firefox.com and save it there)",
            100.0 * without_symbols.base,
            100.0 * without_symbols.head,
        ));
    }
    if head_holds_base(sides) {
        notes.push(
            "the head has every stack of the base at least as often: if both count since the start of one process, compare the increments between snapshots instead (fleetdiff delta)"
                .to_owned(),
        );
    }
    let caution = report::caution(compared);
    let is_table = args.output.format().is_ok_and(|format| format == OutputFormat::Table);
    if args.method == MethodName::Honest && !is_table && !caution.is_empty() {
        notes.push(caution);
    }
    notes.extend(reach(compared).filter(|_| !is_table));
    notes
}

/// Which functions are compared as one although they have two names, or a name on one side only.
fn of_pairs(pairs: &Pairs) -> Option<String> {
    let (number, listed) = (pairs.len(), pairs.sentences().take(PAIRS_LISTED).collect::<Vec<_>>().join("; "));
    let more = match number.saturating_sub(PAIRS_LISTED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (number > 0).then(|| {
        format!("compared as one function, since callers, callees and cost fit: {listed}{more} (--no-pairs compares by name)")
    })
}
