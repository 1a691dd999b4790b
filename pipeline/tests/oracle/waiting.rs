//! Fleets with profiles of waiting: rows of `waiting`.

use std::collections::BTreeSet;

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, TimePer};
use fleetdiff_simulation::load::serve_more;
use fleetdiff_simulation::waiting::with_waiting;

use super::memory::drawn;
use super::{builder, delivered, oracle, run_in_memory};

#[test]
fn oracle_waiting() {
    let (mut rows, mut of_threads, mut tested, mut with_parts) = (0, 0, 0, 0);
    let (mut directions, mut measures, mut per) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut reasons = BTreeSet::new();
    // Three kinds of profile: 602 with more requests in the head, 603 without any, 606 without time.
    for seed in [602, 603, 605, 606] {
        let config = drawn(seed);
        let plain = builder(seed)
            .regions(["east"])
            .requests_per_second(if seed == 603 { 0.0 } else { 20.0 })
            .unknown_frames(0.02)
            .hardware(["old", "new"]);
        let fleet = delivered(if seed % 3 == 0 { plain.cohorts_by_request() } else { plain });
        let mut partitions = fleet.partitions(3);
        let head = fleet.head().clone();
        if seed == 602 {
            serve_more(&mut partitions, &head, 2);
        }
        let kinds = [ProfileType::OffCpu, ProfileType::Mutex, ProfileType::Wall, ProfileType::Block];
        let kind = if seed % 2 == 0 { ProfileType::OffCpu } else { kinds[usize::try_from(seed / 2 % 4).unwrap()] };
        with_waiting(&mut partitions, kind, |profile, frame| {
            let is_head = profile.identity.build == head;
            // In the head, half as much waits in helpers, and requests wait longer.
            let (helper, request) = if is_head { (40, 30) } else { (80, 20) };
            let each = if seed == 606 { 0 } else { 100_000 + 7 * u64::from(frame) };
            match frame % 3 {
                0 => vec![("helper-*", helper * each), ("request-*", request * each)],
                1 => vec![("", request * each)],
                _ => vec![],
            }
        });
        let waiting_of = |tables: Tables| Tables { waiting: tables.waiting, ..Tables::default() };
        let workers = 1 + usize::try_from(seed % 3).unwrap();
        let got = waiting_of(run_in_memory(&config, partitions.clone(), workers).unwrap());
        let expected = waiting_of(oracle::batch(&config, &partitions));
        if let Err(difference) = oracle::compare(&expected, &got) {
            panic!("seed {seed}: {difference}");
        }
        rows += got.waiting.len();
        of_threads += got.waiting.iter().filter(|row| row.thread.is_some()).count();
        tested += got.waiting.iter().filter(|row| row.time.q_value.is_some()).count();
        with_parts += got.waiting.iter().filter(|row| row.cpu_head.is_some()).count();
        reasons.extend(got.waiting.iter().filter_map(|row| row.time.reason));
        directions.extend(got.waiting.iter().map(|row| row.time.direction));
        measures.extend(got.waiting.iter().map(|row| row.measure));
        per.extend(got.waiting.iter().map(|row| row.per));
    }
    println!(
        "{rows} rows, {of_threads} of threads, {tested} tested, {with_parts} with parts, {directions:?}, {measures:?}, {per:?}"
    );
    assert!(
        rows > 100 && of_threads > 20 && tested > 60 && with_parts > 10,
        "{rows} {of_threads} {tested} {with_parts}"
    );
    assert!(directions.contains(&LevelDirection::Up) && directions.contains(&LevelDirection::Down), "{directions:?}");
    assert!(reasons.contains(&LevelReason::LoadDiffers), "{reasons:?}");
    assert!(measures.len() >= 3 && per == BTreeSet::from([TimePer::Request, TimePer::Profile]), "{measures:?} {per:?}");
}
