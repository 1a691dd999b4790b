//! The verdict of one row: the first line of the verdict table that holds.

use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};

/// Everything that the verdict of a row takes.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Why the arms cannot be compared.
    pub not_comparable: Option<RowReason>,
    /// Counts of head and base.
    pub counts: [f64; 2],
    /// Samples of both.
    pub samples: f64,
    /// Samples from which a row is tested.
    pub min_count: f64,
    /// What the row's pods and degrees of freedom support.
    pub support: Support,
    /// Whether a row below the minimum count is rejected in the family of those.
    pub rare: bool,
    /// Whether the row is rejected in its family, or raised.
    pub decided: bool,
    /// ln of the adjusted ratio.
    pub theta: f64,
    /// ln of the ratio of shares.
    pub theta_share: f64,
    /// The smallest change that counts.
    pub min_effect: f64,
    /// Whether the share moved in the other direction.
    pub contradicts: bool,
    /// Per request: ln p and the log ratio, where it was tested.
    pub per_request: Option<(f64, f64)>,
    /// Whether one pod makes the row.
    pub one_pod: bool,
    /// Whether pods of the head lie out.
    pub outlying: bool,
    /// Admissible scales, the deciding one first.
    pub ln_scales: Vec<f64>,
    /// Whether the change of the share is rejected in its family.
    pub share_moved: bool,
    /// The 90 % interval of `theta`.
    pub interval90: (f64, f64),
    /// What is missing if nothing can be said.
    pub missing: RowReason,
}

impl Facts {
    /// Whether the share contradicts the row and the cost per request does not confirm it.
    fn is_contradicted(&self) -> bool {
        let confirms = |(ln_p, theta): (f64, f64)| ln_p <= 0.05_f64.ln() && theta * self.theta > 0.0;
        self.contradicts && !self.per_request.is_some_and(confirms)
    }

    fn is_compositional(&self) -> bool {
        let scale = self.ln_scales.first().copied().unwrap_or(0.0);
        self.share_moved
            && scale.abs() >= self.min_effect
            && self.theta_share * scale > 0.0
            && self.theta.abs() < self.theta_share.abs()
    }
}

/// The verdict and its reason (`verdict`).
pub fn verdict(facts: &Facts) -> (Verdict, Option<RowReason>) {
    let [head, base] = facts.counts;
    let by_sign = if facts.theta > 0.0 { Verdict::Regressed } else { Verdict::Improved };
    let decided = facts.decided && facts.theta.abs() >= facts.min_effect;
    let few = head + base < facts.min_count;
    let only = match by_sign {
        Verdict::Regressed => (base == 0.0).then_some(RowReason::OnlyInHead),
        _ => (head == 0.0).then_some(RowReason::OnlyInBase),
    };
    let within = 1.05_f64.ln();
    let is_equivalent = facts.support == Support::Firm && facts.interval90.0 >= -within && facts.interval90.1 <= within;
    match () {
        () if facts.not_comparable.is_some() => (Verdict::NotComparable, facts.not_comparable),
        () if head + base >= facts.samples => (Verdict::Untestable, Some(RowReason::WholeProfile)),
        () if facts.support == Support::Untestable => (Verdict::Untestable, Some(RowReason::FewPods)),
        () if few && facts.rare => (by_sign, Some(RowReason::Rare)),
        () if few => (Verdict::TooRare, Some(RowReason::CountNeeded)),
        () if decided && facts.is_contradicted() => (Verdict::Inconclusive, Some(RowReason::ContradictsShare)),
        () if decided && facts.one_pod => (Verdict::SomePodsOutlying, Some(RowReason::OnePod)),
        () if decided => (by_sign, only),
        () if facts.outlying => (Verdict::SomePodsOutlying, None),
        () if facts.ln_scales.len() > 1 && facts.share_moved => {
            (Verdict::Inconclusive, Some(RowReason::AmbiguousScale))
        }
        () if facts.is_compositional() => (Verdict::Compositional, None),
        () if is_equivalent => (Verdict::Equivalent, None),
        () => (Verdict::Inconclusive, Some(facts.missing)),
    }
}
