//! The method as its article prints it, for comparison: G on the merged counts of two builds.
//!
//! Its second program, over a fan-out of cells: G of each row with at least 30 samples, the chi-square tail with one
//! degree of freedom, Benjamini-Hochberg at q over the rows of all cells in one family. Its first program, for two
//! profiles: p below a ten-thousandth, without floor and family. On the article's figures (`g_2x2.csv`, tags `article1`
//! and `article2`), 4 of 12 and 5 of 45 rows are significant. Its "diff, then merge" uses the tests of single pods
//! ([`crate::evidence::pod_by_pod`]) instead of G on merged counts.
//!
//! Two things make them wrong. Samples of one pod are not independent and pods differ: with about a hundred pods that
//! differ by 10 % and no change, 22 of 500 rows are significant. And shares sum to one, so that one real change makes
//! others look real.

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_statistics::families::{bh, selected};

use super::method::{is_member, stated};
use crate::evidence::row::RowEvidence;
use crate::rules::table::scope::ScopeCells;

/// Level of the first program's single tests.
pub(crate) const FIRST_PROGRAM_P: f64 = 1e-4;

/// Whether a row with this ln p is significant in the first program.
#[must_use]
pub fn significant_by_first_program(ln_p_iid: f64) -> bool {
    ln_p_iid < libm::log(FIRST_PROGRAM_P)
}

/// Decides every row of all cells by the second program, with one family per kind of count; `q_value` is that of the
/// family. There are no roll-ups. The floor was applied when rows were made.
#[must_use]
pub fn decide(cells: &ScopeCells, kinds: &[CountKind], q: f64) -> Vec<CellRow> {
    decide_by(cells, kinds, q, |row| row.row.ln_p_iid)
}

/// Decides by the merged tests of single pods, in the same family. Single pods are known only within the window, so an
/// epoch has no rows.
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
