//! The verdict table: the first line that applies.

use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};

use crate::evidence::row::RowEvidence;

/// What was decided about a row together with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Selected: by its q-value in the window, by the live rule in an epoch.
    pub selected: bool,
    /// Other functions have its cost in the other build.
    pub moved: bool,
    /// Its share moved significantly, in the family of such tests.
    pub share_moved: bool,
    /// Pods that differ although the head as a whole does not.
    pub outlying: Vec<String>,
}

/// The verdict of a row and the reason for it; `min_effect` is the smallest change that can be significant.
pub fn verdict(evidence: &RowEvidence, decided: &Decided, min_effect: f64) -> (Verdict, Option<RowReason>) {
    if let Some((verdict, reason)) = evidence.decided {
        return (verdict, Some(reason));
    }
    if decided.moved && evidence.tested {
        return (Verdict::Moved, only_in(&evidence.row));
    }
    if decided.selected && evidence.theta.abs() >= min_effect {
        return selected(evidence);
    }
    if !decided.outlying.is_empty() {
        return (Verdict::SomePodsOutlying, None);
    }
    if decided.share_moved && evidence.ambiguous {
        return (Verdict::Inconclusive, Some(RowReason::AmbiguousScale));
    }
    if decided.share_moved && is_compositional(evidence, min_effect) {
        return (Verdict::Compositional, None);
    }
    if evidence.row.support == Support::Firm && evidence.equivalent {
        return (Verdict::Equivalent, None);
    }
    (Verdict::Inconclusive, Some(missing(evidence)))
}

fn selected(evidence: &RowEvidence) -> (Verdict, Option<RowReason>) {
    if evidence.contradicts {
        (Verdict::Inconclusive, Some(RowReason::ContradictsShare))
    } else if let Some(suspect) = evidence.suspect {
        (Verdict::Inconclusive, Some(suspect.of_row()))
    } else if !evidence.one_pod.is_empty() {
        (Verdict::SomePodsOutlying, Some(RowReason::OnePod))
    } else if evidence.theta > 0.0 {
        (Verdict::Regressed, only_in(&evidence.row))
    } else {
        (Verdict::Improved, only_in(&evidence.row))
    }
}

/// That only one build has the function.
pub(super) fn only_in(row: &CellRow) -> Option<RowReason> {
    match (row.head.count, row.base.count) {
        (1.., 0) => Some(RowReason::OnlyInHead),
        (0, 1..) => Some(RowReason::OnlyInBase),
        _ => None,
    }
}

fn is_compositional(evidence: &RowEvidence, min_effect: f64) -> bool {
    let RowEvidence { theta_share, theta, .. } = *evidence;
    let by_others = if evidence.unnormalized { theta_share - theta } else { evidence.ln_normalization };
    moves_with_its_cell(by_others, theta_share, theta, min_effect)
}

/// Whether a share moved because the others did: the normalization factor moved by at least `min_effect`, the share
/// moved in the same direction, and is smaller after normalization. All are logs of ratios.
pub fn moves_with_its_cell(ln_normalization: f64, theta_share: f64, theta: f64, min_effect: f64) -> bool {
    ln_normalization.abs() >= min_effect && theta_share * ln_normalization > 0.0 && theta.abs() < theta_share.abs()
}

/// What an inconclusive row needs: more pods, more load, or more time.
fn missing(evidence: &RowEvidence) -> RowReason {
    let row = &evidence.row;
    if row.seconds_to_significance.is_some_and(f64::is_infinite) {
        return RowReason::NeedsPods;
    }
    let seconds = row.window_end_at.since(row.window_start_at).0 / 1_000_000_000;
    // The window does not show how fast history gave samples.
    let (pods, samples) = if evidence.of_history {
        (row.head.pods, row.head.total)
    } else {
        (row.head.pods + row.base.pods, row.head.total + row.base.total)
    };
    if samples < pods.saturating_mul(seconds) { RowReason::LowLoad } else { RowReason::NeedsTime }
}
