//! The method's article as it is printed, for comparison: G on the merged counts of two builds.
//!
//! Its second program, over a fan-out of cells: G of each row with at least 30 samples, the chi-square tail with one degree of
//! freedom, Benjamini-Hochberg at q over the rows of all cells in one family. Its first program, for two profiles: p below a
//! ten-thousandth, without floor and family. On the article's figures (`g_2x2.csv`, tags `article1` and `article2`) they call 4
//! of 12 and 5 of 45 rows. Its "diff, then merge" takes in place of G on merged counts the tests of single pods
//! ([`crate::evidence::pod_by_pod`]).
//!
//! What makes them wrong: samples of one pod are not independent and pods differ, so that with some hundred pods that differ by
//! 10 % and nothing changed 22 of 500 rows are called; and shares sum to one, so that one real change makes others look real.

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_statistics::families::{bh, selected};

use super::method::{is_member, stated};
use crate::evidence::row::RowEvidence;
use crate::rules::table::scope::ScopeCells;

/// Level of the first program's single tests.
pub(crate) const FIRST_PROGRAM_P: f64 = 1e-4;

/// Whether the first program calls a row of this ln p.
#[must_use]
pub fn significant_by_first_program(ln_p_iid: f64) -> bool {
    ln_p_iid < libm::log(FIRST_PROGRAM_P)
}

/// Decides every row of all cells by the second program, one family a kind of count; `q_value` is that of the family. There
/// are no roll-ups. The floor was applied when rows were made.
#[must_use]
pub fn decide(cells: &ScopeCells, kinds: &[CountKind], q: f64) -> Vec<CellRow> {
    decide_by(cells, kinds, q, |row| row.row.ln_p_iid)
}

/// Decides by the tests of single pods, merged, in the same family. Single pods are known within the window alone: an epoch has
/// no rows.
#[must_use]
pub(crate) fn decide_pod_by_pod(cells: &ScopeCells, kinds: &[CountKind], q: f64) -> Vec<CellRow> {
    match cells.scope {
        Scope::Window => decide_by(cells, kinds, q, |row| Some(row.ln_p_by_pod)),
        Scope::Epoch => Vec::new(),
    }
}

fn decide_by(
    cells: &ScopeCells,
    kinds: &[CountKind],
    q: f64,
    ln_p: impl Fn(&RowEvidence) -> Option<f64>,
) -> Vec<CellRow> {
    let family = |kind: usize| {
        let rows: Vec<&RowEvidence> = cells.cells.values().flat_map(|cell| &cell.rows[kind]).collect();
        let ln_p: Vec<f64> = rows.iter().map(|row| ln_p(row).filter(|_| is_member(row)).unwrap_or(f64::NAN)).collect();
        let decided = rows.into_iter().zip(bh(&ln_p)).map(move |(row, q_value)| {
            let q_value = Some(q_value).filter(|q_value| !q_value.is_nan());
            stated(row, q_value.is_some_and(|q_value| selected(q_value, q)), q_value)
        });
        decided.collect::<Vec<_>>()
    };
    (0..kinds.len()).flat_map(family).collect()
}
