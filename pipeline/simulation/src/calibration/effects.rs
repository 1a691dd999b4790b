//! Eighteen functions of 500 really changed: are they found, and how many others are significant too?

use std::ops::RangeInclusive;

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::rows_of_cell;

use super::figure::{Figure, Observed, Seen};
use super::model::{FUNCTIONS, Means, Noise, Pair, SAMPLES, pods, zipf};
use super::plain::{ln_p_pooled, significant};
use super::row::{Chance, Row};

/// Ranks of the functions that change, alternately more expensive and cheaper: shares of 5.0 to .4 %, 25 % in total.
/// With this number the plain test is wrong as often as the definition of the statistics states (.27 and .55 of its
/// significant rows).
const CHANGED: RangeInclusive<usize> = 4..=21;
/// Ranks of those whose power is measured, all more expensive: shares of 1.25, .95 and .76 %.
const MEASURED: [usize; 3] = [10, 12, 14];

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("effects-cv5", "40 v 760 pods, CV 5 %; 18 of 500 functions cost 5 % more or less", 0.05, 1.05, 0.07),
        row("effects-cv10", "40 v 760 pods, CV 10 %; 18 of 500 functions cost 10 % more or less", 0.10, 1.10, 0.08),
    ]
}

fn row(name: &'static str, simulates: &'static str, cv: f64, factor: f64, false_discoveries: f64) -> Row {
    let shares = zipf();
    let figures = vec![
        Figure::mean("part of the called rows that are false").at_most(false_discoveries),
        Figure::rate("found, of functions of about 1 %").at_least(0.95),
    ];
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let mut arm = |count, costs: &[f64]| {
            let pods = pods(count, &shares, &Noise::of(cv), &mut chance.rng);
            Means::of(&pods, SAMPLES, costs).draw(&mut chance.rng)
        };
        let pair = Pair { head: arm(40, &costs(factor)), base: arm(760, &[1.0; FUNCTIONS]) };
        let rows = rows_of_cell(&pair.contrast(), None, 0.0);
        let (ours, plain) = (significant(&rows.adjusted.ln_p), significant(&ln_p_pooled([&pair])));
        vec![
            Observed::beside(Seen::Number(false_part(&ours)), Seen::Number(false_part(&plain))),
            Observed::beside(found(&ours), found(&plain)),
        ]
    })
}

fn costs(factor: f64) -> Vec<f64> {
    let cost = |rank: usize| match rank {
        _ if !CHANGED.contains(&rank) => 1.0,
        _ if rank.is_multiple_of(2) => factor,
        _ => 1.0 / factor,
    };
    (1..=FUNCTIONS).map(cost).collect()
}

/// False discoveries over discoveries; 0 without any.
fn false_part(significant: &[bool]) -> f64 {
    let calls = (1..).zip(significant).filter(|(_, significant)| **significant);
    let (all, wrong) =
        calls.fold((0, 0), |(all, wrong), (rank, _)| (all + 1, wrong + usize::from(!CHANGED.contains(&rank))));
    if all == 0 { 0.0 } else { length_float(wrong) / length_float(all) }
}

fn found(significant: &[bool]) -> Seen {
    let hits = MEASURED.iter().map(|rank| u32::from(significant[rank - 1])).sum();
    Seen::Hits { hits, of: 3 }
}
