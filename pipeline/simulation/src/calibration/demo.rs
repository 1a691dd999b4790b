//! The demonstration: one function of nine cells costs more in two of them. Are both found, and nothing else?
//!
//! The fleet of `fleetdiff demo` in self counts, with 20 v 180 pods in all of its cells, watched as in
//! [`super::looks`]; at the end a single look at the window decides every row on two levels, with the minimum effect.

use std::collections::BTreeSet;

use fleetdiff_statistics::{Arms, MIN_EFFECT};

use super::figure::{Figure, Observed, Seen};
use super::looks::{HALF_HOUR, Raised, Watched, seconds, watch};
use super::model::{Noise, Pair, contrast, pods_together};
use super::plain::{ln_p_pooled, significant};
use super::row::{Chance, Row};
use super::stream::{Changed, Design};
use super::window::{Window, two_level};
use crate::fleet::Fleet;

const CELLS: usize = 9;
const HIT: [usize; 2] = [0, 3];

pub(super) fn rows() -> Vec<Row> {
    let fleet = Fleet::demo(1).build();
    let functions = fleet.functions();
    let function = functions.iter().position(|(name, _)| **name == *Fleet::DEMO_FUNCTION).unwrap_or(0);
    let noise = Noise::of(0.03);
    let design = Design {
        cells: CELLS,
        pods: Arms { head: 20, base: 180 },
        shares: functions.into_iter().map(|(_, share)| share).collect(),
        noise: Arms { head: noise, base: noise },
        wander: None,
        changed: Some(Changed { function, cells: HIT.to_vec(), factor: Fleet::DEMO_FACTOR }),
        hops: HALF_HOUR,
        edge: None,
    };
    let simulates = "9 cells of 20 v 180 pods, CV 3 %, functions of a video service; one of them costs 10 % more in 2 cells; self counts, looked at 180 times, held for 6 looks";
    vec![Row::new("demo", simulates, figures(), move |chance: &mut Chance| observed(&watch(&design, chance), function))]
}

fn figures() -> Vec<Figure> {
    vec![
        Figure::rate("cells found by q").at_least(1.0),
        Figure::rate("cells found by an alert").at_least(1.0),
        Figure::rate("P(any other row significant by q)").at_most(0.05),
        Figure::rate("P(any other alert)").at_most(0.02),
        Figure::median("seconds to both alerts"),
        Figure::mean("other rows significant by q a run"),
    ]
}

fn observed(watched: &Watched, changed: usize) -> Vec<Observed> {
    let blocks: Vec<&[Pair]> = watched.stream.blocks().collect();
    let window = by_the_window_rule(watched, &blocks);
    let plain: Vec<Vec<f64>> = blocks.iter().copied().map(ln_p_pooled).collect();
    let functions = plain.first().map_or(1, Vec::len);
    let plain = places(significant(&plain.concat()).chunks(functions));
    let is_other = |&(cell, function): &(usize, usize)| function != changed || !HIT.contains(&cell);
    let hits = |hit: [bool; 2]| Seen::Hits { hits: hit.into_iter().map(u32::from).sum(), of: 2 };
    let of = |rows: &BTreeSet<(usize, usize)>| hits(HIT.map(|cell| rows.contains(&(cell, changed))));
    let others = |rows: &BTreeSet<(usize, usize)>| rows.iter().filter(|row| is_other(row)).count();
    let any_other_alert = |raised: &Raised| Seen::whether(raised.keys().any(is_other));
    let alerted = HIT.map(|cell| watched.held.get(&(cell, changed)).copied());
    let both = alerted[0].zip(alerted[1]).map(|(one, other)| one.max(other));
    vec![
        Observed::beside(of(&window), of(&plain)),
        Observed::only(hits(alerted.map(|look| look.is_some()))),
        Observed::beside(Seen::whether(others(&window) > 0), Seen::whether(others(&plain) > 0)),
        Observed::beside(any_other_alert(&watched.held), any_other_alert(&watched.plain)),
        Observed::only(Seen::Number(seconds(both))),
        Observed::beside(Seen::count(others(&window)), Seen::count(others(&plain))),
    ]
}

/// Rows (cell, function) that are significant in one look at the whole half hour.
fn by_the_window_rule(watched: &Watched, blocks: &[&[Pair]]) -> BTreeSet<(usize, usize)> {
    let cells: Vec<Window<'_>> = watched.stream.contrasts().map(|cell| Window::of(cell, MIN_EFFECT)).collect();
    let functions = cells.first().map_or(0, |cell| cell.rows.ln_p_row.len());
    let pods =
        Arms::of(|side| pods_together(blocks.iter().filter_map(|cell| cell.first()).map(|pair| &pair[side].pods)));
    let together = Window::of(contrast(functions, blocks.iter().copied().flatten(), pods), MIN_EFFECT);
    places(two_level(&cells, &together).iter().map(Vec::as_slice))
}

/// (cell, function) of the rows that are `true`, given by cell.
fn places<'r>(cells: impl Iterator<Item = &'r [bool]>) -> BTreeSet<(usize, usize)> {
    let of_cell = |(cell, rows): (usize, &'r [bool])| {
        rows.iter().enumerate().filter(|(_, holds)| **holds).map(move |(place, _)| (cell, place))
    };
    cells.enumerate().flat_map(of_cell).collect()
}
