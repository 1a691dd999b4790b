//! The dataflow equals the slow batch truth.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fleetdiff_pipeline::config::Config;
use fleetdiff_pipeline::testing::fleet::{Cells, Fleet, FleetBuilder};
use fleetdiff_pipeline::testing::incremental::incremental;
use fleetdiff_pipeline::testing::oracle;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

fn fleet(seed: u64) -> Fleet {
    builder(seed).late(0.02, Nanos::from_seconds(120)).duplicates(0.02).restarts(2).partition_count(3).pods_per_record(5).build()
}

/// A deploy with a real change, nothing late and nothing twice.
fn builder(seed: u64) -> FleetBuilder {
    Fleet::seeded(seed)
        .regions(["east", "west"])
        .cohorts(["tv", "web"])
        .pods_per_cell(4, 6)
        .samples_per_second(100.0)
        .pod_cv(0.05)
        .starts_at(Nanos::from_seconds(1_799_996_000 + i64::try_from(seed).unwrap() * 100))
        .lasts(Nanos::from_seconds(900))
        .deploy_after(Nanos::from_seconds(200))
        .regress("serialize_video_chunk", Cells::cohort("tv"), 1.8)
}

#[test]
fn oracle_random_fleets() {
    let config = Config { window: Nanos::from_seconds(400), report_every: Nanos::from_seconds(200), evaluate_every: Nanos::from_seconds(20), warm_up: Nanos::from_seconds(30), ..Config::default() };
    let (mut rows, mut flags) = (0, 0);
    for seed in 1..=20 {
        let partitions = fleet(seed).partitions(3);
        let expected = oracle::batch(&config, &partitions);
        let got = incremental(&config, &partitions, 1 + usize::try_from(seed % 3).unwrap()).unwrap();
        rows += expected.cells.len();
        flags += expected.flags.len();
        if let Err(difference) = oracle::compare(&expected, &got) {
            panic!("seed {seed}: {difference}");
        }
    }
    println!("{rows} rows of cells and {flags} flags equal over seeds 1 to 20");
    assert!(rows > 1000 && flags >= 50, "too little to compare: {rows} rows, {flags} flags");
}

#[test]
fn order_workers_and_batches_change_nothing() {
    let config = Config { window: Nanos::from_seconds(400), report_every: Nanos::from_seconds(200), warm_up: Nanos::from_seconds(30), ..Config::default() };
    for seed in 101..=103 {
        let partitions = fleet(seed).partitions(3);
        let one = incremental(&config, &partitions, 1).unwrap();
        assert!(!one.cells.is_empty() && !one.ledger.is_empty());
        for workers in [2, 4] {
            assert_eq!(one, incremental(&config, &partitions, workers).unwrap(), "seed {seed}, {workers} workers");
        }
    }
}

/// Nothing is late here, so that rows may not depend on how records came: in which order within lateness, in how many
/// partitions, or how many pods shared a record. Only `ledger` counts records, which is what batching changes.
#[test]
fn order_arrival_and_batches_within_lateness_change_nothing() {
    let config = Config { window: Nanos::from_seconds(400), report_every: Nanos::from_seconds(200), warm_up: Nanos::from_seconds(30), ..Config::default() };
    for seed in 201..=204 {
        println!("seed {seed}");
        let fleet = |pods_per_record| builder(seed).pods_per_record(pods_per_record).build();
        let in_order = without_records(incremental(&config, &fleet(1).partitions(3), 1).unwrap());
        assert!(in_order.cells.len() > 1000 && !in_order.flags.is_empty(), "seed {seed}: too little to compare");
        for (pods_per_record, partitions, workers) in [(1, 1, 2), (1, 5, 3), (7, 3, 1), (40, 2, 4)] {
            let mut records = fleet(pods_per_record).partitions(partitions);
            for (partition, records) in (0..).zip(&mut records) {
                shuffle(records, config.lateness, seed * 100 + partition);
            }
            let got = without_records(incremental(&config, &records, workers).unwrap());
            assert_eq!(in_order, got, "seed {seed}: {pods_per_record} pods a record, {partitions} partitions, {workers} workers");
        }
    }
}

/// Moves every record back by up to less than `lateness` of event time.
fn shuffle(records: &mut [Decoded], lateness: Nanos, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    records.sort_by_cached_key(|record| {
        let times = record.parts.iter().flatten().map(|profile| profile.window.end.0);
        times.max().unwrap_or(0) + random.random_range(0..lateness.0 / 2)
    });
}

fn without_records(mut tables: Tables) -> Tables {
    for row in &mut tables.ledger {
        row.records_consumed = 0;
        row.records_decoded = 0;
    }
    tables
}
