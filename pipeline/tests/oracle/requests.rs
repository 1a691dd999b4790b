//! Requests reported by metrics and joined with profiles are the same as those that profiles report themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_pipeline::rules::requests::{CountedWindow, Part, Served};
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Decoded, Position, ProfileType, RequestPoint, Requests, Stamped, Temporality};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos, TimeRange};
use fleetdiff_simulation::fleet::{Cells, FleetBuilder};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{builder, config, without_records};

const LONGEST: Nanos = Nanos::from_seconds(1800);

fn between(start: i64, end: i64) -> TimeRange {
    TimeRange { start: Nanos::from_seconds(1_000_000 + start), end: Nanos::from_seconds(1_000_000 + end) }
}

fn pod(build: &str) -> Arc<Identity> {
    Arc::new(Identity {
        service: "shop".into(),
        build: build.into(),
        region: "r".into(),
        cohort: "c".into(),
        hardware: "h".into(),
        node: None,
        pod: "p".into(),
        process_start: None,
    })
}

fn counted(window: TimeRange) -> CountedWindow {
    let own = HopClock::new(Nanos::from_seconds(10)).hop_of(window.midpoint());
    CountedWindow { identity: pod("v1"), profile_type: ProfileType::Cpu, own, started: Nanos(0), window }
}

fn point(series: u64, temporality: Temporality, window: TimeRange, count: u64) -> RequestPoint {
    RequestPoint { identity: pod("v1"), series, temporality, window, count }
}

fn sum(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.count).sum()
}

/// Counts of parts by their windows, in seconds.
fn by_window(parts: Vec<Part>) -> BTreeMap<TimeRange, u64> {
    let mut sums = BTreeMap::new();
    for Part { of, count, .. } in parts {
        *sums.entry(of.window).or_default() += count;
    }
    sums
}

/// Removes the requests from the profiles and sends them as points in an additional partition, each as two series.
pub(super) fn as_metrics(partitions: &[Vec<Decoded>]) -> Vec<Vec<Decoded>> {
    let mut partitions = partitions.to_vec();
    let number = i32::try_from(partitions.len()).unwrap();
    let mut metrics: Vec<(Stamped, Vec<RequestPoint>)> = Vec::new();
    for record in partitions.iter_mut().flatten() {
        let mut points = Vec::new();
        for profile in record.parts.iter_mut().flatten() {
            let Some(Requests { count, window }) = profile.requests.take() else { continue };
            let point = |series, count| RequestPoint {
                identity: Arc::clone(&profile.identity),
                series,
                temporality: Temporality::Delta,
                window,
                count,
            };
            points.extend([point(1, count / 3), point(2, count - count / 3)]);
        }
        metrics.push((record.stamped, points));
    }
    metrics.sort_by_key(|(stamped, points)| (stamped.time(), points.first().map(|point| point.window.end)));
    let record = |(offset, (stamped, points))| Decoded {
        position: Position { source: "memory".into(), partition: number, offset, file: None },
        stamped,
        parts: Vec::new(),
        points,
    };
    partitions.push((0..).zip(metrics).map(record).collect());
    partitions
}

fn requests_cost_more(seed: u64) -> FleetBuilder {
    builder(seed).requests_per_second(30.0).regress_all(Cells::region("east"), 1.15).folded().pods_per_record(5)
}

#[test]
fn oracle_requests_of_metrics_are_those_of_profiles() {
    let joined = Config { requests_from_metrics: true, lateness: Nanos::from_seconds(60), ..config() };
    let plain = Config { requests_from_metrics: false, ..joined.clone() };
    for seed in 501..=504 {
        let partitions = requests_cost_more(seed).partition_count(3).build().partitions(3);
        let expected = without_records(run_in_memory(&plain, partitions.clone(), 1).unwrap());
        let known = expected.cells.iter().filter(|row| row.per_request_ratio.is_some()).count();
        assert!(known > 200, "seed {seed}: {known} rows per request");
        let metrics = as_metrics(&partitions);
        for workers in [1, 3] {
            let got = without_records(run_in_memory(&joined, metrics.clone(), workers).unwrap());
            assert_eq!(expected, got, "seed {seed}, {workers} workers");
        }
        let unread = without_records(run_in_memory(&plain, metrics.clone(), 1).unwrap());
        assert!(
            unread.cells.iter().all(|row| row.per_request_ratio.is_none()),
            "seed {seed}: joined without being asked to"
        );
    }
}

#[test]
fn parts_are_what_window_and_interval_share() {
    let mut served = Served::default();
    let deltas = |points: &[(i64, i64, u64)]| {
        points.iter().map(|&(start, end, count)| point(1, Temporality::Delta, between(start, end), count)).collect()
    };
    // A minute of requests is known once it is over, its windows before.
    assert_eq!(served.close(Vec::new(), vec![counted(between(0, 20)), counted(between(20, 40))], LONGEST), []);
    let first = served.close(deltas(&[(0, 60, 100)]), vec![counted(between(40, 60))], LONGEST);
    let expected = [(between(0, 20), 33), (between(20, 40), 33), (between(40, 60), 34)];
    assert_eq!(by_window(first), BTreeMap::from(expected));
    // The same point again, a point before it, and a window that is already known add nothing.
    assert_eq!(served.close(deltas(&[(0, 60, 100), (0, 30, 7)]), vec![counted(between(20, 40))], LONGEST), []);
    // Another build of the pod gets nothing of these windows.
    let other = RequestPoint { identity: pod("v2"), ..point(9, Temporality::Delta, between(0, 60), 50) };
    assert_eq!(served.close(vec![other], Vec::new(), LONGEST), []);
    // A window that comes late finds the interval.
    assert_eq!(sum(&served.close(Vec::new(), vec![counted(between(-10, 10))], LONGEST)), 16);
}

#[test]
fn a_series_that_counts_since_its_start_gives_what_it_has_grown_by() {
    let tile = |from: i64, to: i64| {
        (from..to).step_by(10).map(|start| counted(between(start, start + 10))).collect::<Vec<_>>()
    };
    let since = |start: i64, end: i64, count| vec![point(1, Temporality::Cumulative, between(start, end), count)];
    let mut served = Served::default();
    assert_eq!(served.close(Vec::new(), tile(0, 200), LONGEST), []);
    let mut take = |points| sum(&served.close(points, Vec::new(), LONGEST));
    assert_eq!(take(since(-9_000, 20, 1_000)), 0, "began so long ago that nobody knows when its requests were served");
    assert_eq!(take(since(-9_000, 40, 1_030)), 30);
    assert_eq!(take(since(-9_000, 40, 1_030)), 0, "sent twice");
    assert_eq!(take(since(-9_000, 35, 1_020)), 0, "sent late");
    assert_eq!(take(since(50, 70, 12)), 12, "begun anew, and it says when");
    assert_eq!(take(since(50, 80, 4)), 0, "fallen, and nobody knows when it began anew");
    assert_eq!(take(since(50, 90, 6)), 2);
    assert_eq!(take(since(85, 100, 5)), 5, "a start before the last point counts nothing twice");
    let mut young = Served::default();
    young.close(Vec::new(), tile(0, 200), LONGEST);
    assert_eq!(
        sum(&young.close(since(30, 60, 90), Vec::new(), LONGEST)),
        90,
        "the first of a young process counts from its start"
    );
    let clock = HopClock::new(Nanos::from_seconds(10));
    let hop = |seconds: i64| clock.hop_of(between(seconds, seconds).end);
    young.forget(hop(60 + 3_590), clock, 180);
    assert_eq!(sum(&young.close(since(30, 70, 95), tile(60, 80), LONGEST)), 5, "remembered for twice the window");
    young.forget(Hop(hop(70 + 3_600).0 + 1), clock, 180);
    assert_eq!(sum(&young.close(since(-9_000, 90, 99), tile(80, 90), LONGEST)), 0, "forgotten");
}

proptest! {
    /// However points and windows are spread over closes, and whichever come first, each window gets the same requests;
    /// and windows that tile all intervals get all of them.
    #[test]
    fn order_of_points_and_windows_changes_nothing_and_none_is_lost(
        counts in vec((0u64..500, 1i64..70), 1..12),
        lengths in vec(1i64..40, 1..60),
        closes_of_points in vec(0usize..6, 12),
        closes_of_windows in vec(0usize..6, 60),
    ) {
        let mut end = 0;
        let points: Vec<RequestPoint> = counts.iter().map(|&(count, length)| {
            end += length;
            point(1, Temporality::Delta, between(end - length, end), count)
        }).collect();
        let mut reached = 0;
        let mut windows: Vec<CountedWindow> = lengths.iter().map(|&length| {
            reached += length;
            counted(between(reached - length, reached))
        }).collect();
        windows.push(counted(between(reached, reached.max(end) + 1)));
        // Points of one series come in their order; a close is never before the one of the point before.
        let mut at = 0;
        let at_close: Vec<usize> = closes_of_points.iter().take(points.len()).map(|close| { at = at.max(*close); at }).collect();
        let mut served = Served::default();
        let mut spread = Vec::new();
        for close in 0..6 {
            let now = points.iter().zip(&at_close).filter(|(_, at)| **at == close).map(|(point, _)| point.clone());
            let seen = windows.iter().enumerate().filter(|(i, _)| closes_of_windows.get(*i).copied().unwrap_or(5) == close).map(|(_, window)| window.clone());
            spread.extend(served.close(now.rev().collect(), seen.collect(), LONGEST));
        }
        let at_once = Served::default().close(points.clone(), windows.clone(), LONGEST);
        prop_assert_eq!(sum(&at_once), points.iter().map(|point| point.count).sum::<u64>());
        prop_assert_eq!(by_window(spread), by_window(at_once));
    }

    /// Whatever times and counts points claim, windows that do not overlap never get more than the total of all points.
    #[test]
    fn no_point_gives_more_than_it_counts(
        points in vec((any::<bool>(), any::<i64>(), any::<i64>(), any::<u64>()), 1..8),
        ends in vec(any::<i64>(), 1..8),
    ) {
        let reported = points.iter().map(|&(cumulative, a, b, count)| {
            let window = TimeRange { start: Nanos(a.min(b)), end: Nanos(a.max(b)) };
            point(1, if cumulative { Temporality::Cumulative } else { Temporality::Delta }, window, count)
        });
        let mut ends = ends;
        ends.sort_unstable();
        let windows = ends.windows(2).map(|ends| counted(TimeRange { start: Nanos(ends[0]), end: Nanos(ends[1]) }));
        let parts = Served::default().close(reported.collect(), windows.collect(), LONGEST);
        let all: u128 = points.iter().map(|point| u128::from(point.3)).sum();
        prop_assert!(parts.iter().map(|part| u128::from(part.count)).sum::<u128>() <= all);
    }
}
