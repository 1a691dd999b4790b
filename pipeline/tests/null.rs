//! Fleets without a change: fleetdiff must be quiet where the plain test is not, and must flag their twins, in which
//! something changed.
//!
//! Every fleet runs through the real dataflow in one process, evaluated every minute for 30 minutes: a few fleets of each kind
//! (of most 4), or as many as `FLEETDIFF_NULL_FLEETS` says. Limits are three binomial standard errors above a true rate of .05 a
//! run, so that few fleets show a rate that is far too high, and many one that is a little too high.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints what it saw")]

#[path = "null/ages.rs"]
mod ages;
#[path = "null/calibration.rs"]
mod calibration;
#[path = "null/demo.rs"]
mod demo;
#[path = "null/doubt.rs"]
mod doubt;
#[path = "null/experiment.rs"]
mod experiment;
#[path = "null/fading.rs"]
mod fading;
#[path = "null/history.rs"]
mod history;
#[path = "null/levels.rs"]
mod levels;
#[path = "null/memory.rs"]
mod memory;
#[path = "support/rebuilt.rs"]
mod other_builds;
#[path = "null/properties.rs"]
mod properties;
#[path = "null/random_rings.rs"]
mod random_rings;
#[path = "null/rebuilt.rs"]
mod rebuilt;
#[path = "null/rings.rs"]
mod rings;
#[path = "null/seeds.rs"]
mod seeds;
#[path = "null/unlabelled.rs"]
mod unlabelled;
#[path = "null/waiting.rs"]
mod waiting;
#[path = "null/young.rs"]
mod young;

use experiment::{Experiment, Outcome, run};
use fleetdiff_simulation::fleet::{Cells, Fleet};
use seeds::{most_false, seeds, seeds_to};
use tikv_jemallocator::Jemalloc;

/// As the program: a good part of the time is spent in it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[test]
fn null_cells() {
    let outcomes = run("9 cells of 5 v 84 pods, CV 10 %", &Experiment::named(Fleet::null_cells), seeds());
    assert_quiet(&outcomes, 9 * 400);
}

#[test]
fn null_request_labels() {
    let outcomes = run(
        "3 regions of 13 v 253 pods, 3 cohorts by request label, CV 10 %",
        &Experiment::named(Fleet::null_request_labels),
        seeds(),
    );
    assert_quiet(&outcomes, 9 * 400);
}

#[test]
fn null_hour_edge() {
    let outcomes =
        run("6 cells of 5 v 30 pods across an hour, CV 50 %", &Experiment::named(Fleet::null_hour_edge), seeds());
    assert_quiet(&outcomes, 6 * 400);
}

#[test]
fn null_rollout_under_drift() {
    let outcomes =
        run("0 to 100 % of 100 pods in 30 minutes, drift 5 %", &Experiment::deployed(Fleet::rollout), seeds());
    let (alerting, pooled) = (count(&outcomes, |run| run.raised > 0), count(&outcomes, |run| run.plain > 0));
    assert!(outcomes.iter().all(|run| run.looked >= 400), "too few rows were looked at");
    let runs = outcomes.len();
    assert!(alerting <= most_false(runs, 0.05), "{alerting} of {runs} runs have an alert");
    assert!(
        pooled * 10 >= runs * 9,
        "the plain test on counts pooled over time is significant in only {pooled} runs: the drift tests nothing"
    );
}

#[test]
fn twin_cells() {
    let hit = Cells::one("ap-south-1", "Android-TV");
    let outcomes = run(
        "twin: 9 cells, one function x 1.6",
        &Experiment::named(Fleet::null_cells).regressing(hit, 1.6),
        seeds_to(1),
    );
    assert_found(&outcomes, 1);
}

#[test]
fn twin_request_labels() {
    let hit = Cells::one("ap-south-1", "Android-TV");
    let outcomes = run(
        "twin: request labels, one function x 1.4",
        &Experiment::named(Fleet::null_request_labels).regressing(hit, 1.4),
        seeds_to(1),
    );
    assert_found(&outcomes, 1);
}

#[test]
fn twin_hour_edge() {
    let outcomes = run(
        "twin: across an hour, one function x 8",
        &Experiment::named(Fleet::null_hour_edge).regressing(Cells::all(), 8.0),
        seeds_to(1),
    );
    assert_found(&outcomes, 6);
}

#[test]
fn twin_rollout_under_drift() {
    let outcomes = run(
        "twin: roll-out, one function x 1.3",
        &Experiment::deployed(Fleet::rollout).regressing(Cells::all(), 1.3),
        seeds_to(1),
    );
    assert_found(&outcomes, 1);
}

/// Few runs have an alert or a significant row, while the plain test has significant rows in nearly all.
fn assert_quiet(outcomes: &[Outcome], rows: usize) {
    let (alerting, significant, plain) = (
        count(outcomes, |run| run.raised > 0),
        count(outcomes, |run| run.significant > 0),
        count(outcomes, |run| run.plain > 0),
    );
    let runs = outcomes.len();
    assert!(outcomes.iter().all(|run| run.looked >= rows), "fewer than {rows} rows were tested in a run");
    assert!(alerting <= most_false(runs, 0.05), "{alerting} of {runs} runs have an alert");
    assert!(
        significant <= most_false(runs, 0.05),
        "{significant} of {runs} runs have a significant row in the last report"
    );
    assert!(plain * 20 >= runs * 19, "the plain test is significant in only {plain} runs: these fleets test nothing");
}

/// Every affected cell of every run was flagged.
fn assert_found(outcomes: &[Outcome], cells: usize) {
    for run in outcomes {
        assert_eq!(run.found, cells, "seed {}", run.seed);
    }
}

fn count(outcomes: &[Outcome], holds: impl Fn(&Outcome) -> bool) -> usize {
    outcomes.iter().filter(|run| holds(run)).count()
}
