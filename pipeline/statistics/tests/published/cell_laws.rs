//! Laws of the tests of a cell: exchange, order, layout, and the pass over blocks against plain loops.

use fleetdiff_statistics::compositional::moved_with_the_rest;
use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::live::live_rows;
use fleetdiff_statistics::one_pod::{LeaveOneOut, OnePod};
use fleetdiff_statistics::pooled::is_due;
use fleetdiff_statistics::requests::PerRequest;
use fleetdiff_statistics::self_check::{SplitBy, SplitPod, splits};
use fleetdiff_statistics::{
    Arm, Arms, CellRows, Contrast, Hops, MIN_EFFECT, Measure, Model, Scales, Side, Stratum, Tests, rows_of_cell,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::plain::{PlainArm, shown};
use crate::vectors::{ArmData, contrast};

/// Functions of a cell.
const FUNCTIONS: usize = 45;
/// kappa of each class of weights.
const KAPPA: [f64; 7] = [0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0];

/// Counts by bucket, then function: Zipf-like, with pods that differ; an empty bucket in five.
fn buckets(buckets: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    let count = |f: usize| (0..100_u32).prop_map(move |noise| (f64::from(noise) / 50.0 + 9.0) * 600.0 / cost_rank(f));
    let counts = (0..FUNCTIONS).map(count).collect::<Vec<_>>().prop_map(|row| row.iter().map(|x| x.round()).collect());
    let bucket = (0..5_u32, counts).prop_map(
        |(empty, counts): (u32, Vec<f64>)| {
            if empty == 0 { vec![0.0; FUNCTIONS] } else { counts }
        },
    );
    vec(bucket, buckets)
}

fn cost_rank(f: usize) -> f64 {
    f64::from(u32::try_from(f * 7 % FUNCTIONS).expect("few")) + 1.0
}

/// One to three strata of an arm with three to nine buckets; the first two buckets of the first stratum are occupied.
fn arm(strata: usize) -> impl Strategy<Value = ArmData> {
    (3..10_usize).prop_flat_map(move |n| vec(buckets(n), strata)).prop_map(|mut counts| {
        for bucket in counts[0].iter_mut().take(2) {
            (0..FUNCTIONS).for_each(|f| bucket[f] += (40.0 / cost_rank(f)).round() + 3.0);
        }
        ArmData::of_pods(counts)
    })
}

fn cell() -> impl Strategy<Value = Arms<ArmData>> {
    (1..4_usize).prop_flat_map(|strata| (arm(strata), arm(strata))).prop_map(|(head, base)| Arms { head, base })
}

/// The same cell with each stratum of each arm changed.
fn of_strata(arms: &Arms<ArmData>, change: impl Fn(&[Vec<f64>]) -> Vec<Vec<f64>>) -> Arms<ArmData> {
    arms.as_ref().map(|arm| ArmData::of_pods(arm.counts.iter().map(|stratum| change(stratum)).collect()))
}

fn measured(arms: &Arms<ArmData>) -> Tests {
    Tests::measure(&contrast(arms), &Measure::afresh(Model::Share))
}

fn rows(tests: Tests) -> CellRows {
    let scales = Scales::of(&tests, None);
    rows_of_cell(tests, scales, MIN_EFFECT)
}

fn close(x: f64, y: f64, tolerance: f64) -> bool {
    x.is_nan() && y.is_nan() || x.to_bits() == y.to_bits() || (x - y).abs() <= tolerance * (1.0 + x.abs().min(y.abs()))
}

/// Every number that tests say of a function.
fn bits(tests: &Tests, f: usize) -> Vec<u64> {
    let levels = tests.levels[f];
    let arms = [Side::Head, Side::Base].map(|side| (levels.arms[side], tests.dispersion[side][f]));
    let of_arm = arms
        .into_iter()
        .flat_map(|(level, shown)| [level.share, level.counting, level.between, shown.ratio, shown.df, shown.phi]);
    of_arm.chain([levels.df, levels.ln_p(1.0), levels.ln_p(1.03)]).map(f64::to_bits).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The pass over blocks is the plain loops.
    #[test]
    fn law_blocks_are_plain_loops(arms in cell()) {
        let tests = measured(&arms);
        let shared = |s: &usize| arms.both().iter().all(|arm| arm.samples[*s].iter().sum::<f64>() > 0.0);
        let strata: Vec<usize> = (0..arms.head.counts.len()).filter(shared).collect();
        prop_assert_eq!(tests.strata, strata.len());
        let plain = arms.as_ref().map(|arm| PlainArm::of(arm, &strata));
        let per_pod = tests.exposure() / (tests.size.head.pods + tests.size.base.pods);
        let mut compared = 0;
        for f in (0..FUNCTIONS).filter(|&f| tests.tested[f]) {
            let expected = shown(&plain, f, KAPPA[usize::from(tests.class[f])] / per_pod, tests.pooled.spread);
            for side in Side::BOTH {
                let (level, found, expected) = (tests.levels[f].arms[side], tests.dispersion[side][f], &expected[side]);
                if expected.df <= 0.0 {
                    continue;
                }
                let counting = (1.0 - tests.share_of_cost(f)) * expected.counting;
                let p = expected.share;
                let ratio = expected.variance / (counting * p + expected.between * p * p);
                let pairs = [
                    (level.share, p),
                    (level.counting, found.phi * counting),
                    (level.between, found.phi * expected.between),
                    (found.ratio, ratio),
                    (found.df, expected.df),
                ];
                for (one, other) in pairs {
                    prop_assert!((one - other).abs() <= 1e-12 * other.abs().max(1e-12), "{f} {side:?}: {one} {other}");
                }
                compared += 1;
            }
        }
        prop_assert!(compared > 0);
        for side in Side::BOTH {
            let enough = |&f: &usize| tests.tested[f] && tests.counts[side][f] >= 10.0;
            let mut counts: Vec<f64> = (0..FUNCTIONS).filter(enough).map(|f| tests.count(f)).collect();
            counts.sort_by(f64::total_cmp);
            let middle = 0.5 * (counts[(counts.len() - 1) / 2] + counts[counts.len() / 2]);
            let best = (0..FUNCTIONS).filter(enough).filter(|&f| tests.count(f) >= middle);
            let mut estimates: Vec<f64> = best.map(|f| plain[side].spread(&plain[side.other()], f)).collect();
            estimates.sort_by(f64::total_cmp);
            let median = 0.5 * (estimates[(estimates.len() - 1) / 2] + estimates[estimates.len() / 2]);
            let found = tests.pooled.spread[side];
            prop_assert!(median.is_nan() || (found - median.max(0.0)).abs() <= 1e-12, "{found} {median}");
        }
    }

    /// Arms exchanged: the opposite effect, the same evidence.
    #[test]
    fn law_arms_exchanged(arms in cell()) {
        let (there, back) = (measured(&arms), measured(&Arms { head: arms.base, base: arms.head }));
        for f in (0..FUNCTIONS).filter(|&f| there.tested[f]) {
            let (one, other) = (there.levels[f], back.levels[f]);
            prop_assert!(close(one.theta(), -other.theta(), 1e-11));
            prop_assert!(close(one.ln_p(1.0), other.ln_p(1.0), 1e-7), "{} {}", one.ln_p(1.0), other.ln_p(1.0));
            prop_assert!(close(one.ln_p(1.05), other.ln_p(1.0 / 1.05), 1e-7));
            prop_assert!(close(one.variance(), other.variance(), 1e-9));
        }
    }

    /// The order of buckets does not matter, nor does that of functions that differ in count.
    #[test]
    fn law_order_does_not_matter(arms in cell(), by in 1..9_usize) {
        let buckets = of_strata(&arms, |stratum| {
            let mut turned = stratum.to_vec();
            turned.rotate_left(by % stratum.len());
            turned
        });
        let functions = of_strata(&arms, |stratum| stratum.iter().map(|row| row.iter().rev().copied().collect()).collect());
        let (plain, buckets, functions) = (rows(measured(&arms)), rows(measured(&buckets)), rows(measured(&functions)));
        let counts: Vec<f64> = (0..FUNCTIONS).map(|f| plain.tests.count(f)).collect();
        let ties = (0..FUNCTIONS).any(|f| (0..f).any(|g| counts[f].to_bits() == counts[g].to_bits()));
        for f in 0..FUNCTIONS {
            let (own, turned) = (plain.ln_p_row[f], buckets.ln_p_row[f]);
            prop_assert!(close(own, turned, 1e-6), "{own} {turned}");
            prop_assert!(ties || close(own, functions.ln_p_row[FUNCTIONS - 1 - f], 1e-6));
        }
    }

    /// In how many builds an arm's counts lie, how they are stored, strata without an arm, and functions that are not tested:
    /// none of it changes a bit.
    #[test]
    fn law_layout_does_not_matter(arms in cell()) {
        let (plain, whole) = (measured(&arms), contrast(&arms));
        let part = |stratum: &[Vec<f64>]| stratum.iter().map(|row| row.iter().map(|x| (x / 3.0).floor()).collect()).collect();
        let other = |stratum: &[Vec<f64>]| {
            stratum.iter().map(|row| row.iter().map(|x| x - (x / 3.0).floor()).collect()).collect()
        };
        let (first, rest) = (of_strata(&arms, part), of_strata(&arms, other));
        let mut split = contrast(&arms);
        for (s, stratum) in split.strata.iter_mut().enumerate() {
            for side in Side::BOTH {
                for (b, row) in stratum[side].rows.iter_mut().enumerate() {
                    row.counts = vec![&first[side].counts[s][b], &rest[side].counts[s][b]];
                }
            }
        }
        split.strata.push(Stratum { head: split.strata[0].head.clone(), base: Arm::default() });
        let split = Tests::measure(&split, &Measure::afresh(Model::Share));
        let listed: Vec<u32> = (0..45).filter(|&f| plain.tested[usize::try_from(f).expect("few")]).collect();
        let order: Vec<u32> = (0..u32::try_from(listed.len()).expect("few")).collect();
        let only = Contrast { only: Some(listed.clone()), order, ..whole };
        let only = Tests::measure(&only, &Measure::afresh(Model::Share));
        prop_assert_eq!(only.tests, plain.tests);
        for f in 0..FUNCTIONS {
            prop_assert_eq!(bits(&plain, f), bits(&split, f));
        }
        for (place, &f) in listed.iter().enumerate() {
            prop_assert_eq!(bits(&plain, usize::try_from(f).expect("few")), bits(&only, place));
        }
        prop_assert_eq!(Scales::of(&plain, None), Scales::of(&only, None));
        let picked = plain.only(&[7, 3, 40]);
        for (place, f) in [7, 3, 40].into_iter().enumerate() {
            prop_assert_eq!(bits(&picked, place), bits(&plain, f));
        }
    }

    /// Reading hops only where they may bind gives the bits of factors of every function.
    #[test]
    fn law_hops_are_read_where_they_bind(mut arms in cell(), bursts in vec(0..40_u32, FUNCTIONS), q in 0.05..1.0_f64) {
        for arm in [&mut arms.head, &mut arms.base] {
            for (f, &burst) in bursts.iter().enumerate() {
                let pairs = |row: &Vec<f64>| row[f] * row[f] * q * f64::from(burst) / 20.0;
                arm.hop_pairs[f] = arm.counts.iter().flatten().map(pairs).sum();
            }
            arm.hop_concentrations.iter_mut().flatten().for_each(|own| *own = q);
        }
        let none = vec![0.0; FUNCTIONS];
        let mut whole = contrast(&arms);
        for stratum in whole.strata.iter_mut().skip(1) {
            Side::BOTH.iter().for_each(|&side| stratum[side].hop_pairs = vec![&none]);
        }
        prop_assume!(whole.dropped(Model::Share) == 0);
        let factors = arms.as_ref().map(ArmData::fano);
        let measure = |hops: Hops<'_>| Tests::measure(&whole, &Measure { hops, ..Measure::afresh(Model::Share) });
        let (all, binding) = (measure(Hops::Factors(&factors)), measure(Hops::OfContrast));
        (0..FUNCTIONS).for_each(|f| assert_eq!(bits(&all, f), bits(&binding, f)));
    }

    /// What is held gives the bits of what is measured afresh, as long as nothing changed; then rows move, what is held does not.
    #[test]
    fn law_held_is_what_was_measured(arms in cell(), f in 0..FUNCTIONS) {
        let (contrast_of, tests) = (contrast(&arms), measured(&arms));
        let pooled = tests.pooled.clone();
        let held = Tests::measure(&contrast_of, &Measure { held: Some(&pooled), ..Measure::afresh(Model::Share) });
        (0..FUNCTIONS).for_each(|f| assert_eq!(bits(&tests, f), bits(&held, f)));
        let mut changed = arms.as_ref().map(|arm| arm.counts.clone());
        changed.head[0].iter_mut().for_each(|row| row[f] += (row[f] / 2.0).round());
        let changed = changed.map(ArmData::of_pods);
        let later = Tests::measure(&contrast(&changed), &Measure { held: Some(&pooled), ..Measure::afresh(Model::Share) });
        prop_assert_eq!(&later.pooled, &pooled);
        prop_assert!(later.levels[f].theta() > tests.levels[f].theta() || !tests.tested[f]);
    }

    /// What is not known of the scale makes no row of a look more certain than that of a report, and its interval no narrower.
    #[test]
    fn law_a_look_is_not_more_certain_than_a_report(arms in cell()) {
        let tests = measured(&arms);
        let (report, look) = (Scales::of(&tests, None), Scales::of_look(&tests, None));
        prop_assert_eq!(report.variance.to_bits(), 0.0_f64.to_bits());
        prop_assert_eq!(report.deciding, look.deciding);
        prop_assert!(look.variance > 0.0 && look.variance < 1.0 && look.rivals.len() <= report.rivals.len() + 1);
        let [report, look] = [report, look].map(|scales| rows_of_cell(tests.clone(), scales, MIN_EFFECT));
        for f in (0..FUNCTIONS).filter(|&f| tests.tested[f]) {
            prop_assert!(look.ln_p[f] >= report.ln_p[f] && look.ln_e[f] <= report.ln_e[f].max(0.0) + 1e-9);
            let [wide, narrow] = [look.interval(f, 0.95), report.interval(f, 0.95)];
            prop_assert!(wide.low <= narrow.low + 1e-8 && wide.high >= narrow.high - 1e-8);
        }
    }

    /// Live rows are the report's rows above the floor.
    #[test]
    fn law_live_is_the_report(arms in cell(), floor in 1.0..1000.0_f64, ln_scale in -0.3..0.3_f64, rival in -0.3..0.3_f64, two in any::<bool>(), variance in 0.0..0.01_f64) {
        let mut scales = Scales { variance, ..Scales::UNCHANGED };
        scales.deciding.ln_scale = ln_scale;
        if two {
            scales.rivals = vec![fleetdiff_statistics::normalization::Mode { ln_scale: rival, mass: 0.4 }];
        }
        let report = rows_of_cell(measured(&arms), scales.clone(), MIN_EFFECT);
        let mut live = live_rows(&report.tests, &scales, floor).into_iter().peekable();
        for f in 0..FUNCTIONS {
            match live.next_if(|row| row.place == f) {
                Some(row) => {
                    let expected = [report.ln_p[f], report.ln_e[f], report.theta[f]].map(f64::to_bits);
                    prop_assert_eq!([row.ln_p, row.ln_e, row.theta].map(f64::to_bits), expected);
                    prop_assert_eq!(row.contradicts, report.contradicts[f]);
                }
                None => prop_assert!(report.ln_e[f].is_nan() || report.ln_e[f] < floor.ln(), "{}", report.ln_e[f]),
            }
        }
        prop_assert!(live.peek().is_none());
    }

    /// What moved with the rest is what all tests of all functions say of it.
    #[test]
    fn law_moved_with_the_rest(arms in cell(), times in 5..40_u32, q in 0.001..0.3_f64) {
        let mut counts = arms.as_ref().map(|arm| arm.counts.clone());
        counts.head.iter_mut().flatten().for_each(|row| row[0] *= f64::from(times));
        let report = rows(measured(&counts.map(ArmData::of_pods)));
        let ln_scale = report.scales.deciding.ln_scale;
        let rejected = bh(&report.ln_p_comp);
        let moved = |f: &usize| {
            let share = report.theta[*f] + ln_scale;
            share * ln_scale > 0.0 && report.theta[*f].abs() < share.abs()
        };
        let expected: Vec<usize> = (0..FUNCTIONS).filter(|&f| selected(rejected[f], q)).filter(moved).collect();
        let expected = if ln_scale.abs() < MIN_EFFECT { Vec::new() } else { expected };
        prop_assert_eq!(moved_with_the_rest(&report.tests, &report.scales, q, MIN_EFFECT), expected);
    }

    /// p of a row is at most 1, and the interval of 95 % leaves out the scale exactly if p < .05.
    #[test]
    fn law_rows_and_intervals_agree(arms in cell()) {
        let report = rows(measured(&arms));
        for f in (0..FUNCTIONS).filter(|&f| report.tests.tested[f]) {
            prop_assert!(report.ln_p_row[f] <= 0.0 && report.ln_p_row[f] >= report.ln_p[f]);
            let interval = report.interval(f, 0.95);
            let outside = interval.low > 0.0 || interval.high < 0.0;
            let own = report.tests.levels[f].ln_p(report.scales.deciding.ln_scale.exp());
            prop_assert!(outside == (own < 0.05_f64.ln()) || (own - 0.05_f64.ln()).abs() < 1e-7);
        }
    }
}

/// Pods that differ by a few per cent, from a fixed pattern.
fn pods(count: u32, factor: impl Fn(usize, u32) -> f64) -> Vec<Vec<f64>> {
    let wobble = |f: usize, pod: u32| 1.0 + f64::from((7 * pod + 3 * u32::try_from(f).expect("few")) % 11) / 200.0;
    (0..count)
        .map(|pod| {
            (0..FUNCTIONS).map(|f| (30_000.0 / cost_rank(f) * wobble(f, pod) * factor(f, pod)).round()).collect()
        })
        .collect()
}

fn one_stratum(head: Vec<Vec<f64>>, base: Vec<Vec<f64>>) -> Arms<ArmData> {
    Arms { head: ArmData::of_pods(vec![head]), base: ArmData::of_pods(vec![base]) }
}

/// Degenerate cells give NaN, not panics or numbers.
#[test]
fn law_nothing_to_test() {
    let few = |pods: Vec<Vec<f64>>| ArmData::of_pods(vec![pods]);
    let cells = [
        (few(vec![vec![40.0, 60.0]]), few(vec![vec![50.0, 70.0]])),
        (few(vec![vec![0.0, 0.0]]), few(vec![vec![50.0, 70.0]])),
        (few(vec![vec![], vec![]]), few(vec![vec![], vec![]])),
    ];
    for (head, base) in cells {
        let arms = Arms { head, base };
        let report = rows(measured(&arms));
        assert_eq!((report.tests.tests, report.scales.clone()), (0, Scales::UNCHANGED));
        assert!(report.ln_p_row.iter().chain(&report.ln_e).all(|value| value.is_nan()));
        assert!(live_rows(&report.tests, &report.scales, 1.0).is_empty());
        assert!((0..report.theta.len()).all(|f| report.interval(f, 0.95).low.is_nan()));
    }
}

/// A function that is in every sample of the cell has no variance of its own; requests are not used up by it.
#[test]
fn law_all_samples_are_not_tested() {
    let whole = || vec![vec![400.0, 0.0], vec![500.0, 0.0]];
    let arms = one_stratum(whole(), whole());
    assert_eq!(measured(&arms).tested, [false, false]);
    assert_eq!(Tests::measure(&contrast(&arms), &Measure::afresh(Model::Rate)).tested, [true, false]);
    let untested = Contrast { untested: [Some(0), None], ..contrast(&arms) };
    assert_eq!(Tests::measure(&untested, &Measure::afresh(Model::Rate)).tested, [false, false]);
}

/// Every function costs 1.3 times as much: no share moves, the one row says it.
#[test]
fn per_request_uniform_change() {
    let requests = |arm: &mut ArmData| arm.requests[0].iter_mut().for_each(|requests| *requests = 1000.0);
    let mut arms = one_stratum(pods(12, |_, _| 1.3), pods(14, |_, _| 1.0));
    requests(&mut arms.head);
    requests(&mut arms.base);
    let found = PerRequest::measure(&contrast(&arms));
    let all = found.all.levels[0];
    assert!((all.theta().exp() - 1.3).abs() < 0.02 && all.ln_p(1.0) < -20.0, "{all:?}");
    assert!(found.functions.levels.iter().all(|levels| (levels.theta().exp() - 1.3).abs() < 0.05));
    let shares = rows(measured(&arms));
    assert!(shares.ln_p_row.iter().all(|&p| p > -3.0), "no share moves");
    let mut silent = contrast(&arms);
    silent.strata[0].head.rows.iter_mut().take(3).for_each(|row| row.requests = 0);
    let silent = PerRequest::measure(&silent);
    assert_eq!((silent.all.size.head.pods.to_bits(), silent.functions.strata), (9.0_f64.to_bits(), 1));
}

/// One pod of two that is four times as hot makes a row, and is named; without it the row is gone.
#[test]
fn one_pod_is_named() {
    let deranged = |f: usize, pod: u32| if f == 12 && pod == 1 { 4.0 } else { 1.0 };
    let both = |f: usize, _| if f == 12 { 4.0 } else { 1.0 };
    for (head, expected) in [
        (pods(2, deranged), Some(OnePod { side: Side::Head, bucket: 1 })),
        (pods(2, both), None),
        (pods(6, deranged), None),
    ] {
        let arms = one_stratum(head, pods(12, |_, _| 1.0));
        let contrast = contrast(&arms);
        let tests = Tests::measure(&contrast, &Measure::afresh(Model::Share));
        assert_eq!(LeaveOneOut::new(&contrast, Model::Share).one_pod(&tests, 12, 0.0), expected);
    }
}

/// A burst in one hop is clumped, the same samples in every hop are not; a wider variance follows.
#[test]
fn bursts_widen_the_variance() {
    let mut arms = one_stratum(pods(4, |_, _| 1.0), pods(4, |_, _| 1.0));
    let hops = 10.0;
    for arm in [&mut arms.head, &mut arms.base] {
        arm.hop_concentrations[0].iter_mut().for_each(|q| *q = 1.0 / hops);
        for f in 0..FUNCTIONS {
            let together = |x: f64| if f == 20 { x * (x - 1.0) } else { x * (x / hops - 1.0) };
            arm.hop_pairs[f] = arm.counts[0].iter().map(|row| together(row[f])).sum();
        }
    }
    let contrast = contrast(&arms);
    let factors = arms.as_ref().map(ArmData::fano);
    assert!(factors.head[20] > 100.0 && factors.head[19] < 1.01, "{:?}", factors.head);
    let measure = |hops: Hops<'_>| Tests::measure(&contrast, &Measure { hops, ..Measure::afresh(Model::Share) });
    let (plain, clumped, held) = (measure(Hops::Unknown), measure(Hops::Factors(&factors)), measure(Hops::OfContrast));
    assert!(clumped.levels[20].variance() > 10.0 * plain.levels[20].variance());
    assert_eq!(clumped.levels[0].variance().to_bits(), plain.levels[0].variance().to_bits());
    (0..FUNCTIONS).for_each(|f| assert_eq!(bits(&clumped, f), bits(&held, f)));
}

/// Every split has two pods on each side; nodes are kept together.
#[test]
fn splits_of_an_arm() {
    let nodes = ["a", "b", "c", "d"];
    let pod = |i: u32| SplitPod {
        hash: u64::from(i * 5),
        node: Some(nodes[usize::try_from(i % 4).expect("few")]),
        started: -i64::from(i),
        samples: u64::from(i % 3),
    };
    let pods: Vec<SplitPod<'_>> = (0..8).map(pod).collect();
    let found = splits(&pods);
    let side = |by: SplitBy| -> Vec<usize> {
        found.iter().filter(|(of, _)| *of == by).flat_map(|(_, side)| side.iter().copied()).collect()
    };
    assert_eq!(side(SplitBy::Hash), [1, 3, 5, 7]);
    assert_eq!(side(SplitBy::Age), [4, 5, 6, 7], "the first to start");
    assert_eq!(side(SplitBy::Size), [0, 1, 3, 6], "those with the fewest samples, ties by hash");
    assert_eq!(side(SplitBy::Node), [0, 1, 4, 5]);
    assert!(splits(&pods[..3]).is_empty());
    assert!(splits(&pods[..4]).iter().all(|(by, side)| *by != SplitBy::Node || side.len() == 2));
}

/// Every cell has its turn once in six looks.
#[test]
fn cells_take_turns() {
    for cell in [0, 7, u64::MAX, 1 << 63] {
        let turns = (1000..1006).filter(|&look| is_due(look, cell)).count();
        assert_eq!(turns, 1);
    }
}
