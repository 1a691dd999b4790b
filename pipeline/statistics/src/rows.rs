//! All of one cell for a report: every test of every function.

use crate::contrast::Contrast;
use crate::evalue::{ln_e, ln_e_normalized};
use crate::moments::Moments;
use crate::normalization::biweight;
use crate::strata::Model;
use crate::test::Test;
use crate::thresholds::{FEW_FUNCTIONS, MIN_COUNT};

/// The results of one cell; vectors are by function, NaN where not tested.
#[derive(Clone, Debug)]
pub struct CellRows {
    /// By how much all shares moved; 1 with fewer than 20 tested functions.
    pub normalization: f64,
    /// The test of shares: scale 1.
    pub share: Test,
    /// The test at the cell's scale: what decides. Its `se` holds that the scale moves against the function
    /// ([`ln_e_normalized`]).
    pub adjusted: Test,
    /// ln p of H0: the change against the scale is within delta.
    pub ln_p_min_effect: Vec<f64>,
    /// ln p that the two-level selection takes: the larger of adjusted and delta, and of share with fewer than 20 functions.
    pub ln_p_row: Vec<f64>,
    /// ln p for "moved only because shares sum to one": the larger of the share's and its delta's.
    pub ln_p_comp: Vec<f64>,
    /// ln of the e-value: of the adjusted p, with fewer than 20 functions of `ln_p_row`; variance from the share test; against
    /// an estimated scale it is [`ln_e_normalized`].
    pub ln_e: Vec<f64>,
    /// What does not depend on the scale.
    pub moments: Moments,
}

/// Everything about one cell. `self_normalization` is the scale found on self counts, given when total counts are tested; `delta` is the
/// log ratio that is not worth a call.
///
/// Checked against the reference program (`decide.json`) to 1e-7.
#[must_use]
pub fn rows_of_cell(contrast: &Contrast<'_>, self_normalization: Option<f64>, min_effect: f64) -> CellRows {
    rows_of(Moments::measure(contrast, Model::Share, MIN_COUNT), self_normalization, min_effect)
}

/// [`rows_of_cell`] from moments that were measured before, for another floor or model.
#[must_use]
pub fn rows_of(moments: Moments, self_normalization: Option<f64>, min_effect: f64) -> CellRows {
    let normalization = self_normalization.unwrap_or_else(|| moments.normalization());
    let share = moments.normalized(1.0);
    let mut adjusted = moments.normalized(normalization);
    let ln_p_min_effect = moments.ln_p_min_effect(normalization, min_effect);
    let mut ln_p_row = larger(&adjusted.ln_p, &ln_p_min_effect);
    let ln_p_comp = larger(&share.ln_p, &moments.ln_p_min_effect(1.0, min_effect));
    let functions = 0..moments.a.len();
    let ln_e = if moments.tests < FEW_FUNCTIONS {
        ln_p_row = larger(&ln_p_row, &share.ln_p);
        functions.map(|f| ln_e(ln_p_row[f], share.se[f])).collect()
    } else {
        functions.for_each(|f| adjusted.se[f] /= 1.0 - moments.part(f));
        (0..moments.a.len()).map(|f| ln_e_normalized(adjusted.ln_p[f], share.se[f], moments.part(f))).collect()
    };
    CellRows { normalization, share, adjusted, ln_p_min_effect, ln_p_row, ln_p_comp, ln_e, moments }
}

impl Moments {
    /// The part of the cell's samples that a function is, 0..1.
    pub fn part(&self, f: usize) -> f64 {
        (self.a[f] + self.b[f]) / (self.n_head + self.n_base)
    }

    /// The scale of the cell from its tested functions that both arms have, with dispersion; 1 with fewer than 20 tested.
    #[must_use]
    pub fn normalization(&self) -> f64 {
        if self.tests < FEW_FUNCTIONS {
            return 1.0;
        }
        let (mut theta, mut variances) = (Vec::with_capacity(self.tests), Vec::with_capacity(self.tests));
        for f in self.family().filter(|&f| self.a[f] > 0.0 && self.b[f] > 0.0) {
            theta.push(self.theta_raw[f]);
            variances.push(self.se[f] * self.se[f]);
        }
        biweight(&theta, &variances)
    }
}

fn larger(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x.max(*y)).collect()
}
