//! Functions under the floor of samples: what their counts and the pods that show them say, added up mass by mass.

use fleetdiff_schemas::number::float;
use statrs::function::gamma::ln_gamma;

/// Masses within this part of one another are equally likely.
const TIE: f64 = 1e-9;

/// One arm: samples of the function, of the arm, pods that show the function, pods.
#[derive(Clone, Copy, Debug)]
pub struct RareArm {
    /// Samples of the function.
    pub count: u64,
    /// Samples in all.
    pub total: u64,
    /// Pods with a sample of the function.
    pub showing: u64,
    /// Pods in all.
    pub pods: u64,
}

/// ln of `p_rare`: the larger of the two-sided mid-p of the counts given their sum and the exact test of the pods that show the
/// function. Both arms have samples.
pub fn ln_p_rare(head: RareArm, base: RareArm) -> f64 {
    let all = head.count + base.count;
    let part = |arm: RareArm| (float(arm.total) / (float(head.total) + float(base.total))).ln();
    // A mass of 0 ln 0 is 1.
    let power = |count: u64, ln: f64| if count == 0 { 0.0 } else { float(count) * ln };
    let ln_binomial = |count: u64| ln_choose(all, count) + power(count, part(head)) + power(all - count, part(base));
    let masses: Vec<f64> = (0..=all).map(|count| ln_binomial(count).exp()).collect();
    let seen = ln_binomial(head.count).exp();
    let less: f64 = masses.iter().filter(|mass| **mass < seen * (1.0 - TIE)).sum();
    let equivalent: f64 = masses.iter().filter(|mass| (**mass - seen).abs() <= seen * TIE).sum();
    (less + equivalent / 2.0).min(1.0).ln().max(ln_p_of_pods(head, base))
}

/// ln p of Fisher's exact test, two-sided: all that is at most as likely as what was seen.
fn ln_p_of_pods(head: RareArm, base: RareArm) -> f64 {
    let showing = head.showing + base.showing;
    let ln_mass = |in_head: u64| {
        ln_choose(head.pods, in_head) + ln_choose(base.pods, showing - in_head)
            - ln_choose(head.pods + base.pods, showing)
    };
    let possible = showing.saturating_sub(base.pods)..=head.pods.min(showing);
    let seen = ln_mass(head.showing).exp();
    let masses = possible.map(|in_head| ln_mass(in_head).exp());
    masses.filter(|mass| *mass <= seen * (1.0 + TIE)).sum::<f64>().min(1.0).ln()
}

/// ln of the binomial coefficient.
fn ln_choose(all: u64, some: u64) -> f64 {
    ln_gamma(float(all) + 1.0) - ln_gamma(float(some) + 1.0) - ln_gamma(float(all - some) + 1.0)
}
