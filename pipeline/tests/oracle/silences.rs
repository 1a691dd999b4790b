//! Services and pods that were silent for longer than anything of them is remembered.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{Decoded, Stamped};
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_simulation::fleet::FleetBuilder;

use super::{agreed, builder, config};

/// Delays everything from `from` on by `length`; processes that had begun before go on.
pub(super) fn with_silence(mut partitions: Vec<Vec<Decoded>>, from: Nanos, length: Nanos) -> Vec<Vec<Decoded>> {
    let later = |at: Nanos| at.plus(if at < from { Nanos(0) } else { length });
    let shifted =
        |at: TimeRange| TimeRange { start: later(at.start), end: later(at.start).plus(at.end.since(at.start)) };
    for record in partitions.iter_mut().flatten() {
        record.stamped = match record.stamped {
            Stamped::No => Stamped::No,
            Stamped::BySender(at) => Stamped::BySender(at.map(later)),
            Stamped::ByBroker(at) => Stamped::ByBroker(later(at)),
        };
        for profile in record.parts.iter_mut().flatten() {
            if let Some(start) = profile.identity.process_start.filter(|start| *start >= from) {
                Arc::make_mut(&mut profile.identity).process_start = Some(start.plus(length));
            }
            profile.window = shifted(profile.window);
            if let Some(requests) = &mut profile.requests {
                requests.window = shifted(requests.window);
            }
        }
    }
    partitions
}

/// One cell, since a silence is the same in all.
fn few_pods(seed: u64) -> FleetBuilder {
    builder(seed).regions(["east"]).cohorts(["tv"]).samples_per_second(30.0)
}

/// How many rows of `comparisons` are about times from `from` on.
fn comparisons_from(tables: &Tables, from: Nanos) -> usize {
    tables.comparisons.iter().filter(|row| row.window_end_at >= from).count()
}

#[test]
fn regression_nothing_is_new_after_a_silence_of_all_builds() {
    for seed in [701, 702, 703] {
        let fleet = few_pods(seed).partition_count(2).build();
        let from = fleet.time().start.plus(Nanos::from_seconds(500));
        // The window is 400 s.
        let after = |silence: i64| {
            let length = Nanos::from_seconds(silence);
            let tables = agreed(seed, &config(), &with_silence(fleet.partitions(2), from, length));
            let reversed = tables.comparisons.iter().filter(|row| row.comparison.head_build == *fleet.base()).count();
            assert_eq!(reversed, 0, "seed {seed}: the older build is compared as the newer one after {silence} s");
            comparisons_from(&tables, from.plus(length))
        };
        assert_eq!(after(1000), 0, "seed {seed}: builds of before the silence are compared as new ones");
        let through = after(200);
        assert!(through > 0, "seed {seed}: a short silence ends no comparison");
    }
}

#[test]
fn regression_pods_silent_for_a_day_are_new_on_any_number_of_workers() {
    let config = Config { warm_up: Nanos::from_seconds(100), ..config() };
    let fleet = few_pods(711).without_process_start().partition_count(2).build();
    let from = fleet.time().start.plus(Nanos::from_seconds(450));
    let warm_up_after = |hours: i64| {
        let length = Nanos::from_seconds(hours * 3600);
        let partitions = with_silence(fleet.partitions(2), from, length);
        let tables = agreed(711, &config, &partitions);
        for workers in 1..=4 {
            let got = run_in_memory(&config, partitions.clone(), workers).unwrap();
            assert_eq!(tables, got, "{workers} workers after {hours} hours");
        }
        assert!(tables.ledger.iter().all(LedgerRow::balances));
        let after = tables.ledger.iter().filter(|row| row.hop_at >= from.plus(length));
        after.map(|row| row.samples_warm_up).sum::<i64>()
    };
    assert!(warm_up_after(25) > 0, "a pod that was silent for 25 hours is seen for the first time again");
    assert_eq!(warm_up_after(23), 0, "a pod that was silent for 23 hours is not");
}

/// Hops without data are skipped, so that a profile of long ago costs nothing, and rows are as if each hop had been looked at.
#[test]
fn regression_a_silence_of_days_changes_no_row_and_one_of_decades_costs_nothing() {
    let fleet = few_pods(731).partition_count(2).build();
    let from = fleet.time().start.plus(Nanos::from_seconds(250));
    for hours in [2, 7, 240] {
        let length = Nanos::from_seconds(hours * 3600 + 100);
        let tables = agreed(731, &config(), &with_silence(fleet.partitions(2), from, length));
        assert!(!tables.comparisons.is_empty() && tables.ledger.iter().all(LedgerRow::balances));
    }
    // Thirty years are 95 million hops.
    let decades = Nanos::from_seconds(30 * 365 * 86_400);
    let partitions = with_silence(fleet.partitions(2), from, decades);
    let tables = run_in_memory(&config(), partitions, 2).unwrap();
    let counted: i64 = tables.ledger.iter().map(|row| row.samples_counted).sum();
    let plain = run_in_memory(&config(), fleet.partitions(2), 2).unwrap();
    assert!(counted > 0 && counted <= plain.ledger.iter().map(|row| row.samples_counted).sum(), "{counted} samples");
}
