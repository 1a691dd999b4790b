//! Rare functions that are significant nevertheless: too few samples for a test between pods, but too many in one arm
//! for chance.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, RARE};
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use fleetdiff_statistics::families::{bh, selected};

use crate::evidence::row::{RowEvidence, recount};
use crate::rules::method::moved;
use crate::rules::table::scope::ScopeCells;

/// The rows of rare functions that are significant at level `q` in their family, over all cells of a kind. They never
/// raise an alert.
pub(super) fn rare_rows(cells: &ScopeCells, kind: usize, q: f64) -> Vec<CellRow> {
    let of_kind = || cells.cells.values().map(|report| &report.rare[kind]);
    let candidates: Vec<&RowEvidence> = of_kind().flat_map(|rare| &rare.candidates).collect();
    let mut ln_p: Vec<f64> = candidates.iter().filter_map(|row| row.row.rare_ln_p).collect();
    // Rows that are not candidates have p above q: with p = 1 in their place, the same rows are significant.
    let tested: u64 = of_kind().map(|rare| rare.tested).sum();
    ln_p.resize(usize::try_from(tested).unwrap_or(usize::MAX).max(ln_p.len()), 0.0);
    let selected = candidates.iter().zip(bh(&ln_p)).filter(|(_, q_value)| selected(*q_value, q));
    selected.filter_map(|(row, _)| as_significant(&row.row)).collect()
}

fn as_significant(row: &CellRow) -> Option<CellRow> {
    let verdict = match moved(row) {
        Ordering::Greater => Verdict::Regressed,
        Ordering::Less => Verdict::Improved,
        Ordering::Equal => return None,
    };
    Some(CellRow { verdict, reason: Some(RowReason::Rare), ..row.clone() })
}

/// Significant rare functions have their own rows, and are removed from the row that stands for all rare ones.
pub(super) fn take_out(rows: &mut Vec<Arc<CellRow>>) {
    let mut selected: BTreeMap<(CountKind, CellKey), (i64, i64, i64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.rare_ln_p.is_some()) {
        let (functions, head, base) = selected.entry((row.count_kind, row.cell.clone())).or_default();
        (*functions, *head, *base) = (*functions + 1, *head + row.head.count, *base + row.base.count);
    }
    rows.retain_mut(|row| {
        if row.function != RARE {
            return true;
        }
        let key = (row.count_kind, row.cell.clone());
        let Some((functions, head, base)) = selected.get(&key) else { return true };
        let row = Arc::make_mut(row);
        row.functions = row.functions.map(|all| all - functions);
        recount(row, row.head.count - head, row.base.count - base);
        row.functions != Some(0)
    });
}
