//! The table `evidence`: what the rows that are significant or flagged were computed from.

use std::sync::Arc;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellRow, EvidenceRow};

use super::LiveRows;
use super::roll_ups::is_under;
use super::scope::ScopeCells;
use crate::evidence::row::RowEvidence;
use crate::evidence::snapshot::{BucketFigures, Snapshot, counts_behind};

/// The evidence of those rows that are significant, or that the live rule has selected. Rows of rare functions have none:
/// their tests read single pods.
pub(super) fn evidence_of(
    cells: &ScopeCells,
    kind: CountKind,
    decided: &[(&RowEvidence, Arc<CellRow>)],
    live: &LiveRows,
) -> Vec<EvidenceRow> {
    let mut rows = Vec::new();
    for (evidence, row) in decided {
        let is_flagged = || live.selected.contains_key(&(kind, row.cell.clone(), evidence.hash));
        if !row.verdict.is_significant() && !is_flagged() {
            continue;
        }
        let Some(from_others) = &evidence.from_others else { continue };
        let function: Arc<str> = row.function.as_str().into();
        let counted = if evidence.of_all { None } else { Some((evidence.hash, kind)) };
        let shared = Side::BOTH.map(|side| from_others.of_arm(side));
        rows.extend(counts_behind(&snapshots(cells, row), counted).into_iter().map(|bucket| {
            let [head, base] = shared;
            let shared = if bucket.arm == Side::Head { head } else { base };
            EvidenceRow { shared, ..evidence_row(row, &function, bucket) }
        }));
    }
    rows
}

/// The counts of the cells that a row covers, ascending.
fn snapshots<'a>(cells: &'a ScopeCells, row: &CellRow) -> Vec<&'a Snapshot> {
    let covered = cells
        .cells
        .iter()
        .filter(|(cell, _)| if row.is_roll_up { is_under(cell, &row.cell) } else { **cell == row.cell });
    covered.map(|(_, report)| &report.snapshot).collect()
}

fn evidence_row(row: &CellRow, function: &Arc<str>, bucket: BucketFigures) -> EvidenceRow {
    EvidenceRow {
        scope: row.scope,
        comparison: row.comparison.clone(),
        count_kind: row.count_kind,
        cell: row.cell.clone(),
        is_roll_up: row.is_roll_up,
        function: Arc::clone(function),
        window_end_at: row.window_end_at,
        stratum: table_count(bucket.stratum),
        arm: bucket.arm,
        bucket: table_count(bucket.bucket),
        pods: table_count(bucket.pods),
        samples: table_count(bucket.samples),
        requests: table_count(bucket.requests),
        count: table_count(bucket.count),
        pairs: table_count(bucket.pairs),
        concentration: bucket.concentration,
        shared: Default::default(),
    }
}
