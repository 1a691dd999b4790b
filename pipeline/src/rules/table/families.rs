//! q-values of families of rows.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_statistics::families::{bh, selected, two_level, within_selected};

use crate::evidence::row::RowEvidence;
use crate::rules::table::moved::Moved;
use crate::rules::table::scope::Rows;

/// How the functions of a table are selected, before cells are selected inside them.
pub(super) struct Functions(BTreeMap<u64, FirstLevel>);

/// How one function is selected.
#[derive(Clone, Copy)]
pub(super) struct FirstLevel {
    /// Its weight.
    pub weight: f64,
    /// ln p that it changed in no cell.
    pub ln_p: f64,
}

impl Functions {
    /// How a function is selected; `None` if it is in no family.
    pub fn get(&self, hash: u64) -> Option<FirstLevel> {
        self.0.get(&hash).copied().filter(|level| !level.ln_p.is_nan())
    }
}

/// The q-values of rows: by cell, then by stable hash.
pub(super) struct QValues(Vec<BTreeMap<u64, f64>>);

impl QValues {
    /// The q-value of a row in the cell with this place; `None` if it is in no family.
    pub fn get(&self, cell: usize, hash: u64) -> Option<f64> {
        self.0[cell].get(&hash).copied()
    }

    /// The number of rows in the family, and of those selected at level `q`.
    pub fn count(&self, q: f64) -> (usize, usize) {
        let all = || self.0.iter().flat_map(BTreeMap::values);
        (all().count(), all().filter(|&&q_value| selected(q_value, q)).count())
    }
}

/// The rows of all cells that have not moved and for which `of` gives an ln p, as one Benjamini-Hochberg family.
pub(super) fn family(cells: &Rows<'_>, moved: &Moved<'_>, of: impl Fn(&RowEvidence) -> Option<f64>) -> QValues {
    let members = |(cell, rows): &(&CellKey, &[RowEvidence])| -> Vec<(u64, f64)> {
        let stay = rows.iter().filter(|row| moved.get(cell, row.hash).is_none());
        stay.filter_map(|row| Some((row.hash, of(row).filter(|ln_p| !ln_p.is_nan())?))).collect()
    };
    let cells: Vec<Vec<(u64, f64)>> = cells.iter().map(members).collect();
    let all: Vec<f64> = cells.iter().flatten().map(|(_, ln_p)| *ln_p).collect();
    let mut q_values = bh(&all).into_iter();
    QValues(
        cells.iter().map(|members| members.iter().map(|(hash, _)| *hash).zip(q_values.by_ref()).collect()).collect(),
    )
}

/// Two-level q-values of cells and of roll-ups. The rows over all cells, those of regions and those of cohorts are each a second
/// level of their own. Functions weigh by their share of the samples of all cells. Rows that have moved are in none of them.
pub(super) fn q_values(cells: &Rows<'_>, rolled: &Rows<'_>, moved: &Moved<'_>) -> (QValues, QValues, Functions) {
    let hashes = union(cells.iter().chain(rolled));
    let column = |(cell, rows): &(&CellKey, &[RowEvidence])| {
        column(rows, &hashes, |row| if moved.get(cell, row.hash).is_none() { row.ln_p_row } else { f64::NAN })
    };
    let matrix: Vec<Vec<f64>> = cells.iter().map(column).collect();
    let cell_columns: Vec<&[f64]> = matrix.iter().map(Vec::as_slice).collect();
    let over_all = rolled.iter().position(|(cell, _)| cell.is_over_all());
    let roll_up = over_all.map_or_else(|| matrix.first().cloned().unwrap_or_default(), |index| column(&rolled[index]));
    let levels = two_level(&cell_columns, &roll_up, Some(&shares(cells, &hashes)));
    let first_level = (0..hashes.len()).map(|f| FirstLevel { weight: levels.weights[f], ln_p: levels.ln_p_f[f] });
    let functions = Functions(hashes.iter().copied().zip(first_level).collect());
    let mut of_rolled = vec![BTreeMap::new(); rolled.len()];
    let over_cohorts = |cell: &CellKey| cell.cohort.as_str() == MERGED;
    let kinds: [&dyn Fn(&CellKey) -> bool; 3] =
        [&CellKey::is_over_all, &|cell| !cell.is_over_all() && over_cohorts(cell), &|cell| {
            !cell.is_over_all() && !over_cohorts(cell)
        }];
    for is_of_kind in kinds {
        let family: Vec<usize> = (0..rolled.len()).filter(|&index| is_of_kind(rolled[index].0)).collect();
        let columns: Vec<Vec<f64>> = family.iter().map(|&index| column(&rolled[index])).collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        for (&index, q_values) in family.iter().zip(within_selected(&levels.q_f, &columns)) {
            of_rolled[index] = by_hash(&hashes, &q_values);
        }
    }
    let of_cells = levels.q_value.iter().map(|q_values| by_hash(&hashes, q_values)).collect();
    (QValues(of_cells), QValues(of_rolled), functions)
}

/// Each function's part of the samples of all cells.
fn shares(cells: &Rows<'_>, hashes: &[u64]) -> Vec<f64> {
    let mut counts = vec![0; hashes.len()];
    let mut all = 0;
    for (_, rows) in cells {
        all += rows.first().map_or(0, |row| row.row.head.total + row.row.base.total);
        for row in *rows {
            if let Ok(index) = hashes.binary_search(&row.hash) {
                counts[index] += row.row.head.count + row.row.base.count;
            }
        }
    }
    counts.into_iter().map(|count| signed_float(count) / signed_float(all)).collect()
}

fn union<'a>(rows: impl Iterator<Item = &'a (&'a CellKey, &'a [RowEvidence])>) -> Vec<u64> {
    let hashes: BTreeSet<u64> =
        rows.flat_map(|(_, rows)| rows.iter().filter(|row| row.tested).map(|row| row.hash)).collect();
    hashes.into_iter().collect()
}

fn column(rows: &[RowEvidence], hashes: &[u64], of: impl Fn(&RowEvidence) -> f64) -> Vec<f64> {
    let mut column = vec![f64::NAN; hashes.len()];
    for row in rows.iter().filter(|row| row.tested) {
        if let Ok(index) = hashes.binary_search(&row.hash) {
            column[index] = of(row);
        }
    }
    column
}

fn by_hash(hashes: &[u64], values: &[f64]) -> BTreeMap<u64, f64> {
    hashes.iter().copied().zip(values.iter().copied()).filter(|(_, value)| !value.is_nan()).collect()
}
