//! The dataflow equals the slow batch truth.

use fleetdiff_pipeline::config::Config;
use fleetdiff_pipeline::testing::fleet::{Cells, Fleet};
use fleetdiff_pipeline::testing::incremental::incremental;
use fleetdiff_pipeline::testing::oracle;
use fleetdiff_schemas::time::Nanos;

fn fleet(seed: u64) -> Fleet {
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
        .late(0.02, Nanos::from_seconds(120))
        .duplicates(0.02)
        .restarts(2)
        .partition_count(3)
        .pods_per_record(5)
        .build()
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
