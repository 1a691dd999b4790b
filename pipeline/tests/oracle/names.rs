//! Functions that come and go: their numbers go to others, in the process and in each cell, and no row is that of another.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::time::Nanos;

use super::{builder, config, delivered, oracle};

/// Names of every second function change every 100 s, so that most names are not seen again.
fn with_passing_names(partitions: &mut [Vec<Decoded>]) {
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        let phase = profile.event_time().0 / 100_000_000_000;
        let name = |(place, name): (usize, &Arc<str>)| match place % 2 {
            0 => Arc::clone(name),
            _ => format!("{name} of {phase}").into(),
        };
        profile.names = profile.names.iter().enumerate().map(name).collect::<Vec<_>>().into();
    }
}

/// The law: what is forgotten changes no row.
#[test]
fn regression_passing_names() {
    for seed in 742..744 {
        let plain = builder(seed).pods_per_cell(3, 5).lasts(Nanos::from_seconds(1_350));
        let fleet = delivered(if seed % 2 == 0 { plain.folded() } else { plain.stacks() });
        let mut partitions = fleet.partitions(3);
        with_passing_names(&mut partitions);
        let run = |retention, workers| {
            let config = Config {
                window: Nanos::from_seconds(100),
                // Short epochs and no history: cells forget functions too.
                epoch: Nanos::from_seconds(if seed < 743 { 300 } else { 21_600 }),
                history: Nanos(0),
                limits: Limits { retention: Nanos::from_seconds(retention), ..Limits::default() },
                ..config()
            };
            run_in_memory(&config, partitions.clone(), workers).unwrap()
        };
        let expected = run(360_000, 2);
        assert!(
            expected.cells.len() > 1_000 && !expected.flags.is_empty(),
            "seed {seed}: {} rows",
            expected.cells.len()
        );
        let got = run(10, 1);
        if let Err(difference) = oracle::compare(&expected, &got) {
            panic!("seed {seed}: {difference}");
        }
        // What a name's number is depends on threads; no bit of a row does.
        assert_eq!(run(10, 3), got, "seed {seed}");
    }
}
