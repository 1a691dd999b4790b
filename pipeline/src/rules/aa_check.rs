//! The A/A check: the base compared with itself, at every report.
//!
//! At every report the base's pods are split in two by their hash, and the halves are compared with the tests of the
//! report. Both halves run the same code, so every significant row is a false positive. Their rate is fleetdiff's
//! false-positive rate on this fleet, with its noise, its strata and its number of pods.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_statistics::families::{selected, two_level};

use super::table::tests_of;
use crate::evidence::snapshot::{Snapshot, Together};
use crate::evidence::tests::ShareRows;
use crate::rules::table::scope::{ScopeCells, TableRules};

/// How many functions of the base were tested against themselves, and how many of these tests were significant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Tested.
    pub tests: u64,
    /// Tests that were significant.
    pub flags: u64,
}

/// The test of the base's halves in each cell, by place in `kinds`, with the same two-level selection over all cells as
/// for rows of a window. A cell whose halves share no stratum, or have too few pods for a test, has no entry.
pub fn aa_check(cells: &ScopeCells, kinds: &[CountKind], rules: &TableRules) -> Vec<BTreeMap<CellKey, Checked>> {
    let halves: Vec<(&CellKey, Snapshot)> =
        cells.cells.iter().filter_map(|(cell, report)| Some((cell, report.snapshot.halves_of_base()?))).collect();
    let strata_detail: Vec<Together> = halves.iter().map(|(_, halves)| Together::of(&[halves])).collect();
    let together = Together::of(&halves.iter().map(|(_, halves)| halves).collect::<Vec<_>>());
    let tested: Vec<Vec<Option<ShareRows<'_>>>> =
        strata_detail.iter().map(|cell| tests_of(cell, kinds, rules)).collect();
    let over_all = tests_of(&together, kinds, rules);
    let each = (0..kinds.len()).map(|kind| {
        let columns: Vec<Vec<f64>> = strata_detail
            .iter()
            .zip(&tested)
            .map(|(cell, rows)| column(cell, rows[kind].as_ref(), &together))
            .collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let roll_up = column(&together, over_all[kind].as_ref(), &together);
        let selected = two_level(&columns, &roll_up, Some(&shares(&together, kinds[kind]))).q_value;
        let checked = halves.iter().zip(&tested).zip(selected).filter(|((_, rows), _)| rows[kind].is_some());
        checked.map(|(((cell, _), _), q_values)| ((*cell).clone(), counted(&q_values, rules.q))).collect()
    });
    each.collect()
}

fn counted(q_values: &[f64], q: f64) -> Checked {
    let count = |of: &dyn Fn(f64) -> bool| q_values.iter().fold(0, |sum, &q_value| sum + u64::from(of(q_value)));
    Checked { tests: count(&|q_value| !q_value.is_nan()), flags: count(&|q_value| selected(q_value, q)) }
}

/// Each function's part of all samples.
fn shares(all: &Together, kind: CountKind) -> Vec<f64> {
    let total = |side| signed_float(all.figures(side).total);
    let samples = total(Side::Head) + total(Side::Base);
    let counts = all.counts(Side::Head, kind).into_iter().zip(all.counts(Side::Base, kind));
    counts.map(|(head, base)| (head + base) / samples).collect()
}

/// ln p of a cell's functions in the order of those of all cells; NaN where not tested.
fn column(cell: &Together, rows: Option<&ShareRows<'_>>, all: &Together) -> Vec<f64> {
    let mut column = vec![f64::NAN; all.functions.len()];
    let Some(rows) = rows else { return column };
    for ((hash, _), &ln_p) in cell.functions.iter().zip(&rows.rows.ln_p_row) {
        if let Ok(place) = all.functions.binary_search_by_key(hash, |(hash, _)| *hash) {
            column[place] = ln_p;
        }
    }
    column
}
