//! Services and pods that were silent for longer than anything of them is remembered.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, stable_hash};
use fleetdiff_schemas::profile::{Decoded, Profile, Stamped};
use fleetdiff_schemas::rows::{FlagRow, LedgerRow, Tables};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_simulation::fleet::{Cells, FleetBuilder};

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

/// Gives the pods of each build names by which one worker of two has all of them.
fn each_build_on_one_worker(partitions: &mut [Vec<Decoded>], base: &Build) {
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        let identity = Arc::make_mut(&mut profile.identity);
        let worker = u64::from(identity.build == *base);
        let names = (0..).map(|number| format!("{}-{number}", identity.pod));
        let mut fit =
            names.filter(|name| stable_hash(format!("{}\0{name}", identity.service).as_bytes()) % 2 == worker);
        identity.pod = fit.next().unwrap().as_str().into();
    }
}

/// The last hops of a run close all at once. A worker whose pods leave the window there must know of these hops, although only another
/// one has anything at them.
#[test]
fn regression_pods_leave_before_the_last_hop_on_whatever_worker() {
    let mut closed = 0;
    for seconds in (440..=500).step_by(10) {
        let fleet = few_pods(741).regress("serialize_video_chunk", Cells::all(), 3.0).partition_count(1).build();
        let mut partitions = fleet.partitions(1);
        let until = fleet.time().start.plus(Nanos::from_seconds(seconds));
        for record in &mut partitions[0] {
            let is_gone = |profile: &Profile| profile.identity.build == *fleet.base() && profile.window.end > until;
            record.parts.retain(|part| !part.as_ref().is_ok_and(is_gone));
        }
        each_build_on_one_worker(&mut partitions, fleet.base());
        let one = run_in_memory(&config(), partitions.clone(), 1).unwrap();
        assert_eq!(one, run_in_memory(&config(), partitions, 2).unwrap(), "the base ends after {seconds} s");
        let cleared = |flag: &&FlagRow| flag.cleared_because.as_deref() == Some("comparison_closed");
        closed += one.flags.iter().filter(cleared).count();
    }
    assert!(closed > 0, "no comparison closed");
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
