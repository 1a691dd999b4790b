//! Memory of fleets without a change, and of twins that keep more from minute to minute.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{Decoded, Profile};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, HeapRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, HeapClass, LevelDirection};
use fleetdiff_simulation::fleet::Fleet;
use fleetdiff_simulation::memory::{first_moment, with_memory};

use super::seeds::over;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

/// Pods of both builds from the start, in two cells.
pub(super) fn already_deployed(seed: u64, seconds: i64) -> Fleet {
    Fleet::seeded(seed)
        .regions(["north", "south"])
        .cohorts(["tv"])
        .pods_per_cell(5 + u32::try_from(seed % 3).unwrap() * 4, 20)
        .size_cv(0.1)
        .samples_per_second(60.0)
        .requests_per_second(20.0)
        .already_deployed()
        .lasts(Nanos::from_seconds(seconds))
        .stacks()
        .build()
}

/// Rows of the head against the base, with a report each five minutes.
pub(super) fn compared(partitions: Vec<Vec<Decoded>>) -> Tables {
    let comparing = Comparing::Named { base: vec!["v41".into()], head: Build::from("v42") };
    let config = Config { comparing, report_every: Nanos::from_seconds(300), ..Config::default() };
    run_in_memory(&config, partitions, 1).unwrap()
}

/// Rows of a fleet whose heads allocate this many bytes for a sample, where bases allocate 1000, and hold this many more each second.
fn memory(seed: u64, allocated: u64, more_a_second: u64) -> Tables {
    let fleet = already_deployed(seed, 1500);
    let head = fleet.head().clone();
    let mut partitions = fleet.partitions(1);
    let start = first_moment(&partitions);
    let is_head = |profile: &Profile| profile.identity.build == head;
    with_memory(
        &mut partitions,
        |profile, _| if is_head(profile) { allocated } else { 1000 },
        |profile, _| {
            let seconds = u64::try_from(profile.window.end.since(start).0 / 1_000_000_000).unwrap();
            // All pods grow; those of the head may grow faster.
            4000 + seconds * if is_head(profile) { 1 + more_a_second } else { 1 }
        },
    );
    compared(partitions)
}

/// A family is a cell (or all cells, for all functions together) at a report, of one kind of count and one figure.
#[test]
fn null_memory() {
    let (mut families, mut with_a_change, mut rows, mut classes) = (0_u32, 0_u32, 0, BTreeSet::new());
    for tables in over(SEEDS, |seed| memory(seed, 1000, 0)) {
        let mut seen = BTreeSet::new();
        for row in &tables.heap {
            rows += 1;
            for (figure, face) in row.faces().into_iter().enumerate() {
                let has_moved = matches!(face.direction, LevelDirection::Up | LevelDirection::Down);
                let is_all = &*row.function == ALL_FUNCTIONS;
                // All functions together have a row in each cell, so that the families of functions are known by it.
                families += u32::from(is_all && face.q_value.is_some()) * 2;
                if has_moved && seen.insert((row.window_end_at, row.cell.clone(), row.count_kind, figure, is_all)) {
                    with_a_change += 1;
                }
            }
            classes.insert(row.class);
        }
        assert!(tables.heap_findings.is_empty(), "{:?}", tables.heap_findings);
    }
    println!(
        "seeds {SEEDS:?}: {families} families at least, {with_a_change} with a change; {rows} rows of {classes:?}"
    );
    assert!(families > 8 * 2 * 2 * 4, "{families} families");
    let allowed = 0.05 * f64::from(families) + 3.0 * (0.05 * 0.95 * f64::from(families)).sqrt();
    assert!(f64::from(with_a_change) <= allowed, "{with_a_change} of {families} families have a change");
    for leak in [HeapClass::HiddenLeak, HeapClass::Leak] {
        assert!(!classes.contains(&leak), "{classes:?}");
    }
}

/// The twin: heads that allocate a fifth less and hold more from minute to minute are hidden leaks, and raise one alert.
#[test]
fn twin_memory() {
    for (seed, tables) in SEEDS.zip(over(SEEDS, |seed| memory(seed, 750, 16))) {
        let last = tables.heap.iter().map(|row| row.window_end_at).max().unwrap();
        let of_cells: Vec<&HeapRow> =
            tables.heap.iter().filter(|row| row.window_end_at == last && &*row.function == ALL_FUNCTIONS).collect();
        assert_eq!(of_cells.len(), 2);
        assert!(
            of_cells.iter().all(|row| row.class == HeapClass::HiddenLeak),
            "seed {seed}: {:?}",
            of_cells.iter().map(|row| (row.class, row.faces().map(|face| face.change))).collect::<Vec<_>>()
        );
        let raised = tables.heap_findings.iter().filter(|row| row.state == FlagState::Raised).count();
        assert_eq!(raised, 1, "seed {seed}: {:?}", tables.heap_findings);
        assert!(tables.heap_findings[0].summary.starts_with("Hidden leak: v42 keeps more memory than v41"));
    }
}
