//! Shards of a topic write, together, the rows of one run over all its services.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::in_memory::{Collected, run_in_memory};
use fleetdiff_schemas::config::{Config, Limits, Shard};
use fleetdiff_schemas::profile::{Decoded, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::Cells;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::clocks::with_random_clocks;
use super::going_on::Taken;
use super::processes::Workers;
use super::random::random_config;
use super::requests::as_metrics;
use super::silences::with_silence;
use super::together::{assert_same, together};
use super::{builder, delivered, numbered, seeds};

/// Names that fall into different shards, of two and of three.
const SERVICES: [&str; 4] = ["cart", "checkout", "payment", "video"];

/// Several services in the same partitions, in the order of their times. Some begin later and end earlier than others, and one is
/// silent for a while.
pub(super) fn several_services(seed: u64, draws: &mut Xoshiro256PlusPlus) -> Vec<Vec<Decoded>> {
    let mut merged = vec![Vec::new(); 3];
    for (number, service) in (0..).zip(SERVICES) {
        let own = seed * 10 + number;
        let begins =
            Nanos::from_seconds(1_799_996_000 + 100 * i64::try_from(seed).unwrap() + draws.random_range(0..90));
        let plain = builder(own).service(service).starts_at(begins).regions(["east"]).samples_per_second(40.0);
        let shaped = match number {
            0 => plain.requests_per_second(20.0).regress_all(Cells::all(), 1.3),
            1 => plain.lasts(Nanos::from_seconds(draws.random_range(500..700))),
            2 => plain.unchanged().cohorts_by_request().folded(),
            _ => plain.rollout(Nanos::from_seconds(200), Nanos::from_seconds(150)),
        };
        let mut partitions = delivered(shaped).partitions(3);
        if number == 3 {
            let from = begins.plus(Nanos::from_seconds(draws.random_range(300..500)));
            partitions = with_silence(partitions, from, Nanos::from_seconds(draws.random_range(60..600)));
        }
        for (merged, partition) in merged.iter_mut().zip(partitions) {
            merged.extend(partition);
        }
    }
    merged.iter_mut().for_each(|records| records.sort_by_key(|record| record.stamped.time()));
    merged
}

/// Adds parts that cannot be read: some say their time and type, some do not, and some stand before anything good.
pub(super) fn with_refused_parts(partitions: &mut [Vec<Decoded>], draws: &mut Xoshiro256PlusPlus) {
    for records in partitions {
        for (number, record) in records.iter_mut().enumerate() {
            if number > 0 && !draws.random_bool(0.03) {
                continue;
            }
            let at = draws.random_bool(0.5).then(|| record.stamped.time()).flatten();
            let profile_type = draws.random_bool(0.5).then_some(ProfileType::Cpu);
            let fault = Rejection::new(Reason::Malformed, "drawn");
            let fault = Rejection { at, profile_type, samples: draws.random_range(0..9), ..fault };
            if number == 0 {
                record.parts.clear();
            }
            record.parts.push(Err(fault));
        }
    }
}

/// The services of which a run has rows of `cells`.
fn services(tables: &Tables) -> BTreeSet<&str> {
    tables.cells.iter().map(|row| row.comparison.service.as_str()).collect()
}

/// The rows of a run, which are also those of one that goes on from a checkpoint.
fn gone_on(seed: u64, config: &Config, partitions: &[Vec<Decoded>], about: &str) -> Tables {
    let own = Collected::default();
    let number = usize::try_from(seed).unwrap();
    let taken = Taken::by_run(config, partitions, 1, 5 + seed, own.clone());
    if taken.count() > 0 {
        taken.go_on(number * 7, Workers::in_one(1 + number % 3), about);
    }
    own.tables()
}

#[test]
fn oracle_shards_together_are_one_run() {
    let mut occurred = [0; 9];
    for seed in seeds(1..=8) {
        let draws = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let limits = Limits { functions: 120, pods: 25, ..Limits::default() };
        let from_metrics = seed % 3 == 0;
        let limits = if seed % 2 == 0 { limits } else { Limits::default() };
        let drawn = random_config(draws);
        let config = Config { limits, requests_from_metrics: from_metrics, ..drawn };
        let mut partitions = several_services(seed, draws);
        with_refused_parts(&mut partitions, draws);
        println!("seed {seed}: {config:?}, {}", with_random_clocks(&mut partitions, draws));
        if from_metrics {
            partitions = as_metrics(&partitions);
        }
        let partitions: Vec<_> = partitions.into_iter().map(numbered).collect();
        let number = usize::try_from(seed).unwrap();
        let whole = run_in_memory(&config, partitions.clone(), 1 + number % 2).unwrap();
        // Of nine shards most have no service.
        let nine = (seed == 1).then_some((9, 1));
        for (of, workers) in [(2, 2), (3, 1)].into_iter().chain(nine) {
            let mut shards = Vec::new();
            for shard in 1..=of {
                let config = Config { shard: Shard::new(shard, of).unwrap(), ..config.clone() };
                let about = format!("seed {seed}, shard {}", config.shard);
                let tables = if of == 3 {
                    gone_on(seed, &config, &partitions, &about)
                } else {
                    run_in_memory(&config, partitions.clone(), workers).unwrap()
                };
                assert!(tables.cells.iter().all(|row| config.shard.has_service(&row.comparison.service)), "{about}");
                shards.push(tables);
            }
            let busy = shards.iter().filter(|tables| !tables.cells.is_empty()).count();
            assert!(busy >= 2, "seed {seed}: {busy} of {of} shards have services");
            assert_same(&together(shards), &whole, &format!("seed {seed}, {of} shards"));
        }
        let Tables { cells, flags, comparisons, incidents, rejected, clocks, limits, scaling, .. } = &whole;
        let sizes = [cells.len(), flags.len(), comparisons.len(), incidents.len(), rejected.len(), clocks.len()];
        let all = sizes.into_iter().chain([limits.len(), scaling.len(), services(&whole).len()]);
        occurred.iter_mut().zip(all).for_each(|(sum, size)| *sum += size);
    }
    println!("cells, flags, comparisons, incidents, rejected, clocks, limits, scaling, services: {occurred:?}");
    assert!(occurred.iter().all(|&size| size > 0) && occurred[0] > 10_000, "too little to compare: {occurred:?}");
}
