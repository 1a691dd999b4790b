//! What a flag says of its row, and when it says it again.

use fleetdiff_schemas::verdict::{Severity, Support};
use serde::{Deserialize, Serialize};

use super::Selected;
use crate::evidence::row::RowEvidence;

/// A selected row as a flag announces it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Emitted {
    pub theta: f64,
    half_interval: Option<f64>,
    support: Support,
    pub severity: Severity,
}

impl Emitted {
    /// What a flag of the row would say now.
    pub fn now(selected: &Selected, is_doubtful: bool) -> Self {
        let evidence = &selected.now;
        let half = |low: f64, high: f64| (libm::log(high) - libm::log(low)) / 2.0;
        let interval = evidence.row.effect();
        Self {
            theta: evidence.theta,
            half_interval: interval.map(|interval| half(interval.low, interval.high)),
            support: evidence.row.support,
            severity: severity(evidence, is_doubtful || selected.provisional.is_some()),
        }
    }

    /// Whether the effect moved by more than half the width of the interval that was announced before, or the support or the
    /// severity changed.
    pub fn has_moved_from(&self, before: &Self) -> bool {
        let by = (self.theta - before.theta).abs();
        let is_other = self.support != before.support || self.severity != before.severity;
        is_other || before.half_interval.is_some_and(|half| by > half)
    }
}

/// Nobody is paged for what may have another reason.
fn severity(evidence: &RowEvidence, may_be_another: bool) -> Severity {
    match evidence.row.support {
        _ if evidence.theta <= 0.0 => Severity::Info,
        Support::Firm if !may_be_another => Severity::Page,
        _ => Severity::Ticket,
    }
}
