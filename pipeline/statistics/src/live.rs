//! The cheap evaluation between reports: only rows that could be raised are computed to the end.
//!
//! Weighted e-BH at level q never flags a row whose e-value is below 1/(q w), and whatever the variance of a row, ln e is at most
//! (z^2 - 1 - ln z^2)/2, which is what a bet on the best of all spreads would give. So a row needs at least the z at which that is
//! the floor, 3.05 for e = 20. With d degrees of freedom z^2 is at most d ln(1 + F/d) (Wallace 1959), and the statistic F is bounded
//! without a logarithm ([`Levels::deviance_at_most`](crate::Levels::deviance_at_most)). What is left, a few rows, gets exactly what a report would give.

use crate::evalue::ln_e;
use crate::normalization::Scales;
use crate::rows::{AgainstScales, contradicts};
use crate::screen::{Critical, each_reaching};
use crate::test::Tests;

/// A row whose e-value may reach the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveRow {
    /// Its place in the tests.
    pub place: usize,
    /// ln of the ratio against the deciding scale.
    pub theta: f64,
    /// ln p from which the e-value is made.
    pub ln_p: f64,
    /// ln of the e-value.
    pub ln_e: f64,
    /// Whether the share itself moved the other way.
    pub contradicts: bool,
}

/// The rows whose e-value can be at least `e_floor`, ascending by place; every row with e >= the floor is among them.
///
/// `e_floor` is 1/(q w) for the largest weight of the family. A candidate's figures are those of [`crate::rows_of_cell`] to the
/// last bit.
#[must_use]
pub fn live_rows(tests: &Tests, scales: &Scales, e_floor: f64) -> Vec<LiveRow> {
    let least = least_z2(e_floor);
    let ratios: Vec<f64> = scales.ln_scales().map(libm::exp).collect();
    let mut candidates = Vec::new();
    each_reaching(&tests.levels, &ratios, &Critical::of_z2(least), |place| candidates.push(place));
    let row = |place: usize| {
        let levels = &tests.levels[place];
        let tests = levels.tests().with_scale_variance(scales.variance);
        let AgainstScales { theta, ln_p, .. } = AgainstScales::of(&tests, scales);
        let contradicts = contradicts(levels.theta(), theta, || levels.ln_p(1.0));
        LiveRow { place, theta, ln_p, ln_e: ln_e(ln_p, tests.variance()), contradicts }
    };
    candidates.into_iter().filter(|&place| tests.tested[place]).map(row).collect()
}

/// The smallest z^2 with which an e-value can reach `e_floor`: of z^2 - 1 - ln z^2 = 2 ln(`e_floor`), approached from below.
fn least_z2(e_floor: f64) -> f64 {
    let twice = 2.0 * libm::log(e_floor);
    if twice > 0.0 { (0..40).fold(1.0 + twice, |z2, _| 1.0 + twice + libm::log(z2)) * (1.0 - 1e-9) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evalue::ln_e_mixture;
    use crate::special::z_two_sided;
    use crate::tails::F1Tail;

    proptest! {
        /// Law: what does not reach the critical value has a smaller z^2.
        #[test]
        fn no_smaller_statistic_has_that_z(least in 0.5..60.0_f64, df in 1.0..300.0_f64, part in 0.0..1.0_f64) {
            let f = part * Critical::of_z2(least).at_most(df);
            let z = z_two_sided(F1Tail::new(df).ln_tail(f));
            prop_assert!(z * z <= least * (1.0 + 1e-8) + 1e-12, "{} {least}", z * z);
        }

        /// Law: no variance makes the e-value of a smaller z reach the floor, and some bet comes near it at that z.
        #[test]
        fn no_smaller_z_reaches_the_floor(ln_v in -20.0..10.0_f64, part in 0.0..1.0_f64, floor in 1.01..1e6_f64) {
            let least = least_z2(floor);
            prop_assert!((least - 1.0 - least.ln() - 2.0 * floor.ln()).abs() < 1e-6);
            prop_assert!(ln_e_mixture(part * least, ln_v.exp()) <= floor.ln() + 1e-9);
        }
    }
}
