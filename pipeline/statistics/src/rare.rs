//! Functions too rare for the test between pods: counts and presence together.
//!
//! Below 30 samples the spread between pods cannot be seen, and a function may be clumped: all its samples from one pod. So two
//! exact tests must agree: one of how the samples fall on the arms, one of how many pods of each arm show the function at all.
//! Clumps make the first too sure of itself, few samples a pod make the second; neither alone is honest, the larger p is.
//!
//! What makes it wrong: pods that all show a function which only one of them really runs (shared caches of counts). Own family,
//! never an alert.

#![expect(clippy::as_conversions, reason = "totals below 2^53 become exposures")]

use crate::exact::{binomial_two_sided, hypergeometric_two_sided};

/// Masses within this part of one another are equally likely, as in the reference program.
const TIE: f64 = 1e-9;

/// One arm of a rare function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RareArm {
    /// Samples of the function.
    pub count: u64,
    /// Samples of the arm in the cell.
    pub total: u64,
    /// Pods that show the function.
    pub showing: u64,
    /// Pods of the arm.
    pub pods: u64,
}

/// ln p_rare: the larger of the two-sided mid-p of the counts and the exact test on the number of pods that show the function.
/// NaN where an arm has no samples, or more pods show the function than there are.
///
/// Counts: binomial given their sum, by minimum likelihood, mid-p. Presence: hypergeometric (Fisher's exact test), by minimum
/// likelihood. Independent pods assumed, not independent samples. Checked against the reference program (`rare.json`) to 1e-8.
#[must_use]
pub fn ln_p_rare(head: RareArm, base: RareArm) -> f64 {
    let counts = binomial_two_sided(head.count, head.total as f64, base.count, base.total as f64, TIE);
    let presence = hypergeometric_two_sided(head.showing, head.pods, base.showing, base.pods, TIE);
    counts.zip(presence).map_or(f64::NAN, |(counts, presence)| counts.ln_p_mid.max(presence.ln_p))
}
