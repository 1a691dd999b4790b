//! Laws of numbers and of families, for any input.

use fleetdiff_statistics::evalue::{e_bh, ln_e, ln_e_mixture};
use fleetdiff_statistics::families::{bh, selected, two_level, weighted, weights, within_selected};
use fleetdiff_statistics::g::{g_2x2, g_rate};
use fleetdiff_statistics::median::median;
use fleetdiff_statistics::special::{normal_quantile, trigamma, trigamma_inverse, z_two_sided};
use fleetdiff_statistics::tails::{F1Tail, ln_chi1_tail, ln_f_tail};
use fleetdiff_statistics::{Support, support};
use proptest::collection::vec;
use proptest::prelude::*;

/// A total and a part of it.
fn arm_of_table() -> impl Strategy<Value = (u64, u64)> {
    (1_u64..1_000_000_000_000).prop_flat_map(|n| (Just(n), 0..=n))
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn close(x: f64, y: f64, tolerance: f64) -> bool {
    (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (1.0 + x.abs().min(y.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// G does not know which arm is the head, and turns share into rest without changing.
    #[test]
    fn law_g_is_symmetric((n_a, a) in arm_of_table(), (n_b, b) in arm_of_table()) {
        let g = g_2x2(a, n_a, b, n_b);
        prop_assert!(g >= 0.0);
        prop_assert!(close(g, g_2x2(b, n_b, a, n_a), 1e-13));
        prop_assert!(close(g, g_2x2(n_a - a, n_a, n_b - b, n_b), 1e-13));
    }

    /// Rates in proportion to exposure have no likelihood ratio; the ratio is not negative elsewhere.
    #[test]
    fn law_equal_rates_are_no_evidence(a in 1.0..1e9_f64, factor in 1e-3..1e3_f64, e in 1.0..1e9_f64, b in 0.0..1e9_f64) {
        prop_assert!(g_rate(a, e, a * factor, e * factor) <= 1e-12 * a);
        prop_assert!(g_rate(a, e, b, e) >= 0.0);
    }

    /// A larger statistic has a smaller p; p is at most 1; the critical value undoes the tail; t tails are heavier than normal.
    #[test]
    fn law_tails_are_monotone(f in 1e-6..5000.0_f64, more in 1e-6..10.0_f64, d2 in 0.5..400.0_f64) {
        let tail = F1Tail::new(d2);
        let ln_p = tail.ln_tail(f);
        prop_assert!(ln_p <= 0.0 && tail.ln_tail(f * (1.0 + more)) < ln_p);
        prop_assert!(close(tail.critical(ln_p) / f, 1.0, 1e-9));
        prop_assert!(ln_chi1_tail(f) <= ln_p + 1e-12 || f < 3.0);
    }

    /// The tail has no step where the series hands over to the continued fraction.
    #[test]
    fn law_tail_is_smooth_at_the_hand_over(d2 in 0.5..1e5_f64) {
        let tail = F1Tail::new(d2);
        let (below, above) = (tail.ln_tail(3.0 * (1.0 - 1e-13)), tail.ln_tail(3.0));
        prop_assert!(close(below, above, 2e-11), "{below} {above}");
    }

    /// Quantiles undo probabilities, and the trigamma inverse undoes trigamma.
    #[test]
    fn law_inverses_undo(p in 1e-300..1.0_f64, y in 1e-3..1e5_f64, g in 1e-9..1e6_f64) {
        prop_assert!(close(normal_quantile(p), -normal_quantile(1.0 - p), 1e-6) || p < 1e-9);
        prop_assert!(close(trigamma_inverse(trigamma(y)) / y, 1.0, 1e-11));
        prop_assert!(close(z_two_sided(ln_chi1_tail(g)) / g.sqrt(), 1.0, 1e-11));
    }

    /// q-values keep the order of p, are at least p and at most 1, do not depend on the order of rows, and NaN is no member.
    #[test]
    fn law_bh_keeps_order(p in vec(prop_oneof![8 => -800.0..0.0_f64, 1 => Just(f64::NAN), 1 => Just(-3.0)], 0..60)) {
        let q = bh(&p);
        let (mut reversed, mut without): (Vec<f64>, Vec<f64>) = (p.clone(), p.iter().copied().filter(|p| !p.is_nan()).collect());
        reversed.reverse();
        let mut q_reversed = bh(&reversed);
        q_reversed.reverse();
        prop_assert_eq!(bits(&q), bits(&q_reversed));
        without = bh(&without);
        prop_assert_eq!(bits(&q.iter().copied().filter(|q| !q.is_nan()).collect::<Vec<_>>()), bits(&without));
        for i in 0..p.len() {
            prop_assert_eq!(p[i].is_nan(), q[i].is_nan());
            if !p[i].is_nan() {
                prop_assert!(q[i] <= 1.0 && q[i] >= p[i].exp() * (1.0 - 1e-12));
                prop_assert!((0..p.len()).all(|j| p[j].is_nan() || p[j] > p[i] || q[j] <= q[i]));
            }
        }
    }

    /// The two-level q by bisection is that of trying every R, and selects exactly what the two steps select.
    #[test]
    fn law_two_level_is_the_slow_search(cells in vec(vec(prop_oneof![6 => -12.0..0.0_f64, 1 => Just(f64::NAN)], 12), 1..6), roll in vec(-12.0..0.0_f64, 12), q in 0.001..0.9_f64) {
        let views: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let result = two_level(&views, &roll, None);
        let mut ascending = result.q_f.clone();
        ascending.sort_by(f64::total_cmp);
        let selected_functions = result.q_f.iter().filter(|&&q_f| q_f <= q).count();
        for f in 0..roll.len() {
            let column: Vec<f64> = cells.iter().map(|cell| cell[f]).collect();
            for (c, &q_cell) in bh(&column).iter().enumerate().filter(|(_, q_cell)| !q_cell.is_nan()) {
                let tries = (1..=12_u32).zip(&ascending).map(|(j, &q_f)| q_f.max(12.0 / f64::from(j) * q_cell));
                let slow = tries.fold(f64::INFINITY, f64::min).max(result.q_f[f]).min(1.0);
                prop_assert_eq!(slow.to_bits(), result.q_value[c][f].to_bits());
                let inside = u32::try_from(selected_functions).map_or(0.0, f64::from) / 12.0;
                let two_steps = result.q_f[f] <= q && q_cell <= q * inside;
                prop_assert!(two_steps == selected(result.q_value[c][f], q) || (result.q_value[c][f] / q - 1.0).abs() < 1e-9);
            }
        }
    }

    /// A larger level flags at least the same rows, a larger family at most the same; larger e-values are flagged first.
    #[test]
    fn law_e_bh_grows_with_q(e in vec(prop_oneof![6 => -5.0..12.0_f64, 1 => Just(f64::NAN)], 0..50), q in 0.001..0.5_f64, factor in 1.0..4.0_f64, extra in 0_usize..2000) {
        let (few, many) = (e_bh(&e, q, 0), e_bh(&e, q * factor, 0));
        let diluted = e_bh(&e, q, e.len() + extra);
        for i in 0..e.len() {
            prop_assert!(!few[i] || many[i]);
            prop_assert!(!diluted[i] || few[i]);
            prop_assert!(!few[i] || (0..e.len()).all(|j| e[j].is_nan() || e[j] <= e[i] || few[j]));
            prop_assert!(!few[i] || e[i] >= -q.ln());
        }
    }

    /// The bound on which the live screen rests.
    #[test]
    fn law_e_is_bounded_by_z(z in 0.0..40.0_f64, v in 1e-7..10.0_f64) {
        prop_assert!(ln_e_mixture(z * z, v) <= 0.5 * z * z);
        prop_assert!(ln_e(ln_chi1_tail(z * z), v) <= 0.5 * z * z + 1e-9);
    }

    /// The general tail is the special one with one degree of freedom, and the two sides of an F are each other's.
    #[test]
    fn law_general_tail(f in 1e-3..500.0_f64, d1 in 0.3..90.0_f64, d2 in 0.3..90.0_f64) {
        prop_assert!(close(ln_f_tail(f, 1.0, d2), F1Tail::new(d2).ln_tail(f), 1e-10));
        let (above, below) = (ln_f_tail(f, d1, d2).exp(), ln_f_tail(1.0 / f, d2, d1).exp());
        prop_assert!((above + below - 1.0).abs() < 1e-11, "{above} {below}");
    }

    /// Functions that cost the same have the weight 1, and weighted BH is then the plain one; weights have mean 1, a costlier function no
    /// smaller one, and none is 6.4 times another.
    #[test]
    fn law_weights(p in vec(prop_oneof![8 => -30.0..0.0_f64, 1 => Just(f64::NAN)], 1..60), share in 1e-9..1.0_f64, shares in vec(1e-9..0.2_f64, 60)) {
        let own = |all: &dyn Fn(usize) -> f64| -> Vec<f64> {
            weights(&(0..p.len()).map(|i| if p[i].is_nan() { f64::NAN } else { all(i) }).collect::<Vec<_>>())
        };
        let (same, various) = (own(&|_| share), own(&|i| shares[i]));
        for (q, plain) in bh(&weighted(&p, &same)).into_iter().zip(bh(&p)) {
            prop_assert!(close(q, plain, 1e-13), "{q} {plain}");
        }
        let members: Vec<usize> = (0..p.len()).filter(|&i| !p[i].is_nan()).collect();
        let count: f64 = members.iter().map(|_| 1.0).sum();
        prop_assert!(members.is_empty() || close(members.iter().map(|&i| various[i]).sum::<f64>() / count, 1.0, 1e-12));
        for (&i, &j) in members.iter().zip(members.iter().skip(1)) {
            prop_assert!((shares[i] < shares[j] || various[i] >= various[j]) && various[i] < 6.4 * various[j]);
        }
    }

    /// The median is the middle one.
    #[test]
    fn law_median(values in vec(-50.0..50.0_f64, 25)) {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!(median(&values).to_bits(), sorted[12].to_bits());
    }
}

/// A row of a function that is in no first-level family is never selected.
#[test]
fn law_unselectable_function() {
    let rows = [-50.0, -50.0];
    let q = within_selected(&[0.001, f64::NAN], &[&rows]);
    assert!(selected(q[0][0], 0.05) && !selected(q[0][1], 0.99));
    assert!(!selected(within_selected(&[f64::NAN], &[&rows[..1]])[0][0], 0.99));
}

#[test]
fn law_support_by_pods() {
    assert_eq!(support(1.0, 18.0, 15.0), Support::Untestable);
    assert_eq!(support(5.0, 18.0, 1.4), Support::Untestable);
    assert_eq!(support(2.0, 18.0, 15.0), Support::Tentative);
    assert_eq!(support(5.0, 5.0, 8.0), Support::Firm);
}
