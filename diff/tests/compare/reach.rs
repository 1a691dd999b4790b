//! What many runs of a side show of a change of one function, and what is said of it beforehand.

use fleetdiff_diff::answer::reach;
use fleetdiff_diff::compare::{Reach, Recording, Settings, compare};
use fleetdiff_diff::flame::Sides;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::{found, normal, poisson, run};

/// Shares of the functions that are changed; the rest costs as 1/rank in so many others.
const LARGE: [(&str, f64); 3] = [("of_27", 0.27), ("of_5", 0.05), ("of_1", 0.01)];
const OTHERS: u32 = 200;
/// Samples of a run.
const SAMPLES: f64 = 10_000.0;

/// How much runs differ, of each function on its own, as a CV.
const CV: f64 = 0.03;

/// Runs of a side, in which one function costs `factor` times as much.
fn side(runs: usize, changed: &str, factor: f64, rng: &mut Xoshiro256PlusPlus) -> Vec<Recording> {
    let harmonic: f64 = (1..=OTHERS).map(|rank| 1.0 / f64::from(rank)).sum();
    let rest = 1.0 - LARGE.iter().map(|(_, share)| share).sum::<f64>();
    let others = (1..=OTHERS).map(|rank| (format!("function_{rank}"), rest / (harmonic * f64::from(rank))));
    let all: Vec<(String, f64)> =
        LARGE.iter().map(|(name, share)| ((*name).to_owned(), *share)).chain(others).collect();
    let one_run = |_| {
        let mut counts = Vec::new();
        for (name, share) in &all {
            let factor = if name == changed { factor } else { 1.0 };
            let mean = SAMPLES * share * factor * libm::exp(CV * normal(rng) - CV * CV / 2.0);
            counts.push((name.as_str(), poisson(mean, rng)));
        }
        run(&counts)
    };
    (0..runs).map(one_run).collect()
}

/// Of so many pairs of sides of these runs: in how many the function is significant, and in how many any other is.
fn significant(pairs: u64, runs: usize, changed: &str, factor: f64) -> [usize; 2] {
    let of_pair = |seed: u64| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let base = side(runs, "", 1.0, &mut rng);
        let head = side(runs, changed, factor, &mut rng);
        let compared = compare(&Sides { base, head }, &Settings::default()).unwrap();
        let names = found(&compared);
        [names.contains(&changed), names.iter().any(|name| *name != changed)]
    };
    (1..=pairs)
        .map(of_pair)
        .fold([0; 2], |[hits, others], [hit, other]| [hits + usize::from(hit), others + usize::from(other)])
}

/// What these runs show where one function of each size costs more, and where nothing does.
#[test]
fn null_and_power_of_few_runs() {
    const PAIRS: u64 = 20;
    for (runs, at_least) in [(5, [14, 6, 0]), (3, [4, 1, 0])] {
        let [_, quiet] = significant(PAIRS, runs, "", 1.0);
        println!("{runs} v {runs}, nothing changed: something is significant in {quiet} of {PAIRS} pairs");
        assert!(quiet <= 3, "{quiet} of {PAIRS} pairs have something significant");
        for ((changed, share), at_least) in LARGE.into_iter().zip(at_least) {
            let of_factor = [1.08, 1.15].map(|factor| (factor, significant(PAIRS, runs, changed, factor)));
            println!("{runs} v {runs}, {:.0} %: found, others found, at x {of_factor:?}", 100.0 * share);
            let [_, (_, [hits, others])] = of_factor;
            assert!(hits >= at_least, "{runs} v {runs}, {changed}: {hits} of {PAIRS}");
            assert!(others <= 3, "{others} of {PAIRS} pairs have something else significant");
        }
    }
}

/// The twin of what is said: a change of the size that is named is significant in most pairs, and one of a third of it in fewer.
#[test]
fn what_could_have_been_seen_is_seen() {
    const PAIRS: u64 = 20;
    for runs in [3, 5, 10] {
        let of_seed = |seed: u64| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let sides = Sides { base: side(runs, "", 1.0, &mut rng), head: side(runs, "", 1.0, &mut rng) };
            let compared = compare(&sides, &Settings::default()).unwrap();
            println!("{runs} v {runs}: {}", reach(&compared).unwrap());
            let Reach { ratio, runs: needed, .. } = compared.reach.first().cloned().unwrap();
            assert_eq!(ratio <= 1.1, needed.is_some_and(|needed| needed <= runs), "{ratio} {needed:?}");
            ratio
        };
        let mut ratios: Vec<f64> = (101..=105).map(of_seed).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let ratio = ratios[2];
        let [hits, _] = significant(PAIRS, runs, "of_27", ratio);
        let [thirds, _] = significant(PAIRS, runs, "of_27", 1.0 + (ratio - 1.0) / 3.0);
        println!("  x {ratio:.3}: {hits} of {PAIRS}; a third of that: {thirds}");
        // Three standard errors below .8.
        assert!(hits >= 11, "{hits} of {PAIRS} at x {ratio}");
        assert!(thirds <= 8, "{thirds} of {PAIRS} at a third of it");
    }
}

#[test]
fn nothing_is_said_where_the_variation_between_runs_is_not_known() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let sides = Sides { base: side(1, "", 1.0, &mut rng), head: side(3, "", 1.0, &mut rng) };
    let compared = compare(&sides, &Settings::default()).unwrap();
    assert_eq!((reach(&compared), compared.reach.len()), (None, 0));
}
