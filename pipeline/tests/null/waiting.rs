//! Waiting of fleets without a change, and of twins in which it moves from helper threads into those that serve requests.

use std::collections::BTreeSet;

use fleetdiff_pipeline::rules::waiting::has_changed;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, Tables, WaitingRow};
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, TimeMeasure};
use fleetdiff_simulation::load::serve_more;
use fleetdiff_simulation::waiting::with_waiting;

use super::memory::{already_deployed, compared};
use super::seeds::{over, seeds_to};

/// Fleets of a kind, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 2;

/// Rows of a fleet in which a helper waits 4 ms for each sample on the CPU, and a thread that serves requests 1 ms; in the head so many
/// microseconds. Pods of the head serve so many times as much.
fn waiting(seed: u64, [helper, request]: [u64; 2], load: u64) -> Tables {
    let fleet = already_deployed(seed, 1200);
    let head = fleet.head().clone();
    let mut partitions = fleet.partitions(1);
    serve_more(&mut partitions, &head, load);
    with_waiting(&mut partitions, ProfileType::OffCpu, |profile, frame| {
        let [helper, request] = if profile.identity.build == head { [helper, request] } else { [4000, 1000] };
        let each = 800 + u64::from(frame % 5) * 100;
        vec![("helper-*", helper * each), ("request-*", request * each)]
    });
    compared(partitions)
}

/// A family is a measure of a cell (or all cells, for all functions together) at a report, of one kind of count.
#[test]
fn null_waiting() {
    let (mut fleets, mut families, mut with_a_change, mut rows) = (0_u32, 0_u32, 0_u32, 0);
    for tables in over(seeds_to(FLEETS), |seed| waiting(seed, [4000, 1000], 1)) {
        fleets += 1;
        let mut seen = BTreeSet::new();
        for row in &tables.waiting {
            rows += 1;
            let is_all = &*row.function == ALL_FUNCTIONS;
            // All functions together have a row in each cell, so that the families of functions, both kinds, are known by it.
            families += u32::from(is_all && row.thread.is_none() && row.time.q_value.is_some()) * 2;
            let thread = row.thread.as_ref().filter(|_| is_all);
            if has_changed(row)
                && seen.insert((row.window_end_at, row.measure, row.cell.clone(), row.count_kind, is_all, thread))
            {
                with_a_change += 1;
            }
        }
    }
    println!("{fleets} fleets: {families} families at least, {with_a_change} with a change; {rows} rows");
    assert!(families > 22 * fleets, "{families} families");
    let allowed = 0.05 * f64::from(families) + 3.0 * (0.05 * 0.95 * f64::from(families)).sqrt();
    assert!(f64::from(with_a_change) <= allowed, "{with_a_change} of {families} families have a change");
}

/// The twin: a helper waits half as long, requests wait half as long again. The whole falls, and what serves requests waits longer.
#[test]
fn twin_waiting() {
    for (seed, tables) in seeds_to(1).zip(over(seeds_to(1), |seed| waiting(seed, [2000, 1500], 1))) {
        let last = tables.waiting.iter().map(|row| row.window_end_at).max().unwrap();
        let now: Vec<&WaitingRow> = tables.waiting.iter().filter(|row| row.window_end_at == last).collect();
        let direction = |measure: TimeMeasure, thread: Option<&str>| -> Vec<LevelDirection> {
            let is = |row: &&&WaitingRow| {
                &*row.function == ALL_FUNCTIONS && row.measure == measure && row.thread.as_deref() == thread
            };
            now.iter().filter(is).map(|row| row.time.direction).collect()
        };
        assert_eq!(direction(TimeMeasure::OffCpu, None), [LevelDirection::Down; 2], "seed {seed}");
        assert_eq!(direction(TimeMeasure::OffCpu, Some("helper-*")), [LevelDirection::Down; 2], "seed {seed}");
        assert_eq!(direction(TimeMeasure::OffCpu, Some("request-*")), [LevelDirection::Up; 2], "seed {seed}");
    }
}

/// Pods that serve twice as much and wait as long as before, as for a disk that is written to once a second: what is halved per request
/// is no gain. The twin: requests that wait six times as long are found beside it.
#[test]
fn null_waiting_at_twice_the_load() {
    let changed_by = |times| {
        let all = over(seeds_to(FLEETS), |seed| waiting(seed, times, 2));
        // NB: these fleets wait once for each sample on the CPU, so that a sum of both varies more than it could in recordings.
        let is_one_type = |row: &WaitingRow| row.measure == TimeMeasure::OffCpu;
        let rows = all.into_iter().flat_map(|tables| tables.waiting).filter(is_one_type);
        let (changed, still): (Vec<WaitingRow>, Vec<WaitingRow>) = rows.partition(has_changed);
        let by_load = still.iter().filter(|row| row.time.reason == Some(LevelReason::LoadDiffers)).count();
        println!("{times:?} us: {} rows changed, {by_load} of all functions that load may have made", changed.len());
        let threads: BTreeSet<_> = changed.iter().map(|row| (row.thread.clone(), row.time.direction)).collect();
        (threads, by_load)
    };
    let (none, by_load) = changed_by([4000, 1000]);
    assert!(none.is_empty() && by_load > 10, "{none:?} {by_load}");
    let (found, _) = changed_by([4000, 6000]);
    let requests = (Some("request-*".into()), LevelDirection::Up);
    assert_eq!(found, BTreeSet::from([requests]));
}
