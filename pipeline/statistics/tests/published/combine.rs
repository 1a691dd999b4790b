//! Many p made one.

use fleetdiff_statistics::chi_square::ln_chi_square_tail;
use fleetdiff_statistics::combine::{fisher, ln_normal_upper, stouffer, z_one_sided};
use fleetdiff_statistics::tails::ln_chi1_tail;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::minority::Noise;
use crate::vectors::{Compared, cases, float, floats};

#[test]
fn published_combine() {
    let (mut of_fisher, mut of_stouffer) =
        (Compared::new("Fisher's combination"), Compared::new("Stouffer's combination"));
    for case in cases("combine.json") {
        let (at, want) = (case["name"].to_string(), |key: &str| float(&case[key]));
        let ln_p: Vec<f64> = floats(&case["p_one_sided"]).iter().map(|&p| libm::log(p)).collect();
        let weights = if case["weights"].is_null() { Vec::new() } else { floats(&case["weights"]) };
        let sum = fisher(&ln_p);
        of_fisher.relative(sum.statistic, want("fisher_chi2"), 1e-10, &at);
        of_fisher.relative(sum.df, want("fisher_df"), 0.0, &at);
        of_fisher.relative(sum.ln_p, want("fisher_ln_p"), 1e-10, &at);
        let z = stouffer(&ln_p, &weights);
        of_stouffer.relative(z.statistic, want("stouffer_z"), 1e-10, &at);
        of_stouffer.relative(z.ln_p, want("stouffer_ln_p"), 1e-10, &at);
    }
    of_fisher.finish();
    of_stouffer.finish();
}

#[test]
fn combine_nothing_and_certainty() {
    for none in [fisher(&[]), stouffer(&[f64::NAN], &[])] {
        assert_eq!(none.ln_p.to_bits(), 0.0_f64.to_bits());
    }
    let minus_infinity = f64::NEG_INFINITY;
    assert_eq!(fisher(&[minus_infinity, -1.0]).ln_p.to_bits(), minus_infinity.to_bits());
    assert_eq!(stouffer(&[minus_infinity, -1.0], &[]).ln_p.to_bits(), minus_infinity.to_bits());
    assert_eq!(
        stouffer(&[minus_infinity, 0.0], &[]).ln_p.to_bits(),
        0.0_f64.to_bits(),
        "0 and 1 contradict each other"
    );
}

/// 40 uniform numbers, 8,000 times: each combined p is below .05 and .002 as often as it says. Their twins, one number of 40
/// squared four times over, are found.
#[test]
fn null_combinations_are_uniform() {
    let runs = 8_000;
    let mut noise = Noise::seeded(17);
    let mut below = [[0.0; 2]; 2];
    let mut found = [0; 2];
    for _ in 0..runs {
        let mut ln_p: Vec<f64> = (0..40).map(|_| libm::log(noise.uniform())).collect();
        for (below, ln_p) in below.iter_mut().zip([fisher(&ln_p).ln_p, stouffer(&ln_p, &[]).ln_p]) {
            below[0] += f64::from(u8::from(ln_p < libm::log(0.05))) / f64::from(runs);
            below[1] += f64::from(u8::from(ln_p < libm::log(0.002))) / f64::from(runs);
        }
        ln_p[7] *= 16.0;
        let changed = [fisher(&ln_p).ln_p, stouffer(&ln_p, &[]).ln_p];
        found.iter_mut().zip(changed).for_each(|(found, ln_p)| *found += i32::from(ln_p < libm::log(0.002)));
    }
    eprintln!(
        "seed 17, {runs} runs: p < .05 and < .002 of Fisher, Stouffer {below:?}; with one of 40 far off {found:?}"
    );
    for [five, fifth] in below {
        // four standard errors
        assert!((five - 0.05).abs() < 0.0098 && (fifth - 0.002).abs() < 0.002, "{five} {fifth}");
    }
    assert!(found[0] > 800, "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// One degree of freedom has two forms, two have a closed one; the tail falls, without a step where series and fraction meet.
    #[test]
    fn law_chi_square_tail(x in 1e-6..5000.0_f64, df in 0.5..2000.0_f64) {
        let close = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * b.abs().max(1e-12);
        prop_assert!(close(ln_chi_square_tail(x, 1.0), ln_chi1_tail(x), 1e-11));
        prop_assert!(close(ln_chi_square_tail(x, 2.0), -0.5 * x, 1e-11));
        let ln_p = ln_chi_square_tail(x, df);
        prop_assert!(ln_p <= 0.0 && ln_chi_square_tail(x * 1.01, df) <= ln_p && ln_chi_square_tail(x, df * 1.01) >= ln_p);
        let edge = df + 2.0;
        prop_assert!(close(ln_chi_square_tail(edge * (1.0 - 1e-14), df), ln_chi_square_tail(edge, df), 1e-10));
    }

    /// z undoes the normal tail on both sides.
    #[test]
    fn law_z_one_sided(z in -8.0..40.0_f64) {
        prop_assert!((z_one_sided(ln_normal_upper(z)) - z).abs() < 1e-9 * z.abs().max(1.0) || z < -5.0);
    }

    /// No combination depends on the order, and NaN is no member.
    #[test]
    fn law_combinations_have_no_order(p in vec(-60.0..0.0_f64, 1..30)) {
        let mut other = p.clone();
        other.reverse();
        other.push(f64::NAN);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-9);
        prop_assert!(close(fisher(&p).ln_p, fisher(&other).ln_p));
        prop_assert!(close(stouffer(&p, &[]).ln_p, stouffer(&other, &[]).ln_p));
    }
}
