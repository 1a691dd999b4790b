//! Laws that hold for any input: symmetry, order, invariance under how the same counts are laid out.

use std::collections::BTreeMap;

use fleetdiff_statistics::compositional::moved_with_the_rest;
use fleetdiff_statistics::dispersion::{median, moderate};
use fleetdiff_statistics::evalue::{e_bh, ln_e, ln_e_mixture};
use fleetdiff_statistics::families::{bh, selected, two_level, within_selected};
use fleetdiff_statistics::g::{g_2x2, g_rate};
use fleetdiff_statistics::normalization::biweight;
use fleetdiff_statistics::special::{normal_quantile, trigamma, trigamma_inverse, z_two_sided};
use fleetdiff_statistics::tails::{F1Tail, ln_chi1_tail};
use fleetdiff_statistics::{
    Arm, BucketCounts, BucketRow, Contrast, MIN_EFFECT, Model, Moments, Stratum, Support, rows_of_cell, support,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::vectors::live_rows;

/// Counts of one arm by bucket, then function.
type Buckets = Vec<Vec<u64>>;

fn arm(buckets: &Buckets) -> Arm<'_> {
    Arm { rows: (0..).zip(buckets).map(|(bucket, counts)| row_of(bucket, counts)).collect() }
}

fn row_of(bucket: u16, counts: &Vec<u64>) -> BucketRow<'_> {
    let held: &dyn BucketCounts = counts;
    BucketRow { bucket, exposure: counts.iter().sum::<u64>().max(1), counts: vec![held] }
}

fn pods(buckets: &Buckets) -> BTreeMap<u16, u32> {
    (0..).zip(buckets).map(|(bucket, _)| (bucket, 1)).collect()
}

/// Strata of (head, base), the same buckets in each.
fn contrast<'a>(functions: usize, strata: &[(&'a Buckets, &'a Buckets)]) -> Contrast<'a> {
    let (head, base) = strata[0];
    let strata = strata.iter().map(|(head, base)| Stratum { head: arm(head), base: arm(base) }).collect();
    Contrast::new(functions, strata, pods(head), pods(base))
}

fn measure(functions: usize, strata: &[(&Buckets, &Buckets)]) -> Moments {
    Moments::measure(&contrast(functions, strata), Model::Share, 30.0)
}

/// Between `least` and 14 buckets of counts that are zero, small or large.
fn buckets(least: usize, functions: usize) -> impl Strategy<Value = Buckets> {
    vec(vec(prop_oneof![1 => Just(0_u64), 2 => 0_u64..20, 4 => 50_u64..5000], functions), least..14)
}

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
        let result = two_level(&views, &roll);
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

    /// A larger level calls at least the same rows, a larger family at most the same; larger e-values are called first.
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
        prop_assert!(ln_e(ln_chi1_tail(z * z), v.sqrt()) <= 0.5 * z * z + 1e-9);
    }

    /// The location moves with its data, and not with one function however far off.
    #[test]
    fn law_scale_moves_with_its_data(theta in vec(-0.2..0.2_f64, 25..60), v in vec(1e-5..1e-2_f64, 60), shift in -1.0..1.0_f64) {
        let v = &v[..theta.len()];
        let moved: Vec<f64> = theta.iter().map(|theta| theta + shift).collect();
        prop_assert!(close(biweight(&moved, v) / biweight(&theta, v), shift.exp(), 1e-6));
        let same = vec![0.1; theta.len()];
        let mut one_off = same.clone();
        one_off[0] = 5.0;
        prop_assert!(close(biweight(&one_off, v), biweight(&same, v), 1e-9));
        // two camps far apart: the larger one is "unchanged"
        let mut camps = vec![0.0; 15];
        camps.extend(vec![1.0; 10]);
        prop_assert!(close(biweight(&camps, &[1e-4; 25]), 1.0, 1e-12));
    }

    /// Moderated dispersion keeps order among functions of equal count, and lies above the floor.
    #[test]
    fn law_moderation_shrinks(phi in vec(0.01..50.0_f64, 25), df in 1.0..100.0_f64) {
        let result = moderate(&phi, &[10.0; 25], &[true; 25], df);
        for i in 0..25 {
            prop_assert!(result.phi[i] >= 1.0);
            prop_assert!((0..25).all(|j| phi[j] > phi[i] || result.phi[j] <= result.phi[i]));
        }
        let mut sorted = phi.clone();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!(median(&phi).to_bits(), sorted[12].to_bits());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With one stratum the statistic at scale 1 is G of the summed counts.
    #[test]
    fn law_at_scale_one_is_g(head in buckets(2, 30), base in buckets(2, 30)) {
        let moments = measure(30, &[(&head, &base)]);
        let test = moments.normalized(1.0);
        let exposure = |buckets: &Buckets| arm(buckets).exposure();
        let total = |buckets: &Buckets, f: usize| buckets.iter().map(|counts| counts[f]).sum::<u64>();
        for f in (0..30).filter(|&f| moments.tested[f]) {
            let g = g_2x2(total(&head, f), exposure(&head), total(&base, f), exposure(&base));
            prop_assert_eq!(test.stat[f].to_bits(), g.to_bits());
        }
    }

    /// Arms exchanged: the same evidence, the opposite effect.
    #[test]
    fn law_arms_exchanged(head in buckets(1, 25), base in buckets(2, 25), earlier in buckets(2, 25)) {
        for strata in [vec![(&head, &base)], vec![(&head, &base), (&base, &earlier)]] {
            let exchanged: Vec<_> = strata.iter().map(|&(head, base)| (base, head)).collect();
            let (there, back) = (measure(25, &strata).normalized(1.0), measure(25, &exchanged).normalized(1.0));
            for f in 0..25 {
                prop_assert!(close(there.theta[f], -back.theta[f], 1e-9), "theta {} {}", there.theta[f], back.theta[f]);
                prop_assert!(close(there.ln_p[f], back.ln_p[f], 1e-7), "ln p {} {}", there.ln_p[f], back.ln_p[f]);
                prop_assert!(close(there.se[f], back.se[f], 1e-7) || there.se[f] > 1e6);
            }
        }
    }

    /// How counts are stored, in how many builds an arm's counts lie, and strata without an arm: none of it changes a bit.
    #[test]
    fn law_layout_does_not_matter(head in buckets(2, 25), base in buckets(2, 25)) {
        let plain = measure(25, &[(&head, &base)]);
        let narrow: Vec<Vec<u32>> = head.iter().map(|counts| counts.iter().map(|&c| u32::try_from(c).expect("small")).collect()).collect();
        let first: Buckets = head.iter().map(|counts| counts.iter().map(|c| c / 3).collect()).collect();
        let rest: Buckets = head.iter().map(|counts| counts.iter().map(|c| c - c / 3).collect()).collect();
        let empty = Buckets::new();
        let mut stored = contrast(25, &[(&head, &base), (&empty, &base), (&head, &empty)]);
        prop_assert_eq!((stored.strata.len(), stored.strata_dropped), (1, 2));
        for (row, counts) in stored.strata[0].head.rows.iter_mut().zip(&narrow) {
            row.counts = vec![counts];
        }
        let mut split = contrast(25, &[(&head, &base)]);
        for (row, counts) in split.strata[0].head.rows.iter_mut().zip(first.iter().zip(&rest)) {
            row.counts = vec![counts.0, counts.1];
        }
        for other in [stored, split] {
            let other = Moments::measure(&other, Model::Share, 30.0);
            prop_assert_eq!(bits(&plain.phi), bits(&other.phi));
            prop_assert_eq!(bits(&plain.normalized(1.01).ln_p), bits(&other.normalized(1.01).ln_p));
        }
    }

    /// A function's numbers do not depend on the block it falls in.
    #[test]
    fn law_blocks_do_not_matter(head in buckets(2, 25), base in buckets(2, 25), earlier in buckets(2, 25)) {
        let many = |buckets: &Buckets| -> Buckets { buckets.iter().map(|counts| counts.repeat(27)).collect() };
        let (head, base, earlier) = (many(&head), many(&base), many(&earlier));
        let moments = measure(675, &[(&head, &base), (&earlier, &base)]);
        let test = moments.normalized(0.99);
        for f in 25..675 {
            for values in [&moments.a, &moments.phi, &moments.phi_tilde, &moments.se, &test.ln_p, &test.theta] {
                prop_assert_eq!(values[f].to_bits(), values[f % 25].to_bits());
            }
        }
    }

    /// A band of no width is the test itself; live rows are the report's rows above the floor.
    #[test]
    fn law_live_is_the_report(head in buckets(1, 40), base in buckets(2, 40), earlier in buckets(2, 40), floor in 1.0..1000.0_f64) {
        for strata in [vec![(&head, &base)], vec![(&head, &base), (&earlier, &base)]] {
            let cell = contrast(40, &strata);
            let report = rows_of_cell(&cell, None, MIN_EFFECT);
            let exact = report.moments.ln_p_min_effect(report.normalization, 0.0);
            let live = live_rows(&cell, None, floor);
            let mut candidates = live.candidates.iter().peekable();
            for (f, &exact) in exact.iter().enumerate() {
                prop_assert!(close(exact, report.adjusted.ln_p[f], 1e-9));
                prop_assert!(report.ln_p_row[f].is_nan() || report.ln_p_row[f] <= 0.0);
                match candidates.next_if(|row| row.function == f) {
                    Some(row) => prop_assert_eq!(bits(&[row.ln_p, row.ln_e]), bits(&[ln_p_of_e(&report, f), report.ln_e[f]])),
                    None => prop_assert!(report.ln_e[f].is_nan() || report.ln_e[f] < floor.ln()),
                }
            }
        }
    }

    /// What moved with the rest is what all tests of all functions say of it.
    #[test]
    fn law_moved_with_the_rest(head in equivalent(12), base in equivalent(14), earlier in equivalent(12), times in 5_u64..60, q in 0.001..0.3_f64) {
        let head: Buckets = head.into_iter().map(|mut counts| { counts[0] *= times; counts }).collect();
        for strata in [vec![(&head, &base)], vec![(&head, &base), (&earlier, &base)]] {
            let rows = rows_of_cell(&contrast(40, &strata), None, MIN_EFFECT);
            let (share, adjusted, ln_normalization) = (&rows.share.theta, &rows.adjusted.theta, rows.normalization.ln());
            let significant = bh(&rows.ln_p_comp);
            let moved = |f: &usize| share[*f] * ln_normalization > 0.0 && adjusted[*f].abs() < share[*f].abs();
            let expected: Vec<usize> = (0..40).filter(|&f| selected(significant[f], q)).filter(moved).collect();
            let expected = if ln_normalization.abs() < MIN_EFFECT { Vec::new() } else { expected };
            prop_assert!(strata.len() > 1 || times < 20 || expected.len() > 30, "the shares of all others fall: {expected:?}");
            prop_assert_eq!(moved_with_the_rest(&rows.moments, rows.normalization, q, MIN_EFFECT), expected);
        }
    }
}

/// So many buckets of forty functions of some five hundred samples each.
fn equivalent(buckets: usize) -> impl Strategy<Value = Buckets> {
    vec(vec(450_u64..550, 40), buckets)
}

fn ln_p_of_e(report: &fleetdiff_statistics::CellRows, f: usize) -> f64 {
    if report.moments.tests < 20 { report.ln_p_row[f] } else { report.adjusted.ln_p[f] }
}

/// Degenerate cells give NaN, not panics or numbers.
#[test]
fn law_nothing_to_test() {
    let (one, other) = (vec![vec![40, 60]], vec![vec![50, 70]]);
    let empty = Buckets::new();
    let no_functions = vec![vec![]];
    for (functions, strata) in
        [(2, vec![(&one, &other)]), (2, vec![(&empty, &other)]), (0, vec![(&no_functions, &no_functions)])]
    {
        let rows = rows_of_cell(&contrast(functions, &strata), None, MIN_EFFECT);
        assert_eq!((rows.moments.tests, rows.ln_p_row.len()), (0, functions));
        assert!(rows.ln_p_row.iter().all(|p| p.is_nan()) && rows.ln_e.iter().all(|e| e.is_nan()));
        assert!(live_rows(&contrast(functions, &strata), None, 20.0).candidates.is_empty());
    }
}

/// A function that is in every sample of the cell, or all or nothing in each stratum, has no variance to test.
#[test]
fn law_all_samples_are_not_tested() {
    let whole: Buckets = vec![vec![400, 0], vec![500, 0]];
    let mixed: Buckets = vec![vec![400, 9], vec![500, 8]];
    let other: Buckets = vec![vec![0, 900], vec![0, 800]];
    assert_eq!(measure(2, &[(&whole, &whole)]).tested, [false, false]);
    assert_eq!(measure(2, &[(&whole, &mixed)]).tested, [true, false], "17 samples are under the floor");
    assert_eq!(measure(2, &[(&mixed, &other)]).tested, [true, true]);
    let all_or_nothing = measure(2, &[(&whole, &whole), (&other, &other)]);
    assert_eq!((all_or_nothing.tested.as_slice(), all_or_nothing.tests), ([false, false].as_slice(), 0));
    let rates = Moments::measure(&contrast(2, &[(&whole, &whole), (&other, &other)]), Model::Rate, 30.0);
    assert_eq!(rates.tested, [true, true], "requests are not used up by a function");
}

/// With fewer than 20 functions a scale from elsewhere cannot make a row surer than its own share.
#[test]
fn law_small_families_keep_the_share() {
    let head: Buckets = (0..6_u64).map(|bucket| vec![1000 + bucket * 7, 2000 - bucket * 5, 3000]).collect();
    let base: Buckets = (0..8_u64).map(|bucket| vec![1010 + bucket * 6, 1990 - bucket * 4, 3005]).collect();
    let cell = contrast(3, &[(&head, &base)]);
    let (rows, live) = (rows_of_cell(&cell, Some(1.3), MIN_EFFECT), live_rows(&cell, Some(1.3), 20.0));
    assert_eq!((rows.moments.tests, live.candidates.len()), (3, 3));
    for f in 0..3 {
        assert!(rows.adjusted.ln_p[f] < -8.0 && rows.share.ln_p[f] > -3.0, "the scale makes the change: {rows:?}");
        assert_eq!(rows.ln_p_row[f].to_bits(), rows.share.ln_p[f].to_bits());
        assert_eq!(live.candidates[f].ln_p.to_bits(), rows.ln_p_row[f].to_bits());
        assert!(rows.ln_e[f] < 0.0);
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
    assert_eq!(support(2.0, 2.0, 1.9996), Support::Tentative, "2 v 2 pods over two blocks of time");
    assert_eq!(support(5.0, 5.0, 8.0), Support::Firm);
}
