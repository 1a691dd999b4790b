//! Rings drawn at random: how many there are, their pods, how these differ, where they run, and whether requests are known.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ALL_FUNCTIONS;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::FlagState;
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder, Ring};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::assert_quiet;
use crate::experiment::{Experiment, run};
use crate::seeds::{over, rows, seeds_to};

const MINUTE: i64 = 60;
/// What is changed in the twin, by about this share of all samples.
const CHANGED: &str = "cache::probe";

/// What is drawn.
struct Drawn {
    fleet: FleetBuilder,
    words: String,
}

/// Three or four rings of one code, deployed some minutes after each other; pods of a ring are at least `fewest`, and differ by at most
/// `most_cv` percent.
fn drawn(seed: u64, fewest: u32, most_cv: u32) -> Drawn {
    let draws = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let pods: Vec<u32> = (0..draws.random_range(3..=4)).map(|_| draws.random_range(fewest..=30)).collect();
    let cv = draws.random_range(2..=most_cv);
    let regions = &["north", "south"][..draws.random_range(1..=2)];
    let requests = [0.0, 20.0][draws.random_range(0..=1)];
    let mut fleet = Fleet::seeded(seed)
        .regions(regions.iter().copied())
        .cohorts(["tv"])
        .pods_per_cell(pods[1], pods[0])
        .pod_cv(f64::from(cv) / 100.0)
        .requests_per_second(requests)
        .deploy_after(Nanos::from_seconds(MINUTE))
        .lasts(Nanos::from_seconds(30 * MINUTE))
        .folded();
    let mut starts = 1;
    for (name, &pods) in ["v43", "v44"].into_iter().zip(&pods[2..]) {
        starts += draws.random_range(2..=5);
        fleet = fleet.ring(Ring::new(name, pods).starts_after(Nanos::from_seconds(starts * MINUTE)).with_changes());
    }
    let words = format!("pods {pods:?} in each of {} regions, CV {cv} %, {requests} requests a second", regions.len());
    Drawn { fleet, words }
}

fn any(seed: u64) -> FleetBuilder {
    drawn(seed, 2, 30).fleet
}

#[test]
fn null_random_rings() {
    let seeds = seeds_to(5);
    seeds.clone().for_each(|seed| println!("seed {seed}: {}", drawn(seed, 2, 30).words));
    let outcomes = run("3 or 4 rings drawn at random", &Experiment::deployed(any), seeds);
    // Three rings are compared thrice, in 30 functions at least.
    assert_quiet(&outcomes, 3 * 30);
}

/// The twin: a function costs x 1.6 from the second ring on. It is flagged, and no other: callers follow it, and the cost of all
/// requests may show it.
#[test]
fn twin_random_rings() {
    let config = Config { evaluate_every: Nanos::from_seconds(MINUTE), ..Config::default() };
    let runs = over(1..=2, |seed| {
        let Drawn { fleet, words } = drawn(seed, 8, 12);
        let tables = rows(&config, &fleet.regress(CHANGED, Cells::all(), 1.6).build());
        let raised = tables.flags.into_iter().filter(|flag| flag.state == FlagState::Raised);
        let own: Vec<_> = raised.filter(|flag| flag.row.count_kind == CountKind::SelfCount).collect();
        (seed, words, own)
    });
    for (seed, words, flags) in runs {
        println!("seed {seed}: {words}: {} flags", flags.len());
        let innocent = flags.iter().find(|flag| ![CHANGED, ALL_FUNCTIONS].contains(&&*flag.row.function));
        assert!(innocent.is_none(), "seed {seed}: {:?}", innocent.map(|flag| &flag.row.function));
        let of_it = |flag: &&fleetdiff_schemas::rows::FlagRow| &*flag.row.function == CHANGED;
        let compared: Vec<(&str, &str)> = flags
            .iter()
            .filter(of_it)
            .map(|flag| (flag.row.comparison.base_build.as_str(), flag.row.comparison.head_build.as_str()))
            .collect();
        assert!(compared.contains(&("v41", "v42")), "seed {seed}: {compared:?}");
        assert!(compared.iter().all(|(base, _)| *base == "v41"), "seed {seed}: rings from the second on are alike");
    }
}
