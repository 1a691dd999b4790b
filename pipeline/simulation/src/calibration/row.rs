//! One row of the calibration table.

use fleetdiff_pipeline::run::RunError;

use super::figure::{Figure, Observed};
use crate::fleet::random::Generator;

/// False-discovery rate of every family here.
pub(super) const Q: f64 = 0.05;

/// The chance of one run.
pub(super) struct Chance {
    /// For fleets that make their own chance of a seed.
    pub seed: u64,
    /// For all others.
    pub rng: Generator,
}

/// What is observed in one run.
pub(super) type Experiment = Box<dyn Fn(&mut Chance) -> Result<Vec<Observed>, RunError> + Send + Sync>;

/// One row of the calibration table.
pub struct Row {
    /// Its name, as one writes it on a command line.
    pub name: &'static str,
    /// What is simulated, in words.
    pub simulates: &'static str,
    /// What is measured, and what it must keep to.
    pub figures: Vec<Figure>,
    /// Runs for each run that is asked for: cheap rows have more.
    pub repeats: u64,
    pub(super) experiment: Experiment,
}

impl Row {
    /// A row whose experiment cannot fail.
    pub(super) fn new(
        name: &'static str,
        simulates: &'static str,
        figures: Vec<Figure>,
        experiment: impl Fn(&mut Chance) -> Vec<Observed> + Send + Sync + 'static,
    ) -> Self {
        Self { name, simulates, figures, repeats: 1, experiment: Box::new(move |chance| Ok(experiment(chance))) }
    }
}
