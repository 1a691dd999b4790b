//! Runs presets through the dataflow, and counts the results of fleetdiff and of the plain test.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Scope};
use fleetdiff_statistics::families::{bh, selected};

use super::fleet::{Cells, FleetBuilder};
use super::run::run_fleet;

/// Rank, by cost, of the function that a twin makes more expensive: about a 1 % share under a Zipf law over 500.
const RANK: usize = 12;

/// A preset, how its builds are compared, how often it is evaluated, and what its twin changes.
#[derive(Clone, Debug)]
pub struct Experiment {
    preset: fn(u64) -> FleetBuilder,
    named: bool,
    every: Nanos,
    change: Option<(Cells, f64)>,
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed of the fleet.
    pub seed: u64,
    /// Rows (cell, function) of the last report that were tested: scope window, self counts, no roll-up.
    pub looked: usize,
    /// How many of the tested rows are significant.
    pub significant: usize,
    /// How many of the tested rows are significant in the plain test: G of pooled counts, chi-square tail,
    /// Benjamini-Hochberg at .05.
    pub plain: usize,
    /// Flags raised over the whole run, of either count kind.
    pub raised: usize,
    /// Cells in which the function that the twin changed was raised in self counts.
    pub found: usize,
}

impl Experiment {
    /// Both builds have been running for long: they are compared by name, with a look every minute.
    #[must_use]
    pub fn named(preset: fn(u64) -> FleetBuilder) -> Self {
        Self { preset, named: true, every: Nanos::from_seconds(60), change: None }
    }

    /// The comparison follows from the deploy, with a look every minute.
    #[must_use]
    pub fn deployed(preset: fn(u64) -> FleetBuilder) -> Self {
        Self { named: false, ..Self::named(preset) }
    }

    /// Sets the time between looks.
    #[must_use]
    pub fn every(self, length: Nanos) -> Self {
        Self { every: length, ..self }
    }

    /// One function costs `factor` times as much in `cells` of the head.
    #[must_use]
    pub fn regressing(self, cells: Cells, factor: f64) -> Self {
        Self { change: Some((cells, factor)), ..self }
    }

    /// Runs the fleet of one seed.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn outcome(&self, seed: u64) -> Result<Outcome, RunError> {
        let mut builder = (self.preset)(seed);
        let mut changed = None;
        if let Some((cells, factor)) = &self.change {
            let name = (self.preset)(seed).build().functions()[RANK].0.to_string();
            builder = builder.regress(name.as_str(), cells.clone(), *factor);
            changed = Some(name);
        }
        let fleet = builder.build();
        let comparing = if self.named {
            Comparing::Named { base: vec![fleet.base().clone()], head: fleet.head().clone() }
        } else {
            Comparing::Deploys
        };
        // Only the last report is used.
        let config = Config {
            evaluate_every: self.every,
            report_every: Nanos::from_seconds(86_400),
            comparing,
            ..Config::default()
        };
        let tables = run_fleet(&config, &fleet)?;
        let tested: Vec<&CellRow> = tables.cells.iter().filter(|row| is_tested(row)).collect();
        let plain: Vec<f64> = tested.iter().map(|row| row.ln_p_iid.unwrap_or(f64::NAN)).collect();
        let raised = || tables.flags.iter().filter(|flag| flag.state == FlagState::Raised);
        let found: BTreeSet<&CellKey> = raised()
            .filter(|flag| {
                flag.row.count_kind == CountKind::SelfCount && Some(&*flag.row.function) == changed.as_deref()
            })
            .map(|flag| &flag.row.cell)
            .collect();
        Ok(Outcome {
            seed,
            looked: tested.len(),
            significant: tested.iter().filter(|row| row.verdict.is_significant()).count(),
            plain: bh(&plain).iter().filter(|&&q_value| selected(q_value, config.q)).count(),
            raised: raised().count(),
            found: found.len(),
        })
    }
}

fn is_tested(row: &CellRow) -> bool {
    row.scope == Scope::Window
        && row.count_kind == CountKind::SelfCount
        && row.q_value.is_some()
        && row.cell.region.as_str() != MERGED
        && row.cell.cohort.as_str() != MERGED
}
