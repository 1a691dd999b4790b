//! What is announced about load, from report to report and through the dataflow itself: builds of one code under load that doubles and
//! falls back must be quiet, and a function whose requests cost more at peak in the head must be announced, and no other.
//!
//! The plain test announces a function whose share rises with load in the head and does not in the base: G of shares at high against
//! low load in the last report, Benjamini-Hochberg at .05. The function of fixed cost lets every share rise in both.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, ScalingFindingRow, ScalingRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::FlagState;

use super::figure::{Figure, Observed, Seen};
use super::plain;
use super::row::{Chance, Row};
use crate::fleet::{Cells, Fleet, FleetBuilder};
use crate::run::run_fleet;

/// To which power of load a request costs more in one function of the head, where that is to be found.
const ELASTICITY: f64 = 0.5;

pub(super) fn rows() -> Vec<Row> {
    vec![quiet(), found()]
}

fn quiet() -> Row {
    Row::through_the_dataflow(
        "scaling",
        "20 v 20 pods of one code in each of 2 cells, CV 10 %, load that doubles and falls back within 30 minutes, twice; one function has a fixed cost, costs of each build sway by 2 %; through the dataflow",
        vec![
            Figure::rate("P(any scaling event)").at_most(0.05),
            Figure::mean("reports with a test a run").at_least(3.0),
            Figure::mean("rows tested a report"),
        ],
        |chance: &mut Chance| {
            let announced = Announced::of(Fleet::under_load(chance.seed))?;
            let plain = announced.is_alarming_by_the_plain_test();
            let (reports, rows) = announced.reports_and_rows();
            Ok(vec![
                Observed::beside(Seen::whether(announced.raised().next().is_some()), Seen::whether(plain)),
                Observed::only(Seen::count(reports)),
                Observed::only(Seen::Number(rows)),
            ])
        },
    )
}

fn found() -> Row {
    Row::through_the_dataflow(
        "scaling-found",
        "the same; requests of the head cost more at peak in one function (elasticity .5)",
        vec![
            Figure::rate("the function announced").at_least(0.8),
            Figure::rate("P(any other function announced)").at_most(0.05),
            Figure::median("minutes from deploy to its event"),
        ],
        |chance: &mut Chance| {
            let function = Fleet::DEMO_FUNCTION;
            let fleet = Fleet::under_load(chance.seed).scales_worse(function, Cells::all(), ELASTICITY);
            let announced = Announced::of(fleet)?;
            let other = announced.raised().any(|finding| &*finding.cause != function);
            let its = announced.raised().find(|finding| &*finding.cause == function);
            let minutes = its
                .map_or(f64::INFINITY, |finding| finding.raised_at.since(Fleet::STARTS_AT).as_seconds() / 60.0 - 1.0);
            Ok(vec![
                Observed::only(Seen::whether(its.is_some())),
                Observed::only(Seen::whether(other)),
                Observed::only(Seen::Number(minutes)),
            ])
        },
    )
}

/// What a run says about load.
struct Announced {
    tables: Tables,
    head: Build,
}

impl Announced {
    fn of(fleet: FleetBuilder) -> Result<Self, RunError> {
        let fleet = fleet.build();
        // Flags are not asked for.
        let config = Config { evaluate_every: Nanos::from_seconds(600), ..Config::default() };
        Ok(Self { head: fleet.head().clone(), tables: run_fleet(&config, &fleet)? })
    }

    fn raised(&self) -> impl Iterator<Item = &ScalingFindingRow> {
        self.tables.scaling_findings.iter().filter(|finding| finding.state == FlagState::Raised)
    }

    /// Rows of head against base that are announced if they are significant.
    fn tested(&self) -> impl Iterator<Item = &ScalingRow> {
        let is_tested = |row: &&ScalingRow| {
            row.count_kind == CountKind::SelfCount && row.base_build.is_some() && row.q_value.is_some()
        };
        self.tables.scaling.iter().filter(is_tested)
    }

    /// Reports with a test, and tested rows of each on average.
    fn reports_and_rows(&self) -> (usize, f64) {
        let reports: BTreeSet<Nanos> = self.tested().map(|row| row.window_end_at).collect();
        (reports.len(), length_float(self.tested().count()) / length_float(reports.len().max(1)))
    }

    /// Whether the share of any function rises with load in the head and not in the base, in any cell at the last report.
    fn is_alarming_by_the_plain_test(&self) -> bool {
        let last = self.tables.scaling.iter().map(|row| row.window_end_at).max();
        let of_builds = |row: &&ScalingRow| {
            row.count_kind == CountKind::SelfCount && row.base_build.is_none() && Some(row.window_end_at) == last
        };
        let rows: Vec<&ScalingRow> =
            self.tables.scaling.iter().filter(of_builds).filter(|row| row.ln_p_iid.is_some()).collect();
        let ln_p: Vec<f64> = rows.iter().filter_map(|row| row.ln_p_iid).collect();
        let rising: BTreeSet<(bool, &CellKey, &str)> = rows
            .iter()
            .zip(plain::significant(&ln_p))
            .filter(|(row, significant)| *significant && row.high.share > row.low.share)
            .map(|(row, _)| (row.build == self.head, &row.cell, &*row.function))
            .collect();
        rising.iter().any(|&(is_head, cell, function)| is_head && !rising.contains(&(false, cell, function)))
    }
}
