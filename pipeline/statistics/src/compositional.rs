//! Functions whose share moved only because another's did: shares sum to one.
//!
//! Where a function of a tenth of all samples doubles, every other share falls by a tenth, and each of these falls is as certain as
//! samples make it. Such a function is called on the share test, by more than delta, and it moved the way the cell's scale did,
//! less so once the scale is taken out.
//!
//! Only what can be called is tested to the end. The p that counts is the larger of the share's and that of the band, so that what
//! Benjamini-Hochberg does not select on the share's alone it does not select at all.

use crate::families::{bh_among, selected};
use crate::minimum_effect::outside_band;
use crate::moments::Moments;
use crate::tails::F1Tail;

/// The functions of `moments`, ascending, that BH at level `q` over all tested ones calls changed in their share by more than
/// `delta` (a log ratio, >= 0), and that moved with `scale` (a ratio) rather than against the rest; none if the scale itself lies
/// within delta.
///
/// The same functions as by [`crate::rows::rows_of`]: those whose `ln_p_comp` is selected.
#[must_use]
pub fn moved_with_the_rest(moments: &Moments, normalization: f64, q: f64, min_effect: f64) -> Vec<usize> {
    let ln_normalization = libm::log(normalization);
    if ln_normalization.abs() < min_effect {
        return Vec::new();
    }
    let tails = moments.tails();
    let tested = |(f, stat)| (f, moments.ln_p_of(f, stat, 0.0, &tails));
    let certain = significant(within_reach(moments, &tails.0, q).into_iter().map(tested), moments.tests, q);
    let at = |f, normalization: f64| {
        moments.ln_p_of(f, moments.statistic(f, normalization), libm::log(normalization), &tails)
    };
    let (up, down) = (libm::exp(min_effect), libm::exp(-min_effect));
    let band =
        |(f, ln_p): (usize, f64)| (f, ln_p.max(outside_band(moments.theta_raw[f], min_effect, at(f, up), at(f, down))));
    let large = significant(certain.into_iter().map(band), moments.tests, q);
    let with_the_rest = |f: &usize| {
        let theta = moments.theta_raw[*f];
        theta * ln_normalization > 0.0 && (theta - ln_normalization).abs() < theta.abs()
    };
    large.into_iter().map(|(f, _)| f).filter(with_the_rest).collect()
}

/// The functions that BH at level `q` may select by their F test alone, with their statistics: where k are left, none is called
/// with a p above q k/m.
fn within_reach(moments: &Moments, tail: &F1Tail, q: f64) -> Vec<(usize, f64)> {
    let mut near: Vec<_> = moments.reaching(1.0, libm::log(q)).collect();
    loop {
        let before = near.len();
        let needed = tail.critical(libm::log(q * share(before, moments.tests))) * (1.0 - 1e-9);
        near.retain(|&(f, stat)| stat >= needed * moments.phi_tilde[f]);
        if 4 * near.len() >= 3 * before {
            return near;
        }
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "numbers of functions")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// Those functions with their ln p that BH selects at level `q` in a family of so many tests.
fn significant(functions: impl Iterator<Item = (usize, f64)>, tests: usize, q: f64) -> Vec<(usize, f64)> {
    let (functions, ln_p): (Vec<usize>, Vec<f64>) = functions.unzip();
    let each = functions.into_iter().zip(bh_among(&ln_p, tests)).zip(ln_p);
    each.filter(|((_, q_value), _)| selected(*q_value, q)).map(|((f, _), ln_p)| (f, ln_p)).collect()
}
