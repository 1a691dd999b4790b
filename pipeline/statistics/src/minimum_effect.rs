//! A change that is certain but not worth a call: the test against a band around "unchanged".
//!
//! The idea of TREAT (McCarthy & Smyth 2009) with the test itself, so that functions of one arm and few pods come out right.

use crate::moments::Moments;
use crate::special::ln_add;
use crate::test::Test;

impl Moments {
    /// ln p of H0: |theta| <= `delta`, theta against `scale`; NaN where not tested.
    ///
    /// The test is repeated at scale exp(delta) and scale exp(-delta); near = the p of the bound on theta's side, far = the
    /// other's. p = near/2 + far/2 outside the band, 1 - near/2 + far/2 inside. `delta` >= 0 is a log ratio; at 0 the result is
    /// the p of the test where theta is not 0. Checked against the reference program (`decide.json`) to 1e-7.
    #[must_use]
    pub fn ln_p_min_effect(&self, normalization: f64, min_effect: f64) -> Vec<f64> {
        let ln_normalization = libm::log(normalization);
        let up = self.normalized(normalization * libm::exp(min_effect));
        let down = self.normalized(normalization * libm::exp(-min_effect));
        let theta = self.theta_raw.iter().map(|theta| theta - ln_normalization);
        theta.zip(bounds(&up, &down)).map(|(theta, (up, down))| outside_band(theta, min_effect, up, down)).collect()
    }
}

fn bounds<'t>(up: &'t Test, down: &'t Test) -> impl Iterator<Item = (f64, f64)> + 't {
    up.ln_p.iter().copied().zip(down.ln_p.iter().copied())
}

/// ln p of |theta| <= `delta` from the ln p at the band's upper and lower end.
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
