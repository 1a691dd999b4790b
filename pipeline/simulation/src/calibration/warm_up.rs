//! Canaries whose pods warm up for longer than the minute that is left out, through the dataflow: what is flagged before pods of the
//! same age meet is provisional, and is gone when they have. Where history has the baseline's own first minutes, nothing is flagged.

use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Severity;

use super::figure::{Figure, Observed, Seen};
use super::row::{Chance, Row};
use crate::flags::{Changes, Flags};
use crate::fleet::{Fleet, FleetBuilder};
use crate::run::run_fleet;

const MINUTE: i64 = 60;

/// A third of the functions cost more at first.
#[derive(Clone, Copy)]
struct WarmUp {
    /// Seconds over which that decays by e.
    over: i64,
    /// ln of the factor at the start of a process; after the minute that is left out it is 1.65 or 1.51.
    ln_more: f64,
}

const FAST: WarmUp = WarmUp { over: 60, ln_more: 1.36 };
const SLOW: WarmUp = WarmUp { over: 300, ln_more: 0.5 };

pub(super) fn rows() -> Vec<Row> {
    vec![
        new_to_it(
            "warm-up-60s",
            "12 v 60 pods, CV 10 %; a third of the functions of a process cost up to 65 % more, which decays by e in 60 s; looked at every 30 s, through the dataflow",
            FAST,
        ),
        new_to_it("warm-up-300s", "the same with up to 51 %, which decays by e in 300 s", SLOW),
        known("warm-up-known", "the same where history has the baseline's own first minutes", SLOW),
    ]
}

/// The baseline has been running for long.
fn new_to_it(name: &'static str, simulates: &'static str, warm_up: WarmUp) -> Row {
    let figures = vec![
        Figure::rate("P(any page)").at_most(0.05),
        Figure::rate("P(any flag 20 minutes after the last young pod)").at_most(0.05),
        Figure::mean("provisional flags a run"),
    ];
    let experiment = move |chance: &mut Chance| {
        let deployed = 6 * MINUTE;
        let flags = flags(&config(10 * MINUTE), &warming(chance.seed, warm_up, deployed).build())?;
        Ok(vec![
            Observed::only(Seen::whether(flags.count(Changes::has_paged) > 0)),
            Observed::only(Seen::whether(flags.count(|flag| flag.stands() && is_worth_a_ticket(flag)) > 0)),
            Observed::only(Seen::count(flags.count(Changes::is_raised_provisionally))),
        ])
    };
    Row::through_the_dataflow(name, simulates, figures, experiment)
}

/// The baseline started within the recording, and its young pods have left the window.
fn known(name: &'static str, simulates: &'static str, warm_up: WarmUp) -> Row {
    let experiment = move |chance: &mut Chance| {
        let fleet = warming(chance.seed, warm_up, 16 * MINUTE).base_starts_within(Nanos::from_seconds(MINUTE));
        let flags = flags(&config(4 * MINUTE), &fleet.build())?;
        Ok(vec![Observed::only(Seen::whether(flags.count(|_| true) > 0))])
    };
    let figures = vec![Figure::rate("P(any flag)").at_most(0.05)];
    Row::through_the_dataflow(name, simulates, figures, experiment)
}

fn config(window: i64) -> Config {
    Config {
        window: Nanos::from_seconds(window),
        evaluate_every: Nanos::from_seconds(30),
        report_every: Nanos::from_seconds(86_400),
        ..Config::default()
    }
}

fn warming(seed: u64, warm_up: WarmUp, deployed: i64) -> FleetBuilder {
    let cell = Fleet::seeded(seed).regions(["eu"]).cohorts(["tv"]).pods_per_cell(12, 60).pod_cv(0.1);
    cell.settling(warm_up.ln_more, Nanos::from_seconds(warm_up.over))
        .deploy_after(Nanos::from_seconds(deployed))
        .lasts(Nanos::from_seconds(deployed + 32 * MINUTE))
        .folded()
}

fn flags(config: &Config, fleet: &Fleet) -> Result<Flags, RunError> {
    Ok(Flags::of(run_fleet(config, fleet)?.flags))
}

fn is_worth_a_ticket(changes: &Changes) -> bool {
    changes.iter().any(|row| row.severity != Severity::Info)
}
