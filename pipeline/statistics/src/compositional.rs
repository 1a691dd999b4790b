//! Functions whose share moved only because another's did: shares sum to one.
//!
//! Where a function of a tenth of all samples doubles, every other share falls by a tenth, and each of these falls is as certain as
//! samples make it. Such a function is rejected by the test of shares, by more than the smallest effect, and it moved the way the
//! cell's scale did, less so once the scale is taken out. Only what can be rejected is tested to the end.

use crate::families::{bh_among, selected};
use crate::normalization::Scales;
use crate::screen::{Critical, each_reaching};
use crate::special::z_two_sided;
use crate::test::Tests;

/// The places, ascending, that BH at level `q` over all tested ones finds changed in their share by more than `min_effect` (a log
/// ratio, >= 0), and that moved with the scale rather than against the rest; none if the scale itself lies within it.
///
/// The same functions as by [`crate::rows_of_cell`]: those whose `ln_p_comp` is selected.
#[must_use]
pub fn moved_with_the_rest(tests: &Tests, scales: &Scales, q: f64, min_effect: f64) -> Vec<usize> {
    let ln_scale = scales.deciding.ln_scale;
    if ln_scale.abs() < min_effect {
        return Vec::new();
    }
    let places = within_reach(tests, q, min_effect);
    let ln_p = |&place: &usize| {
        let own = tests.levels[place].tests();
        own.ln_p(1.0).max(own.ln_p_min_effect(1.0, min_effect))
    };
    let ln_p: Vec<f64> = places.iter().map(ln_p).collect();
    let rejected = places.into_iter().zip(bh_among(&ln_p, tests.tests)).filter(|&(_, q_value)| selected(q_value, q));
    let with_the_rest = |place: &usize| {
        let theta = tests.levels[*place].theta();
        theta * ln_scale > 0.0 && (theta - ln_scale).abs() < theta.abs()
    };
    rejected.map(|(place, _)| place).filter(with_the_rest).collect()
}

/// The tested places, ascending, whose share may have moved by more than `min_effect` with p <= `q`.
///
/// p is half of that of the band's near end, or more, where a share moved by more than the band, and at least a half elsewhere.
fn within_reach(tests: &Tests, q: f64, min_effect: f64) -> Vec<usize> {
    let critical = |p: f64| {
        let z = z_two_sided(libm::log(p.min(1.0)));
        Critical::of_z2(z * z * (1.0 - ROUNDING))
    };
    let (of_share, of_end) = (critical(q), critical(2.0 * q));
    let [down, up] = [-min_effect, min_effect].map(libm::exp);
    let mut places = Vec::new();
    each_reaching(&tests.levels, &[1.0], &of_share, |place| places.push(place));
    places.retain(|&place| {
        let levels = &tests.levels[place];
        let ratio = levels.arms.head.share / levels.arms.base.share;
        let is_inside = ratio > down * (1.0 + ROUNDING) && ratio < up * (1.0 - ROUNDING);
        let end = if ratio > 1.0 { up } else { down };
        let reaches = levels.deviance_at_most(end) >= of_end.at_most(levels.df);
        tests.tested[place] && (reaches && !is_inside || q >= 0.5)
    });
    places
}

/// More than what rounding does to a ratio or a critical value.
const ROUNDING: f64 = 1e-9;
