//! What the test of one function takes from all functions of its cell: what its counts alone do not give.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::rows::SharedFigures;
use fleetdiff_statistics::pooled::OfFunction;
use fleetdiff_statistics::{Scales, Tests};
use serde::{Deserialize, Serialize};

/// What the test of a row takes from the other functions of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromOthers {
    pooled: OfFunction,
    /// The deciding normalization factor, the smallest and the largest admissible one.
    factors: [f64; 3],
}

impl FromOthers {
    /// Of the function at a place of `tests`, which has the number `function` in them.
    pub(super) fn of(tests: &Tests, scales: &Scales, function: u32, place: usize) -> Self {
        let ln_scales = || scales.ln_scales();
        let (smallest, largest) =
            (ln_scales().fold(f64::INFINITY, f64::min), ln_scales().fold(f64::NEG_INFINITY, f64::max));
        Self {
            pooled: tests.pooled.of_function(function, tests.share_of_cost(place)),
            factors: [scales.deciding.ln_scale, smallest, largest].map(libm::exp),
        }
    }

    /// As columns, for one arm.
    pub(crate) fn of_arm(&self, side: Side) -> SharedFigures {
        let side = match side {
            Side::Head => fleetdiff_statistics::Side::Head,
            Side::Base => fleetdiff_statistics::Side::Base,
        };
        let [normalization_factor, smallest_factor, largest_factor] = self.factors;
        let prior = self.pooled.priors[side];
        SharedFigures {
            pod_variance: self.pooled.spread[side],
            prior_df: prior.df,
            prior_dispersion: prior.dispersion,
            calm: self.pooled.calm,
            normalization_factor,
            smallest_factor,
            largest_factor,
        }
    }
}
