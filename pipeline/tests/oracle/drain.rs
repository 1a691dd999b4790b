//! What is cropped before the end of a process.

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::FleetBuilder;

use super::{agreed, builder, config, seeds, without_records};

fn drained(tables: &Tables) -> i64 {
    tables.ledger.iter().map(|row| row.samples_drain).sum()
}

/// Pods of the base go one by one, some restart, and at the end all stop.
fn leaving(seed: u64) -> FleetBuilder {
    let rollout = builder(seed).rollout(Nanos::from_seconds(200), Nanos::from_seconds(400)).restarts(4);
    let rollout = if seed.is_multiple_of(2) { rollout.without_process_start() } else { rollout };
    if seed.is_multiple_of(3) { rollout.cumulative() } else { rollout }
}

#[test]
fn oracle_the_last_moments_of_a_process_are_left_out() {
    let mut fates = [0; 4];
    for seed in seeds(601..=606) {
        // Some windows are so short that a late profile which then waits is too late.
        let window = Nanos::from_seconds(if seed.is_multiple_of(2) { 130 } else { 400 });
        let config =
            Config { window, drain: Nanos::from_seconds(10 + 15 * i64::try_from(seed % 3).unwrap()), ..config() };
        let fleet =
            leaving(seed).late(0.05, Nanos::from_seconds(150)).duplicates(0.02).partition_count(3).pods_per_record(5);
        let partitions = fleet.build().partitions(3);
        let got = agreed(seed, &config, &partitions);
        assert!(got.ledger.iter().all(LedgerRow::balances), "seed {seed}");
        let of: [fn(&LedgerRow) -> i64; 4] = [
            |row| row.samples_counted,
            |row| row.samples_drain,
            |row| row.samples_late_counted,
            |row| row.samples_late_dropped,
        ];
        of.into_iter().zip(&mut fates).for_each(|(of, fate)| *fate += got.ledger.iter().map(of).sum::<i64>());
    }
    println!("counted, drained, late, too late {fates:?}");
    assert!(fates.iter().all(|&fate| fate > 1000) && fates[1] < fates[0] / 4, "{fates:?}");
}

/// The law: with one process per pod, what is left out are the last moments of each pod.
#[test]
fn oracle_as_much_is_left_out_as_the_last_moments_hold() {
    let crop = Nanos::from_seconds(25);
    for seed in [611, 612] {
        let config = Config { drain: crop, warm_up: Nanos(0), ..config() };
        let partitions = builder(seed)
            .rollout(Nanos::from_seconds(200), Nanos::from_seconds(400))
            .partition_count(2)
            .build()
            .partitions(2);
        let mut last = std::collections::BTreeMap::new();
        let profiles: Vec<_> = partitions.iter().flatten().flat_map(|record| &record.parts).flatten().collect();
        for profile in &profiles {
            let known = last.entry((&profile.identity.build, &profile.identity.pod)).or_insert(profile.window.end);
            *known = profile.window.end.max(*known);
        }
        let is_last = |profile: &&&fleetdiff_schemas::profile::Profile| {
            profile.window.midpoint().plus(crop) > last[&(&profile.identity.build, &profile.identity.pod)]
        };
        let expected: u64 = profiles.iter().filter(is_last).map(|profile| profile.total()).sum();
        let got = run_in_memory(&config, partitions.clone(), 2).unwrap();
        assert_eq!(drained(&got), i64::try_from(expected).unwrap(), "seed {seed}");
        assert!(expected > 1000);
        let none = run_in_memory(&Config { drain: Nanos(0), ..config }, partitions.clone(), 2).unwrap();
        assert_eq!(drained(&none), 0, "seed {seed}");
    }
}

#[test]
fn order_of_workers_changes_nothing_where_profiles_wait() {
    let config = Config { drain: Nanos::from_seconds(20), ..config() };
    let partitions = leaving(621).partition_count(3).build().partitions(3);
    let one = without_records(run_in_memory(&config, partitions.clone(), 1).unwrap());
    assert!(one.cells.len() > 500 && !one.flags.is_empty());
    for workers in [2, 4] {
        assert_eq!(
            one,
            without_records(run_in_memory(&config, partitions.clone(), workers).unwrap()),
            "{workers} workers"
        );
    }
}
