//! The tests of functions under the floor of samples, by their counts and by the pods that have them, summed mass by
//! mass.

use fleetdiff_schemas::number::float;
use statrs::function::gamma::ln_gamma;

/// Masses within this relative distance are equally likely.
const TIE: f64 = 1e-9;

/// One arm: samples of the function, all samples, pods with the function, all pods.
#[derive(Clone, Copy, Debug)]
pub struct RareArm {
    /// Samples of the function.
    pub count: u64,
    /// Samples of all functions.
    pub total: u64,
    /// Pods with a sample of the function.
    pub showing: u64,
    /// All pods.
    pub pods: u64,
}

/// ln of `p_rare`: the larger of the two-sided mid-p of the counts given their sum and the exact test of the pods that
/// have the function. Both arms have samples.
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

/// ln p of Fisher's exact test, two-sided: all tables that are at most as likely as the observed one.
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
