//! Memory of fleets without a change, and of twins that keep more from minute to minute.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, FlagRow, HeapRow, LevelFace, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, HeapClass, LevelDirection, RowReason, Verdict};
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder, Ring};
use fleetdiff_simulation::memory::{fill, first_moment, with_memory};

use super::seeds::{over, seeds_to};

/// Fleets of a kind, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 4;

/// Pods of both builds from the start, in two cells.
pub(super) fn already_deployed(seed: u64, seconds: i64) -> Fleet {
    builds_side_by_side(seed, seconds).build()
}

fn builds_side_by_side(seed: u64, seconds: i64) -> FleetBuilder {
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
}

/// Rows of the head against the base, with a report each five minutes.
pub(super) fn compared(partitions: Vec<Vec<Decoded>>) -> Tables {
    compared_as(Comparing::Named { base: vec!["v41".into()], head: Build::from("v42") }, partitions)
}

fn compared_as(comparing: Comparing, partitions: Vec<Vec<Decoded>>) -> Tables {
    let config = Config { comparing, report_every: Nanos::from_seconds(300), ..Config::default() };
    run_in_memory(&config, partitions, 1).unwrap()
}

/// Rows of a fleet whose heads allocate this many bytes for a sample, where bases allocate 1000, and hold this many more each second.
fn memory(seed: u64, allocated: u64, more_a_second: u64) -> Tables {
    compared(leaking(&already_deployed(seed, 1500), allocated, more_a_second))
}

/// Profiles of memory of a fleet in which all builds but the first do so.
fn leaking(fleet: &Fleet, allocated: u64, more_a_second: u64) -> Vec<Vec<Decoded>> {
    let mut partitions = fleet.partitions(1);
    let start = first_moment(&partitions);
    let is_head = |profile: &Profile| profile.identity.build != Build::from("v41");
    with_memory(
        &mut partitions,
        |profile, _| if is_head(profile) { allocated } else { 1000 },
        |profile, _| {
            let seconds = u64::try_from(profile.window.end.since(start).0 / 1_000_000_000).unwrap();
            // All pods grow; those of the head may grow faster.
            4000 + seconds * if is_head(profile) { 1 + more_a_second } else { 1 }
        },
    );
    partitions
}

/// A family is a cell (or all cells, for all functions together) at a report, of one kind of count and one figure.
#[test]
fn null_memory() {
    let (mut families, mut with_a_change, mut rows, mut classes) = (0_u32, 0_u32, 0, BTreeSet::new());
    let mut fleets = 0;
    for tables in over(seeds_to(FLEETS), |seed| memory(seed, 1000, 0)) {
        fleets += 1;
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
        "{fleets} fleets: {families} families at least, {with_a_change} with a change; {rows} rows of {classes:?}"
    );
    assert!(families > fleets * 2 * 2 * 4, "{families} families");
    let allowed = 0.05 * f64::from(families) + 3.0 * (0.05 * 0.95 * f64::from(families)).sqrt();
    assert!(f64::from(with_a_change) <= allowed, "{with_a_change} of {families} families have a change");
    for leak in [HeapClass::HiddenLeak, HeapClass::Leak] {
        assert!(!classes.contains(&leak), "{classes:?}");
    }
}

/// The twin: heads that allocate a fifth less and hold more from minute to minute are hidden leaks, and raise one alert.
#[test]
fn twin_memory() {
    for (seed, tables) in seeds_to(1).zip(over(seeds_to(1), |seed| memory(seed, 750, 16))) {
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

/// Two rings with the same leak, one after the other: it is announced once, of the ring that introduced it.
#[test]
fn twin_memory_over_rings() {
    let tables = over(1..=1, |seed| {
        let fleet = builds_side_by_side(seed, 1500).ring(Ring::new("v43", 6)).build();
        let rings = ["v41", "v42", "v43"].map(Build::from).to_vec();
        compared_as(Comparing::Rings(rings), leaking(&fleet, 750, 16))
    });
    for tables in tables {
        let leaks_in = |head: &str, base: &str| {
            let of = |row: &&HeapRow| row.head_build == head.into() && row.base_build == base.into();
            tables.heap.iter().filter(of).any(|row| row.class == HeapClass::HiddenLeak)
        };
        assert!(leaks_in("v42", "v41") && leaks_in("v43", "v41") && !leaks_in("v43", "v42"));
        let standing = tables.heap_findings.last().unwrap();
        assert_eq!((&standing.head_build, &standing.rings.introduced_by), (&"v42".into(), &Some("v42".into())));
        assert_eq!(standing.rings.found_in, ["v42", "v43"]);
        assert!(standing.summary.ends_with("v42 introduced it, v43 has it too."), "{}", standing.summary);
        let mut open = BTreeSet::new();
        for row in &tables.heap_findings {
            if row.state == FlagState::Cleared {
                open.remove(&row.head_build)
            } else {
                open.insert(&row.head_build)
            };
        }
        assert_eq!(open.len(), 1, "one leak, one open alert: {:?}", tables.heap_findings);
    }
}

/// After how many minutes memory of a function has filled up to 63 % of its limit, by the number of its frame.
const FILLS: [f64; 4] = [2.0, 10.0, 40.0, 1000.0];
/// When the head is deployed beside pods that are a few minutes old, and how long both run after that.
const DEPLOYED: i64 = 10 * 60;
const BESIDE: i64 = 34 * 60;

/// Deploys, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FILLING: u64 = 2;

/// A deploy of pods whose memory fills up as they run: the pods of the base have done so longer, by which factor is different at each
/// report. The function of this rank, if one is given, keeps three times as much in the head.
fn filling(seed: u64, rank: Option<usize>) -> (String, Tables) {
    let plain = Fleet::seeded(seed)
        .regions(["north"])
        .cohorts(["tv"])
        .pods_per_cell(4, 8)
        .pod_cv(0.05)
        .samples_per_second(40.0)
        .base_starts_within(Nanos::from_seconds(60))
        .deploy_after(Nanos::from_seconds(DEPLOYED))
        .lasts(Nanos::from_seconds(DEPLOYED + BESIDE))
        .stacks();
    let name = plain.clone().build().functions()[rank.unwrap_or(0)].0.to_string();
    let factor = if rank.is_some() { 3.0 } else { 1.0 };
    let mut partitions = plain.regress(name.as_str(), Cells::all(), factor).build().partitions(1);
    with_memory(&mut partitions, |_, _| 1000, |_, _| 4000);
    fill(&mut partitions, |age, frame| {
        let minutes = FILLS[usize::try_from(frame).unwrap() % FILLS.len()];
        -8.0 * (-age.as_seconds() / 60.0 / minutes).exp_m1()
    });
    (name, compared(partitions))
}

/// Rows of memory in use that were tested, and those of them that age may have made.
fn of_age(tables: &Tables) -> [usize; 2] {
    let of_type = || tables.cells.iter().filter(|row| row.comparison.profile_type == ProfileType::LiveHeap);
    let suspect = of_type().filter(|row| row.reason == Some(RowReason::AgeDiffers)).count();
    [of_type().filter(|row| row.ln_p_row.is_some()).count(), suspect]
}

#[test]
fn null_memory_fills_up() {
    let runs = over(seeds_to(FILLING), |seed| filling(seed, None).1);
    let [tested, suspect] = runs.iter().map(of_age).fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    let in_use = |row: &&FlagRow| row.row.comparison.profile_type == ProfileType::LiveHeap;
    let flags: Vec<&FlagRow> = runs.iter().flat_map(|tables| &tables.flags).filter(in_use).collect();
    let named = |flag: &&FlagRow| (flag.row.function.clone(), flag.row.count_kind, flag.row.adjusted_ratio);
    println!(
        "{} deploys of one code: {tested} rows tested, {suspect} that age may have made, {} events",
        runs.len(),
        flags.len()
    );
    assert!(
        tested > 125 * runs.len() && suspect > 12 * runs.len(),
        "{tested} rows tested, {suspect} that age may have made: the fleet tests nothing"
    );
    assert!(flags.is_empty(), "{:?}", flags.iter().map(named).collect::<Vec<_>>());
    for row in runs.iter().flat_map(|tables| &tables.heap) {
        let down_or_up = |face: LevelFace| matches!(face.direction, LevelDirection::Up | LevelDirection::Down);
        assert!(!down_or_up(row.live) && !down_or_up(row.slope), "{row:?}");
    }
}

/// The twin: what is kept three times as much is larger than what ages that differ by less may have done.
#[test]
fn twin_memory_fills_up() {
    let runs = over(seeds_to(FILLING), |seed| filling(seed, Some(3)));
    for (name, tables) in &runs {
        let in_use = |row: &&FlagRow| row.row.comparison.profile_type == ProfileType::LiveHeap;
        let flags: Vec<&FlagRow> = tables.flags.iter().filter(in_use).collect();
        let own = |flag: &&&FlagRow| flag.row.function == *name;
        println!("{name}: {} of {} events", flags.iter().filter(own).count(), flags.len());
        assert!(flags.iter().any(|flag| own(&flag) && flag.row.verdict == Verdict::Regressed), "{name}: not found");
    }
}
