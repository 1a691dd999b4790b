//! Fleets whose profiles are of memory: rows of `heap`.

use std::collections::BTreeSet;

use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{CountKind, Decoded, Profile, ProfileType, Samples, Temporality};
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, Tables};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_schemas::verdict::{HeapDirection, HeapReason};

use super::{builder, config, delivered, oracle, run_in_memory};

/// A profile of another type, with so many bytes for each sample of a stack.
fn of_memory(profile: &Profile, profile_type: ProfileType, bytes: impl Fn(u32) -> u64) -> Profile {
    let mut other = Profile { profile_type, ..profile.clone() };
    if let Samples::Stacks(stacks) = &mut other.samples {
        for stack in stacks {
            stack.value = stack.count * bytes(stack.frames.last().copied().unwrap_or(0));
        }
    }
    other
}

/// Allocations, and what is in use at the same moment: a third more in the head.
fn allocations_and_level(profile: &Profile, head: &Build, values: bool) -> [Result<Profile, Rejection>; 2] {
    let end = profile.window.end;
    let size = |frame: u32| if values { 512 + 64 * u64::from(frame % 7) } else { 0 };
    let kept = if profile.identity.build == *head { 4 } else { 3 };
    let level = of_memory(profile, ProfileType::LiveHeap, |frame| kept * size(frame));
    let window = TimeRange { start: end, end };
    let level = Profile { temporality: Temporality::Gauge, window, requests: None, ..level };
    [Ok(of_memory(profile, ProfileType::Heap, size)), Ok(level)]
}

fn with_memory(partitions: &mut [Vec<Decoded>], head: &Build, values: bool) {
    for record in partitions.iter_mut().flatten() {
        let parts = std::mem::take(&mut record.parts);
        record.parts = parts
            .into_iter()
            .flat_map(|part| match part {
                Ok(profile) => allocations_and_level(&profile, head, values).to_vec(),
                refused => vec![refused],
            })
            .collect();
    }
}

#[test]
fn oracle_memory() {
    let (mut rows, mut of_functions, mut tested) = (0, 0, 0);
    let (mut directions, mut reasons, mut classes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for seed in 505..=508 {
        let config = Config {
            window: Nanos::from_seconds(if seed % 4 == 0 { 300 } else { 600 }),
            young: Nanos::from_seconds(if seed % 3 == 0 { 0 } else { 240 }),
            count_kinds: if seed % 2 == 0 { CountKind::ALL.to_vec() } else { vec![CountKind::Total] },
            cell_by: if seed % 4 == 1 { CellBy::All } else { CellBy::Cohort },
            evaluate_every: Nanos::from_seconds(300),
            min_count: if seed % 5 == 0 { 300 } else { 30 },
            ..config()
        };
        let plain = builder(seed)
            .regions(["east"])
            .requests_per_second(if seed == 507 { 0.0 } else { 20.0 })
            .unknown_frames(0.02);
        let plain = if seed % 2 == 0 { plain.cumulative().crashes(2) } else { plain.hardware(["old", "new"]) };
        let fleet = delivered(if seed % 3 == 0 { plain.cohorts_by_request() } else { plain });
        let mut partitions = fleet.partitions(3);
        with_memory(&mut partitions, fleet.head(), seed != 508);
        // NB: counts of memory are compared as all counts are, elsewhere; here functions on nearly every stack leave fewer digits.
        let heap_of = |tables: Tables| Tables { heap: tables.heap, ..Tables::default() };
        let got = heap_of(run_in_memory(&config, partitions.clone(), 1 + usize::try_from(seed % 4).unwrap()).unwrap());
        let expected = heap_of(oracle::batch(&config, &partitions));
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
        "seeds 505 to 508: {rows} rows, {of_functions} of functions, {tested} figures tested, {directions:?}, {reasons:?}, {classes:?}"
    );
    assert!(
        rows > 100 && of_functions > 20 && tested > 300,
        "{rows} rows, {of_functions} of functions, {tested} tested"
    );
    assert!(directions.contains(&HeapDirection::Up) && directions.contains(&HeapDirection::Unknown), "{directions:?}");
    for reason in [HeapReason::NoValues, HeapReason::NoRequests, HeapReason::NeedsTime, HeapReason::Imprecise] {
        assert!(reasons.contains(&reason), "{reasons:?}");
    }
}
