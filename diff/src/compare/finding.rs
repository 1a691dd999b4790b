//! The result for one function.

use std::cmp::Ordering;
use std::sync::Arc;

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellRow, Interval, RARE};
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use crate::sides::Sides;

/// One function, at the leaf of stacks or anywhere on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its name, or `_rare` for all below the floor.
    pub function: Arc<str>,
    /// Its name in the base, if that is another ([`pairs`](crate::pairs)).
    pub base_function: Option<Arc<str>>,
    /// For `_rare`: how many functions.
    pub functions: Option<i64>,
    /// Where on a stack it is counted.
    pub count_kind: CountKind,
    /// Samples of all runs; none where times are compared.
    pub count: Option<Sides<u64>>,
    /// Their weights, if every run has weights. Tests use samples, never weights, unless times are compared.
    pub weight: Option<Sides<u64>>,
    /// Share of the side's samples, 0 to 1.
    pub share: Sides<f64>,
    /// Head over base, after the normalization factor; none if a side lacks the function or nothing was tested.
    pub ratio: Option<Interval>,
    /// ln of the p-value that decides; none if nothing was tested.
    pub ln_p: Option<f64>,
    /// The smallest false-discovery rate at which it is significant.
    pub q_value: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: Option<RowReason>,
    /// The function whose change moved this one.
    pub cause: Option<String>,
    /// Details in words.
    pub detail: Option<String>,
}

impl Finding {
    /// By which share of the base's samples the head costs at least more (or less); 0 if it may be unchanged.
    pub fn impact(&self) -> f64 {
        let share = self.share.base.max(self.share.head);
        match self.ratio {
            None => self.moved(),
            Some(ratio) if ratio.low > 1.0 => share * (1.0 - 1.0 / ratio.low),
            Some(ratio) if ratio.high < 1.0 => share * (1.0 - ratio.high),
            Some(_) => 0.0,
        }
    }

    /// By how much of all samples its share differs between the sides.
    pub(super) fn moved(&self) -> f64 {
        (self.share.head - self.share.base).abs()
    }

    /// What it has of each side: samples, or, where times are compared, nanoseconds.
    pub fn amount(&self) -> Sides<u64> {
        self.count.or(self.weight).unwrap_or_default()
    }

    /// Whether it is significant or, with one run a side, stands out.
    pub fn is_shown_first(&self) -> bool {
        self.verdict.is_significant() || self.verdict == Verdict::StandsOut
    }

    /// Whether it costs more in the head than in the base, as far as that is known.
    pub fn costs_more(&self) -> bool {
        self.ratio.map_or(self.share.head > self.share.base, |ratio| ratio.value > 1.0)
    }

    /// Whether its share has moved by more than 1 % of itself, whatever the tests say.
    pub fn has_shifted(&self) -> bool {
        let Sides { base, head } = self.share;
        (head - base).abs() > 0.01 * base
    }

    /// The finding in a row of the dataflow.
    pub(super) fn of(row: &CellRow) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            function: row.function.as_str().into(),
            base_function: None,
            functions: row.functions,
            count_kind: row.count_kind,
            count: Some(Sides { base: count(row.base.count), head: count(row.head.count) }),
            weight: None,
            share: Sides { base: row.base.share.unwrap_or(0.0), head: row.head.share.unwrap_or(0.0) },
            ratio: row.adjusted_ratio,
            ln_p: row.ln_p_row,
            q_value: row.q_value,
            verdict: row.verdict,
            reason: row.reason,
            cause: row.cause.clone(),
            detail: row.detail.clone(),
        }
    }

    /// By kind; then significant rows and those that stand out by the smallest change that is compatible with the samples, then compositional
    /// ones, then the rest by evidence; `_rare` last.
    pub(super) fn by_importance(a: &Self, b: &Self) -> Ordering {
        let rank = |finding: &Self| match finding.verdict {
            _ if &*finding.function == RARE => 3,
            _ if finding.is_shown_first() => 0,
            Verdict::Compositional | Verdict::SomePodsOutlying => 1,
            _ => 2,
        };
        let ln_p = |finding: &Self| if rank(finding) == 2 { finding.ln_p.unwrap_or(0.0) } else { 0.0 };
        let impact = |finding: &Self| if rank(finding) == 0 { finding.impact() } else { 0.0 };
        a.count_kind
            .cmp(&b.count_kind)
            .then(rank(a).cmp(&rank(b)))
            .then(impact(b).total_cmp(&impact(a)))
            .then(ln_p(a).total_cmp(&ln_p(b)))
            .then(b.moved().total_cmp(&a.moved()))
            .then_with(|| a.function.cmp(&b.function))
    }
}
