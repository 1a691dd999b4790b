//! From tests of one cell to the numbers of its rows: normalization factor, p against the minimum effect, e-value,
//! power.

use std::sync::LazyLock;

use super::ENOUGH_FUNCTIONS;
use super::moderation::normalization_from;
use super::strata::{Arm, Model, Tested, strata_test};
use super::tails::{bisect, ln_chi1_tail, t_of_tail, z_two_sided};

/// Standard deviations of the log ratio that the e-value mixes over.
const SPREADS: [f64; 4] = [0.05, 0.2, 0.8, 3.2];

/// Everything about the functions of one cell and one count kind.
#[derive(Clone, Debug, Default)]
pub struct CellTest {
    /// The normalization factor of the adjusted test.
    pub normalization: f64,
    /// With normalization factor 1.
    pub share: Tested,
    /// With the cell's normalization factor.
    pub adjusted: Tested,
    /// ln p against a change of at most the minimum effect, after normalization.
    pub ln_p_min_effect: Vec<f64>,
    /// ln p that decides.
    pub ln_p_row: Vec<f64>,
    /// ln p of a change of the share, for `compositional`.
    pub ln_p_comp: Vec<f64>,
}

/// ln p of H0: |theta| <= `min_effect` at `normalization` (the reference's `p_delta`): the test repeated at both ends
/// of that range. The reference's p exceeds 1 if few pods make the farther end the more likely one; here it is limited
/// to 1.
fn ln_p_min_effect(
    head: &Arm,
    base: &Arm,
    normalization: f64,
    theta: &[f64],
    min_effect: f64,
    min_count: f64,
) -> Vec<f64> {
    let up = strata_test(head, base, Model::Share, normalization * min_effect.exp(), min_count).ln_p;
    let down = strata_test(head, base, Model::Share, normalization * (-min_effect).exp(), min_count).ln_p;
    let one = |f: usize| {
        let (near, far) = if theta[f] > 0.0 { (up[f], down[f]) } else { (down[f], up[f]) };
        if theta[f].abs() > min_effect {
            // ln(near/2 + far/2), where both may be too small for exp; ln p of the nearer end is the larger.
            let larger = near.max(far);
            if larger.is_infinite() {
                larger
            } else {
                larger + (((near - larger).exp() + (far - larger).exp()) / 2.0).ln()
            }
        } else {
            ((far.exp() - near.exp()) / 2.0).ln_1p().min(0.0)
        }
    };
    (0..theta.len()).map(one).collect()
}

/// The tests of one cell (`rows_of_cell`). `self_normalization` is the normalization factor of self counts, for total
/// counts.
pub fn rows_of_cell(
    head: &Arm,
    base: &Arm,
    self_normalization: Option<f64>,
    min_effect: f64,
    min_count: f64,
) -> CellTest {
    let share = strata_test(head, base, Model::Share, 1.0, min_count);
    if share.strata == 0 {
        let nothing = vec![f64::NAN; share.ln_p.len()];
        let adjusted = share.clone();
        return CellTest {
            normalization: 1.0,
            share,
            adjusted,
            ln_p_min_effect: nothing.clone(),
            ln_p_row: nothing.clone(),
            ln_p_comp: nothing,
        };
    }
    let tested = share.tested.iter().filter(|tested| **tested).count();
    let enough = tested >= ENOUGH_FUNCTIONS;
    let normalization = self_normalization.unwrap_or_else(|| {
        let in_both = |f: &usize| share.tested[*f] && share.a[*f] > 0.0 && share.b[*f] > 0.0;
        let chosen: Vec<usize> = (0..share.theta.len()).filter(in_both).collect();
        let l: Vec<f64> = chosen.iter().map(|&f| share.theta[f]).collect();
        let v: Vec<f64> = chosen.iter().map(|&f| share.se[f] * share.se[f]).collect();
        if enough { normalization_from(&l, &v) } else { 1.0 }
    });
    let adjusted = strata_test(head, base, Model::Share, normalization, min_count);
    let min_effect_adjusted = ln_p_min_effect(head, base, normalization, &adjusted.theta, min_effect, min_count);
    let delta_share = ln_p_min_effect(head, base, 1.0, &share.theta, min_effect, min_count);
    let of_tested = |f: usize, value: f64| if share.tested[f] { value } else { f64::NAN };
    let functions = 0..share.theta.len();
    let row = |f: usize| {
        let decided = adjusted.ln_p[f].max(min_effect_adjusted[f]);
        if enough { decided } else { decided.max(share.ln_p[f]) }
    };
    CellTest {
        normalization,
        ln_p_row: functions.clone().map(|f| of_tested(f, row(f))).collect(),
        ln_p_comp: functions.clone().map(|f| of_tested(f, share.ln_p[f].max(delta_share[f]))).collect(),
        ln_p_min_effect: functions.map(|f| of_tested(f, min_effect_adjusted[f])).collect(),
        share,
        adjusted,
    }
}

/// ln of the mixture e-value of a row (`ln_e`): p no smaller than 1e-300, as in the reference. `others` is the part of
/// the samples that is not the row's, if the normalization factor was estimated from them; otherwise 1.
pub fn ln_e(ln_p: f64, se: f64, others: f64) -> f64 {
    ln_mixture(z_two_sided(ln_p.max(1e-300_f64.ln())) * others, (se / others).powi(2))
}

/// ln of the mixture over all standard deviations, for an estimate with variance `v` that is `z` standard errors from
/// 0.
fn ln_mixture(z: f64, v: f64) -> f64 {
    let one = |t: f64| 0.5 * (v / (v + t * t)).ln() + 0.5 * z * z * t * t / (v + t * t);
    let terms = SPREADS.map(one);
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln() - 4.0_f64.ln()
}

/// Half the width of the always-valid interval of a log ratio, at `level`: at its ends, a t test with `df` degrees of
/// freedom has an e-value of 1 / (1 - `level`). `se` and `others` are those of [`ln_e`].
pub fn always_valid_half_width(se: f64, df: f64, others: f64, level: f64) -> f64 {
    let wanted = -(1.0 - level).ln();
    let v = (se / others).powi(2);
    let z = bisect(0.0, 1e6, |z| ln_mixture(z, v) < wanted) / others;
    se * t_of_tail(ln_chi1_tail(z * z), df)
}

/// Smallest detectable |ln ratio| at alpha 1e-4 and power .8 (`mde`).
pub fn smallest_detectable(head_pods: f64, base_pods: f64, samples_per_pod: f64, share: f64, tau2: f64) -> f64 {
    let v = (tau2 + (1.0 - share) / (share * samples_per_pod)) * (1.0 / head_pods + 1.0 / base_pods);
    power_quantiles() * v.sqrt()
}

/// Seconds until a ratio of 1.05 is detected at alpha 1e-4 and power .8 (`seconds_to_detect`); infinite if only more
/// pods can help.
pub fn seconds_to_detect(head_pods: f64, base_pods: f64, rate: f64, share: f64, tau2: f64) -> f64 {
    let z = power_quantiles();
    let effect = 1.05_f64.ln();
    let d = effect * effect / (z * z * (1.0 / head_pods + 1.0 / base_pods)) - tau2;
    if d <= 0.0 { f64::INFINITY } else { (1.0 - share) / (share * rate * d) }
}

/// The fewest additional head pods with which a ratio of 1.05 is detected within `seconds`, if up to a million are
/// enough.
pub fn pods_needed((head_pods, base_pods): (f64, f64), rate: f64, share: f64, tau2: f64, seconds: f64) -> Option<i64> {
    let seen = |more: u32| seconds_to_detect(head_pods + f64::from(more), base_pods, rate, share, tau2) <= seconds;
    let (mut few, mut enough) = (0, 1_000_000);
    if seen(few) || !seen(enough) {
        return seen(few).then_some(0);
    }
    while enough - few > 1 {
        let middle = u32::midpoint(few, enough);
        *if seen(middle) { &mut enough } else { &mut few } = middle;
    }
    Some(i64::from(enough))
}

/// Samples by the plain rule for a change of 5 %: 1 / (share x .05^2).
pub fn samples_needed(share: f64) -> f64 {
    1.0 / (share * 0.05 * 0.05)
}

fn power_quantiles() -> f64 {
    static SUM: LazyLock<f64> = LazyLock::new(|| z_two_sided(1e-4_f64.ln()) + z_two_sided(0.4_f64.ln()));
    *SUM
}

/// ln p of the 2x2 table of `g` if samples were independent.
pub fn ln_p_iid(g: f64) -> f64 {
    ln_chi1_tail(g)
}
