//! One row of the calibration table.

use fleetdiff_pipeline::run::RunError;

use super::figure::{Figure, Observed};
use crate::fleet::random::Generator;

/// False-discovery rate of every family here.
pub(super) const Q: f64 = 0.05;

/// The random numbers of one run.
pub(super) struct Chance {
    /// The seed, for fleets that make their own random numbers.
    pub seed: u64,
    /// The generator, for all other fleets.
    pub rng: Generator,
}

/// What is observed in one run.
pub(super) type Experiment = Box<dyn Fn(&mut Chance) -> Result<Vec<Observed>, RunError> + Send + Sync>;

/// One row of the calibration table.
pub struct Row {
    /// Its name on a command line.
    pub name: &'static str,
    /// What is simulated, in words.
    pub simulates: &'static str,
    /// What is measured, and what it must keep to.
    pub figures: Vec<Figure>,
    /// Runs per requested run: cheap rows have more.
    pub repeats: u64,
    /// Whether its runs are fleets that go through the dataflow itself, which takes ten times as long as the rules alone.
    pub runs_the_dataflow: bool,
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
        let experiment = Box::new(move |chance: &mut Chance| Ok(experiment(chance)));
        Self { name, simulates, figures, repeats: 1, runs_the_dataflow: false, experiment }
    }

    /// A row whose runs are fleets that go through the dataflow.
    pub(super) fn through_the_dataflow(
        name: &'static str,
        simulates: &'static str,
        figures: Vec<Figure>,
        experiment: impl Fn(&mut Chance) -> Result<Vec<Observed>, RunError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, simulates, figures, repeats: 1, runs_the_dataflow: true, experiment: Box::new(experiment) }
    }
}
