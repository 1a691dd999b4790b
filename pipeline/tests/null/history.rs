//! Full roll-outs in which nothing changed, compared with history, must be as quiet as a comparison with running
//! builds; and their twin.
//!
//! An hour each: the base runs for 20 minutes, of which one hop a minute is kept; its pods are replaced within two; the
//! last report compares the last 10 minutes of the head with what is left of those 20. If history is longer than a day
//! there is also dispersion between days, which no fleet of one build can show.

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::BaseKind;
use fleetdiff_simulation::fleet::{Calls, Cells, Fleet, FleetBuilder};

use crate::seeds::{most_false, over, rows, seeds_to};

const MINUTE: i64 = 60;
/// Rank, by cost, of the function that a twin makes more expensive: about a 1 % share.
const RANK: usize = 12;
/// A full hour, at which the fleets start.
const STARTS_AT: Nanos = Nanos::from_seconds(1_772_528_400);

/// What one run found in its last report.
struct Found {
    seed: u64,
    tested: usize,
    significant: Vec<String>,
    hit: usize,
    plain: usize,
    /// Rows whose interval of the adjusted ratio does not contain 1, which is the truth if nothing changed.
    outside: usize,
}

fn config() -> Config {
    Config {
        window: Nanos::from_seconds(10 * MINUTE),
        evaluate_every: Nanos::from_seconds(10 * MINUTE),
        report_every: Nanos::from_seconds(86_400),
        ..Config::default()
    }
}

/// 4 cells of 20 pods that differ by CV 10 %, 500 functions.
fn rolled_out(seed: u64) -> FleetBuilder {
    Fleet::seeded(seed)
        .calls(Calls::Zipf(500))
        .regions(["ap-south-1", "eu-west-1"])
        .cohorts(["Android-TV", "iOS-iPad"])
        .pods_per_cell(0, 20)
        .pod_cv(0.1)
        .starts_at(STARTS_AT)
        .rollout(Nanos::from_seconds(20 * MINUTE), Nanos::from_seconds(2 * MINUTE))
        .lasts(Nanos::from_seconds(50 * MINUTE))
        .folded()
}

fn found(seed: u64, tables: &Tables, changed: &str) -> Found {
    assert!(
        tables.comparisons.iter().any(|row| row.base_kind == BaseKind::History),
        "seed {seed}: nothing was held against history"
    );
    let end = tables.cells.iter().map(|row| row.window_end_at).max();
    let is_cell = |row: &&CellRow| row.cell.region.as_str() != MERGED && row.cell.cohort.as_str() != MERGED;
    let tested: Vec<&CellRow> = tables
        .cells
        .iter()
        .filter(|row| Some(row.window_end_at) == end && row.q_value.is_some())
        .filter(is_cell)
        .collect();
    assert!(
        tested.iter().all(|row| row.detail.as_ref().is_some_and(|detail| detail.starts_with("base is the history")))
    );
    let name = |row: &CellRow| {
        format!("{} in {}/{} ({})", row.function, row.cell.region, row.cell.cohort, row.count_kind.name())
    };
    let significant: Vec<&CellRow> = tested.iter().copied().filter(|row| row.verdict.is_significant()).collect();
    Found {
        seed,
        tested: tested.len(),
        hit: significant.iter().filter(|row| row.function == changed && row.count_kind.name() == "self").count(),
        outside: tested
            .iter()
            .filter(|row| row.adjusted_ratio.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0))
            .count(),
        significant: significant.into_iter().map(name).collect(),
        plain: tested.iter().filter(|row| row.ln_p_iid.is_some_and(|ln_p| ln_p < -10.0)).count(),
    }
}

fn print(title: &str, runs: &[Found]) -> usize {
    let calling = runs.iter().filter(|run| !run.significant.is_empty()).count();
    let (tested, plain): (usize, usize) =
        (runs.iter().map(|run| run.tested).sum(), runs.iter().map(|run| run.plain).sum());
    println!(
        "{title}: {} runs, {tested} rows tested against history, {calling} runs with a significant row; plain G below e^-10 in {plain} rows",
        runs.len()
    );
    println!("  {} intervals of 95 % leave out 1", runs.iter().map(|run| run.outside).sum::<usize>());
    for run in runs.iter().filter(|run| !run.significant.is_empty()).take(5) {
        println!("  seed {}: {:?}", run.seed, &run.significant[..run.significant.len().min(4)]);
    }
    calling
}

/// Two cells in which a few head pods follow many base pods, and the two builds overlap for less than a minute. Each
/// base pod is kept for a third of the time for which a head pod is seen.
fn few_after_many(seed: u64, change: Option<&str>) -> (Vec<Vec<Decoded>>, String) {
    let plain = || {
        let one =
            Fleet::seeded(seed).calls(Calls::Zipf(500)).regions(["ap-south-1"]).cohorts(["Android-TV", "iOS-iPad"]);
        one.pods_per_cell(12, 84)
            .pod_cv(0.3)
            .already_deployed()
            .starts_at(STARTS_AT)
            .lasts(Nanos::from_seconds(50 * MINUTE))
            .folded()
    };
    let fleet = change.map_or_else(plain, |function| plain().regress(function, Cells::all(), 2.5)).build();
    let mut partitions = fleet.partitions(1);
    for record in partitions.iter_mut().flatten() {
        record.parts.retain(|part| {
            let Ok(profile) = part else { return true };
            let seconds = profile.window.midpoint().since(STARTS_AT).0 / 1_000_000_000;
            if profile.identity.build == *fleet.head() { seconds >= 19 * MINUTE } else { seconds < 20 * MINUTE }
        });
    }
    (partitions, fleet.functions()[RANK].0.to_string())
}

#[test]
fn null_full_roll_out() {
    let runs = over(seeds_to(12), |seed| found(seed, &rows(&config(), &rolled_out(seed).build()), ""));
    let calling = print("full roll-out, 4 cells of 20 pods, CV 10 %", &runs);
    assert!(runs.iter().all(|run| run.tested >= 2 * 4 * 400), "too few rows were tested");
    assert!(
        runs.iter().filter(|run| run.plain > 0).count() * 11 >= runs.len() * 10,
        "the plain test is quiet too: these fleets are no test"
    );
    assert!(calling <= most_false(runs.len(), 0.05), "{calling} of {} runs have a significant row", runs.len());
}

/// One dispersion for both arms would be that of the base, which is seen for less time and therefore seems less noisy.
#[test]
fn null_few_head_pods_after_many_of_the_base() {
    let runs =
        over(seeds_to(10), |seed| found(seed, &run_in_memory(&config(), few_after_many(seed, None).0, 1).unwrap(), ""));
    let calling = print("12 head pods after 84 of the base, CV 30 %", &runs);
    assert!(runs.iter().all(|run| run.tested >= 2 * 2 * 400), "too few rows were tested");
    assert!(runs.iter().all(|run| run.plain > 0), "the plain test is quiet too: these fleets are no test");
    assert!(calling <= most_false(runs.len(), 0.05), "{calling} of {} runs have a significant row", runs.len());
    let (outside, tested): (usize, usize) =
        (runs.iter().map(|run| run.outside).sum(), runs.iter().map(|run| run.tested).sum());
    assert!(outside * 20 <= tested, "{outside} of {tested} intervals of 95 % leave out the truth");
}

#[test]
fn twin_full_roll_out() {
    let runs = over(1..=1, |seed| {
        let changed = rolled_out(seed).build().functions()[RANK].0.to_string();
        let fleet = rolled_out(seed).regress(changed.as_str(), Cells::all(), 1.3).build();
        found(seed, &rows(&config(), &fleet), &changed)
    });
    print("twin: full roll-out, one function x 1.3", &runs);
    assert!(runs.iter().all(|run| run.hit == 4), "the change is significant in each of the 4 cells");
}

#[test]
fn twin_few_head_pods_after_many_of_the_base() {
    let runs = over(1..=1, |seed| {
        let (_, changed) = few_after_many(seed, None);
        found(seed, &run_in_memory(&config(), few_after_many(seed, Some(&changed)).0, 1).unwrap(), &changed)
    });
    print("twin: 12 head pods after 84, one function x 2.5", &runs);
    assert!(runs.iter().all(|run| run.hit == 2), "the change is significant in both cells");
}
