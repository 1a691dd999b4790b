//! The demonstration: one function of nine cells costs more in two of them. Are both found, and nothing else?
//!
//! The fleet of `fleetdiff demo` in self counts, with 20 v 180 pods in all of its cells, watched as in
//! [`super::looks`]; at the end a single look at the window decides every row on two levels, with the minimum effect.

use fleetdiff_pipeline::rules::verdict::moves_with_its_cell;
use fleetdiff_statistics::families::{bh, selected, two_level};
use fleetdiff_statistics::{CellRows, MIN_EFFECT, rows_of_cell};

use super::figure::{Figure, Observed, Seen};
use super::looks::{HALF_HOUR, Watched, seconds, watch};
use super::model::{contrast, pods_together};
use super::plain::ln_p_pooled;
use super::row::{Chance, Q, Row};
use super::stream::{Changed, Design};
use crate::fleet::Fleet;

const CELLS: usize = 9;
const HIT: [usize; 2] = [0, 3];

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "demo",
            "9 cells of 20 v 180 pods, CV 3 %, functions of a video service; one of them costs 10 % more in 2 cells; self counts, looked at 180 times",
            1.10,
            figures(),
        ),
        row("demo-60", "the same with 60 %", 1.60, figures_of_a_large_change()),
    ]
}

fn figures() -> Vec<Figure> {
    vec![
        Figure::rate("cells found by q").at_least(1.0),
        Figure::rate("cells found by an alert").at_least(1.0),
        Figure::rate("P(any other row called by q)").at_most(0.05),
        Figure::rate("P(any other alert)").at_most(0.02),
        Figure::median("seconds to both alerts"),
        Figure::mean("other rows called by q a run"),
        Figure::least("`compositional` rows in the hit cells"),
        Figure::most("`compositional` rows elsewhere"),
    ]
}

/// The requirements differ: shares of all others move by 9 %.
fn figures_of_a_large_change() -> Vec<Figure> {
    let mut figures = figures();
    figures[2] = Figure::rate("P(any other row called by q)").at_most(0.10);
    figures[3] = Figure::rate("P(any other alert)");
    // More than 300.
    figures[6] = figures[6].at_least(301.0);
    figures[7] = figures[7].at_most(0.0);
    figures
}

fn row(name: &'static str, simulates: &'static str, factor: f64, figures: Vec<Figure>) -> Row {
    let fleet = Fleet::demo(1).build();
    let functions = fleet.functions();
    let function = functions.iter().position(|(name, _)| **name == *Fleet::DEMO_FUNCTION).unwrap_or(0);
    let design = Design {
        cells: CELLS,
        pods: (20, 180),
        shares: functions.into_iter().map(|(_, share)| share).collect(),
        cv: 0.03,
        wander: None,
        changed: Some(Changed { function, cells: HIT.to_vec(), factor }),
        hops: HALF_HOUR,
        edge: None,
    };
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let watched = watch(&design, chance);
        observed(&watched, function)
    })
}

fn observed(watched: &Watched, changed: usize) -> Vec<Observed> {
    let window = Window::of(watched);
    let plain: Vec<Vec<f64>> = watched.stream.blocks().map(ln_p_pooled).collect();
    let plain_significant = super::plain::significant(&plain.concat());
    let functions = plain.first().map_or(1, Vec::len);
    let plain_rows = || {
        plain_significant
            .iter()
            .enumerate()
            .filter(|(_, significant)| **significant)
            .map(|(place, _)| (place / functions, place % functions))
    };
    let is_other = |&(cell, function): &(usize, usize)| function != changed || !HIT.contains(&cell);
    let others = window.significant.iter().filter(|row| is_other(row)).count();
    let plain_others = plain_rows().filter(is_other).count();
    let alerted = HIT.map(|cell| watched.raised.get(&(cell, changed)).copied());
    let both = alerted[0].zip(alerted[1]).map(|(one, other)| one.max(other));
    let hits = |hit: [bool; 2]| Seen::Hits { hits: hit.into_iter().map(u32::from).sum(), of: 2 };
    vec![
        Observed::beside(
            hits(HIT.map(|cell| window.significant.contains(&(cell, changed)))),
            hits(HIT.map(|cell| plain_rows().any(|row| row == (cell, changed)))),
        ),
        Observed::only(hits(alerted.map(|look| look.is_some()))),
        Observed::beside(Seen::whether(others > 0), Seen::whether(plain_others > 0)),
        Observed::beside(
            Seen::whether(watched.raised.keys().any(is_other)),
            Seen::whether(watched.plain.keys().any(is_other)),
        ),
        Observed::only(Seen::Number(seconds(both))),
        Observed::beside(Seen::count(others), Seen::count(plain_others)),
        Observed::only(Seen::count(window.compositional(|cell| HIT.contains(&cell)))),
        Observed::only(Seen::count(window.compositional(|cell| !HIT.contains(&cell)))),
    ]
}

/// The decision of one look at the whole half hour.
struct Window {
    /// Rows (cell, function) significant by their q-value.
    significant: Vec<(usize, usize)>,
    /// Rows whose share moved because their cell's normalization factor did.
    compositional: Vec<(usize, usize)>,
}

impl Window {
    fn of(watched: &Watched) -> Self {
        let cells: Vec<CellRows> =
            watched.stream.contrasts().map(|cell| rows_of_cell(&cell, None, MIN_EFFECT)).collect();
        let functions = cells.first().map_or(0, |rows| rows.ln_p_row.len());
        let blocks: Vec<&[super::model::Pair]> = watched.stream.blocks().collect();
        let pods = |head: bool| {
            pods_together(
                blocks
                    .iter()
                    .filter_map(|cell| cell.first())
                    .map(|pair| if head { &pair.head.pods } else { &pair.base.pods }),
            )
        };
        let together = contrast(functions, blocks.iter().copied().flatten(), pods(true), pods(false));
        let ln_p: Vec<&[f64]> = cells.iter().map(|rows| rows.ln_p_row.as_slice()).collect();
        let levels = two_level(&ln_p, &rows_of_cell(&together, None, MIN_EFFECT).ln_p_row);
        let significant = places(levels.q_value.iter().flatten().map(|&q| selected(q, Q)), functions);
        let moved = bh(&cells.iter().flat_map(|rows| rows.ln_p_comp.iter().copied()).collect::<Vec<_>>());
        let mut compositional = places(moved.iter().map(|&q| selected(q, Q)), functions);
        compositional.retain(|row| !significant.contains(row) && is_compositional(&cells[row.0], row.1));
        Self { significant, compositional }
    }

    fn compositional(&self, of: impl Fn(usize) -> bool) -> usize {
        self.compositional.iter().filter(|(cell, _)| of(*cell)).count()
    }
}

fn is_compositional(rows: &CellRows, function: usize) -> bool {
    moves_with_its_cell(
        libm::log(rows.normalization),
        rows.share.theta[function],
        rows.adjusted.theta[function],
        MIN_EFFECT,
    )
}

/// (cell, function) of the rows that are `true`, given by cell, then function.
fn places(hold: impl Iterator<Item = bool>, functions: usize) -> Vec<(usize, usize)> {
    hold.enumerate().filter(|(_, holds)| *holds).map(|(place, _)| (place / functions, place % functions)).collect()
}
