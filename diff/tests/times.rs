//! Times without a period: how often something is significant between runs in which nothing changed, what is found where something
//! did, and what is refused.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints what it saw")]

use std::sync::Arc;

use fleetdiff_diff::compare::FEWEST_RUNS;
use fleetdiff_diff::compare::times::FLOOR;
use fleetdiff_diff::compare::{Compared, Method, NotCompared, Recording, Settings, Spread, compare};
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Values;
use fleetdiff_schemas::profile::{CountKind, ProfileType, Stack};
use fleetdiff_schemas::rows::RARE;
use fleetdiff_schemas::verdict::Verdict;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const FUNCTIONS: u32 = 300;
/// The function that a twin changes.
const CHANGED: u32 = 3;
const SECOND: f64 = 1e9;

/// A run of these nanoseconds by leaf, all below `main`.
fn run(times: &[(String, u64)]) -> Recording {
    let names: Vec<Arc<str>> =
        ["main"].into_iter().chain(times.iter().map(|(name, _)| name.as_str())).map(Arc::from).collect();
    let stacks = (1..).zip(times).filter(|(_, (_, time))| *time > 0);
    let stacks = stacks
        .map(|(frame, (_, time))| Stack { frames: vec![0, frame], count: *time, cohort: None, value: 0 })
        .collect();
    Recording { values: Values::Times, ..Recording::of_stacks("run", ProfileType::Cpu, names.into(), stacks) }
}

/// Nearly a standard normal.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Student's t with 4 degrees of freedom, of variance 1.
fn heavy(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let squares: f64 = (0..4).map(|_| normal(rng)).map(|normal| normal * normal).sum();
    normal(rng) / (squares / 4.0).sqrt() / 2f64.sqrt()
}

/// How many arrivals come within a time of `mean` times their mean distance.
fn poisson(mean: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let (mut count, mut passed) = (0.0, -libm::log(1.0 - rng.random::<f64>()));
    while passed < mean {
        count += 1.0;
        passed -= libm::log(1.0 - rng.random::<f64>());
    }
    count
}

/// How long runs are.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    /// From 15 to 60 s, whatever the side.
    Mixed,
    /// The base 60 s, the head 15 s and looked at a quarter as often.
    OtherHead,
    /// From 1 to 4 s, whatever the side.
    Short,
}

/// From what runs are drawn.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    runs: usize,
    cv: f64,
    /// Whether now and then a function is far from what it is in other runs.
    heavy: bool,
    lengths: Lengths,
    /// Nanoseconds from one look of the profiler to the next, each with a jitter of a tenth; none: times are exact.
    tick: Option<f64>,
    /// Whether a tenth of the functions is looked at ten times in a row or not at all.
    bursts: bool,
    factor: f64,
}

const PLAIN: Drawn =
    Drawn { runs: 5, cv: 0.1, heavy: false, lengths: Lengths::Mixed, tick: Some(1e7), bursts: false, factor: 1.0 };

impl Drawn {
    fn run(&self, is_head: bool, rng: &mut Xoshiro256PlusPlus) -> Recording {
        let Self { cv, heavy: is_heavy, tick, factor, .. } = *self;
        let length = match self.lengths {
            Lengths::Mixed => 15.0 * SECOND * libm::pow(4.0, rng.random::<f64>()),
            Lengths::Short => SECOND * libm::pow(4.0, rng.random::<f64>()),
            Lengths::OtherHead if is_head => 15.0 * SECOND,
            Lengths::OtherHead => 60.0 * SECOND,
        };
        let time = |rank: u32| {
            let by_run = if is_heavy { heavy(rng) } else { normal(rng) };
            let changed = if is_head && rank == CHANGED { factor } else { 1.0 };
            let mean = length * changed * libm::exp(cv * by_run) / (6.3 * f64::from(rank + 1));
            let time = match tick {
                None => mean,
                Some(tick) => {
                    let tick = if is_head && matches!(self.lengths, Lengths::OtherHead) { 4.0 * tick } else { tick };
                    let burst = if self.bursts && rank % 10 == 9 { 10.0 } else { 1.0 };
                    let looks = burst * poisson(mean / tick / burst, rng);
                    tick * (looks + 0.1 * looks.sqrt() * normal(rng)).max(0.0)
                }
            };
            (format!("function_{rank}"), format!("{time:.0}").parse().unwrap())
        };
        run(&(0..FUNCTIONS).map(time).collect::<Vec<_>>())
    }

    fn pair(&self, seed: u64) -> Compared {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut side = |is_head| (0..self.runs).map(|_| self.run(is_head, &mut rng)).collect::<Vec<_>>();
        compare(&Sides { base: side(false), head: side(true) }, &Settings::default()).unwrap()
    }

    /// Pairs in which another function than the changed one is significant, those in which that is, and how many functions were
    /// tested in all.
    fn outcomes(&self, pairs: u64) -> [usize; 3] {
        let changed = format!("function_{CHANGED}");
        let (mut any, mut found, mut tested) = (0, 0, 0);
        for seed in 1..=pairs {
            let compared = self.pair(seed);
            let significant = || compared.findings.iter().filter(|finding| finding.verdict.is_significant());
            any += usize::from(significant().any(|finding| *finding.function != *changed));
            found += usize::from(significant().any(|finding| *finding.function == *changed));
            tested += compared.of_kind(CountKind::SelfCount).filter(|finding| finding.q_value.is_some()).count();
        }
        println!("{self:?}: {pairs} pairs, {tested} rows tested, another significant in {any}, the one in {found}");
        [any, found, tested]
    }
}

/// Law: of pairs in which nothing changed, at most .05 have a significant row, up to three standard errors: 11 of 100.
fn are_equal(drawn: Drawn, fewest_tested: usize) {
    let [any, one, tested] = drawn.outcomes(100);
    assert!(any + one <= 11, "{drawn:?}: {any} and {one}");
    assert!(tested >= fewest_tested, "{drawn:?}: {tested} rows tested");
}

#[test]
fn null_times_of_equal_runs() {
    are_equal(PLAIN, 14_000);
    are_equal(Drawn { cv: 0.05, ..PLAIN }, 14_000);
}

#[test]
fn null_times_of_more_equal_runs() {
    are_equal(Drawn { runs: 10, ..PLAIN }, 14_000);
    are_equal(Drawn { runs: 10, cv: 0.05, ..PLAIN }, 14_000);
}

/// Times that are exact; an arm with other runs and far-off functions; and runs so short that most functions are seen in few of them.
#[test]
fn null_times_of_other_kinds() {
    are_equal(Drawn { tick: None, ..PLAIN }, 14_000);
    are_equal(Drawn { lengths: Lengths::OtherHead, heavy: true, ..PLAIN }, 4_000);
    are_equal(Drawn { lengths: Lengths::Short, bursts: true, ..PLAIN }, 700);
}

/// The twin: 30 % more of one function.
#[test]
fn null_twin_times_that_changed() {
    for (runs, cv, least) in [(5, 0.1, 3), (5, 0.05, 6), (10, 0.1, 12), (10, 0.05, 16)] {
        let [_, found, _] = Drawn { runs, cv, factor: 1.3, ..PLAIN }.outcomes(20);
        assert!(found >= least, "{runs} v {runs}, CV {cv}: found in {found} of 20");
    }
}

fn sides(base: usize, head: usize) -> Sides<Vec<Recording>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut side = |runs| (0..runs).map(|_| PLAIN.run(false, &mut rng)).collect::<Vec<_>>();
    Sides { base: side(base), head: side(head) }
}

#[test]
fn null_fewer_runs_are_refused() {
    for (base, head) in [(1, 1), (2, 2), (3, 3), (4, 4), (4, 10), (10, 1)] {
        let refused = compare(&sides(base, head), &Settings::default()).unwrap_err();
        assert!(matches!(&refused, NotCompared::FewRuns(runs) if *runs == Sides { base, head }), "{refused}");
        assert!(refused.to_string().contains("5 runs of each side"), "{refused}");
    }
    assert!(compare(&sides(FEWEST_RUNS, FEWEST_RUNS), &Settings::default()).is_ok());
    // A run of less than a quantum is none.
    let mut short = sides(5, 5);
    short.head[0] = run(&[("function_0".to_owned(), 9_999)]);
    assert!(matches!(compare(&short, &Settings::default()), Err(NotCompared::FewRuns(Sides { base: 5, head: 4 }))));
}

#[test]
fn what_needs_counts_is_refused() {
    let article = Settings { method: Method::Article, ..Settings::default() };
    assert!(matches!(compare(&sides(5, 5), &article), Err(NotCompared::NeedsCounts)));
    let mut mixed = sides(5, 5);
    mixed.head[2].values = Values::Samples;
    mixed.head[2].label = "counted".to_owned();
    assert!(
        matches!(compare(&mixed, &Settings::default()), Err(NotCompared::CountsAndTimes { counted, timed }) if counted == "counted" && timed == "run")
    );
}

/// Law: what is said of times holds no count, and the times add up to what the runs have.
#[test]
fn no_finding_has_a_count() {
    // A rare function that only the head has, in every run: the test of rare functions would find it by its counts.
    let mut sides = sides(6, 6);
    for head in &mut sides.head {
        let mut times: Vec<(String, u64)> =
            (0..FUNCTIONS).map(|rank| (format!("function_{rank}"), 100_000_000)).collect();
        times.push(("rare".to_owned(), 3_000_000));
        *head = run(&times);
    }
    sides.base = (0..6)
        .map(|_| run(&(0..FUNCTIONS).map(|rank| (format!("function_{rank}"), 100_000_000)).collect::<Vec<_>>()))
        .collect();
    let compared = compare(&sides, &Settings::default()).unwrap();
    assert_eq!((compared.samples, compared.spread, compared.values()), (None, Spread::Known, Values::Times));
    let weights = compared.weights.as_ref().unwrap();
    assert_eq!(
        (&*weights.unit, weights.totals),
        ("time/nanoseconds", Sides { base: 180_000_000_000, head: 180_018_000_000 })
    );
    for kind in CountKind::ALL {
        assert!(compared.of_kind(kind).all(|finding| finding.count.is_none() && finding.weight.is_some()), "{kind:?}");
        assert!(compared.of_kind(kind).all(|finding| &*finding.function != "rare"), "{kind:?}");
        let rest = compared.of_kind(kind).find(|finding| &*finding.function == RARE).unwrap();
        assert_eq!((rest.verdict, rest.functions, rest.reason), (Verdict::TooRare, Some(1), None));
        assert_eq!(rest.weight, Some(Sides { base: 0, head: 18_000_000 }));
    }
    let own: u64 = compared.of_kind(CountKind::SelfCount).map(|finding| finding.amount().head).sum();
    assert_eq!(own, weights.totals.head);
    let shares: f64 = compared.of_kind(CountKind::SelfCount).map(|finding| finding.share.head).sum();
    assert!((shares - 1.0).abs() < 1e-12, "{shares}");
}

/// A function is tested from a part of all time on, however long that is.
#[test]
fn the_floor_is_a_part_of_the_time() {
    for scale in [1, 1_000] {
        let times = |part: f64| {
            let rest = format!("{:.0}", 1e8 * (1.0 - part)).parse::<u64>().unwrap();
            let own = 100_000_000 - rest;
            run(&[
                ("rest".to_owned(), scale * rest / 2),
                ("more".to_owned(), scale * rest / 2),
                ("own".to_owned(), scale * own),
            ])
        };
        let is_tested = |part: f64| {
            let side = || (0..5).map(|_| times(part)).collect::<Vec<_>>();
            let compared = compare(&Sides { base: side(), head: side() }, &Settings::default()).unwrap();
            compared.of_kind(CountKind::SelfCount).any(|finding| &*finding.function == "own")
        };
        assert!(is_tested(1.2 * FLOOR) && !is_tested(0.8 * FLOOR), "{scale}");
    }
}

/// A function of less than a grain on one side is more expensive on the other, not new.
#[test]
fn less_than_a_grain_is_not_nothing() {
    let side = |more: u64, seed: u64| -> Vec<Recording> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let run_of = |rng: &mut Xoshiro256PlusPlus| {
            let looks = |rank: u32, rng: &mut Xoshiro256PlusPlus| poisson(1_000.0 / f64::from(rank + 1), rng) * 1e7;
            let mut times: Vec<(String, u64)> = (0..40)
                .map(|rank| (format!("function_{rank}"), format!("{:.0}", looks(rank, rng)).parse().unwrap()))
                .collect();
            times.push(("more".to_owned(), more));
            run(&times)
        };
        (0..5).map(|_| run_of(&mut rng)).collect()
    };
    let compared = compare(&Sides { base: side(100, 1), head: side(4_000_000_000, 2) }, &Settings::default()).unwrap();
    let more = compared.of_kind(CountKind::SelfCount).find(|finding| &*finding.function == "more").unwrap();
    assert_eq!((more.verdict, more.reason), (Verdict::Regressed, None));
    assert_eq!(more.amount(), Sides { base: 500, head: 20_000_000_000 });
}
