//! Pods whose clock is ahead, behind, jumps or drifts, where the broker stamps records and where their senders do.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::profile::{Decoded, Stamped};
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_simulation::fleet::FleetBuilder;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{agreed, builder, config, delivered, seeds};

/// As many pods as in other tests, in half as many cells: what clocks change is which hop a sample is of, in whatever cell.
fn few_cells(seed: u64) -> FleetBuilder {
    builder(seed).regions(["east"]).pods_per_cell(8, 12)
}

/// For the same reason there are fewer looks than in other tests.
fn few_looks() -> Config {
    Config { evaluate_every: Nanos::from_seconds(150), report_every: Nanos::from_seconds(600), ..config() }
}

/// How a clock is wrong, in seconds.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Constant(i64),
    /// In some records.
    Jumping(i64),
    /// Gained or lost in each 1000 s.
    Drifting(i64),
}

fn drawn(draws: &mut Xoshiro256PlusPlus) -> Fault {
    let by = [15, 45, 70, 200, 900, 3_500, 5_000, 86_400, -50, -500, -4_000, -5_000];
    let by = by[draws.random_range(0..by.len())];
    [Fault::Constant(by), Fault::Jumping(by), Fault::Drifting(by)][draws.random_range(0..3usize)]
}

/// Gives records the timestamps of their senders.
fn stamped_by_senders(partitions: &mut [Vec<Decoded>]) {
    for record in partitions.iter_mut().flatten() {
        record.stamped = Stamped::BySender(record.stamped.time());
    }
}

/// Sets the clocks of so many pods wrong, and says how.
fn with_wrong_clocks(partitions: &mut [Vec<Decoded>], number: usize, draws: &mut Xoshiro256PlusPlus) -> String {
    let profiles = || partitions.iter().flatten().flat_map(|record| &record.parts).flatten();
    let pods: BTreeSet<PodId> = profiles().map(|profile| profile.identity.pod.clone()).collect();
    let begin = profiles().map(|profile| profile.window.start).min().unwrap();
    let pods: Vec<PodId> = pods.into_iter().collect();
    let wrong: Vec<(PodId, Fault)> =
        (0..number).map(|_| (pods[draws.random_range(0..pods.len())].clone(), drawn(draws))).collect();
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        let Some((_, fault)) = wrong.iter().find(|(pod, _)| *pod == profile.identity.pod) else { continue };
        let by = match fault {
            Fault::Constant(by) => *by,
            Fault::Jumping(by) => {
                if draws.random_bool(0.2) {
                    *by
                } else {
                    0
                }
            }
            Fault::Drifting(by) => by * (profile.window.start.since(begin).0 / 1_000_000_000) / 1_000,
        };
        let shifted = |window: TimeRange| TimeRange {
            start: window.start.plus(Nanos::from_seconds(by)),
            end: window.end.plus(Nanos::from_seconds(by)),
        };
        profile.window = shifted(profile.window);
        if let Some(requests) = &mut profile.requests {
            requests.window = shifted(requests.window);
        }
        if let Some(start) = profile.identity.process_start.filter(|_| !matches!(fault, Fault::Jumping(_))) {
            Arc::make_mut(&mut profile.identity).process_start = Some(start.plus(Nanos::from_seconds(by)));
        }
    }
    format!("{wrong:?}")
}

/// Sets some clocks wrong in most fleets, and lets senders stamp the records of about half of them; says what was done.
pub(super) fn with_random_clocks(partitions: &mut [Vec<Decoded>], draws: &mut Xoshiro256PlusPlus) -> String {
    let wrong = if draws.random_bool(0.7) { draws.random_range(2..=5) } else { 0 };
    let said = with_wrong_clocks(partitions, wrong, draws);
    let by_senders = draws.random_bool(0.6);
    if by_senders {
        stamped_by_senders(partitions);
    }
    format!("stamped by senders: {by_senders}, wrong clocks: {said}")
}

/// How often what these fleets must show occurred: profiles ahead and behind; samples that waited, were rejected and too late.
#[derive(Debug, Default)]
pub(super) struct ClocksOccurred([i64; 5]);

impl ClocksOccurred {
    pub(super) fn count(&mut self, tables: &Tables) {
        for row in &tables.clocks {
            let [ahead, behind, waited, rejected, late] = &mut self.0;
            *(if row.ahead > 0 { ahead } else { behind }) += row.profiles;
            *waited += row.samples_waited;
            *rejected += row.samples_rejected;
            *late += row.samples_late_dropped;
        }
    }

    pub(super) fn all(&self) -> bool {
        self.0.iter().all(|&times| times > 0)
    }
}

#[test]
fn oracle_wrong_clocks() {
    for by_senders in [false, true] {
        let mut occurred = ClocksOccurred::default();
        for seed in seeds(61..=75) {
            let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
            let fleet = delivered(few_cells(seed));
            let mut partitions = fleet.partitions(3);
            let wrong = with_wrong_clocks(&mut partitions, 4, &mut draws);
            if by_senders {
                stamped_by_senders(&mut partitions);
            }
            let agreement = draws.random_range(1..=5);
            println!("seed {seed}, by senders: {by_senders}, agreement {agreement}, wrong clocks: {wrong}");
            let got = agreed(seed, &Config { agreement, ..few_looks() }, &partitions);
            assert!(got.ledger.iter().all(LedgerRow::balances), "seed {seed}");
            occurred.count(&got);
        }
        println!("by senders: {by_senders}: {occurred:?}");
        let ClocksOccurred([ahead, behind, waited, rejected, late]) = occurred;
        assert!(ahead > 100 && behind > 100 && rejected > 10_000 && late > 10_000, "{occurred:?}");
        assert_eq!(waited > 10_000, by_senders, "{occurred:?}");
    }
}

/// A fleet of which nothing is late has the same rows whoever stamps its records, also where pods are alone in their partition.
#[test]
fn oracle_stamps_of_senders_change_nothing_where_clocks_are_right() {
    for (seed, partition_count) in [(81, 3), (83, 40)] {
        let fleet = few_cells(seed).partition_count(partition_count).pods_per_record(1).build();
        let mut partitions = fleet.partitions(partition_count);
        let by_broker = run_in_memory(&few_looks(), partitions.clone(), 2).unwrap();
        stamped_by_senders(&mut partitions);
        let by_senders = agreed(seed, &few_looks(), &partitions);
        assert!(by_broker == by_senders, "seed {seed}");
        assert!(by_senders.clocks.is_empty(), "seed {seed}: {:?}", by_senders.clocks);
    }
}
