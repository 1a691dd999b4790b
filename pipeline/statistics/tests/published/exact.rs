//! Exact tests, intervals of shares, rare functions.

use fleetdiff_statistics::exact::{TwoSided, binomial_two_sided, hypergeometric_two_sided, ln_binomial_lower};
use fleetdiff_statistics::intervals::wilson;
use fleetdiff_statistics::rare::{RareArm, ln_p_rare};
use fleetdiff_statistics::special::ln_add;
use proptest::prelude::*;

use crate::vectors::{Compared, cases, number, rows};

fn whole(field: &str) -> u64 {
    field.parse().expect("a count")
}

/// Masses that differ by less than this part of one another are equally likely, as in R and SciPy.
const TIE: f64 = 1e-7;

fn fisher_exact(a: u64, n_a: u64, b: u64, n_b: u64) -> Option<TwoSided> {
    hypergeometric_two_sided(a, n_a, b, n_b, TIE)
}

fn of_row(row: &[String]) -> TwoSided {
    fisher_exact(whole(&row[0]), whole(&row[1]), whole(&row[2]), whole(&row[3])).expect("parts of their wholes")
}

/// Both sides, and mid-p; the vectors have one-sided p too.
fn logs(test: &TwoSided) -> [f64; 2] {
    [test.ln_p, test.ln_p_mid]
}

#[test]
fn published_fisher_exact() {
    let mut compared = Compared::new("Fisher's exact test");
    for row in rows("fisher_exact.csv") {
        for (ln_p, p) in logs(&of_row(&row)).into_iter().zip(&row[4..]) {
            compared.relative(ln_p.exp(), number(p), 1e-9, &row.join(","));
        }
    }
    compared.finish();
}

/// Totals up to 1e12, p down to 1e-30000: finite logarithms.
#[test]
fn published_fisher_exact_large() {
    let mut compared = Compared::new("Fisher's exact test far out");
    for row in rows("fisher_exact_large.csv") {
        for (ln_p, expected) in logs(&of_row(&row)).into_iter().zip(&row[4..]) {
            compared.relative_above(ln_p, number(expected), 1e-10, 1e-11, &row.join(","));
        }
    }
    compared.finish();
}

/// Both arms have a million million samples: nothing underflows, nothing takes long.
#[test]
fn published_fisher_exact_huge() {
    let n = 1_000_000_000_000;
    let same = fisher_exact(n / 4, n, n / 4, n).expect("parts of their wholes");
    assert!(same.ln_p >= -1e-9, "{same:?}");
    let other = fisher_exact(n / 4 + 40_000_000, n, n / 4, n).expect("parts of their wholes");
    assert!(logs(&other).iter().all(|ln_p| !ln_p.is_nan()));
    assert!(other.ln_p < -2000.0 && other.ln_p.is_finite(), "{other:?}");
    assert_eq!((fisher_exact(2, 1, 0, 5), fisher_exact(0, 1, 6, 5)), (None, None));
}

#[test]
fn published_intervals() {
    let mut compared = Compared::new("Wilson");
    for row in rows("intervals.csv") {
        let (a, n_a, b, n_b, level) = (whole(&row[0]), whole(&row[1]), whole(&row[2]), whole(&row[3]), number(&row[4]));
        let at = row.join(",");
        for (interval, expected) in [wilson(a, n_a, level), wilson(b, n_b, level)].iter().zip(row[5..9].chunks(2)) {
            for (actual, expected) in [interval.low, interval.high].into_iter().zip(expected) {
                let expected = number(expected);
                assert!((actual - expected).abs() <= 1e-12, "{at}: {actual}, not {expected}");
                compared.relative_above(actual, expected, 0.0, 1e-12, &at);
            }
        }
    }
    compared.finish();
}

#[test]
fn intervals_of_nothing() {
    assert!(wilson(0, 0, 0.95).low.is_nan());
    let (none, all) = (wilson(0, 50, 0.95), wilson(50, 50, 0.95));
    assert!(none.low <= 0.0 && none.high < 0.08 && all.high >= 1.0 && all.low > 0.92);
}

#[test]
fn published_rare() {
    let mut compared = Compared::new("p of rare functions");
    for case in cases("rare.json") {
        let get = |key: &str| whole(&case[key].to_string());
        let head = RareArm { count: get("a"), total: get("N1"), showing: get("pods_head"), pods: get("K1") };
        let base = RareArm { count: get("b"), total: get("N0"), showing: get("pods_base"), pods: get("K0") };
        compared.ln_p(ln_p_rare(head, base), crate::vectors::float(&case["p"]), 1e-8, &case.to_string());
    }
    compared.finish();
}

/// A clump is no evidence: 20 samples in one head pod among 20 v 180 pods. Its twin, one in each of 20 pods, is.
#[test]
fn rare_clump_and_twin() {
    let arm = |count, showing, pods| RareArm { count, total: pods * 180_000, showing, pods };
    let none = arm(0, 0, 180);
    let (clump, spread) = (ln_p_rare(arm(20, 1, 20), none), ln_p_rare(arm(20, 20, 20), none));
    assert!((clump - 0.1_f64.ln()).abs() < 1e-9, "one of 200 pods is a head pod with probability .1: {clump}");
    assert!(spread < -40.0, "{spread}");
    assert!(ln_p_rare(arm(1, 2, 1), none).is_nan() && ln_p_rare(arm(0, 0, 0), none).is_nan());
    assert!(ln_p_rare(arm(0, 0, 20), none) >= 0.0, "no sample is no evidence");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Exchanging the arms changes nothing, and half the weight of ties makes no p larger.
    #[test]
    fn law_fisher_exact(n_a in 1_u64..3000, n_b in 1_u64..3000, part_a in 0.0..1.0_f64, part_b in 0.0..1.0_f64) {
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
        let (a, b) = ((part_a * n_a as f64) as u64, (part_b * n_b as f64) as u64);
        let test = fisher_exact(a, n_a, b, n_b).expect("parts of their wholes");
        let other = fisher_exact(b, n_b, a, n_a).expect("parts of their wholes");
        let close = |x: f64, y: f64| (x - y).abs() <= 1e-9 * y.abs().max(1e-3);
        prop_assert!(close(test.ln_p, other.ln_p) && close(test.ln_p_mid, other.ln_p_mid));
        prop_assert!(test.ln_p_mid <= test.ln_p && test.ln_p <= 0.0);
    }

    /// Everything below a count and everything from it on is everything; equal exposures make both sides alike.
    #[test]
    fn law_binomial(trials in 1_u64..2000, part in 0.0..1.0_f64, p in 1e-6..0.999_f64) {
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
        let count = (part * trials as f64) as u64;
        // More successes than `count` are fewer failures than the rest.
        let above = if count < trials { ln_binomial_lower(trials - count - 1, trials, 1.0 - p, p) } else { f64::NEG_INFINITY };
        let below = ln_binomial_lower(count, trials, p, 1.0 - p);
        prop_assert!(ln_add(below, above).abs() < 1e-9, "{below} {above}");
        let both = [(count, trials - count), (trials - count, count)].map(|(a, b)| binomial_two_sided(a, 3.0, b, 3.0, 1e-9).expect("exposures"));
        prop_assert!((both[0].ln_p - both[1].ln_p).abs() < 1e-9 * (1.0 - both[0].ln_p));
        prop_assert!(binomial_two_sided(count, 0.0, 1, 3.0, 1e-9).is_none());
    }
}
