//! What is significant between two sides: the article's example, runs in which nothing changed, and what cannot be compared.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints what it saw")]

#[path = "compare/few_runs.rs"]
mod few_runs;
#[path = "compare/reach.rs"]
mod reach;

use std::sync::Arc;

use fleetdiff_diff::columns::{ByRun, Compute, Value, rows};
use fleetdiff_diff::compare::contained::head_holds_base;
use fleetdiff_diff::compare::sums::Sums;
use fleetdiff_diff::compare::{
    Compared, Finding, Method, NotCompared, Recording, Settings, Spread, Weighed, Weights, compare,
};
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::profile::{CountKind, ProfileType, Samples, Stack};
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// A run of these leaves, all below `main`.
fn run(counts: &[(&str, u64)]) -> Recording {
    let names: Vec<Arc<str>> =
        ["main"].into_iter().chain(counts.iter().map(|(name, _)| *name)).map(Arc::from).collect();
    let stacks = (1..).zip(counts).filter(|(_, (_, count))| *count > 0);
    let stacks =
        stacks.map(|(frame, &(_, count))| Stack { frames: vec![0, frame], count, cohort: None, value: 0 }).collect();
    Recording::of_stacks("run", ProfileType::Cpu, names.into(), stacks)
}

fn own<'c>(compared: &'c Compared, function: &str) -> &'c Finding {
    compared.of_kind(CountKind::SelfCount).find(|finding| &*finding.function == function).unwrap()
}

fn found(compared: &Compared) -> Vec<&str> {
    compared
        .of_kind(CountKind::SelfCount)
        .filter(|finding| finding.is_shown_first())
        .map(|finding| &*finding.function)
        .collect()
}

/// Counts of canary and control as in the article's first program; its first function represents all others.
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
    let compared = compare(&article(), &SAMPLES_ALONE).unwrap();
    assert_eq!((compared.samples, compared.spread), (Some(Sides { base: 720_000, head: 748_000 }), Spread::Unknown));
    assert_eq!(found(&compared), ["slower", "faster"]);
    let order: Vec<_> =
        compared.of_kind(CountKind::SelfCount).map(|finding| (&*finding.function, finding.verdict)).take(3).collect();
    assert_eq!(
        order,
        [("slower", Verdict::StandsOut), ("faster", Verdict::StandsOut), ("_other", Verdict::Compositional)]
    );
    let ratio = own(&compared, "slower").ratio.unwrap();
    assert!(ratio.low < 1.165 && ratio.high > 1.165 && ratio.low > 1.14 && ratio.high < 1.18, "{ratio:?}");
    // Of 12 functions, of which nobody knows how they vary between runs, 17 % of one may be such a variation.
    let compared = compare(&article(), &Settings::default()).unwrap();
    assert_eq!(found(&compared), ["faster"]);
    let ratio = own(&compared, "slower").ratio.unwrap();
    assert!(ratio.low < 1.14 && ratio.high > 1.18, "{ratio:?}");
}

#[test]
fn published_the_rule_of_the_article_finds_four_significant() {
    let compared = compare(&article(), &Settings { method: Method::Article, ..Settings::default() }).unwrap();
    let mut names = found(&compared);
    names.sort_unstable();
    assert_eq!(names, ["_other", "faster", "second", "slower"]);
    let ln_p = own(&compared, "_other").ln_p.unwrap();
    assert!((ln_p + 38.186_147_039_892_596).abs() < 1e-9, "{ln_p}");
}

const FUNCTIONS: u32 = 300;

/// Nearly a standard normal.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// A program whose functions cost as 1/rank, one of them `factor` times that, in a run that differs from others by `cv`.
fn drawn(samples: f64, cv: f64, factor: f64, rng: &mut Xoshiro256PlusPlus) -> Recording {
    let mut counts = Vec::new();
    for rank in 0..FUNCTIONS {
        let normal = normal(rng);
        let changed = if rank == 10 { factor } else { 1.0 };
        let mean = samples * changed * libm::exp(cv * normal - cv * cv / 2.0) / (6.3 * f64::from(rank + 1));
        counts.push((format!("function_{rank}"), poisson(mean, rng)));
    }
    run(&counts.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>())
}

/// How many arrivals come within a time of `mean` times their mean distance; for many, by the normal approximation.
fn poisson(mean: f64, rng: &mut Xoshiro256PlusPlus) -> u64 {
    if mean > 100_000.0 {
        let drawn = libm::round(mean + mean.sqrt() * normal(rng));
        return format!("{drawn:.0}").parse().unwrap();
    }
    let (mut count, mut passed) = (0, -libm::log(1.0 - rng.random::<f64>()));
    while passed < mean {
        count += 1;
        passed -= libm::log(1.0 - rng.random::<f64>());
    }
    count
}

/// What is drawn.
#[derive(Clone, Copy)]
struct Drawn {
    runs: usize,
    samples: f64,
    cv: f64,
    factor: f64,
}

fn pair(seed: u64, Drawn { runs, samples, cv, factor }: Drawn, settings: &Settings) -> Compared {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut side = |factor: f64| (0..runs).map(|_| drawn(samples, cv, factor, &mut rng)).collect::<Vec<_>>();
    compare(&Sides { base: side(1.0), head: side(factor) }, settings).unwrap()
}

/// Runs with a significant function, functions tested in all, and runs in which function 10 is significant.
fn outcomes(what: Drawn, settings: &Settings, seeds: std::ops::RangeInclusive<u64>) -> [usize; 3] {
    let mut sums = [0; 3];
    for seed in seeds {
        let compared = pair(seed, what, settings);
        let names = found(&compared);
        sums[0] += usize::from(names.iter().any(|name| *name != "function_10"));
        sums[1] += compared.of_kind(CountKind::SelfCount).filter(|finding| finding.q_value.is_some()).count();
        sums[2] += usize::from(names.contains(&"function_10"));
    }
    let Drawn { runs, samples, cv, factor } = what;
    println!(
        "{runs} v {runs} runs of {samples} samples, CV {cv}, x {factor}, background {:?}: {} pairs with another significant function, {} functions tested, {} with the one",
        settings.background, sums[0], sums[1], sums[2]
    );
    sums
}

/// Settings under which samples alone decide.
const SAMPLES_ALONE: Settings =
    Settings { method: Method::Honest, q: 0.05, min_effect: 0.01, min_count: 30, background: Some(0.0) };

#[test]
fn null_two_runs_of_independent_samples() {
    let drawn = |factor| Drawn { runs: 1, samples: 20_000.0, cv: 0.0, factor };
    for (settings, fewest) in [(Settings::default(), 14), (SAMPLES_ALONE, 20)] {
        let [any, tested, one] = outcomes(drawn(1.0), &settings, 1..=100);
        assert!(any + one <= 12 && tested > 100 * 150, "{any} pairs of 100, {tested} tested");
        let [any, _, found] = outcomes(drawn(1.5), &settings, 101..=120);
        assert!(found >= fewest && any <= 4, "found {found}, others in {any}");
    }
}

/// Runs that vary: a difference between two of them is not a change of the program, and more runs show that.
#[test]
fn null_runs_that_differ() {
    let drawn = |runs, factor| Drawn { runs, samples: 20_000.0, cv: 0.1, factor };
    let [any, tested, one] = outcomes(drawn(6, 1.0), &Settings::default(), 201..=240);
    assert!(any + one <= 6 && tested > 40 * 150, "{any} pairs of 40, {tested} tested");
    let [_, _, found] = outcomes(drawn(6, 1.6), &Settings::default(), 241..=250);
    assert!(found == 10, "found {found}");
    let [any, ..] = outcomes(drawn(1, 1.0), &SAMPLES_ALONE, 251..=260);
    assert!(any >= 8, "samples alone would do: {any} of 10");
    let [any, tested, _] = outcomes(drawn(1, 1.0), &Settings::default(), 251..=290);
    assert!(any <= 12 && tested > 40 * 150, "{any} pairs of 40, {tested} tested");
}

/// So many samples that any two runs differ everywhere: the function that stands out is found, and no other.
#[test]
fn null_hundreds_of_millions_of_samples() {
    let drawn = |factor| Drawn { runs: 1, samples: 3e8, cv: 0.03, factor };
    let [any, tested, one] = outcomes(drawn(1.0), &Settings::default(), 301..=340);
    assert!(any + one <= 8 && tested == 40 * 300, "{any} pairs of 40, {tested} tested");
    for seed in 341..=350 {
        let compared = pair(seed, drawn(1.6), &Settings::default());
        assert_eq!(found(&compared).first(), Some(&"function_10"), "seed {seed}");
        assert!(found(&compared).len() <= 3, "seed {seed}: {:?}", found(&compared));
        let background = compared.background.unwrap();
        assert!((0.03..0.06).contains(&background), "seed {seed}: {background}, sqrt(2) * 0.03 is true");
        // Without the background nearly every share has moved, and the data cannot say on which scale.
        let alone = pair(seed, drawn(1.6), &SAMPLES_ALONE);
        let moved = |finding: &&Finding| finding.is_shown_first() || finding.reason == Some(RowReason::AmbiguousScale);
        let moved = alone.of_kind(CountKind::SelfCount).filter(moved).count();
        assert!(moved > 100, "seed {seed}: samples alone would do: {moved}");
    }
}

#[test]
fn order_of_runs_changes_nothing() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut side = |factor| (0..4).map(|_| drawn(5_000.0, 0.1, factor, &mut rng)).collect::<Vec<_>>();
    let (base, head) = (side(1.0), side(1.5));
    let turned = Sides { base: base.iter().rev().cloned().collect(), head: head.iter().rev().cloned().collect() };
    let (one, other) = (
        compare(&Sides { base, head }, &Settings::default()).unwrap(),
        compare(&turned, &Settings::default()).unwrap(),
    );
    assert_eq!(one.spread, Spread::Tentative);
    let facts = |compared: &Compared| {
        compared
            .findings
            .iter()
            .map(|finding| (finding.function.clone(), finding.count_kind, finding.count, finding.verdict))
            .collect::<Vec<_>>()
    };
    assert_eq!(facts(&one), facts(&other));
}

#[test]
fn what_one_side_lacks_is_new_or_gone() {
    let sides =
        Sides { base: vec![run(&[("kept", 1_000), ("old", 400)])], head: vec![run(&[("kept", 1_000), ("new", 400)])] };
    let compared = compare(&sides, &Settings::default()).unwrap();
    let of = |name| (own(&compared, name).verdict, own(&compared, name).reason, own(&compared, name).ratio.is_some());
    assert_eq!(of("new"), (Verdict::StandsOut, Some(RowReason::OnlyInHead), false));
    assert_eq!(of("old"), (Verdict::StandsOut, Some(RowReason::OnlyInBase), false));
    assert!(!own(&compared, "kept").verdict.is_significant());
}

#[test]
fn a_head_that_holds_the_base_may_be_the_same_process_later() {
    let later = |kind, base: &[(&str, u64)], head: &[(&str, u64)]| {
        let side = |counts| {
            let mut run = run(counts);
            run.profile.profile_type = kind;
            vec![run]
        };
        head_holds_base(&Sides { base: side(base), head: side(head) })
    };
    assert!(later(ProfileType::Heap, &[("a", 10), ("b", 5)], &[("b", 5), ("a", 11), ("c", 1)]));
    assert!(!later(ProfileType::Heap, &[("a", 10), ("b", 5)], &[("a", 11), ("b", 4)]));
    assert!(!later(ProfileType::Heap, &[("a", 10), ("b", 5)], &[("a", 11)]));
    assert!(
        !later(ProfileType::Cpu, &[("a", 10)], &[("a", 11)]),
        "processors are sampled, not counted since the start"
    );
}

#[test]
fn weights_are_added_up_beside_samples_and_must_be_of_one_unit() {
    let weighed = |counts: &[(&str, u64)], unit: &str, by: u64| {
        let plain = run(counts);
        let heavy = run(&counts.iter().map(|(name, count)| (*name, count * by)).collect::<Vec<_>>());
        Recording { weights: Some(Weights { unit: unit.into(), profile: heavy.profile }), ..plain }
    };
    let sides = |unit: &str| Sides {
        base: vec![weighed(&[("a", 60), ("b", 40)], "cycles", 10), weighed(&[("a", 30), ("b", 70)], "cycles", 5)],
        head: vec![weighed(&[("a", 50), ("b", 50)], unit, 3)],
    };
    let compared = compare(&sides("cycles"), &Settings::default()).unwrap();
    assert_eq!(compared.weights, Some(Weighed { unit: "cycles".into(), totals: Sides { base: 1_500, head: 300 } }));
    assert_eq!(
        (own(&compared, "a").weight, own(&compared, "a").count),
        (Some(Sides { base: 750, head: 150 }), Some(Sides { base: 90, head: 50 }))
    );
    assert!(matches!(compare(&sides("bytes"), &Settings::default()).unwrap_err(), NotCompared::Units { .. }));
    let mut some = sides("cycles");
    some.head[0].weights = None;
    assert_eq!(compare(&some, &Settings::default()).unwrap().weights, None);
}

/// The columns of perf 6.1 for periods 1001001 of 11011011 and 2002002 of 14014014: `+5.19%`, `2.000000`, `4004004` of `wdiff:2,3`.
#[test]
fn published_plain_differences_are_those_of_perf() {
    let (base, head) = (Value { own: 1_001_001, whole: 11_011_011 }, Value { own: 2_002_002, whole: 14_014_014 });
    let gone = Value { own: 0, ..base };
    assert_eq!(format!("{:.2} {:+.2}", base.percent(), Compute::Delta.of(base, head).unwrap()), "9.09 +5.19");
    assert_eq!(Compute::Ratio.of(base, head), Some(2.0));
    assert_eq!(Compute::WeightedDiff { base: 2, head: 3 }.of(base, head), Some(4_004_004.0));
    assert_eq!(Compute::Delta.formula(base, head), "(2002002 * 100 / 14014014) - (1001001 * 100 / 11011011)");
    assert_eq!(Compute::WeightedDiff { base: 2, head: 3 }.formula(base, head), "(2002002 * 3) - (1001001 * 2)");
    assert_eq!(Compute::Ratio.formula(base, head), "2002002 / 1001001");
    assert_eq!(
        (Compute::Ratio.of(gone, head), Compute::WeightedDiff { base: 2, head: 3 }.of(gone, head)),
        (None, None)
    );
    assert_eq!(format!("{:+.2}", Compute::DeltaAbs.of(gone, head).unwrap()), "+14.29");
}

/// As in the dataflow, whose rows are shown together with these sums.
#[test]
fn sums_count_recursion_once_and_stacks_without_frames_as_no_function() {
    let mut run = run(&[("a", 1), ("b", 1)]);
    let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
    run.profile.samples = Samples::Stacks(vec![stack(&[0, 1, 2, 1], 50), stack(&[], 30), stack(&[0, 2], 20)]);
    let side = vec![run];
    let sums = Sums::of_samples(&side);
    let of = |kind| sums.functions(kind).collect::<Vec<_>>();
    assert_eq!(of(CountKind::SelfCount), [("a", 50), ("b", 20)]);
    assert_eq!(of(CountKind::Total), [("a", 50), ("b", 70), ("main", 70)]);
    assert_eq!(sums.whole(), 100);
    let compared =
        compare(&Sides { base: side.clone(), head: side.clone() }, &Settings { min_count: 1, ..Settings::default() })
            .unwrap();
    assert_eq!(compared.totals().base, 100);
    for finding in &compared.findings {
        assert_eq!(finding.amount().base, sums.of(finding.count_kind, &finding.function), "{finding:?}");
    }
    assert_eq!(compared.findings.len(), 5);
}

/// Samples that filters leave out of shares of the whole are not a function: not tested, not shown, and not counted as
/// common.
#[test]
fn filtered_samples_are_part_of_the_whole_alone() {
    let side = |counts: [u64; 3]| {
        let mut run = run(&[("a", counts[0]), ("b", counts[1]), ("[filtered]", counts[2])]);
        if let Samples::Stacks(stacks) = &mut run.profile.samples {
            stacks[2].frames = vec![3];
        }
        vec![run]
    };
    let sides = Sides { base: side([60, 40, 9_900]), head: side([40, 60, 9_900]) };
    let compared = compare(&sides, &Settings::default()).unwrap();
    assert!(compared.findings.iter().all(|finding| &*finding.function != "[filtered]") && compared.findings.len() == 5);
    assert_eq!((compared.totals().base, own(&compared, "a").share.base), (10_000, 0.006));
    assert!((compared.overlap.samples - 0.8).abs() < 1e-12 && compared.overlap.common == 3);
    let shown: Vec<_> = rows(&sides.base, &[&sides.head], CountKind::SelfCount, Compute::Delta, 1, false)
        .iter()
        .map(|row| (row.function, row.base.whole))
        .collect();
    assert_eq!(shown, [("b", 10_000), ("a", 10_000)]);
}

#[test]
fn columns_are_sorted_as_asked() {
    let (base, first, second) =
        (vec![run(&[("a", 60), ("b", 40)])], vec![run(&[("a", 50), ("b", 50)])], vec![run(&[("b", 30), ("c", 70)])]);
    let order = |compute, column| {
        rows(&base, &[&first, &second], CountKind::SelfCount, compute, column, false)
            .iter()
            .map(|row| row.function)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(Compute::Delta, 0), ["a", "b", "c"]);
    assert_eq!(order(Compute::Delta, 1), ["b", "c", "a"]);
    assert_eq!(order(Compute::Delta, 2), ["c", "b", "a"]);
    assert_eq!(order(Compute::DeltaAbs, 2), ["c", "a", "b"]);
    assert_eq!(ByRun::of(&base).shares(CountKind::SelfCount, "a"), [60.0]);
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
    assert!(matches!(fault(good(), vec![stranger]), NotCompared::DifferentPrograms(_)));
    let of = |prefix: &str| {
        let names: Vec<String> = (0..20).map(|number| format!("{prefix}_{number}")).collect();
        vec![run(&names.iter().map(|name| (name.as_str(), 50)).collect::<Vec<_>>())]
    };
    let NotCompared::DifferentPrograms(overlap) = fault(of("editor"), of("compiler")) else {
        panic!("they share main alone")
    };
    assert_eq!((overlap.common, overlap.fewer), (1, 21));
    let mut nameless = run(&[("_unsymbolised", 100)]);
    nameless.profile.samples = Samples::Stacks(vec![Stack { frames: vec![1], count: 100, cohort: None, value: 0 }]);
    let faults = [
        fault(vec![nameless.clone()], vec![nameless.clone()]),
        fault(vec![nameless.clone()], good()),
        fault(good(), vec![nameless]),
    ];
    assert_eq!(
        faults.map(|fault| fault.to_string()),
        ["base", "base", "head"]
            .map(|side| format!("no function of the {side} has a name: 100 samples without symbols")),
        "regression: these are no profiles of different programs"
    );
    let moved = compare(
        &Sides { base: vec![run(&[("a", 990), ("rest", 10)])], head: vec![run(&[("b", 990), ("rest", 10)])] },
        &Settings::default(),
    )
    .unwrap();
    assert!(
        moved.overlap.is_doubtful() && found(&moved).contains(&"b"),
        "a program whose work moved to another function is the same program"
    );
}
