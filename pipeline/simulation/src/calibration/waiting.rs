//! Time of threads off the CPU: does any function seem to wait longer where nothing changed, and is waiting found that moves between
//! threads?
//!
//! A wait is log-normal with a CV of 300 %, so that few waits make most of the time, as waits for locks and disks do. Each pod has, for
//! each function of each thread, a multiplier of its own; rows are decided by the rules of the table `waiting`.

use fleetdiff_pipeline::evidence::waiting::WaitingEvidence;
use fleetdiff_pipeline::rules::waiting::{decide, has_changed};
use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::rows::{CellKey, WaitingRow};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::LevelDirection;
use fleetdiff_statistics::pod_levels::{LevelChange, PodLevel};
use fleetdiff_statistics::{Arms, Side};

use super::chance::{Multipliers, poisson};
use super::figure::{Figure, Observed, Seen};
use super::row::{Chance, Q, Row};

const FUNCTIONS: usize = 30;
/// Threads, and how many times as long their functions wait in the head where waiting moves.
const THREADS: [(&str, f64); 4] = [("request-*", 2.0), ("helper-*", 0.5), ("gc", 1.0), ("log", 1.0)];
/// Waits that a pod's profiles show of the function that waits most often; others fall as 1 over their rank.
const WAITS: f64 = 2_000.0;
/// CV of one wait.
const OF_A_WAIT: f64 = 3.0;

/// Pods of both arms and their CV, whether waiting moves, and what is asked.
struct Design {
    pods: Arms<usize>,
    cv: Arms<f64>,
    moves: bool,
    asks: Asks,
    figure: Figure,
}

enum Asks {
    /// Whether any row changed.
    Any,
    /// How many functions of the thread that waits longer are found to.
    Longer,
    /// How many of the rows that changed are of threads that did not.
    Others,
}

pub(super) fn rows() -> Vec<Row> {
    let designs = designs();
    let simulates = "time off the CPU of 30 functions in 4 threads, waits of CV 300 %; each figure is of other pods";
    let figures = designs.iter().map(|design| design.figure).collect();
    vec![Row::new("waiting", simulates, figures, move |chance: &mut Chance| {
        designs.iter().map(|design| design.observed(chance)).collect()
    })]
}

fn designs() -> Vec<Design> {
    let arms = |head, base| Arms { head, base };
    let both = |cv| Arms { head: cv, base: cv };
    let quiet =
        |pods, cv, name| Design { pods, cv, moves: false, asks: Asks::Any, figure: Figure::rate(name).at_most(0.06) };
    let moved = |asks, figure| Design { pods: arms(12, 60), cv: both(0.2), moves: true, asks, figure };
    vec![
        quiet(arms(2, 4), both(0.1), "P(any row changed), 2 v 4 pods, CV 10 %"),
        quiet(arms(2, 4), both(0.3), "P(any row changed), 2 v 4 pods, CV 30 %"),
        quiet(arms(3, 16), Arms { head: 0.25, base: 0.1 }, "P(any row changed), 3 v 16 pods, head CV 25 %, base 10 %"),
        quiet(arms(5, 84), both(0.3), "P(any row changed), 5 v 84 pods, CV 30 %"),
        quiet(arms(12, 60), both(0.3), "P(any row changed), 12 v 60 pods, CV 30 %"),
        moved(
            Asks::Longer,
            Figure::rate("waiting moves, x .5 in helpers and x 2 in requests, 12 v 60 pods, CV 20 %: functions of requests found")
                .at_least(0.8),
        ),
        moved(Asks::Others, Figure::rate("the same: part of the rows that changed that are of other threads").at_most(0.05)),
    ]
}

impl Design {
    fn observed(&self, chance: &mut Chance) -> Observed {
        let mut evidence = Vec::new();
        for (thread, factor) in THREADS {
            for function in 0..FUNCTIONS {
                let factor = if self.moves { factor } else { 1.0 };
                evidence.extend(self.evidence(function, thread, factor, chance));
            }
        }
        let id = ComparisonId { service: "api".into(), base: vec!["v1".into()], head: "v2".into() };
        let clock = HopClock::new(Nanos::from_seconds(10));
        let rows = decide(&id, evidence, Hop(180), (clock, 180), Q);
        let number = |is_meant: &dyn Fn(&WaitingRow) -> bool| {
            let changed = rows.iter().filter(|row| has_changed(row) && is_meant(row));
            u32::try_from(changed.count()).unwrap_or(u32::MAX)
        };
        let of = |row: &WaitingRow, threads: &[&str]| row.thread.as_deref().is_some_and(|name| threads.contains(&name));
        let [(request, _), (helper, _), ..] = THREADS;
        Observed::only(match self.asks {
            Asks::Any => Seen::whether(number(&|_| true) > 0),
            Asks::Longer => Seen::Hits {
                hits: number(&|row| of(row, &[request]) && row.time.direction == LevelDirection::Up),
                of: u32::try_from(FUNCTIONS).unwrap_or(u32::MAX),
            },
            Asks::Others => Seen::Hits { hits: number(&|row| !of(row, &[request, helper])), of: number(&|_| true) },
        })
    }

    fn evidence(
        &self,
        function: usize,
        thread: &str,
        factor: f64,
        chance: &mut Chance,
    ) -> Option<(CellKey, WaitingEvidence)> {
        let mut samples = Arms { head: 0_u64, base: 0 };
        let of_a_wait = Multipliers::with_cv(OF_A_WAIT);
        let stratum = Arms::of(|side| {
            let of_a_pod = Multipliers::with_cv(self.cv[side]);
            let pod = |_| {
                let waits = poisson(WAITS / length_float(function + 1), &mut chance.rng);
                let time: f64 = (0..waits).map(|_| of_a_wait.next(&mut chance.rng)).sum();
                let longer = if side == Side::Head { factor } else { 1.0 };
                let value = time * longer * of_a_pod.next(&mut chance.rng);
                samples[side] += u64::from(waits);
                PodLevel { value, counting: if waits > 0 { value * value / f64::from(waits) } else { 0.0 } }
            };
            (0..self.pods[side]).map(pod).collect()
        });
        let change = LevelChange::ratio(&[stratum])?;
        let cell = CellKey { region: "north".into(), cohort: "tv".into() };
        Some((cell, WaitingEvidence::of_change(&format!("wait{function}"), thread, change, samples)))
    }
}
