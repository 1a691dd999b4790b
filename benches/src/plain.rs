//! The expected flags: a plain evaluation at every look.
//!
//! Nothing here is incremental, encoded or screened: counts are whole columns per (cell, stratum, arm, bucket), every function of
//! every cell is tested again at every look ([`cell`]), and e-BH sorts all rows. It shares only the pure statistics with the dataflow
//! ([`fleetdiff_statistics`], which are checked against outside programs). It holds what looks hold, because flags depend on it. At
//! the last look the rows are also measured afresh and checked against the oracle's own statistics ([`by_oracle`]), which share
//! nothing.
//!
//! In this fleet neither requests nor callers are known, and one epoch lasts for the whole run: there is no row of all samples, and
//! no flag is explained or cleared.

mod by_oracle;
mod cell;

use std::collections::BTreeMap;
use std::time::Instant;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_statistics::pooled::is_due;

use crate::drive::Raised;
use crate::spread::milliseconds;
use crate::workload::Workload;

use by_oracle::hold_against_oracle;
use cell::{Cell, CellLook, Row};

/// False-discovery rate, smallest change and smallest count, as in the configuration's defaults.
const Q: f64 = 0.05;
const MIN_EFFECT: f64 = 0.01;
const MIN_COUNT: f64 = 30.0;
/// A row with fewer degrees of freedom is in no family.
const FEWEST_DF: f64 = 2.0;

/// The results of the plain evaluation.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// Its flags; hops are counted from 0, and the last one, which is incomplete, is left out.
    pub raised: Raised,
    /// Milliseconds of each look: every test of every cell, and e-BH.
    pub look: Vec<f64>,
}

/// Evaluates a workload plainly at each of its looks.
///
/// # Panics
/// If the oracle's statistics differ at the last look.
#[must_use]
pub fn evaluate(workload: &Workload, threads: usize) -> Plain {
    let mut cells = vec![Cell::default(); workload.cells()];
    let mut raised = BTreeMap::new();
    let mut plain = Plain::default();
    for hop in 0..workload.hops() - 1 {
        each_cell(&mut cells, threads, |number, cell| cell.add(workload, number, hop));
        if !workload.looks_at(hop) {
            continue;
        }
        let (block, look) = (workload.block(hop), workload.look(hop));
        let begun = Instant::now();
        let looks =
            each_cell(&mut cells, threads, |number, cell| cell.look(block, is_turn(&workload.cell(number), look)));
        let selected = selected(&looks);
        plain.look.push(milliseconds(begun));
        for (cell, row) in selected.into_iter().filter(|(_, row)| row.may_be_raised) {
            raised.entry((cell, row.function)).or_insert(hop);
        }
        if hop + 2 == workload.hops() {
            hold_against_oracle(&cells);
        }
    }
    let named = raised
        .into_iter()
        .map(|((cell, function), hop)| (hop, workload.cell(cell), workload.name(function).to_string()));
    plain.raised = named.collect();
    plain
}

/// Whether it is a cell's turn to be measured afresh at the look with this number.
#[must_use]
pub fn is_turn(cell: &CellKey, look: u64) -> bool {
    is_due(look, stable_hash(format!("{}\0{}", cell.region, cell.cohort).as_bytes()))
}

/// Calls a function for every cell, on several threads.
fn each_cell<T: Send>(cells: &mut [Cell], threads: usize, act: impl Fn(usize, &mut Cell) -> T + Sync) -> Vec<T> {
    let each = cells.len().div_ceil(threads.max(1));
    let act = &act;
    std::thread::scope(|scope| {
        let parts = cells.chunks_mut(each).enumerate().map(|(part, cells)| {
            scope.spawn(move || (part * each..).zip(cells).map(|(number, cell)| act(number, cell)).collect::<Vec<_>>())
        });
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

/// Weighted e-BH over all rows of all cells: the k rows with the largest w e, where k is the largest number with
/// ln(w e) >= ln(m/(q k)). Weights are importances over their mean over all m members of the family.
fn selected(looks: &[CellLook]) -> Vec<(usize, Row)> {
    let members = length_float(looks.iter().map(|look| look.members).sum());
    let mean = looks.iter().map(|look| look.importance).sum::<f64>() / members;
    let numbered = looks.iter().enumerate().flat_map(|(cell, look)| look.rows.iter().map(move |&row| (cell, row)));
    let weighted = |(cell, row): (usize, Row)| (row.ln_e + (row.importance / mean).ln(), (cell, row));
    let mut all: Vec<(f64, (usize, Row))> = numbered.map(weighted).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let threshold = |k: usize| (members / (Q * length_float(k))).ln();
    let k = (1..=all.len()).rev().find(|&k| all[k - 1].0 >= threshold(k)).unwrap_or(0);
    all.into_iter().take(k).map(|(_, row)| row).collect()
}
