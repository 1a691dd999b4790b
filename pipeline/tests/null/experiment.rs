//! Experiments over many seeds, with the results of each on one line.

use std::ops::RangeInclusive;

pub use fleetdiff_simulation::experiment::{Experiment, Outcome};

use crate::seeds::over;

/// Runs every seed, two at a time, and prints the results.
pub fn run(title: &str, experiment: &Experiment, seeds: RangeInclusive<u64>) -> Vec<Outcome> {
    let outcomes = over(seeds, |seed| experiment.outcome(seed).expect("a synthetic fleet runs through"));
    print(title, &outcomes);
    outcomes
}

fn print(title: &str, outcomes: &[Outcome]) {
    let runs = outcomes.len();
    let with = |figure: fn(&Outcome) -> usize| outcomes.iter().filter(|run| figure(run) > 0).count();
    let sum = |figure: fn(&Outcome) -> usize| outcomes.iter().map(figure).sum::<usize>();
    println!("{title}: {runs} runs, {} rows tested in the last reports", sum(|run| run.looked));
    println!(
        "  fleetdiff: {} runs with an alert, {} runs with a significant row ({} rows)",
        with(|run| run.raised),
        with(|run| run.significant),
        sum(|run| run.significant)
    );
    println!(
        "  plain G:   {} runs with a significant row, {} rows a run",
        with(|run| run.plain),
        sum(|run| run.plain) / runs.max(1)
    );
    for run in outcomes.iter().filter(|run| run.raised + run.significant > 0) {
        println!("  seed {}: {} raised, {} significant, {} found", run.seed, run.raised, run.significant, run.found);
    }
}
