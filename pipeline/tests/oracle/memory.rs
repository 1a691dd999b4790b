//! Fleets whose profiles are of memory: rows of `heap`.

use std::collections::BTreeSet;

use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::profile::{CountKind, Profile, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, RowReason, Scope, Verdict};
use fleetdiff_simulation::fleet::{Fleet, FleetBuilder};
use fleetdiff_simulation::memory::with_memory;

use super::{builder, config, delivered, oracle, run_in_memory};

/// Bytes of a sample of a stack.
fn size(frame: u32) -> u64 {
    512 + 64 * u64::from(frame % 7)
}

/// Windows, ages, kinds of count, cells and floors that differ from seed to seed.
pub(super) fn drawn(seed: u64) -> Config {
    Config {
        window: Nanos::from_seconds(if seed.is_multiple_of(4) { 300 } else { 600 }),
        young: Nanos::from_seconds(if seed.is_multiple_of(3) { 0 } else { 240 }),
        count_kinds: if seed.is_multiple_of(2) { CountKind::ALL.to_vec() } else { vec![CountKind::Total] },
        cell_by: if seed % 4 == 1 { CellBy::All } else { CellBy::Cohort },
        evaluate_every: Nanos::from_seconds(300),
        min_count: if seed.is_multiple_of(5) { 300 } else { 30 },
        ..config()
    }
}

/// A row of `cells` of memory in use, with what was decided.
type Decided = (Scope, Nanos, CountKind, CellKey, String, Verdict, Option<RowReason>);

/// What was decided of shares of the memory in use.
fn shares_in_use(tables: &Tables) -> BTreeSet<Decided> {
    let of_memory = tables.cells.iter().filter(|row| row.comparison.profile_type == ProfileType::LiveHeap);
    of_memory
        .map(|row| {
            let CellRow { scope, window_end_at, count_kind, verdict, reason, .. } = *row;
            (scope, window_end_at, count_kind, row.cell.clone(), row.function.clone(), verdict, reason)
        })
        .collect()
}

/// Fleets that differ from seed to seed in requests, hardware, ages of processes and restarts.
fn fleet_of(seed: u64) -> Fleet {
    let plain =
        builder(seed).regions(["east"]).requests_per_second(if seed == 507 { 0.0 } else { 20.0 }).unknown_frames(0.02);
    // Processes of the base have run longer: by hours, or by minutes.
    let minutes =
        |plain: FleetBuilder| plain.base_starts_within(Nanos::from_seconds(120)).deploy_after(Nanos::from_seconds(420));
    let plain = if seed == 509 { minutes(plain) } else { plain };
    let plain = if seed.is_multiple_of(2) { plain.cumulative().crashes(2) } else { plain.hardware(["old", "new"]) };
    delivered(if seed.is_multiple_of(3) { plain.cohorts_by_request() } else { plain })
}

#[test]
fn oracle_memory() {
    let (mut rows, mut of_functions, mut tested, mut by_age) = (0, 0, 0, 0);
    let (mut directions, mut reasons, mut classes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for seed in 505..=509 {
        let config = drawn(seed);
        let fleet = fleet_of(seed);
        let mut partitions = fleet.partitions(3);
        let head = fleet.head().clone();
        // A third more is in use in the head.
        let kept = |profile: &Profile| if profile.identity.build == head { 4 } else { 3 };
        let has_bytes = u64::from(seed != 508);
        with_memory(
            &mut partitions,
            |_, frame| has_bytes * size(frame),
            |profile, frame| has_bytes * kept(profile) * size(frame),
        );
        let got = run_in_memory(&config, partitions.clone(), 1 + usize::try_from(seed % 4).unwrap()).unwrap();
        let expected = oracle::batch(&config, &partitions);
        let (shares, open) = (shares_in_use(&got), shares_in_use(&expected));
        assert!(shares == open, "seed {seed}: {:?}", shares.symmetric_difference(&open).next());
        by_age += shares.iter().filter(|(.., reason)| *reason == Some(RowReason::AgeDiffers)).count();
        // NB: counts of memory are compared as all counts are, elsewhere; here functions on nearly every stack leave fewer digits.
        let heap_of = |tables: Tables| Tables { heap: tables.heap, ..Tables::default() };
        let (got, expected) = (heap_of(got), heap_of(expected));
        if let Err(difference) = oracle::compare(&expected, &got) {
            panic!("seed {seed}: {difference}");
        }
        rows += got.heap.len();
        of_functions += got.heap.iter().filter(|row| &*row.function != ALL_FUNCTIONS).count();
        for row in &got.heap {
            let faces = [row.alloc, row.live, row.slope];
            tested += faces.iter().filter(|face| face.q_value.is_some()).count();
            directions.extend(faces.map(|face| face.direction));
            reasons.extend(faces.iter().filter_map(|face| face.reason));
            classes.insert(row.class);
        }
    }
    println!(
        "seeds 505 to 509: {rows} rows, {of_functions} of functions, {by_age} shares that age may have moved, {tested} figures tested, {directions:?}, {reasons:?}, {classes:?}"
    );
    assert!(
        rows > 60 && of_functions > 30 && by_age > 30 && tested > 120,
        "{rows} rows, {of_functions} of functions, {by_age} by age, {tested} tested"
    );
    assert!(
        directions.contains(&LevelDirection::Up) && directions.contains(&LevelDirection::Unknown),
        "{directions:?}"
    );
    for reason in [
        LevelReason::AgeDiffers,
        LevelReason::NoValues,
        LevelReason::NoRequests,
        LevelReason::NeedsTime,
        LevelReason::Imprecise,
    ] {
        assert!(reasons.contains(&reason), "{reasons:?}");
    }
}
