//! Memory in use, seen in many snapshots: samples stay from snapshot to snapshot, so that the same sample in a hundred
//! snapshots is not a hundred samples. Fleets without a change must be quiet nevertheless, their twin must not be.
//!
//! Each pod holds samples of 200 functions, a Poisson number around a mean that differs between pods by CV 20 %; from
//! one snapshot to the next, 10 s later, a tenth of them is freed and as many new ones are allocated.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Decoded, Position, Profile, ProfileType, Samples, Stack, Stamped, Temporality};
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_schemas::verdict::FlagState;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::seeds::over;

const FUNCTIONS: u32 = 200;
const PODS: [(&str, usize); 2] = [("v41", 15), ("v42", 8)];
const SNAPSHOTS: i64 = 120;
const STARTS_AT: i64 = 1_800_000_000;
/// By rank: about 1 % of the memory in use.
const CHANGED: u32 = 12;
const KEPT: f64 = 0.9;

fn config() -> Config {
    Config {
        warm_up: Nanos(0),
        evaluate_every: Nanos::from_seconds(60),
        report_every: Nanos::from_seconds(86_400),
        comparing: Comparing::Named { base: vec!["v41".into()], head: "v42".into() },
        ..Config::default()
    }
}

/// The snapshots of one pod, in time.
fn snapshots(
    identity: &Arc<Identity>,
    names: &Arc<[Arc<str>]>,
    factor: f64,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<Profile> {
    let size = log_normal(0.3, rng);
    let cost = |rank: u32, rng: &mut _| {
        400.0 * size * log_normal(0.2, rng) / f64::from(rank + 2) * if rank == CHANGED { factor } else { 1.0 }
    };
    let means: Vec<f64> = (0..FUNCTIONS).map(|rank| cost(rank, rng)).collect();
    let mut held: Vec<u64> = means.iter().map(|&mean| poisson(mean, rng)).collect();
    let snapshot = |number: i64| {
        for (held, &mean) in held.iter_mut().zip(&means) {
            let kept = (0..*held).map(|_| u64::from(rng.random_bool(KEPT))).sum::<u64>();
            *held = kept + poisson(mean * (1.0 - KEPT), rng);
        }
        let at = Nanos::from_seconds(STARTS_AT + 10 * number + 5);
        let stacks = (0..).zip(&held).filter(|(_, count)| **count > 0);
        Profile {
            identity: Arc::clone(identity),
            profile_type: ProfileType::LiveHeap,
            temporality: Temporality::Gauge,
            window: TimeRange { start: at, end: at },
            requests: None,
            names: Arc::clone(names),
            samples: Samples::Stacks(
                stacks.map(|(frame, &count)| Stack { frames: vec![frame], count, cohort: None, value: 0 }).collect(),
            ),
        }
    };
    (0..SNAPSHOTS).map(snapshot).collect()
}

/// A log-normal number of mean 1, of nearly this CV; the normal one is a sum of twelve uniform ones.
fn log_normal(cv: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    libm::exp(cv * normal - cv * cv / 2.0)
}

/// How many arrivals come within a time of `mean` times their mean distance.
fn poisson(mean: f64, rng: &mut Xoshiro256PlusPlus) -> u64 {
    let (mut count, mut passed) = (0, -libm::log(1.0 - rng.random::<f64>()));
    while passed < mean {
        count += 1;
        passed -= libm::log(1.0 - rng.random::<f64>());
    }
    count
}

fn fleet(seed: u64, factor: f64) -> Vec<Vec<Decoded>> {
    let names: Arc<[Arc<str>]> = (0..FUNCTIONS).map(|rank| Arc::from(format!("function_{rank}"))).collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut profiles = Vec::new();
    for (build, pods) in PODS {
        for pod in 0..pods {
            let identity = Arc::new(Identity {
                service: "shop".into(),
                build: build.into(),
                region: "r".into(),
                cohort: "c".into(),
                hardware: "h".into(),
                node: None,
                pod: format!("{build}-{pod}-{}", rng.random::<u32>()).as_str().into(),
                process_start: None,
            });
            profiles.extend(snapshots(&identity, &names, if build == "v42" { factor } else { 1.0 }, &mut rng));
        }
    }
    profiles.sort_by_key(|profile| profile.window.end);
    let record = |(offset, profile)| Decoded {
        position: Position { source: "memory".into(), partition: 0, offset, file: None },
        stamped: Stamped::No,
        parts: vec![Ok(profile)],
        points: Vec::new(),
    };
    vec![(0..).zip(profiles).map(record).collect()]
}

/// The result of a run: rows tested and significant at the end in its only cell; functions raised; rows that G on the
/// counts would find significant.
fn outcome(tables: &Tables) -> (usize, Vec<String>, Vec<String>, usize) {
    let rows: Vec<&CellRow> =
        tables.cells.iter().filter(|row| row.cell.region.as_str() == "r" && row.q_value.is_some()).collect();
    let significant = rows.iter().filter(|row| row.verdict.is_significant()).map(|row| row.function.clone()).collect();
    let raised = tables
        .flags
        .iter()
        .filter(|flag| flag.state == FlagState::Raised)
        .map(|flag| flag.row.function.clone())
        .collect();
    (rows.len(), significant, raised, rows.iter().filter(|row| row.ln_p_iid.is_some_and(|ln_p| ln_p < -10.0)).count())
}

#[test]
fn null_levels() {
    let runs = over(1..=30, |seed| outcome(&run_in_memory(&config(), fleet(seed, 1.0), 1).unwrap()));
    let tested: usize = runs.iter().map(|run| run.0).sum();
    let (calling, raising) =
        (runs.iter().filter(|run| !run.1.is_empty()).count(), runs.iter().filter(|run| !run.2.is_empty()).count());
    let plain: usize = runs.iter().map(|run| run.3).sum();
    println!(
        "seeds 1 to 30: {tested} rows tested, {calling} runs with a significant row, {raising} with a flag; plain G below e^-10 in {plain} rows"
    );
    assert!(tested >= 30 * 2 * 190, "{tested} rows tested");
    assert!(calling <= 5 && raising <= 5, "{calling} runs have significant rows, {raising} have flags");
    assert!(plain > tested / 10, "the plain test is quiet too: {plain} of {tested}");
}

#[test]
fn twin_levels() {
    let changed = format!("function_{CHANGED}");
    let runs = over(1..=5, |seed| outcome(&run_in_memory(&config(), fleet(seed, 2.5), 1).unwrap()));
    for (seed, (_, significant, raised, _)) in (1..).zip(&runs) {
        println!("seed {seed}: significant {significant:?}, raised {raised:?}");
        assert!(
            significant.contains(&changed) && raised.contains(&changed),
            "seed {seed}: significant {significant:?}, raised {raised:?}"
        );
    }
}
