//! Load that rises and falls: rows of `scaling`.
//!
//! `FLEETDIFF_ORACLE_FLEETS=200` is the long form, as for other random fleets.

use std::collections::BTreeSet;

use fleetdiff_schemas::config::{CellBy, Comparing, Config};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ALL_FUNCTIONS;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ScalingReason, ScalingVerdict};
use fleetdiff_simulation::fleet::{Cells, FleetBuilder, Ring};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{agreed, builder, delivered, fleets};

/// How many fleets are drawn, unless `FLEETDIFF_ORACLE_FLEETS` says otherwise.
const FLEETS: u64 = 8;

/// A fleet under load, and a configuration, at random.
fn drawn(seed: u64) -> (FleetBuilder, Config) {
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut one_of = |values: &[i64]| values[draws.random_range(0..values.len())];
    let seconds = Nanos::from_seconds;
    let config = Config {
        hop: seconds(one_of(&[7, 10, 10, 30])),
        window: seconds(one_of(&[700, 1200, 1200, 1500])),
        lateness: seconds(one_of(&[30, 90])),
        young: seconds(one_of(&[0, 60, 60, 300])),
        report_every: seconds(one_of(&[300, 420])),
        evaluate_every: seconds(420),
        min_count: u64::try_from(one_of(&[30, 30, 300])).unwrap(),
        count_kinds: [vec![CountKind::Total], CountKind::ALL.to_vec()][usize::from(one_of(&[0, 1, 1]) > 0)].clone(),
        cell_by: [CellBy::Cohort, CellBy::Cohort, CellBy::All][usize::try_from(one_of(&[0, 1, 2])).unwrap()],
        ..Config::default()
    };
    let peak = [1.0, 2.0, 2.5, 3.0][usize::try_from(one_of(&[0, 1, 2, 2, 3, 3])).unwrap()];
    let plain = builder(seed).unchanged().folded().regions(["east"]).pods_per_cell(7, 7).requests_per_second(25.0);
    let wave = seconds(one_of(&[600, 600, 600, 3000]));
    let plain = plain.load(peak, wave).lasts(seconds(one_of(&[900, 1500, 1500]))).unknown_frames(0.02);
    let plain = plain.elasticity("gc::mark_object", -1.0).scales_worse("serialize_video_chunk", Cells::all(), 1.2);
    match seed % 4 {
        0 => (plain.cohorts_by_request().hardware(["old", "new"]).deploy_after(seconds(60)), config),
        1 => {
            let comparing = Comparing::Named { base: vec!["v40".into(), "v41".into()], head: "v42".into() };
            (plain.ring(Ring::new("v40", 4)).already_deployed(), Config { comparing, ..config })
        }
        2 => (plain.pods_per_cell(5, 2), config),
        _ => (plain.already_deployed(), config),
    }
}

#[test]
fn oracle_load() {
    let fleets = fleets(FLEETS);
    let (mut rows, mut tested, mut curves) = (0, 0, 0);
    let (mut verdicts, mut reasons) = (BTreeSet::new(), BTreeSet::new());
    let mut of_all = 0;
    for seed in 1..=fleets {
        let (builder, config) = drawn(seed);
        println!("seed {seed}: {config:?}");
        let got = agreed(seed, &config, &delivered(builder).partitions(3));
        rows += got.scaling.len();
        curves += got.load_curves.len();
        tested += got.scaling.iter().filter(|row| row.ln_p.is_some()).count();
        of_all += got.scaling.iter().filter(|row| &*row.function == ALL_FUNCTIONS && row.q_value.is_some()).count();
        verdicts.extend(got.scaling.iter().map(|row| row.verdict));
        reasons.extend(got.scaling.iter().filter_map(|row| row.reason));
    }
    println!(
        "{rows} rows of scaling equal over seeds 1 to {fleets}, {tested} of them tested: {verdicts:?}, {reasons:?}"
    );
    println!("{curves} rows of load_curves equal");
    assert!(curves > 100, "{curves} rows of load_curves");
    let expected = [
        ScalingVerdict::MoreExpensive,
        ScalingVerdict::Cheaper,
        ScalingVerdict::ScalesWorse,
        ScalingVerdict::Inconclusive,
        ScalingVerdict::Withheld,
    ];
    assert!(expected.iter().all(|verdict| verdicts.contains(verdict)), "{verdicts:?}");
    let expected = [
        ScalingReason::FewMinutes,
        ScalingReason::LoadSpanTooSmall,
        ScalingReason::LoadIsTime,
        ScalingReason::CountNeeded,
    ];
    assert!(expected.iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
    assert!(tested > 3000 && of_all > 0, "{rows} rows, {tested} tested, {of_all} of all functions");
}
