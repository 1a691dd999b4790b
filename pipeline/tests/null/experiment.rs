//! Runs of one preset over many seeds, and what fleetdiff and the plain test said in each.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use fleetdiff_pipeline::config::{Comparing, Config};
use fleetdiff_pipeline::statistics::families::bh;
use fleetdiff_pipeline::testing::fleet::{Cells, Fleet, FleetBuilder};
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Scope};

use crate::seeds::{over, rows};

/// Rank, by cost, of the function that a twin makes dearer: about a 1 % share under a Zipf law over 500.
const RANK: usize = 12;

/// A preset, how its builds are compared, and what its twin changes.
pub struct Experiment {
    preset: fn(u64) -> FleetBuilder,
    named: bool,
    change: Option<(Cells, f64)>,
}

/// What became of one run.
#[derive(Debug)]
pub struct Outcome {
    pub seed: u64,
    /// Rows (cell, function) of the last report that were tested: scope window, self counts, no roll-up.
    pub looked: usize,
    /// Of them, those called changed.
    pub called: usize,
    /// Of them, those that the plain test calls: G of pooled counts, chi-square tail, Benjamini-Hochberg at .05.
    pub plain: usize,
    /// Flags raised over the whole run, of either count kind.
    pub raised: usize,
    /// Cells in which the function that the twin changed was raised in self counts.
    pub found: usize,
}

impl Experiment {
    /// Both builds have been running for long: they are compared by name.
    pub fn named(preset: fn(u64) -> FleetBuilder) -> Self {
        Self { preset, named: true, change: None }
    }

    /// The comparison follows from the deploy.
    pub fn deployed(preset: fn(u64) -> FleetBuilder) -> Self {
        Self { preset, named: false, change: None }
    }

    /// One function costs `factor` times as much in `cells` of the head.
    pub fn regressing(self, cells: Cells, factor: f64) -> Self {
        Self { change: Some((cells, factor)), ..self }
    }

    /// Runs every seed, two at a time, and prints what was seen.
    pub fn run(&self, title: &str, seeds: RangeInclusive<u64>) -> Vec<Outcome> {
        let outcomes = over(seeds, |seed| self.outcome(seed));
        print(title, &outcomes);
        outcomes
    }

    fn outcome(&self, seed: u64) -> Outcome {
        let mut builder = (self.preset)(seed);
        let mut changed = None;
        if let Some((cells, factor)) = &self.change {
            let name = (self.preset)(seed).build().functions()[RANK].0.to_string();
            builder = builder.regress(name.as_str(), cells.clone(), *factor);
            changed = Some(name);
        }
        let fleet = builder.build();
        let tables = self.tables(&fleet);
        let tested: Vec<&CellRow> = tables.cells.iter().filter(|row| is_tested(row)).collect();
        let plain: Vec<f64> = tested.iter().map(|row| row.ln_p_iid.expect("a tested row has it")).collect();
        let raised = || tables.flags.iter().filter(|flag| flag.state == FlagState::Raised);
        let found: BTreeSet<&CellKey> = raised()
            .filter(|flag| flag.row.count_kind == CountKind::SelfCount && Some(&*flag.row.function) == changed.as_deref())
            .map(|flag| &flag.row.cell)
            .collect();
        Outcome {
            seed,
            looked: tested.len(),
            called: tested.iter().filter(|row| row.verdict.is_called()).count(),
            plain: bh(&plain).iter().filter(|&&q| q <= 0.05).count(),
            raised: raised().count(),
            found: found.len(),
        }
    }

    fn tables(&self, fleet: &Fleet) -> Tables {
        let minute = Nanos::from_seconds(60);
        let comparing = if self.named {
            Comparing::Named { base: vec![fleet.base().clone()], head: fleet.head().clone() }
        } else {
            Comparing::Deploys
        };
        let config = Config { evaluate_every: minute, report_every: Nanos::from_seconds(86_400), comparing, ..Config::default() };
        rows(&config, fleet)
    }
}

fn is_tested(row: &CellRow) -> bool {
    row.scope == Scope::Window
        && row.count_kind == CountKind::SelfCount
        && row.q_value.is_some()
        && row.cell.region.as_str() != MERGED
        && row.cell.cohort.as_str() != MERGED
}

fn print(title: &str, outcomes: &[Outcome]) {
    let runs = outcomes.len();
    let with = |figure: fn(&Outcome) -> usize| outcomes.iter().filter(|run| figure(run) > 0).count();
    let sum = |figure: fn(&Outcome) -> usize| outcomes.iter().map(figure).sum::<usize>();
    println!("{title}: {runs} runs, {} rows tested in the last reports", sum(|run| run.looked));
    println!("  fleetdiff: {} runs with an alert, {} runs with a called row ({} rows)", with(|run| run.raised), with(|run| run.called), sum(|run| run.called));
    println!("  plain G:   {} runs with a called row, {} rows a run", with(|run| run.plain), sum(|run| run.plain) / runs.max(1));
    for run in outcomes.iter().filter(|run| run.raised + run.called > 0) {
        println!("  seed {}: {} raised, {} called, {} found", run.seed, run.raised, run.called, run.found);
    }
}
