//! Nothing changed, one window: how often is anything significant, and do intervals hold the truth?
//!
//! Pods differ in all the ways that fleets are known for: in size, in how much they differ, in a few functions or in all.

use fleetdiff_statistics::{Arms, MIN_EFFECT};

use super::design::{Also, Cell};
use super::figure::{Figure, Observed, Seen};
use super::hidden::is_reported_of_any;
use super::plain::{ln_p_pooled, rejections};
use super::row::{Chance, Row};
use super::window::Window;

/// What is required of most rows.
const P_ANY: f64 = 0.06;
/// What is required where a few functions differ between pods far more than all others.
const P_ANY_RESTLESS: f64 = 0.10;

pub(super) fn rows() -> Vec<Row> {
    [numbers_of_pods(), unequal_arms(), deranged_pods(), restless_functions(), strata()].into_iter().flatten().collect()
}

fn numbers_of_pods() -> Vec<Row> {
    vec![
        row("aa", "12 v 60 pods, CV 10 %", P_ANY, Cell::small(0.1)),
        row("aa-cv30", "12 v 60 pods, CV 30 %", P_ANY, Cell::small(0.3)),
        row("aa-cv50", "12 v 60 pods, CV 50 %", P_ANY, Cell::small(0.5)),
        row("aa-40v760", "40 v 760 pods, CV 10 %, 500 functions", P_ANY, Cell::large(0.1)),
        row("aa-5v84", "5 v 84 pods, CV 10 %", P_ANY, Cell::of(5, 84, 0.1)),
        row("aa-3v16", "3 v 16 pods, CV 10 %", P_ANY, Cell::of(3, 16, 0.1)),
        row("aa-3v16-cv50", "3 v 16 pods, CV 50 %", P_ANY, Cell::of(3, 16, 0.5)),
        row("aa-2v6-cv30", "2 v 6 pods, CV 30 %", P_ANY, Cell::of(2, 6, 0.3)),
        row("aa-2v2", "2 v 2 pods, CV 10 %", P_ANY, Cell::of(2, 2, 0.1)),
    ]
}

fn unequal_arms() -> Vec<Row> {
    let of_five = "12 v 60 pods, CV 10 %; the head's take five times the samples";
    vec![
        row("aa-sizes", "12 v 60 pods, CV 10 %, sizes of sd 1", P_ANY, Cell::small(0.1).sizes(1.0)),
        row("aa-head-x5", of_five, P_ANY, Cell::small(0.1).head_size(5.0)),
        row("aa-head-cv25", "12 v 60 pods, CV 25 % v 10 %", P_ANY, Cell::small(0.1).head_cv(0.25)),
        row("aa-head-cv25-5v84", "5 v 84 pods, CV 25 % v 10 %", P_ANY, Cell::of(5, 84, 0.1).head_cv(0.25)),
        row("aa-head-cv25-3v16", "3 v 16 pods, CV 25 % v 10 %", P_ANY, Cell::of(3, 16, 0.1).head_cv(0.25)),
        row("aa-head-cv40-2v6", "2 v 6 pods, CV 40 % v 30 %", P_ANY, Cell::of(2, 6, 0.3).head_cv(0.4)),
    ]
}

/// One head pod is off in a fifth of its functions.
fn deranged_pods() -> Vec<Row> {
    let one = |name, simulates, cell: Cell| row(name, simulates, P_ANY, cell.also(Also::DerangedHeadPod));
    vec![
        one(
            "aa-deranged-of-2",
            "2 v 6 pods, CV 10 %; one head pod is off in 20 % of its functions (sd 1)",
            Cell::of(2, 6, 0.1),
        ),
        one("aa-deranged-of-3", "the same with 3 v 16 pods", Cell::of(3, 16, 0.1)),
        one("aa-deranged-of-5", "the same with 5 v 84 pods", Cell::of(5, 84, 0.1)),
        one("aa-deranged-of-12", "the same with 12 v 60 pods", Cell::small(0.1)),
    ]
}

/// Some functions differ between pods far more than others, in both arms.
fn restless_functions() -> Vec<Row> {
    let factor = "12 v 60 pods, CV 10 %; each pod has a factor of its own (sd .3) for 30 % of the functions";
    vec![
        row(
            "aa-restless",
            "12 v 60 pods, CV 10 %; 5 % of the functions differ by CV 90 %",
            P_ANY,
            Cell::small(0.1).also(Also::Restless(0.05)),
        ),
        row(
            "aa-restless-3v6",
            "the same with 3 v 6 pods",
            P_ANY_RESTLESS,
            Cell::of(3, 6, 0.1).also(Also::Restless(0.05)),
        ),
        row("aa-factor-of-the-pod", factor, P_ANY_RESTLESS, Cell::small(0.1).also(Also::FactorOfThePod)),
    ]
}

/// Arms that ran at different hours, or on different machines.
fn strata() -> Vec<Row> {
    let hardware = Also::Hardware { newer: Arms { head: 0.9, base: 0.1 }, is_labelled: true };
    let hours = Also::Hours { next: Arms { head: 0.8, base: 0.3 } };
    vec![
        row(
            "aa-hardware",
            "12 v 60 pods, CV 10 %; 90 % of the head and 10 % of the base run on newer hardware (sd .1)",
            P_ANY,
            Cell::small(0.1).also(hardware),
        ),
        row(
            "aa-hour",
            "12 v 60 pods, CV 10 %, across an hour: .8 of the head's samples and .3 of the base's are taken after it (sd .1)",
            P_ANY,
            Cell::small(0.1).also(hours),
        ),
        row("aa-hour-5v30-cv50", "the same with 5 v 30 pods, CV 50 %", P_ANY, Cell::of(5, 30, 0.5).also(hours)),
    ]
}

/// What is required where nothing changed.
pub(super) fn figures(bound: f64) -> Vec<Figure> {
    vec![Figure::rate("P(any row significant)").at_most(bound), Figure::mean("rows significant a run")]
}

/// What a run shows of them, from numbers of significant rows.
pub(super) fn of_numbers(ours: usize, plain: usize) -> Vec<Observed> {
    vec![
        Observed::beside(Seen::whether(ours > 0), Seen::whether(plain > 0)),
        Observed::beside(Seen::count(ours), Seen::count(plain)),
    ]
}

fn row(name: &'static str, simulates: &'static str, bound: f64, cell: Cell) -> Row {
    let mut figures = figures(bound);
    figures.extend([
        Figure::mean("part of the 95 % intervals that hold the truth").between(0.94, 0.975),
        Figure::most("rows whose p and interval disagree").at_most(0.0),
        Figure::rate("P(`hidden_groups` or `hidden_factor`), of pods or buckets").at_most(0.03),
    ]);
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let drawn = cell.draw_by_pod(&cell.unchanged(), &mut chance.rng);
        let window = Window::of(drawn.hashed.contrast(), MIN_EFFECT);
        let significant = window.significant().into_iter().filter(|&significant| significant).count();
        let mut observed = of_numbers(significant, rejections(&ln_p_pooled(&drawn.hashed.strata)));
        observed.extend([
            Observed::only(Seen::Number(window.coverage())),
            Observed::only(Seen::count(window.disagreements())),
            Observed::only(Seen::whether(is_reported_of_any(&drawn))),
        ]);
        observed
    })
}
