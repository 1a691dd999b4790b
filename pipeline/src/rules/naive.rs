//! Shares subtracted, for comparison: what laying one profile over the other shows.
//!
//! There is no test: every row whose share differs between the builds is significant, in the direction in which it
//! moved. With two samples drawn from the same program that is nearly every row.

use fleetdiff_schemas::rows::CellRow;

use super::method::{is_member, moved, stated};
use crate::rules::table::scope::ScopeCells;

/// Decides every row of all cells. There are no roll-ups and no q-values.
#[must_use]
pub fn decide(cells: &ScopeCells) -> Vec<CellRow> {
    let rows = cells.cells.values().flat_map(|cell| cell.rows.iter().flatten());
    rows.map(|row| stated(row, is_member(row) && moved(&row.row).is_ne(), None)).collect()
}
