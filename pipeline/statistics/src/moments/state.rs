//! What is known of a cell once it is measured.

use crate::strata::Model;

/// The state of a cell's tests; vectors are by function, or by place in [`Contrast::only`](crate::contrast::Contrast::only).
#[derive(Clone, Debug)]
pub struct Moments {
    /// What exposure is.
    pub model: Model,
    /// Number of strata with both arms.
    pub strata: usize,
    /// Number of strata left out.
    pub strata_dropped: usize,
    /// Exposure of the head over all strata.
    pub n_head: f64,
    /// Exposure of the base.
    pub n_base: f64,
    /// Distinct head pods.
    pub k_head: f64,
    /// Distinct base pods.
    pub k_base: f64,
    /// Occupied head buckets.
    pub buckets_head: usize,
    /// Occupied base buckets.
    pub buckets_base: usize,
    /// Degrees of freedom of the dispersion between buckets; 0 if nothing can be tested.
    pub df: f64,
    /// Those and the prior's: the second degree of freedom of every F in the cell.
    pub df_total: f64,
    /// The same of the test on the log scale; NaN unless `few`.
    pub df_log_total: f64,
    /// Variance between pods of a log share.
    pub tau2: f64,
    /// The prior's degrees of freedom as estimated.
    pub d0: f64,
    /// The prior's dispersion.
    pub s02: f64,
    /// Whether an arm has fewer than ten pods or is unlike the other, so that the test on the log scale must agree.
    pub few: bool,
    /// Whether it must agree because of an imbalance of the arms' pods, see [`Contrast::imbalance`](crate::contrast::Contrast::imbalance).
    pub imbalance: bool,
    /// Counts of the head.
    pub a: Vec<f64>,
    /// Counts of the base.
    pub b: Vec<f64>,
    /// Whether the function is in the cell's family.
    pub tested: Vec<bool>,
    /// Number of `tested` functions.
    pub tests: usize,
    /// Raw dispersion, 1 = Poisson.
    pub phi: Vec<f64>,
    /// Mean count a pod.
    pub mu: Vec<f64>,
    /// Moderated dispersion, at least 1.
    pub phi_tilde: Vec<f64>,
    /// ln of the Mantel-Haenszel ratio, not yet held against a scale.
    pub theta_raw: Vec<f64>,
    /// Its standard error; NaN where an arm lacks the function ([`crate::Test::se`] then has the one that the test
    /// implies).
    pub se: Vec<f64>,
    /// By stratum: exposure of head and base.
    pub(crate) exposures: Vec<(f64, f64)>,
    /// By stratum, then function: head count and both counts. Empty with one stratum, where they are `a` and `a + b`.
    pub(crate) by_stratum: Vec<(Vec<f64>, Vec<f64>)>,
    pub(crate) log_scale: Option<LogScale>,
    /// In which order sums over functions are taken; empty if as they stand.
    pub(super) order: Vec<u32>,
}

/// The pod-weighted t test on logs, up to the scale.
#[derive(Clone, Debug)]
pub(crate) struct LogScale {
    /// Mean of the head's log ratios to expectation, minus the base's.
    pub difference: Vec<f64>,
    /// Standard error of that difference.
    pub se: Vec<f64>,
}
