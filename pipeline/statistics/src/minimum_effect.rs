//! A change that is certain but not worth a flag: the test against a band around "unchanged".
//!
//! The idea of TREAT (McCarthy & Smyth 2009) with the test itself, so that functions of one arm and few pods come out right.

use crate::special::ln_add;

/// ln p of |`theta`| <= `min_effect` from the ln p at the band's upper and lower end; NaN if one is.
///
/// near = the p of the end on theta's side, far = the other's: p = near/2 + far/2 outside the band, 1 - near/2 + far/2 inside.
/// `min_effect` >= 0 is a log ratio; at 0 it is the p of the test where theta is not 0. Checked against the reference program
/// (`test.json`) to 1e-8.
#[must_use]
pub fn outside_band(theta: f64, min_effect: f64, ln_p_up: f64, ln_p_down: f64) -> f64 {
    if ln_p_up.is_nan() || ln_p_down.is_nan() {
        return f64::NAN;
    }
    let (near, far) = if theta > 0.0 { (ln_p_up, ln_p_down) } else { (ln_p_down, ln_p_up) };
    if theta.abs() > min_effect {
        (ln_add(near, far) - std::f64::consts::LN_2).min(0.0)
    } else {
        libm::log1p(0.5 * (libm::exp(far) - libm::exp(near))).min(0.0)
    }
}
