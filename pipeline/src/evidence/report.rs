//! The rows of one cell for a table.

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey, RARE};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{RowReason, Scope, Support, Verdict};
use serde::{Deserialize, Serialize};

use super::arms::{CellArms, Side, whole};
use super::look::{count, measured};
use super::row::{Quantiles, RowEvidence, RowFrame, add_tests, support_of};
use super::snapshot::Snapshot;
use crate::counts::cell::CellCounts;
use crate::rules::comparisons::OpenComparison;
use crate::statistics::rows::rows_of;
use crate::statistics::{CellRows, Moments};

/// One cell as an evaluation sees it.
#[derive(Debug)]
pub struct CellView<'a> {
    /// Its counts.
    pub counts: &'a CellCounts,
    /// Its name.
    pub cell: CellKey,
    /// What is compared in it.
    pub key: ComparisonKey,
    /// The comparison's epoch.
    pub epoch: Hop,
    /// The hop that is closing.
    pub hop: Hop,
    /// Hops in the window.
    pub window_hops: u64,
    /// The clock.
    pub clock: HopClock,
    /// Smallest combined count that is tested.
    pub min_count: f64,
    /// Smallest change that is called.
    pub delta: f64,
    /// The cell's number of the function that is never tested.
    pub untested: Option<usize>,
}

impl CellView<'_> {
    /// What rows of a scope and kind have in common.
    pub fn frame(&self, scope: Scope, kind: CountKind, arms: &CellArms<'_>, support: Support) -> RowFrame {
        let first = match scope {
            Scope::Window => self.hop.plus(1).minus(self.window_hops),
            Scope::Epoch => self.epoch,
        };
        RowFrame {
            scope,
            comparison: self.key.clone(),
            count_kind: kind,
            cell: self.cell.clone(),
            window_start_at: self.clock.start_of(first),
            window_end_at: self.clock.end_of(self.hop),
            head: arms.figures(Side::Head),
            base: arms.figures(Side::Base),
            strata: arms.kept,
            support,
        }
    }
}

/// The rows of one cell in one scope, and its counts for the roll-ups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeReport {
    /// Window or epoch.
    pub scope: Scope,
    /// Rows of each kind, in the order of kinds.
    pub rows: Vec<Vec<RowEvidence>>,
    /// The cell's counts.
    pub snapshot: Snapshot,
}

/// The rows of a cell in one scope; none if the head has no sample in it.
pub fn report(view: &CellView<'_>, comparison: &OpenComparison, scope: Scope, kinds: &[CountKind]) -> Option<ScopeReport> {
    let arms = CellArms::of(view.counts, scope, comparison);
    if arms.figures(Side::Head).total == 0 {
        return None;
    }
    let own = measured(view, &arms, CountKind::SelfCount);
    let scale = own.as_ref().map(Moments::scale);
    let rows = kinds.iter().map(|&kind| {
        let moments = match kind {
            CountKind::SelfCount => own.clone(),
            CountKind::Total => measured(view, &arms, kind),
        };
        let tests = moments.map(|moments| rows_of(moments, scale, view.delta));
        let support = tests.as_ref().map_or(Support::Untestable, |tests| support_of(&tests.moments));
        let frame = view.frame(scope, kind, &arms, support);
        let (head, base) = (arms.counts(Side::Head, kind), arms.counts(Side::Base, kind));
        rows_of_kind(view.counts.functions().entries(), &frame, (&head, &base), tests.as_ref(), view.min_count)
    });
    Some(ScopeReport { scope, rows: rows.collect(), snapshot: Snapshot::of(view.counts.functions(), &arms) })
}

/// Rows of every function with enough samples, and one for all others.
pub fn rows_of_kind(entries: &[(u64, std::sync::Arc<str>)], frame: &RowFrame, counts: (&[f64], &[f64]), tests: Option<&CellRows>, min_count: f64) -> Vec<RowEvidence> {
    let quantiles = tests.map(|tests| Quantiles::of(tests.moments.df_total));
    let mut rows = Vec::new();
    let (mut rare, mut rare_head, mut rare_base) = (0usize, 0, 0);
    for (f, (hash, name)) in entries.iter().enumerate() {
        let (head, base) = (count(counts.0[f]), count(counts.1[f]));
        if head + base == 0 {
            continue;
        }
        if counts.0[f] + counts.1[f] < min_count {
            rare += 1;
            rare_head += head;
            rare_base += base;
            continue;
        }
        let mut evidence = frame.row(*hash, name, head, base);
        if let (Some(tests), Some(quantiles)) = (tests, &quantiles) {
            add_tests(&mut evidence, frame, tests, quantiles, f);
        }
        rows.push(evidence);
    }
    if rare > 0 {
        let mut evidence = frame.row(0, &RARE.into(), rare_head, rare_base);
        evidence.row.functions = Some(whole(rare));
        evidence.settled = Some((Verdict::TooRare, RowReason::CountNeeded));
        rows.push(evidence);
    }
    rows
}
