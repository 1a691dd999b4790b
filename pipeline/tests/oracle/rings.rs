//! Builds that are rolled out side by side, with any loads, starts and ends.
//!
//! `FLEETDIFF_ORACLE_FLEETS=200` is the long form, as for other random fleets.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::{CellBy, Comparing, Config};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::rows::ALL_FUNCTIONS;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::RowReason;
use fleetdiff_simulation::fleet::{Cells, FleetBuilder, Ring};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{agreed, builder, delivered, fleets};

/// How many fleets are drawn, unless `FLEETDIFF_ORACLE_FLEETS` says otherwise.
const FLEETS: u64 = 4;

fn drawn(seed: u64) -> (FleetBuilder, Config) {
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let seconds = Nanos::from_seconds;
    let mut one_of = |values: &[i64]| values[draws.random_range(0..values.len())];
    let config = Config {
        window: seconds(one_of(&[150, 200, 400])),
        young: seconds(one_of(&[0, 60, 200])),
        evaluate_every: seconds(60),
        report_every: seconds(200),
        epoch: seconds(one_of(&[300, 21_600])),
        min_head_pods: u64::try_from(one_of(&[1, 2, 4])).unwrap(),
        history: seconds(one_of(&[0, 600])),
        cell_by: [CellBy::RegionCohort, CellBy::Cohort][usize::from(one_of(&[0, 1]) > 0)],
        comparing: match seed % 3 {
            0 => Comparing::Rings(["v41", "v43", "v42", "v44"].map(Build::from).to_vec()),
            _ => Comparing::Deploys,
        },
        ..Config::default()
    };
    let mut fleet = builder(seed)
        .unchanged()
        .folded()
        .regions(["east"])
        .cohorts(["web"])
        .pods_per_cell(4, 8)
        .requests_per_second(20.0);
    if is_quiet(seed) {
        for name in ["v43", "v44"] {
            fleet = fleet.ring(Ring::new(name, 3).starts_after(seconds(150)));
        }
        return (fleet.lasts(seconds(800)), config);
    }
    fleet = fleet.regress("serialize_video_chunk", Cells::all(), 1.6).elasticity("gc::mark_object", -1.0);
    for name in ["v43", "v44"] {
        let ring = Ring::new(name, u32::try_from(one_of(&[2, 3, 6])).unwrap());
        let ring = ring.starts_after(seconds(one_of(&[90, 150, 240])));
        let ring = if one_of(&[0, 1]) > 0 { ring.ends_after(seconds(one_of(&[400, 500]))) } else { ring };
        let ring = if one_of(&[0, 1]) > 0 { ring.with_changes() } else { ring };
        fleet = fleet.ring(ring.load([1.0, 1.3, 2.0, 3.0][usize::try_from(one_of(&[0, 1, 2, 3])).unwrap()]));
    }
    (fleet.lasts(seconds(800)), config)
}

/// Every fourth fleet is one code at one load in all rings: only all functions together have rows of rings there.
fn is_quiet(seed: u64) -> bool {
    seed.is_multiple_of(4)
}

#[test]
fn oracle_rings() {
    let fleets = fleets(FLEETS);
    let (mut rows, mut follow_load, mut flags, mut paths, mut quiet_paths) = (0, 0, 0, 0, 0);
    let mut pairs: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 1..=fleets {
        let (builder, config) = drawn(seed);
        println!("seed {seed}: {config:?}");
        let got = agreed(seed, &config, &delivered(builder).partitions(3));
        rows += got.cells.len();
        flags += got.flags.len();
        paths += got.rings.len();
        let moved = got.cells.iter().any(|row| row.function == ALL_FUNCTIONS && row.verdict.is_significant());
        quiet_paths += if moved { 0 } else { got.rings.iter().filter(|row| &*row.function == ALL_FUNCTIONS).count() };
        follow_load += got.cells.iter().filter(|row| row.reason == Some(RowReason::LoadDiffers)).count();
        let compared: BTreeSet<String> = got
            .cells
            .iter()
            .map(|row| format!("{}>{}", row.comparison.base_build, row.comparison.head_build))
            .collect();
        compared.into_iter().for_each(|pair| *pairs.entry(pair).or_default() += 1);
    }
    println!(
        "{rows} rows of cells equal over seeds 1 to {fleets}, {flags} flags, {follow_load} rows that load explains, {paths} rows of rings, {quiet_paths} of them about all functions that did not move: {pairs:?}"
    );
    assert!(
        rows > 10_000 && flags > 0 && follow_load > 0 && pairs.len() > 5 && paths > 100 && quiet_paths > 4,
        "{pairs:?}, {paths} rows of rings, {quiet_paths} of all functions that did not move"
    );
}
