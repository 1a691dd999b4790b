//! What is called between two sides: the article's example, runs in which nothing changed, and what cannot be compared.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints what it saw")]

use std::sync::Arc;

use fleetdiff_diff::compare::{Compared, Finding, Method, NotCompared, Recording, Settings, Spread, compare};
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{CountKind, Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// A run of these leaves, all below `main`.
fn run(counts: &[(&str, u64)]) -> Recording {
    let names: Vec<Arc<str>> = ["main"].into_iter().chain(counts.iter().map(|(name, _)| *name)).map(Arc::from).collect();
    let stacks = (1..).zip(counts).filter(|(_, (_, count))| *count > 0);
    let identity = Identity {
        service: "-".into(),
        build: "-".into(),
        region: "-".into(),
        cohort: "-".into(),
        hardware: "-".into(),
        node: None,
        pod: "-".into(),
        process_start: None,
    };
    Recording {
        label: "run".to_owned(),
        profile: Profile {
            identity: Arc::new(identity),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window: TimeRange { start: Nanos(1), end: Nanos(2) },
            requests: None,
            names: names.into(),
            samples: Samples::Stacks(stacks.map(|(frame, &(_, count))| Stack { frames: vec![0, frame], count, cohort: None }).collect()),
        },
        weights: None,
    }
}

fn own<'c>(compared: &'c Compared, function: &str) -> &'c Finding {
    compared.of_kind(CountKind::SelfCount).find(|finding| &*finding.function == function).unwrap()
}

fn called(compared: &Compared) -> Vec<&str> {
    compared.of_kind(CountKind::SelfCount).filter(|finding| finding.verdict.is_called()).map(|finding| &*finding.function).collect()
}

/// Counts of canary and control that the article's first program makes; its first function stands for all others.
const ARTICLE: [(&str, u64, u64); 12] = [
    ("_other", 373_971, 365_002),
    ("second", 52_195, 51_566),
    ("third", 21_289, 21_019),
    ("fourth", 69_123, 67_145),
    ("fifth", 32_533, 31_579),
    ("sixth", 19_156, 18_835),
    ("seventh", 8_072, 7_948),
    ("eighth", 8_866, 8_681),
    ("slower", 121_638, 102_273),
    ("tenth", 13_273, 12_942),
    ("eleventh", 6_010, 5_800),
    ("faster", 21_874, 27_210),
];

fn article() -> Sides<Vec<Recording>> {
    let head: Vec<(&str, u64)> = ARTICLE.iter().map(|(name, head, _)| (*name, *head)).collect();
    let base: Vec<(&str, u64)> = ARTICLE.iter().map(|(name, _, base)| (*name, *base)).collect();
    Sides { base: vec![run(&base)], head: vec![run(&head)] }
}

#[test]
fn published_the_two_changes_of_the_article_are_found_and_nothing_else() {
    let compared = compare(&article(), &Settings::default()).unwrap();
    assert_eq!((compared.samples, compared.spread), (Sides { base: 720_000, head: 748_000 }, Spread::Unknown));
    assert_eq!(called(&compared), ["slower", "faster"]);
    assert_eq!((own(&compared, "slower").verdict, own(&compared, "faster").verdict), (Verdict::Regressed, Verdict::Improved));
    assert_eq!(own(&compared, "_other").verdict, Verdict::Compositional);
    let ratio = own(&compared, "slower").ratio.unwrap();
    assert!(ratio.low < 1.165 && ratio.high > 1.165 && ratio.low > 1.14 && ratio.high < 1.18, "{ratio:?}");
}

#[test]
fn published_the_rule_of_the_article_calls_four() {
    let compared = compare(&article(), &Settings { method: Method::Article, ..Settings::default() }).unwrap();
    let mut names = called(&compared);
    names.sort_unstable();
    assert_eq!(names, ["_other", "faster", "second", "slower"]);
    let ln_p = own(&compared, "_other").ln_p.unwrap();
    assert!((ln_p + 38.186_147_039_892_596).abs() < 1e-9, "{ln_p}");
}

const FUNCTIONS: u32 = 300;

/// A program whose functions cost as 1/rank, one of them `factor` times that, in a run that differs from others by `cv`.
fn drawn(samples: f64, cv: f64, factor: f64, rng: &mut Xoshiro256PlusPlus) -> Recording {
    let mut counts = Vec::new();
    for rank in 0..FUNCTIONS {
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let changed = if rank == 10 { factor } else { 1.0 };
        let mean = samples * changed * libm::exp(cv * normal - cv * cv / 2.0) / (6.3 * f64::from(rank + 1));
        counts.push((format!("function_{rank}"), poisson(mean, rng)));
    }
    run(&counts.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>())
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

fn pair(seed: u64, runs: usize, cv: f64, factor: f64) -> Compared {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut side = |factor: f64| (0..runs).map(|_| drawn(20_000.0, cv, factor, &mut rng)).collect::<Vec<_>>();
    compare(&Sides { base: side(1.0), head: side(factor) }, &Settings::default()).unwrap()
}

/// Runs with a called function, functions tested in all, and runs in which function 10 is called.
fn outcomes(runs: usize, cv: f64, factor: f64, seeds: std::ops::RangeInclusive<u64>) -> [usize; 3] {
    let mut sums = [0; 3];
    for seed in seeds {
        let compared = pair(seed, runs, cv, factor);
        let names = called(&compared);
        sums[0] += usize::from(names.iter().any(|name| *name != "function_10"));
        sums[1] += compared.of_kind(CountKind::SelfCount).filter(|finding| finding.q_value.is_some()).count();
        sums[2] += usize::from(names.contains(&"function_10"));
    }
    println!("{runs} v {runs} runs, CV {cv}, x {factor}: {} pairs with another called function, {} functions tested, {} with the one", sums[0], sums[1], sums[2]);
    sums
}

#[test]
fn null_two_runs_of_independent_samples() {
    let [any, tested, one] = outcomes(1, 0.0, 1.0, 1..=100);
    assert!(any + one <= 12 && tested > 100 * 150, "{any} pairs of 100, {tested} tested");
    let [any, _, found] = outcomes(1, 0.0, 1.5, 101..=120);
    assert!(found == 20 && any <= 4, "found {found}, others in {any}");
}

/// Runs that differ by themselves: what two of them show is no change of the program, and more of them tell.
#[test]
fn null_runs_that_differ() {
    let [any, tested, one] = outcomes(6, 0.1, 1.0, 201..=240);
    assert!(any + one <= 6 && tested > 40 * 150, "{any} pairs of 40, {tested} tested");
    let [_, _, found] = outcomes(6, 0.1, 1.6, 241..=250);
    assert!(found == 10, "found {found}");
    let [any, ..] = outcomes(1, 0.1, 1.0, 251..=260);
    assert!(any >= 8, "one run a side would do: {any} of 10");
}

#[test]
fn order_of_runs_changes_nothing() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut side = |factor| (0..4).map(|_| drawn(5_000.0, 0.1, factor, &mut rng)).collect::<Vec<_>>();
    let (base, head) = (side(1.0), side(1.5));
    let turned = Sides { base: base.iter().rev().cloned().collect(), head: head.iter().rev().cloned().collect() };
    let (one, other) = (compare(&Sides { base, head }, &Settings::default()).unwrap(), compare(&turned, &Settings::default()).unwrap());
    assert_eq!(one.spread, Spread::Tentative);
    let facts = |compared: &Compared| compared.findings.iter().map(|finding| (finding.function.clone(), finding.count_kind, finding.count, finding.verdict)).collect::<Vec<_>>();
    assert_eq!(facts(&one), facts(&other));
}

#[test]
fn what_one_side_lacks_is_new_or_gone() {
    let sides = Sides { base: vec![run(&[("kept", 1_000), ("old", 400)])], head: vec![run(&[("kept", 1_000), ("new", 400)])] };
    let compared = compare(&sides, &Settings::default()).unwrap();
    let of = |name| (own(&compared, name).verdict, own(&compared, name).reason, own(&compared, name).ratio.is_some());
    assert_eq!(of("new"), (Verdict::Regressed, Some(RowReason::OnlyInHead), false));
    assert_eq!(of("old"), (Verdict::Improved, Some(RowReason::OnlyInBase), false));
    assert!(!own(&compared, "kept").verdict.is_called());
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let good = || vec![run(&[("work", 100)])];
    let fault = |base, head| compare(&Sides { base, head }, &Settings::default()).unwrap_err();
    assert!(matches!(fault(vec![run(&[("work", 0)])], good()), NotCompared::Empty("base")));
    assert!(matches!(fault(good(), Vec::new()), NotCompared::Empty("head")));
    let mut heap = good();
    heap[0].profile.profile_type = ProfileType::Heap;
    assert!(matches!(fault(good(), heap), NotCompared::Types { .. }));
    let mut stranger = run(&[("rest", 100)]);
    stranger.profile.names = ["start".into(), "rest".into()].into();
    assert!(matches!(fault(good(), vec![stranger]), NotCompared::Strangers));
}
