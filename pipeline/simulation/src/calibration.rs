//! How often are the statistics wrong? Fleets whose truth is known are simulated, and the results of the statistics are
//! counted.
//!
//! A row of the table is one kind of fleet, with one or more figures that must keep to a bound: how often anything is
//! significant where nothing changed, how often a change is found, how soon. Every run is a function of (seed, name of
//! the row, number of the run), so that a row measured alone, or by any number of threads, gives the same figures. Next
//! to each figure is the result of the plain test on the same draws: G of counts merged over pods, its chi-square tail,
//! Benjamini-Hochberg at .05.
//!
//! | question | file |
//! |---|---|
//! | What are simulated pods like? | [`model`], [`design`], [`chance`] |
//! | How is a figure compared with its bound? | [`figure`] |
//! | What decides? | [`window`], [`live`] |
//! | What is the result of the plain test? | [`plain`] |
//! | Nothing changed: is anything significant in a window? | [`quiet`], [`cohorts`], [`requests`], [`rare`], [`values`] |
//! | Does the self-check see what has no label? | [`hidden`] |
//! | Something changed: is it found, and nothing else? | [`effects`], [`fan_out`], [`minority`], [`demo`] |
//! | Does a request cost more under load? | [`load`], [`scaling`] |
//! | Is the memory of pods compared fairly? | [`memory`] |
//! | Which threads wait longer? | [`waiting`] |
//! | What if one looks every ten seconds? | [`stream`], [`looks`], [`rollout`], [`rings`] |
//! | What if processes warm up? | [`warm_up`] |
//!
//! Rows of a single window give simulated bucket counts to the tests of [`fleetdiff_statistics`]. Rows of many looks
//! give the counts so far, hop by hop, to the functions that the dataflow uses ([`looks`]). Only [`rollout`], [`rings`], [`scaling`] and
//! [`warm_up`] run the dataflow itself, which takes ten to twenty times as long as everything between a count and a flag.

mod chance;
mod cohorts;
mod demo;
mod design;
mod effects;
mod fan_out;
mod figure;
mod hidden;
mod live;
mod load;
mod looks;
mod memory;
mod minority;
mod model;
mod plain;
mod quiet;
mod rare;
mod requests;
mod rings;
mod rollout;
mod row;
mod scaling;
mod stream;
mod values;
mod waiting;
mod warm_up;
mod window;

pub use figure::{Bound, Estimate, Figure, Statistic};
pub use row::Row;

use std::sync::atomic::{AtomicU64, Ordering};

use chance::generator_of;
use figure::{Observed, Seen};
use fleetdiff_pipeline::run::RunError;
use row::Chance;

/// Every row, in the order of the table.
#[must_use]
pub fn table() -> Vec<Row> {
    let groups = [
        quiet::rows(),
        hidden::rows(),
        cohorts::rows(),
        requests::rows(),
        rare::rows(),
        values::rows(),
        effects::rows(),
        fan_out::rows(),
        minority::rows(),
        load::rows(),
        scaling::rows(),
        memory::rows(),
        waiting::rows(),
        looks::rows(),
        rollout::rows(),
        rings::rows(),
        warm_up::rows(),
        demo::rows(),
    ];
    groups.into_iter().flatten().collect()
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Runs of each row, before [`Row::repeats`].
    pub runs: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Threads that share the runs, at least 1; no figure depends on it.
    pub threads: usize,
}

/// A row as measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Number of runs.
    pub runs: u64,
    /// In the order of [`Row::figures`].
    pub figures: Vec<MeasuredFigure>,
}

/// A figure as measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredFigure {
    /// Which.
    pub figure: Figure,
    /// The result of fleetdiff's statistics.
    pub ours: Estimate,
    /// The result of the plain test on the same draws.
    pub plain: Option<Estimate>,
}

impl MeasuredFigure {
    /// Whether it keeps to its bound; true if there is none.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.figure.required.is_none_or(|bound| self.ours.keeps_to(bound, self.figure.statistic))
    }

    /// Whether the plain test keeps to the bound; none if it has no such figure or there is no bound.
    #[must_use]
    pub fn is_met_by_the_plain_test(&self) -> Option<bool> {
        Some(self.plain?.keeps_to(self.figure.required?, self.figure.statistic))
    }
}

impl Measured {
    /// Whether every figure keeps to its bound.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.figures.iter().all(MeasuredFigure::is_met)
    }
}

/// Measures one row; `after_each` is called after each of [`runs_of`] runs, from any thread.
///
/// # Errors
/// [`RunError`] if the dataflow of a row that runs it fails.
pub fn measure(row: &Row, effort: Effort, after_each: impl Fn() + Sync) -> Result<Measured, RunError> {
    let runs = runs_of(row, effort);
    let next = AtomicU64::new(0);
    let work = || -> Result<Vec<(u64, Vec<Observed>)>, RunError> {
        let mut done = Vec::new();
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return Ok(done);
            }
            let (seed, rng) = generator_of(effort.seed, row.name, run);
            done.push((run, (row.experiment)(&mut Chance { seed, rng })?));
            after_each();
        }
    };
    let each_thread = std::thread::scope(|scope| {
        let others: Vec<_> = (1..effort.threads).map(|_| scope.spawn(work)).collect();
        let mut all = vec![work()];
        all.extend(
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        all
    });
    let mut observed = Vec::new();
    for done in each_thread {
        observed.extend(done?);
    }
    observed.sort_unstable_by_key(|(run, _)| *run);
    Ok(Measured {
        runs,
        figures: row
            .figures
            .iter()
            .enumerate()
            .map(|(place, figure)| put_together(*figure, place, &observed))
            .collect(),
    })
}

/// Runs of a row at this effort.
#[must_use]
pub fn runs_of(row: &Row, effort: Effort) -> u64 {
    effort.runs.saturating_mul(row.repeats)
}

fn put_together(figure: Figure, place: usize, observed: &[(u64, Vec<Observed>)]) -> MeasuredFigure {
    let of_run = || observed.iter().filter_map(|(_, figures)| figures.get(place));
    let ours: Vec<Seen> = of_run().map(|observed| observed.ours).collect();
    let plain: Vec<Seen> = of_run().filter_map(|observed| observed.plain).collect();
    MeasuredFigure {
        figure,
        ours: Estimate::of(figure.statistic, &ours),
        plain: (!plain.is_empty()).then(|| Estimate::of(figure.statistic, &plain)),
    }
}
