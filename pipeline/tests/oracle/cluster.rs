//! Several processes write, together, the rows of one, and each shape goes on from what another one has kept.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::Collected;
use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::time::Nanos;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::clocks::with_random_clocks;
use super::going_on::Taken;
use super::processes::Workers;
use super::random::random_config;
use super::shards::{several_services, with_refused_parts};
use super::{numbered, seeds};

/// So that numbers of names and paths are forgotten and given again: each name has another end every so many seconds.
fn with_passing_names(partitions: &mut [Vec<Decoded>], seconds: i64) {
    for profile in partitions.iter_mut().flatten().flat_map(|record| record.parts.iter_mut().flatten()) {
        let time = profile.window.start.0 / Nanos::from_seconds(seconds).0;
        let passing = |(number, name): (usize, &Arc<str>)| match number % 3 {
            0 => format!("{name} of {time}").into(),
            _ => Arc::clone(name),
        };
        profile.names = profile.names.iter().enumerate().map(passing).collect();
    }
}

/// Processes, and workers of each.
const SHAPES: [Workers; 4] = [
    Workers { processes: 1, each: 2 },
    Workers { processes: 2, each: 1 },
    Workers { processes: 2, each: 2 },
    Workers { processes: 4, each: 1 },
];

#[test]
fn oracle_processes_together_are_one_run() {
    let mut occurred = [0; 7];
    for seed in seeds(1..=4) {
        let draws = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let number = usize::try_from(seed).unwrap();
        let retention = Nanos::from_seconds(draws.random_range(20..200));
        let limits = Limits { functions: 120, pods: 25, retention, ..Limits::default() };
        let limits = if seed % 2 == 0 { limits } else { Limits { retention, ..Limits::default() } };
        let mut config = Config { limits, ..random_config(draws) };
        let mut partitions = several_services(seed, draws);
        if seed % 2 == 1 {
            let (window, epoch) = (Nanos::from_seconds(110), Nanos::from_seconds(200));
            config = Config { window, epoch, history: Nanos(0), young: Nanos(0), ..config };
            with_passing_names(&mut partitions, draws.random_range(40..90));
        }
        with_refused_parts(&mut partitions, draws);
        println!("seed {seed}: {config:?}, {}", with_random_clocks(&mut partitions, draws));
        let partitions: Vec<_> = partitions.into_iter().map(numbered).collect();
        let whole = Collected::default();
        let mut last = Taken::by_run(&config, &partitions, 1, 4 + seed, whole.clone());
        for (place, shape) in SHAPES.into_iter().enumerate() {
            let about = format!("seed {seed}, {shape:?}");
            let run = Taken::by_processes(&config, &partitions, shape, 3 + seed, Collected::default());
            last.assert_same_from(Default::default(), &run, &about);
            assert!(last.count() > 0 && run.count() > 0, "{about}: no checkpoint");
            last.go_on(number * 7 + place, shape, &about);
            last = run;
        }
        last.go_on(number * 5, Workers::in_one(1), &format!("seed {seed}, in one process again"));
        let tables = whole.tables();
        let sizes = [tables.cells.len(), tables.flags.len(), tables.comparisons.len(), tables.incidents.len()];
        let all = sizes.into_iter().chain([tables.rejected.len(), tables.clocks.len(), tables.limits.len()]);
        occurred.iter_mut().zip(all).for_each(|(sum, size)| *sum += size);
    }
    println!("cells, flags, comparisons, incidents, rejected, clocks, limits: {occurred:?}");
    assert!(occurred.iter().all(|&size| size > 0) && occurred[0] > 5_000, "too little to compare: {occurred:?}");
}
