//! Section 2.3 of `docs/semantics.md`, by hand: the oracle and the dataflow both write these ledgers.

use fleetdiff_oracle::{batch, compare};
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Decoded, Folded, Profile, Samples, Temporality};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::time::Nanos;

use crate::fleets::{at, config, in_order, partition, pod, profile};

/// What the process of a pod had counted at a moment.
fn snapshot(of: &Identity, moment: i64, stacks: &[(&str, u64)]) -> Profile {
    Profile { temporality: Temporality::Cumulative, ..profile(of, moment - 5, stacks) }
}

fn starting(name: &str, start: Option<i64>) -> Identity {
    Identity { process_start: start.map(at), ..pod("A", name) }
}

/// The tables of oracle and dataflow, after a check that they are the same.
fn tables(config: &Config, partitions: &[Vec<Decoded>]) -> Tables {
    let tables = batch(config, partitions);
    let got = run_in_memory(config, partitions.to_vec(), 2).unwrap();
    compare(&tables, &got).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(tables.ledger.iter().all(LedgerRow::balances));
    tables
}

/// (received, counted, warm-up, superseded, carried over) of each hop with samples.
fn fates(tables: &Tables) -> Vec<(i64, [i64; 5])> {
    let fates = |row: &LedgerRow| {
        [
            row.samples_received,
            row.samples_counted,
            row.samples_warm_up,
            row.samples_superseded,
            row.samples_carried_over,
        ]
    };
    tables.ledger.iter().map(|row| (row.hop_at.since(at(0)).0 / 10_000_000_000, fates(row))).collect()
}

#[test]
fn oracle_a_snapshot_counts_what_is_new_in_the_hop_of_its_moment() {
    let known = starting("p", None);
    let first = snapshot(&known, 105, &[("main;a", 3), ("main;b", 2)]);
    // Hop 11 has none; equal stacks of a file are summed.
    let second = snapshot(&known, 125, &[("main;b", 1), ("main;a", 4), ("main;b", 1)]);
    let third = snapshot(&known, 135, &[("main;a", 4), ("main;b", 2)]);
    let found = tables(&config(), &in_order([first, second, third]));
    assert_eq!(fates(&found), [(10, [5, 0, 0, 0, 5]), (12, [6, 1, 0, 0, 5]), (13, [6, 0, 0, 0, 6])]);
}

#[test]
fn oracle_snapshots_of_a_hop_are_taken_by_their_moments() {
    let known = starting("p", None);
    let moments = [(101, 3), (104, 5), (107, 5), (109, 9)];
    let snapshots = moments.map(|(moment, count)| snapshot(&known, moment, &[("main", count)]));
    let mut shuffled = snapshots.to_vec();
    shuffled.swap(0, 3);
    shuffled.rotate_left(1);
    for order in [snapshots.to_vec(), shuffled] {
        let found = tables(&config(), &[partition(0, order)]);
        assert_eq!(fates(&found), [(10, [22, 6, 0, 0, 16])]);
    }
}

#[test]
fn oracle_a_late_snapshot_is_superseded_and_one_too_late_is_not_looked_at() {
    let config = Config { window: Nanos::from_seconds(60), lateness: Nanos::from_seconds(10), ..config() };
    let known = starting("p", None);
    let moments = [(105, 3), (125, 9), (205, 40), (115, 5), (155, 20), (215, 44)];
    let found = tables(
        &config,
        &[partition(0, moments.map(|(moment, count)| snapshot(&known, moment, &[("main", count)])).to_vec())],
    );
    // 125 to 205 is longer than the window. When 115 and 155 come the watermark is hop 19: 115 has left the window, and after 155
    // comes 205, at a hop that closes later.
    assert_eq!(
        fates(&found),
        [
            (10, [3, 0, 0, 0, 3]),
            (12, [9, 6, 0, 0, 3]),
            (19, [25, 11, 0, 0, 9]),
            (20, [40, 20, 0, 0, 20]),
            (21, [44, 4, 0, 0, 40])
        ]
    );
    assert_eq!(found.ledger[2].samples_late_dropped, 5);
    assert_eq!(found.ledger[2].samples_late_counted, 11);
    let again = [(205, 40), (195, 30), (215, 44)];
    let partitions = [partition(0, vec![snapshot(&known, 205, &[("main", again[0].1)])]), {
        let elsewhere = profile(&starting("q", None), 235, &[("main", 1)]);
        partition(
            1,
            vec![
                elsewhere,
                snapshot(&known, 195, &[("main", again[1].1)]),
                snapshot(&known, 215, &[("main", again[2].1)]),
            ],
        )
    }];
    // In partition 1 the watermark is hop 22.
    assert_eq!(
        fates(&tables(&config, &partitions)),
        [(20, [40, 0, 0, 0, 40]), (22, [74, 4, 0, 30, 40]), (23, [1, 1, 0, 0, 0])]
    );
}

#[test]
fn oracle_a_crash_is_a_baseline_and_a_new_process_counts_from_its_start() {
    let (old, new) = (starting("p", Some(90)), starting("p", Some(131)));
    let snapshots = [
        snapshot(&old, 105, &[("main", 30)]),
        snapshot(&old, 115, &[("main", 40)]),
        // Crashed, and reports 90 as its start.
        snapshot(&old, 125, &[("main", 6)]),
        snapshot(&old, 129, &[("main", 8)]),
        snapshot(&new, 135, &[("main", 12)]),
        snapshot(&new, 145, &[("main", 13)]),
    ];
    let found = tables(&config(), &in_order(snapshots));
    assert_eq!(
        fates(&found),
        [
            (10, [30, 30, 0, 0, 0]),
            (11, [40, 10, 0, 0, 30]),
            (12, [14, 2, 0, 0, 12]),
            (13, [12, 12, 0, 0, 0]),
            (14, [13, 1, 0, 0, 12])
        ]
    );
}

#[test]
fn oracle_warm_up_is_cropped_by_the_middle_of_the_interval() {
    let config = Config { warm_up: Nanos::from_seconds(60), ..Config::default() };
    let young = starting("p", Some(100));
    // From 100 to 145, to 170 (its middle is 157.5), to 195 (182.5).
    let snapshots =
        [(145, 50), (170, 70), (195, 75)].map(|(moment, count)| snapshot(&young, moment, &[("main", count)]));
    let found = tables(&config, &in_order(snapshots));
    assert_eq!(fates(&found), [(14, [50, 0, 50, 0, 0]), (17, [70, 0, 20, 0, 50]), (19, [75, 5, 0, 0, 70])]);
}

#[test]
fn oracle_levels_and_folded_snapshots_are_rejected() {
    let mut folded = snapshot(&pod("A", "p"), 105, &[("main", 3)]);
    folded.samples =
        Samples::Folded { content: 1, cohorts: vec![Folded { cohort: "c".into(), samples: 4, functions: Vec::new() }] };
    let level = Profile { temporality: Temporality::Gauge, ..profile(&pod("A", "p"), 110, &[("main", 8)]) };
    let found = tables(&config(), &[partition(0, vec![folded, level])]);
    let rejected: Vec<_> =
        found.rejected.iter().map(|row| (row.rejection.reason, row.rejection.samples, row.rejection.at)).collect();
    assert_eq!(rejected, [(Reason::UnsupportedType, 4, Some(at(105))), (Reason::UnsupportedType, 8, Some(at(115)))]);
}
