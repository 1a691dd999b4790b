//! What exceeds the limits of a service is counted together, as the definition says, by every number of workers.

use std::collections::BTreeSet;

use fleetdiff_oracle as oracle;
use fleetdiff_pipeline::rules::decisions::limits::LimitsInForce;
use fleetdiff_pipeline::rules::decisions::{Decision, Decisions, Forgetful};
use fleetdiff_pipeline::run::in_memory::{Collected, records, run_in_memory, sources};
use fleetdiff_pipeline::run::{Service, run_service};
use fleetdiff_schemas::config::{Config, Limits, LimitsByHop};
use fleetdiff_schemas::profile::OVERFLOW;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Limited;
use fleetdiff_simulation::hostile;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::log::Log;
use super::rows::rows_of;
use super::{agreed, builder, config, delivered, seeds};

/// Limits drawn at random, each now and then below what the fleet needs.
fn limits(random: &mut Xoshiro256PlusPlus) -> Limits {
    let mut low =
        |low: u64, high: u64, free: u64| if random.random_bool(0.5) { random.random_range(low..high) } else { free };
    Limits {
        retention: Nanos::from_seconds(10),
        functions: low(3, 60, 1_000),
        paths: low(3, 90, 100_000),
        cells: low(1, 5, 100),
        builds: low(1, 3, 10),
        pods: low(2, 24, 1_000),
        bytes: low(100_000, 2_000_000, 1 << 40),
    }
}

#[test]
fn oracle_limits() {
    let mut exceeded: BTreeSet<Limited> = BTreeSet::new();
    let (mut rows, mut together) = (0, 0);
    for seed in seeds(700..=732) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Two windows are the shortest generation, so that several of them pass.
        let config = Config { window: Nanos::from_seconds(150), limits: limits(&mut random), ..config() };
        let fleet = delivered(builder(seed).pods_per_cell(2, 5));
        let got = agreed(seed, &config, &fleet.partitions(3));
        exceeded.extend(got.limits.iter().map(|row| row.what));
        rows += got.cells.len();
        together += got.cells.iter().filter(|row| row.function == OVERFLOW).count();
        let counted = got.cells.iter().filter(|row| row.function == OVERFLOW && row.verdict.is_significant()).count();
        assert_eq!(counted, 0, "seed {seed}: what stands for several functions is tested");
    }
    assert_eq!(exceeded.len(), 6, "limits that some fleet exceeded: {exceeded:?}");
    assert!(rows > 10_000 && together > 100, "{rows} rows, {together} of them of functions that have no place");
}

/// Changes limits when the rows of a hop come.
struct Changing {
    collected: Collected,
    limits: LimitsInForce,
    decisions: Decisions,
    changes: Vec<(Hop, Limits)>,
}

impl Sink for Changing {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        for (_, limits) in self.changes.extract_if(.., |(from, _)| *from <= hop) {
            self.limits.change(limits, &self.decisions)?;
        }
        self.collected.take(hop, tables)
    }
}

/// Limits that change while a run goes on, down and up, hold from a hop on that is logged: the rows are those of the definition, and
/// of a run that finds the log.
#[test]
fn oracle_limits_that_change() {
    for seed in seeds(720..=723) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = [limits(&mut random), limits(&mut random), limits(&mut random)];
        drawn[1] = Limits { functions: 10, pods: 3, ..drawn[1] };
        drawn[2] = Limits { functions: 45, pods: 12, ..drawn[2] };
        let config = Config { window: Nanos::from_seconds(150), limits: drawn[0], ..config() };
        let fleet = delivered(builder(seed).pods_per_cell(2, 5));
        let (partitions, log) = (fleet.partitions(3), Log::default());
        let decisions = Decisions::new(Box::new(log.clone()), Vec::new());
        let in_force = LimitsInForce::of(&decisions, config.limits);
        let from = |seconds: i64| config.clock().hop_of(fleet.time().start.plus(Nanos::from_seconds(seconds)));
        let changing = Changing {
            collected: Collected::default(),
            limits: in_force.clone(),
            decisions: decisions.clone(),
            changes: vec![(from(200), drawn[1]), (from(420), drawn[2])],
        };
        let collected = changing.collected.clone();
        let service = Service { decisions, limits: Some(in_force), ..Service::default() };
        let workers = 1 + usize::try_from(seed % 3).unwrap();
        run_service(&config, workers, sources(partitions.clone()), Box::new(changing), service).unwrap();

        let made = log.made();
        let mut by_hop = LimitsByHop::new(config.limits);
        for decision in &made {
            let Decision::Limits { from_hop, limits } = decision else { panic!("{decision:?}") };
            by_hop.change(*from_hop, *limits);
        }
        assert_eq!(made.len(), 2, "seed {seed}");
        let got = collected.tables();
        if let Err(difference) = oracle::compare(&oracle::batch_with_limits(&config, &by_hop, &partitions), &got) {
            panic!("seed {seed}, {made:?}: {difference}");
        }
        let unchanged = run_in_memory(&config, partitions.clone(), 2).unwrap();
        assert!(unchanged.limits != got.limits, "seed {seed}: nothing depends on the changes");

        let first = Decision::Limits { from_hop: Hop(0), limits: config.limits };
        let known = [vec![first], made].concat();
        let again = Collected::default();
        let service = Service { decisions: Decisions::new(Box::new(Forgetful), known), ..Service::default() };
        run_service(&config, 3, sources(partitions), Box::new(again.clone()), service).unwrap();
        assert!(again.tables() == got, "seed {seed}: other rows with the log");
    }
}

/// A service that exceeds its limits is silent until nothing of it is kept, and comes back, at first within them.
#[test]
fn oracle_limits_of_a_service_that_comes_back() {
    let limits = Limits {
        retention: Nanos::from_seconds(10),
        functions: 300,
        paths: 400,
        cells: 6,
        builds: 3,
        pods: 30,
        ..Limits::default()
    };
    let config = Config { window: Nanos::from_seconds(60), limits, ..config() };
    let fleet = delivered(builder(31));
    let start = fleet.time().start;
    let partition =
        |from: i64, hops| records(hostile::profiles(start.plus(Nanos::from_seconds(from)), config.hop, hops));
    let mut partitions = fleet.partitions(1);
    let within = partition(700, 1)[..1].to_vec();
    partitions.push([partition(0, 6), within, partition(710, 5)].concat());
    // One worker holds both services, so that one of them closes hops while the other is silent.
    let got = agreed(32, &config, &partitions);
    let of_hostile = got.limits.iter().filter(|row| row.service.as_str() == hostile::SERVICE);
    let hops: BTreeSet<i64> = of_hostile.map(|row| row.hop_at.since(start).0 / 1_000_000_000).collect();
    assert!(hops.iter().any(|at| *at < 100) && hops.iter().any(|at| *at > 600), "{hops:?}");
}

#[test]
fn regression_a_hostile_service_changes_no_row_of_another() {
    let limits = Limits { functions: 1_000, paths: 1_500, cells: 20, builds: 5, pods: 50, ..Limits::default() };
    let config = Config { limits, ..config() };
    let fleet = builder(3).lasts(Nanos::from_seconds(600)).build();
    let start = fleet.time().start;
    let alone = fleet.partitions(2);
    let mut beside = alone.clone();
    beside.push(records(hostile::profiles(start, config.hop, 60)));
    let service = alone[0][0].parts[0].as_ref().unwrap().identity.service.clone();
    let expected = run_in_memory(&config, alone, 2).unwrap();
    let rows = rows_of(&expected, service.as_str());
    assert!(expected.limits.is_empty() && !expected.flags.is_empty() && rows.len() > 1_000, "{} rows", rows.len());
    for workers in [1, 3] {
        let got = run_in_memory(&config, beside.clone(), workers).unwrap();
        assert_eq!(rows_of(&got, service.as_str()), rows, "{workers} workers");
        let exceeded: BTreeSet<_> = got.limits.iter().map(|row| (row.service.as_str(), row.what)).collect();
        let expected =
            [Limited::Functions, Limited::Paths, Limited::Cells, Limited::Builds].map(|what| (hostile::SERVICE, what));
        assert_eq!(exceeded, BTreeSet::from(expected), "{workers} workers");
        let heads: BTreeSet<&str> = got.cells.iter().map(|row| row.comparison.head_build.as_str()).collect();
        assert!(!heads.contains(OVERFLOW), "what exceeds the limits is compared");
    }
}
