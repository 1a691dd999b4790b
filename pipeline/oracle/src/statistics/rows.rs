//! From the test of one cell and its scales to the numbers of its rows.

use super::always_valid::ln_e;
use super::levels::StrataTest;
use super::normalization::Scales;

/// A share that moved with at most this p contradicts a change in the other direction.
const CONTRADICTS: f64 = 0.05;

/// The numbers of the rows of a cell and one count kind; p not a number where not tested.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// ln of the ratio, less ln of the scale that decides.
    pub theta: Vec<f64>,
    /// ln p of no change, the largest over all admissible scales: what decides.
    pub ln_p: Vec<f64>,
    /// ln p against a change of at most the minimum effect, the largest over all admissible scales.
    pub ln_p_min_effect: Vec<f64>,
    /// ln p that the family takes.
    pub ln_p_row: Vec<f64>,
    /// ln p of a change of the share.
    pub ln_p_share: Vec<f64>,
    /// ln p of a change of the share by more than the minimum effect.
    pub ln_p_comp: Vec<f64>,
    /// ln of the e-value from `ln_p`.
    pub ln_e: Vec<f64>,
    /// Whether the share moved in the other direction.
    pub contradicts: Vec<bool>,
}

/// The rows of a cell (`rows_of_cell`); the scales are those of its self counts.
pub fn rows_of_cell(test: &StrataTest, scales: &Scales, min_effect: f64) -> Rows {
    let mut rows = Rows::default();
    for f in 0..test.functions {
        let theta = test.theta[f] - scales.deciding();
        let over_scales =
            |of: &dyn Fn(f64) -> f64| scales.ln_scales.iter().map(|ln| of(ln.exp())).fold(f64::NAN, f64::max);
        let mut ln_p = over_scales(&|ratio| test.ln_p_against(f, ratio, scales.variance));
        let ln_p_min_effect = over_scales(&|ratio| test.ln_p_min_effect(f, ratio, min_effect, scales.variance));
        let mut ln_p_row = ln_p.max(ln_p_min_effect);
        // Under each admissible scale the change must have the same direction.
        if test.tested[f] && scales.ln_scales.iter().skip(1).any(|ln| (test.theta[f] - ln) * theta <= 0.0) {
            (ln_p, ln_p_row) = (0.0, 0.0);
        }
        let ln_p_share = test.ln_p(f, 1.0);
        let opposite = test.theta[f] * theta < 0.0;
        rows.theta.push(theta);
        rows.ln_p.push(ln_p);
        rows.ln_p_min_effect.push(ln_p_min_effect);
        rows.ln_p_row.push(ln_p_row);
        rows.ln_p_share.push(ln_p_share);
        rows.ln_p_comp.push(ln_p_share.max(test.ln_p_min_effect(f, 1.0, min_effect, 0.0)));
        rows.ln_e.push(if test.tested[f] { ln_e(ln_p, test.variance[f] + scales.variance) } else { f64::NAN });
        rows.contradicts.push(test.tested[f] && opposite && ln_p_share <= CONTRADICTS.ln());
    }
    rows
}
