//! Four of forty head pods run a function 1.6 times as much: is it found, are they named, and is anything else
//! significant?

use std::collections::BTreeSet;

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::MIN_EFFECT;
use fleetdiff_statistics::outliers::{PodRow, Settings, outliers};

use super::chance::poisson;
use super::figure::{Figure, Observed, Seen};
use super::model::{
    MANY_FUNCTIONS as FUNCTIONS, Noise, ONE_PERCENT, Pair, Pod, Row as BucketRow, SAMPLES, Table, contrast_of_one,
    pods, shares,
};
use super::plain::{ln_p_pooled, significant};
use super::row::{Chance, Q, Row};
use super::window::Window;
use crate::fleet::random::Generator;

/// The function of 1 %.
const FUNCTION: usize = ONE_PERCENT;
const FACTOR: f64 = 1.6;
/// Head pods, the first of which are outlying.
const HEAD: usize = 40;
const OUTLYING: u32 = 4;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "minority-cv5",
            "4 of 40 head pods at x 1.6 in one function of 1 %, beside 760 base pods, CV 5 %; test of single pods",
            0.05,
            true,
        ),
        row("minority-cv10", "the same with CV 10 %", 0.10, false),
    ]
}

fn row(name: &'static str, simulates: &'static str, cv: f64, names_required: bool) -> Row {
    let shares = shares(FUNCTIONS);
    let named = Figure::rate("outlying pods named");
    let figures = vec![
        Figure::rate("the function found").at_least(0.9),
        if names_required { named.at_least(0.9) } else { named },
        Figure::mean("part of the significant functions that are false").at_most(0.06),
        Figure::mean("other pods named a run"),
        Figure::rate("the function found by the test of means"),
    ];
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let mut arm = |count, outlying| {
            counted(&pods(count, &shares, &Noise::of(cv), &mut chance.rng), outlying, &mut chance.rng)
        };
        let (head, base) = (arm(HEAD, OUTLYING), arm(760, 0));
        observed(&head, &base)
    })
}

fn observed(head: &[Counted], base: &[Counted]) -> Vec<Observed> {
    let found = outliers(FUNCTIONS, &rows_of(head), &rows_of(base), &Settings::default());
    let significant_here = significant(&found.ln_p);
    let all = significant_here.iter().filter(|&&significant| significant).count();
    let is_found = significant_here[FUNCTION];
    // Within the selection of functions, as the second level of every family.
    let level = Q * length_float(all) / length_float(found.tests.max(1));
    let named: BTreeSet<u32> = if is_found {
        found.minority(FUNCTION, level).into_iter().flatten().map(|pod| pod.pod).collect()
    } else {
        BTreeSet::new()
    };
    let right = named.iter().filter(|&&pod| pod < OUTLYING).count();
    let false_part = if all == 0 { 0.0 } else { length_float(all - usize::from(is_found)) / length_float(all) };
    let pair = Pair { head: by_bucket(head), base: by_bucket(base) };
    let means = Window::of(contrast_of_one(&pair), MIN_EFFECT).significant()[FUNCTION];
    let plain = significant(&ln_p_pooled([&pair]))[FUNCTION];
    vec![
        Observed::only(Seen::whether(is_found)),
        Observed::only(Seen::Hits { hits: u32::try_from(right).unwrap_or(0), of: OUTLYING }),
        Observed::only(Seen::Number(false_part)),
        Observed::only(Seen::count(named.len() - right)),
        Observed::beside(Seen::whether(means), Seen::whether(plain)),
    ]
}

/// One pod and its counts by function.
struct Counted {
    number: u32,
    bucket: u16,
    counts: Vec<u64>,
}

/// Draws each pod's counts; the first `outlying` run the function more.
fn counted(pods: &[Pod], outlying: u32, rng: &mut Generator) -> Vec<Counted> {
    let mut one = |(number, pod): (u32, &Pod)| {
        let factor = |function| if function == FUNCTION && number < outlying { FACTOR } else { 1.0 };
        let means =
            pod.weights.iter().enumerate().map(|(function, weight)| SAMPLES * pod.size * weight * factor(function));
        Counted { number, bucket: pod.bucket, counts: means.map(|mean| u64::from(poisson(mean, rng))).collect() }
    };
    (0..).zip(pods).map(&mut one).collect()
}

fn rows_of(pods: &[Counted]) -> Vec<PodRow<'_>> {
    pods.iter().map(row_of).collect()
}

fn row_of(pod: &Counted) -> PodRow<'_> {
    PodRow { stratum: 0, pod: pod.number, samples: pod.counts.iter().sum(), counts: vec![&pod.counts] }
}

/// The same counts as the test of means takes them.
fn by_bucket(pods: &[Counted]) -> Table {
    let mut table = Table::default();
    let occupied: BTreeSet<u16> = pods.iter().map(|pod| pod.bucket).collect();
    for bucket in occupied {
        let inside: Vec<&Counted> = pods.iter().filter(|pod| pod.bucket == bucket).collect();
        let mut counts = vec![0; FUNCTIONS];
        for pod in &inside {
            counts.iter_mut().zip(&pod.counts).for_each(|(sum, count)| *sum += count);
        }
        table.pods.insert(bucket, u32::try_from(inside.len()).unwrap_or(u32::MAX));
        table.rows.push(BucketRow::new(bucket, counts));
    }
    table
}
