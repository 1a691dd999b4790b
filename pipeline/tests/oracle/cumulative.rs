//! Fleets whose pods send snapshots: restarts, crashes, lost, late and repeated ones.

use std::collections::BTreeMap;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rows::LedgerRow;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::FleetBuilder;

use super::{agreed, builder, config, seeds, shuffle, without_records};

/// Every other fleet knows when processes began; in every third the samples name their cohort.
fn snapshots(seed: u64) -> FleetBuilder {
    let plain = builder(seed)
        .pods_per_cell(3, 5)
        .lasts(Nanos::from_seconds(600))
        .unknown_frames(0.02)
        .requests_per_second(20.0);
    let plain = if seed.is_multiple_of(3) { plain.cohorts_by_request() } else { plain };
    let plain = if seed.is_multiple_of(2) { plain.without_process_start() } else { plain };
    plain.cumulative().restarts(4).crashes(6).missing(0.1)
}

fn sum(ledger: &[LedgerRow], of: fn(&LedgerRow) -> i64) -> i64 {
    ledger.iter().map(of).sum()
}

#[test]
fn oracle_fleets_of_snapshots() {
    let mut fates = [0; 6];
    let mut flags = 0;
    for seed in seeds(401..=408) {
        // Snapshots are sometimes further from each other than this window is long.
        let window = Nanos::from_seconds(if seed % 4 == 0 { 30 } else { 200 });
        let config = Config { window, ..config() };
        let seldom = if seed % 4 == 0 { 0.6 } else { 0.1 };
        let fleet = snapshots(seed)
            .missing(seldom)
            .late(0.1, Nanos::from_seconds(150))
            .duplicates(0.03)
            .partition_count(3)
            .pods_per_record(5);
        let partitions = fleet.build().partitions(3);
        let got = agreed(seed, &config, &partitions);
        assert!(got.ledger.iter().all(LedgerRow::balances), "seed {seed}");
        let of: [fn(&LedgerRow) -> i64; 6] = [
            |row| row.samples_counted,
            |row| row.samples_late_counted,
            |row| row.samples_superseded,
            |row| row.samples_carried_over,
            |row| row.samples_duplicate,
            |row| row.samples_warm_up,
        ];
        of.into_iter().zip(&mut fates).for_each(|(of, fate)| *fate += sum(&got.ledger, of));
        flags += got.flags.len();
    }
    println!("counted, late, superseded, baseline, duplicate, warm-up {fates:?}, {flags} flags");
    assert!(fates.iter().all(|&fate| fate > 1000) && flags > 20, "{fates:?}, {flags} flags");
}

/// The law: snapshots give the same counts as deltas of the same fleet, less the first profile of each process that is
/// older than the window.
#[test]
fn oracle_snapshots_count_what_deltas_count() {
    for seed in seeds(421..=424) {
        let config = Config { warm_up: Nanos(0), ..config() };
        let counted = |fleet: FleetBuilder| {
            sum(&run_in_memory(&config, fleet.build().partitions(2), 2).unwrap().ledger, |row| row.samples_counted)
        };
        let deltas: Vec<Profile> = builder(seed)
            .build()
            .partitions(2)
            .into_iter()
            .flatten()
            .flat_map(|record| record.parts)
            .flatten()
            .collect();
        let mut first: BTreeMap<&PodId, &Profile> = BTreeMap::new();
        for profile in &deltas {
            let known = first.entry(&profile.identity.pod).or_insert(profile);
            *known = if profile.window.start < known.window.start { profile } else { known };
        }
        let old =
            |profile: &&&Profile| profile.window.end.since(profile.identity.process_start.unwrap()) > config.window;
        let unknown: u64 = first.values().filter(old).map(|profile| profile.total()).sum();
        let all: u64 = deltas.iter().map(Profile::total).sum();
        assert!(unknown > 0, "seed {seed}: every process is young");
        assert_eq!(counted(builder(seed).cumulative()), i64::try_from(all - unknown).unwrap(), "seed {seed}");
    }
}

/// Nothing is late, but snapshots come in another order and from other partitions.
#[test]
fn order_of_snapshots_within_lateness_changes_nothing() {
    let config = Config { window: Nanos::from_seconds(400), report_every: Nanos::from_seconds(200), ..config() };
    let mut flags = 0;
    for seed in 431..=433 {
        let fleet = |pods_per_record| snapshots(seed).pods_per_record(pods_per_record).build();
        let in_order = without_records(run_in_memory(&config, fleet(1).partitions(3), 1).unwrap());
        assert!(in_order.cells.len() > 500, "seed {seed}: too little to compare");
        flags += in_order.flags.len();
        for (pods_per_record, partitions, workers) in [(1, 5, 3), (7, 3, 2)] {
            let mut records = fleet(pods_per_record).partitions(partitions);
            for (partition, records) in (0..).zip(&mut records) {
                shuffle(records, config.lateness, seed * 100 + partition);
            }
            let got = without_records(run_in_memory(&config, records.clone(), workers).unwrap());
            assert_eq!(
                in_order, got,
                "seed {seed}: {pods_per_record} pods a record, {partitions} partitions, {workers} workers"
            );
        }
    }
    println!("seeds 431 to 433: {flags} flags");
    assert!(flags > 0, "nothing was flagged");
}
