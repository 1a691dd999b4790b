//! Laws of the test of two levels.

use fleetdiff_statistics::deviance::Level;
use fleetdiff_statistics::effect::EQUIVALENCE_LN;
use fleetdiff_statistics::g::g_rate;
use fleetdiff_statistics::{Arms, Levels};
use proptest::prelude::*;

/// A level, of which one in ten is zero.
fn level() -> impl Strategy<Value = Level> {
    let share = prop_oneof![1 => Just(0.0), 9 => (-12.0..-0.1_f64).prop_map(f64::exp)];
    let between = prop_oneof![1 => Just(0.0), 4 => (-14.0..-2.0_f64).prop_map(f64::exp)];
    (share, -18.0..-5.0_f64, between).prop_map(|(share, counting, between)| Level {
        share,
        counting: counting.exp(),
        between,
    })
}

/// Levels that are not both zero.
fn levels() -> impl Strategy<Value = Levels> {
    (level(), level(), 1.0..300.0_f64, 1.0..300.0_f64)
        .prop_filter("a function that is somewhere", |(head, base, ..)| head.share + base.share > 0.0)
        .prop_map(|(head, base, one, other)| Levels::new(Arms { head, base }, Arms { head: one, base: other }))
}

/// The statistic is a difference: this is what its terms leave of their last bits.
fn rounding(levels: &Levels) -> f64 {
    levels.arms.both().iter().map(|level| 4e-15 * level.share / level.counting).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// p(c) < 1 - level exactly if the interval leaves out c, and p at a bound is 1 - level; further than exp(12) away the root of the
    /// common level loses digits.
    #[test]
    fn law_interval_is_the_test(levels in levels(), at in -3.0..3.0_f64, level in 0.5..0.999_f64) {
        let interval = levels.interval(libm::log1p(-level));
        let theta = levels.theta();
        let ln_ratio = if theta.is_finite() { theta + at } else { at };
        let ln_p = levels.ln_p(ln_ratio.exp());
        let outside = ln_ratio < interval.low || ln_ratio > interval.high;
        let near = (ln_ratio - interval.low).abs() < 1e-8 || (ln_ratio - interval.high).abs() < 1e-8;
        prop_assert!(near || outside == (ln_p < libm::log1p(-level)), "{interval:?} {ln_ratio} {}", ln_p.exp());
        prop_assert!(interval.low <= theta && theta <= interval.high);
        for bound in [interval.low, interval.high].into_iter().filter(|bound| bound.abs() < 12.0) {
            let off = levels.ln_p(bound.exp()) - libm::log1p(-level);
            prop_assert!(off.abs() < 1e-7 + rounding(&levels), "{bound} {off:e}");
        }
    }

    /// Proof of sameness is the interval of 90 % within the band.
    #[test]
    fn law_sameness_is_the_interval(levels in levels(), off in -0.08..0.08_f64, scale in -2.0..2.0_f64) {
        let ln_scale = if levels.theta().is_finite() { levels.theta() + off } else { scale };
        let interval = levels.interval(libm::log(0.1)).against(ln_scale);
        let ends = [interval.low + EQUIVALENCE_LN, interval.high - EQUIVALENCE_LN];
        let near = ends.iter().any(|end| end.abs() < 1e-8);
        prop_assert!(near || levels.is_equivalent(ln_scale) == interval.is_equivalent(), "{interval:?}");
    }

    /// Arms exchanged: the opposite effect, the same p against the inverse ratio.
    #[test]
    fn law_levels_exchanged(levels in levels(), ln_ratio in -3.0..3.0_f64) {
        let exchanged = Levels { arms: Arms { head: levels.arms.base, base: levels.arms.head }, ..levels };
        let (there, back) = (levels.theta(), -exchanged.theta());
        prop_assert!(there.is_infinite() && there.to_bits() == back.to_bits() || (there - back).abs() < 1e-12);
        prop_assert!((levels.variance() / exchanged.variance() - 1.0).abs() < 1e-12);
        let (one, other) = (levels.deviance(ln_ratio.exp()), exchanged.deviance((-ln_ratio).exp()));
        prop_assert!((one - other).abs() <= 1e-9 * one + rounding(&levels), "{one} {other}");
    }

    /// The statistic lies between its bounds; it is 0 at the ratio that is seen, and grows away from it.
    #[test]
    fn law_screen_bounds_the_statistic(levels in levels(), ln_ratio in -5.0..5.0_f64, more in 0.001..2.0_f64) {
        let (exact, bound) = (levels.deviance(ln_ratio.exp()), levels.deviance_at_most(ln_ratio.exp()));
        let rounding = rounding(&levels);
        prop_assert!(exact <= bound * (1.0 + 1e-9) + rounding, "{exact} {bound}");
        let least = levels.deviance_at_least(ln_ratio.exp());
        prop_assert!(least <= exact * (1.0 + 1e-9) + rounding, "{exact} {least}");
        if levels.theta().is_finite() {
            prop_assert!(levels.deviance(levels.theta().exp()) <= rounding + 1e-12);
            let away = if ln_ratio > 0.0 { more } else { -more };
            let at = |off: f64| levels.deviance((levels.theta() + off).exp());
            prop_assert!(at(ln_ratio + away) >= at(ln_ratio) * (1.0 - 1e-9) - rounding, "{} {}", at(ln_ratio + away), at(ln_ratio));
        }
    }

    /// Without differences between pods and with counting noise alone the statistic is the likelihood ratio of two Poisson rates.
    #[test]
    fn law_poisson_is_the_likelihood_ratio(a in 0u32..3000, b in 1u32..3000, n1 in 5000u32..100_000, n0 in 5000u32..100_000, ratio in 0.3..3.0_f64) {
        let [a, b, n1, n0] = [a, b, n1, n0].map(f64::from);
        let level = |count: f64, n: f64| Level { share: count / n, counting: 1.0 / n, between: 0.0 };
        let levels = Levels::new(Arms { head: level(a, n1), base: level(b, n0) }, Arms { head: 50.0, base: 50.0 });
        let (found, exact) = (levels.deviance(ratio), g_rate(a, ratio * n1, b, n0));
        prop_assert!((found - exact).abs() <= 1e-9 * (1.0 + exact), "{found} {exact}");
    }

    /// A band of no width is the test itself; one side of a band is at least as hard to reach.
    #[test]
    fn law_band(levels in levels(), ratio in 0.3..3.0_f64, delta in 0.001..0.3_f64) {
        let (none, band, plain) =
            (levels.tests().ln_p_min_effect(ratio, 0.0), levels.tests().ln_p_min_effect(ratio, delta), levels.ln_p(ratio));
        prop_assert!((none - plain).abs() < 1e-9);
        prop_assert!(band >= plain - std::f64::consts::LN_2 - 1e-9, "{band} {plain}");
    }
}

/// The last secant came back to a point that was known already, and the bound was set halfway to the one before.
#[test]
fn regression_bound_is_the_last_secant() {
    let head = Level { share: 0.026_045_102_445_215_972, counting: 5.585_947_270_969_805e-7, between: 0.0 };
    let base = Level {
        share: 0.144_146_937_415_683_7,
        counting: 1.244_499_958_351_432_9e-5,
        between: 2.090_319_624_803_774_8e-5,
    };
    let levels = Levels { arms: Arms { head, base }, df: 126.666_218_250_115_95 };
    let ln_p = libm::log1p(-0.934_035_502_836_917_2);
    let interval = levels.interval(ln_p);
    for bound in [interval.low, interval.high] {
        assert!((levels.ln_p(bound.exp()) - ln_p).abs() < 1e-9, "{bound}");
    }
}
