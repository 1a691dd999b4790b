//! What the tests of a look take from all functions of a cell together, as a value.
//!
//! Rows are tested at each look; what they share changes slowly and costs a pass over all functions. So it is a value: measured
//! afresh when it can have changed (a new epoch or block of time, other pods, every report, every few looks), handed in between.
//! A function that passes the floor meanwhile has its own level and variance at once, and all of the prior's degrees of freedom
//! until the next measurement.
//!
//! NB: it means something only if something was tested when it was measured ([`Tests::tests`](crate::Tests::tests) > 0).

use serde::{Deserialize, Serialize};

use crate::arms::Arms;
use crate::priors::{GroupPrior, Prior, group_of};

/// What is held is measured again at every so many looks of a cell.
pub const LOOKS_HELD: u64 = 6;

/// Whether it is a cell's turn at this look, by its number and a stable hash of the cell: cells take turns.
#[must_use]
pub fn is_due(look: u64, cell_hash: u64) -> bool {
    look.wrapping_add(cell_hash).is_multiple_of(LOOKS_HELD)
}

/// What the tests of a look take from all functions of the cell together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// tau^2: the variance between the pods of an arm of the logarithm of a share.
    pub spread: Arms<f64>,
    /// Priors by group of functions, the best counted first; none with fewer than 20 functions.
    pub priors: Vec<GroupPrior>,
    /// Functions that do not earn all of the prior's degrees of freedom, ascending. All others do.
    pub restless: Vec<Restless>,
}

/// A function that is restless beyond what the prior allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restless {
    /// Its id in the contrast.
    pub function: u32,
    /// The part of the prior's degrees of freedom that it earns, below 1.
    pub calm: f64,
}

/// What one function takes from the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfFunction {
    /// tau^2 of each arm.
    pub spread: Arms<f64>,
    /// The prior of each arm's dispersion; of no degrees of freedom and dispersion 1 where there is none.
    pub priors: Arms<Prior>,
    /// The part of their degrees of freedom that the function earns, 0 to 1.
    pub calm: f64,
}

impl Pooled {
    /// What the function with this id in the contrast takes from the others, by its share of cost.
    #[must_use]
    pub fn of_function(&self, function: u32, share: f64) -> OfFunction {
        let none = Arms { head: Prior::NONE, base: Prior::NONE };
        OfFunction {
            spread: self.spread,
            priors: group_of(&self.priors, share).map_or(none, |group| group.arms),
            calm: self.calm_of(function),
        }
    }

    /// The part of the prior's degrees of freedom that a function earns.
    pub(crate) fn calm_of(&self, function: u32) -> f64 {
        let found = self.restless.binary_search_by_key(&function, |restless| restless.function);
        found.map_or(1.0, |index| self.restless[index].calm)
    }
}
