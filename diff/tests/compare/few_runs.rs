//! One run a side, and a few: what stands out, and what is not known to be a change.

use fleetdiff_diff::compare::{Compared, Recording, Settings, compare};
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::reading::SLICES;
use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::verdict::Verdict;

use super::{FUNCTIONS, found, own, run};

/// A run of 300 functions that hardly differ with the noise, and of these others, last.
fn beside_the_rest(noise: u64, others: &[(&str, u64)]) -> Recording {
    let rest: Vec<(String, u64)> =
        (0..FUNCTIONS).map(|number| (format!("f{number}"), 990 + u64::from(number) * noise % 21)).collect();
    let counts: Vec<(&str, u64)> =
        rest.iter().map(|(name, count)| (name.as_str(), *count)).chain(others.iter().copied()).collect();
    run(&counts)
}

/// So many runs of each side, in which only this function differs.
fn few(function: &str, runs: u64, base: u64, head: u64) -> (Verdict, String) {
    let side = |one: u64, first: u64| -> Vec<Recording> {
        let of = |noise: u64| Recording {
            label: format!("run {noise}"),
            ..beside_the_rest(noise, &[(function, one + noise)])
        };
        (first..first + runs).map(of).collect()
    };
    let compared = compare(&Sides { base: side(base, 5), head: side(head, 40) }, &Settings::default()).unwrap();
    let row = own(&compared, function);
    println!("{function} in {runs} runs a side: {row:?}");
    (row.verdict, row.detail.clone().unwrap_or_default())
}

/// Single runs, of which one function differs; beside it a large one that moves the shares of all others.
fn with_one(base: u64, head: u64, large: [u64; 2]) -> Compared {
    let side = |one: u64, large: u64, noise: u64| beside_the_rest(noise, &[("one", one), ("large", large)]);
    let sides = Sides { base: vec![side(base, large[0], 5)], head: vec![side(head, large[1], 8)] };
    compare(&sides, &Settings::default()).unwrap()
}

#[test]
fn regression_less_than_half_a_percent_of_all_samples_does_not_stand_out_and_says_why() {
    // In the second pair all shares grow, since the large function shrank; the row of the one is not the work of others.
    for large in [[20_000, 20_000], [40_000, 20_000]] {
        let compared = with_one(200, 1_100, large);
        let row = own(&compared, "one");
        println!("{row:?}; {} tested", compared.findings.iter().filter(|row| row.ln_p.is_some()).count());
        assert!(row.q_value.unwrap() < 0.05 && row.verdict == Verdict::Inconclusive);
        assert!(row.detail.as_ref().unwrap().contains("less than 0.5 % of all samples"));
        // The twin.
        let compared = with_one(700, 3_500, large);
        assert!(found(&compared).contains(&"one"), "{:?}", found(&compared));
    }
}

#[test]
fn regression_two_runs_do_not_know_less_than_half_a_percent_of_all_samples() {
    let (verdict, detail) = few("one", 2, 200, 1_100);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(detail.contains("less than 0.5 % of all samples"), "{detail}");
    // The twins: more of all samples, and more runs.
    assert_eq!(few("one", 2, 700, 3_500).0, Verdict::Regressed);
    assert_eq!(few("one", 3, 200, 1_100).0, Verdict::Regressed);
}

/// What runtimes and kernels do varies by a multiple from run to run, more than three or four runs show.
#[test]
fn regression_a_few_runs_do_not_know_what_a_scheduler_does() {
    let (verdict, detail) = few("runtime.lock2", 4, 9_000, 12_500);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(detail.contains("no more than other functions"), "{detail}");
    // The twins: the program's own function, and more runs.
    assert_eq!(few("one", 4, 9_000, 12_500).0, Verdict::Regressed);
    assert_eq!(few("runtime.lock2", 5, 9_000, 12_500).0, Verdict::Regressed);
}

/// A run of the same functions in each stretch of its time, but for the last, which is in so many of them.
fn in_stretches(whole: Recording, last_in: usize) -> Recording {
    let Samples::Stacks(stacks) = &whole.profile.samples else { panic!("no stacks") };
    let last = stacks.last().unwrap().frames[1];
    let (mut cut, mut ends) = (Vec::new(), Vec::new());
    for slice in 0..SLICES {
        for stack in stacks {
            let slices = if stack.frames[1] == last { last_in } else { SLICES };
            let part =
                |slice: usize| stack.count * u64::try_from(slice.min(slices)).unwrap() / u64::try_from(slices).unwrap();
            let count = part(slice + 1) - part(slice);
            cut.extend((count > 0).then(|| Stack { count, ..stack.clone() }));
        }
        ends.push(cut.len());
    }
    let profile = Profile { samples: Samples::Stacks(cut), ..whole.profile.clone() };
    Recording { slices: Some(ends), profile, ..whole }
}

#[test]
fn regression_what_comes_in_one_burst_is_no_hundred_independent_samples() {
    let found = |last_in: usize| {
        let side = |one: u64, noise: u64| in_stretches(beside_the_rest(noise, &[("once", one)]), last_in);
        let sides = Sides { base: vec![side(700, 5)], head: vec![side(3_500, 8)] };
        let compared = compare(&sides, &Settings::default()).unwrap();
        let row = own(&compared, "once");
        println!("in {last_in} of {SLICES} stretches: {row:?}");
        (row.verdict, row.ratio.unwrap())
    };
    let (verdict, even) = found(SLICES);
    assert_eq!(verdict, Verdict::StandsOut);
    let (verdict, burst) = found(1);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(burst.low < even.low && burst.high > even.high && burst.low < 1.0, "{burst:?} {even:?}");
}
