//! Something changed: is it found, and is nothing else significant?

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::MIN_EFFECT;
use fleetdiff_statistics::compositional::moved_with_the_rest;

use super::design::Cell;
use super::figure::{Figure, Observed, Seen};
use super::hidden::is_reported;
use super::model::ONE_PERCENT;
use super::plain::{ln_p_pooled, significant};
use super::row::{Chance, Q, Row};
use super::window::Window;
use crate::fleet::random::{Generator, next_uniform};

/// The function of 18 %.
const HEAVIEST: usize = 0;
/// Functions of less than .2 % each: all but the heaviest thirty.
const SMALL: usize = 270;
/// The part of the functions that change together, and their factor.
const MOST: (f64, f64) = (0.6, 1.2);
/// Functions that change beside the one whose power is measured, their places, and ln of their factors.
const OTHERS: usize = 24;
const OTHER_PLACES: (usize, usize) = (20, 300);
const OTHER_EFFECTS: (f64, f64) = (0.05, 0.3);

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        of_the_heaviest("one-10", "20 v 80 pods, CV 3 %; the function of 18 % costs 10 % more", 1.1),
        of_the_heaviest("one-60", "the same; it costs 60 % more", 1.6),
        small_functions(),
        most_functions(),
    ];
    rows.extend(powers());
    rows.extend([
        discoveries(
            "effects-cv5",
            "40 v 760 pods, CV 5 %, 500 functions; one of 1 % costs 5 % more, 24 others 5 to 35 % more or less; no minimum effect",
            0.05,
            1.05,
        ),
        discoveries("effects-cv10", "the same with CV 10 %; the one costs 10 % more", 0.10, 1.10),
    ]);
    rows
}

/// What one run shows.
struct Run<'c> {
    /// What each function costs in the head.
    costs: &'c [f64],
    window: Window<'c>,
    ours: Vec<bool>,
    plain: Vec<bool>,
}

impl Run<'_> {
    /// Functions that did not change and are significant.
    fn innocent<'r>(&'r self, significant: &'r [bool]) -> impl Iterator<Item = usize> + 'r {
        (0..self.costs.len()).filter(|&place| significant[place] && !self.is_changed(place))
    }

    fn is_changed(&self, place: usize) -> bool {
        (self.costs[place] - 1.0).abs() > 1e-12
    }

    /// How many of the changed functions are significant in the direction of their change.
    fn found(&self) -> Seen {
        let changed = || (0..self.costs.len()).filter(|&place| self.is_changed(place));
        let is_found =
            |&place: &usize| self.ours[place] && (self.window.rows.theta[place] > 0.0) == (self.costs[place] > 1.0);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Seen::Hits { hits: number(changed().filter(is_found).count()), of: number(changed().count()) }
    }

    fn whether_others(&self) -> Observed {
        let any = |significant| Seen::whether(self.innocent(significant).next().is_some());
        Observed::beside(any(&self.ours), any(&self.plain))
    }

    fn number_of_others(&self) -> Observed {
        let number = |significant| Seen::count(self.innocent(significant).count());
        Observed::beside(number(&self.ours), number(&self.plain))
    }
}

/// Draws a window of a cell, and looks at it once.
fn row(
    name: &'static str,
    simulates: &'static str,
    figures: Vec<Figure>,
    (cell, min_effect): (Cell, f64),
    costs: impl Fn(&mut Generator) -> Vec<f64> + Send + Sync + 'static,
    observe: fn(&Run<'_>, bool) -> Vec<Observed>,
) -> Row {
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let costs = costs(&mut chance.rng);
        let drawn = cell.draw(&costs, &mut chance.rng);
        let window = Window::of(drawn.contrast(), min_effect);
        let (ours, plain) = (window.significant(), significant(&ln_p_pooled(&drawn.strata)));
        observe(&Run { costs: &costs, window, ours, plain }, is_reported(&drawn.strata[0]))
    })
}

fn one(functions: usize, place: usize, factor: f64) -> Vec<f64> {
    (0..functions).map(|function| if function == place { factor } else { 1.0 }).collect()
}

const OTHER_ROWS: Figure = Figure::rate("P(any other row significant)").at_most(0.06);
const HIDDEN: Figure = Figure::rate("P(`hidden_groups` or `hidden_factor`)").at_most(0.03);

/// The shares of all others fall by up to a tenth.
fn of_the_heaviest(name: &'static str, simulates: &'static str, factor: f64) -> Row {
    let figures =
        vec![OTHER_ROWS, Figure::rate("found"), Figure::mean("rows `compositional` a run, of 299 others"), HIDDEN];
    let cell = Cell::of(20, 80, 0.03);
    let costs = move |_: &mut Generator| one(cell.functions, HEAVIEST, factor);
    row(name, simulates, figures, (cell, MIN_EFFECT), costs, |run, is_reported| {
        let rows = &run.window.rows;
        let mut moved = moved_with_the_rest(&rows.tests, &rows.scales, Q, MIN_EFFECT);
        moved.retain(|&place| !run.ours[place]);
        vec![
            run.whether_others(),
            Observed::only(run.found()),
            Observed::only(Seen::count(moved.len())),
            Observed::only(Seen::whether(is_reported)),
        ]
    })
}

/// Many small functions move, and the few large ones stand still.
fn small_functions() -> Row {
    let figures = vec![
        Figure::mean("functions wrongly `improved` a run").at_most(0.3),
        Figure::rate("found, of the small functions").at_least(0.25),
        HIDDEN,
    ];
    let simulates = "20 v 80 pods, CV 3 %; the 270 smallest of 300 functions cost 6 % more";
    let cell = Cell::of(20, 80, 0.03);
    let costs = move |_: &mut Generator| {
        let first = cell.functions - SMALL;
        (0..cell.functions).map(|place| if place < first { 1.0 } else { 1.06 }).collect()
    };
    row("small-functions", simulates, figures, (cell, MIN_EFFECT), costs, |run, is_reported| {
        let improved = run.innocent(&run.ours).filter(|&place| run.window.rows.theta[place] < 0.0).count();
        vec![
            Observed::beside(Seen::count(improved), Seen::count(run.innocent(&run.plain).count())),
            Observed::only(run.found()),
            Observed::only(Seen::whether(is_reported)),
        ]
    })
}

/// Shares cannot say which of two groups of functions stood still.
fn most_functions() -> Row {
    let figures = vec![
        Figure::most("innocent functions significant").at_most(0.0),
        Figure::rate("P(`ambiguous_scale`)"),
        Figure::rate("found, of the changed functions"),
        HIDDEN,
    ];
    let simulates = "20 v 80 pods, CV 3 %; 60 % of the functions, drawn, cost 20 % more; requests are not known";
    let cell = Cell::of(20, 80, 0.03);
    let costs = move |rng: &mut Generator| {
        (0..cell.functions).map(|_| if next_uniform(rng) < MOST.0 { MOST.1 } else { 1.0 }).collect()
    };
    row("most-functions", simulates, figures, (cell, MIN_EFFECT), costs, |run, is_reported| {
        vec![
            run.number_of_others(),
            Observed::only(Seen::whether(run.window.rows.scales.ambiguous())),
            Observed::only(run.found()),
            Observed::only(Seen::whether(is_reported)),
        ]
    })
}

/// One function of 1 % costs more.
fn powers() -> Vec<Row> {
    let power = |name, simulates, cell: Cell, factor: f64, least: f64| {
        let figures = vec![Figure::rate("found").at_least(least), OTHER_ROWS];
        let costs = move |_: &mut Generator| one(cell.functions, ONE_PERCENT, factor);
        row(name, simulates, figures, (cell, MIN_EFFECT), costs, |run, _| {
            vec![Observed::only(run.found()), run.whether_others()]
        })
    };
    vec![
        power(
            "power-12v60-cv5",
            "12 v 60 pods, CV 5 %; one function of 1 % costs 10 % more",
            Cell::small(0.05),
            1.1,
            0.84,
        ),
        power("power-12v60", "12 v 60 pods, CV 10 %; one function of 1 % costs 20 % more", Cell::small(0.1), 1.2, 0.88),
        power(
            "power-5v84",
            "5 v 84 pods, CV 10 %; one function of 1 % costs 30 % more",
            Cell::of(5, 84, 0.1),
            1.3,
            0.88,
        ),
        power(
            "power-40v760",
            "40 v 760 pods, CV 10 %, 500 functions; one of 1 % costs 10 % more",
            Cell::large(0.1),
            1.1,
            0.88,
        ),
        power("power-40v760-cv5", "the same with CV 5 %; it costs 5 % more", Cell::large(0.05), 1.05, 0.62),
    ]
}

/// False discoveries among many.
fn discoveries(name: &'static str, simulates: &'static str, cv: f64, factor: f64) -> Row {
    let figures = vec![
        Figure::mean("part of the significant rows that are false").at_most(0.07),
        Figure::rate("found, of the function of 1 %").at_least(0.95),
        Figure::rate("found, of all that changed"),
    ];
    let cell = Cell::large(cv);
    let costs = move |rng: &mut Generator| many(cell.functions, factor, rng);
    row(name, simulates, figures, (cell, 0.0), costs, |run, _| {
        let false_part = |significant: &[bool]| {
            let all = significant.iter().filter(|&&significant| significant).count();
            Seen::Number(length_float(run.innocent(significant).count()) / length_float(all.max(1)))
        };
        vec![
            Observed::beside(false_part(&run.ours), false_part(&run.plain)),
            Observed::beside(Seen::whether(run.ours[ONE_PERCENT]), Seen::whether(run.plain[ONE_PERCENT])),
            Observed::only(run.found()),
        ]
    })
}

/// The function of 1 % and others, which are drawn.
fn many(functions: usize, factor: f64, rng: &mut Generator) -> Vec<f64> {
    let mut costs = one(functions, ONE_PERCENT, factor);
    let mut places: Vec<usize> = (OTHER_PLACES.0..OTHER_PLACES.1).collect();
    for _ in 0..OTHERS {
        let index = below(places.len(), rng);
        let size = OTHER_EFFECTS.0 + (OTHER_EFFECTS.1 - OTHER_EFFECTS.0) * next_uniform(rng);
        let sign = if next_uniform(rng) < 0.5 { -1.0 } else { 1.0 };
        costs[places.swap_remove(index)] = libm::exp(sign * size);
    }
    costs
}

/// A whole number below `limit`, above 0.
fn below(limit: usize, rng: &mut Generator) -> usize {
    let drawn = fleetdiff_schemas::number::whole(next_uniform(rng) * length_float(limit));
    usize::try_from(drawn).unwrap_or(0).min(limit - 1)
}
