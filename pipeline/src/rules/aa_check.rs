//! The A/A check: the base compared with itself, at every report.
//!
//! At every report the base's pods are split in two by their hash, and the halves are compared with the tests of the
//! report. Both halves run the same code, so every significant row is a false positive. Their rate is fleetdiff's
//! false-positive rate on this fleet, with its noise, its strata and its number of pods.
//!
//! Where the arms differ in age or size, the base is also split [by that](crate::evidence::splits): if its halves differ, the
//! property changes profiles, and head and base may differ for it alone.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_statistics::families::{bh, selected, two_level};

use super::table::tests_of;
use crate::evidence::imbalance::Imbalance;
use crate::evidence::report::ScopeReport;
use crate::evidence::snapshot::{Snapshot, Together};
use crate::evidence::splits::Split;
use crate::evidence::tests::ShareRows;
use crate::rules::table::scope::{ScopeCells, TableRules};

/// The level at which a property changes profiles. .01: *guess* (a warning makes pages tickets until the next report, so it must
/// be rare where nothing differs).
const LEVEL_OF_SPLITS: f64 = 0.01;

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
    let halves: Vec<(&CellKey, Snapshot)> = cells
        .cells
        .iter()
        .filter_map(|(cell, report)| Some((cell, report.snapshot.halves_of_base(is_even)?)))
        .collect();
    let strata_detail: Vec<Together<'_>> = halves.iter().map(|(_, halves)| Together::of(&[halves])).collect();
    let together = Together::of(&halves.iter().map(|(_, halves)| halves).collect::<Vec<_>>());
    let tested: Vec<Vec<Option<ShareRows<'_>>>> =
        strata_detail.iter().map(|cell| tests_of(cell, kinds, rules, true)).collect();
    let over_all = tests_of(&together, kinds, rules, true);
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

/// By cell: the properties in which the arms differ, and by which the base's pods differ too. Each half of the base is compared
/// with the other in the cell alone; it takes one significant row of either kind of count.
pub fn telling(cells: &ScopeCells, kinds: &[CountKind], rules: &TableRules) -> BTreeMap<CellKey, Vec<Imbalance>> {
    let tells = |report: &ScopeReport, split: &Split| {
        let halves = report.snapshot.halves_of_base(|bucket| split.half.contains(&bucket));
        halves.is_some_and(|halves| {
            let together = Together::of(&[&halves]);
            let tested = tests_of(&together, kinds, rules, true);
            let is_significant = |rows: &ShareRows<'_>| {
                bh(&rows.rows.ln_p_row).iter().any(|&q_value| selected(q_value, LEVEL_OF_SPLITS))
            };
            tested.iter().flatten().any(is_significant)
        })
    };
    let of_cell = |(cell, report): (&CellKey, &ScopeReport)| {
        let splits = report.splits.iter().filter(|split| tells(report, split));
        (cell.clone(), splits.map(|split| Imbalance::Telling(split.property)).collect())
    };
    cells.cells.iter().map(of_cell).collect()
}

fn is_even(bucket: u8) -> bool {
    bucket.is_multiple_of(2)
}

fn counted(q_values: &[f64], q: f64) -> Checked {
    let count = |of: &dyn Fn(f64) -> bool| q_values.iter().fold(0, |sum, &q_value| sum + u64::from(of(q_value)));
    Checked { tests: count(&|q_value| !q_value.is_nan()), flags: count(&|q_value| selected(q_value, q)) }
}

/// Each function's part of all samples.
fn shares(all: &Together<'_>, kind: CountKind) -> Vec<f64> {
    let total = |side| signed_float(all.figures(side).total);
    let samples = total(Side::Head) + total(Side::Base);
    let counts = all.counts(Side::Head, kind).into_iter().zip(all.counts(Side::Base, kind));
    counts.map(|(head, base)| (head + base) / samples).collect()
}

/// ln p of a cell's functions in the order of those of all cells; NaN where not tested.
fn column(cell: &Together<'_>, rows: Option<&ShareRows<'_>>, all: &Together<'_>) -> Vec<f64> {
    let mut column = vec![f64::NAN; all.functions.len()];
    let Some(rows) = rows else { return column };
    for ((hash, _), &ln_p) in cell.functions.iter().zip(&rows.rows.ln_p_row) {
        if let Ok(place) = all.functions.binary_search_by_key(hash, |(hash, _)| *hash) {
            column[place] = ln_p;
        }
    }
    column
}
