//! With a look every ten seconds: is anything raised that did not change, and how soon is a change raised?
//!
//! The dataflow without everything that brings a profile to its counter: at each hop the counts so far are given to
//! [`live_rows_of`], its rows go into one family with everything tested so far, e-BH decides, and rows that moved by
//! less than the minimum effect are not raised. Only one kind of count is used; in the dataflow self and total counts
//! share the family.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::evalue::e_bh;
use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::live::live_rows_of;
use fleetdiff_statistics::{Contrast, MIN_COUNT, MIN_EFFECT, Model, Moments, Support, rows_of_cell, support};

use super::figure::{Figure, Observed, Seen};
use super::model::{flat_zipf, zipf};
use super::plain::{ln_p_pooled, significant};
use super::row::{Chance, Q, Row};
use super::stream::{Changed, Design, Stream, Wander};

/// Seconds of a hop.
const HOP: f64 = 10.0;
/// Hops of half an hour.
pub(super) const HALF_HOUR: u64 = 180;
/// The rank, among 500, of the function that changes if one does: its share is .95 %.
const ALONE: usize = 12;
/// Costs whose autocorrelation is gone after a few hops, and costs for which that takes minutes.
const FAST: Wander = Wander { cv: 0.05, correlation: 0.5 };
const SLOWLY: Wander = Wander { cv: 0.05, correlation: 0.9 };

pub(super) fn rows() -> Vec<Row> {
    let of_a_hundred = |factor, wander| Design {
        shares: vec![0.01; 100],
        changed: Some(changed(1, factor)),
        ..one_cell(0.05, wander)
    };
    let of_five_hundred = |factor| Design { changed: Some(changed(ALONE, factor)), ..one_cell(0.05, None) };
    vec![
        quiet("looks-clones", "40 v 760 pods that do not differ, looked at 180 times", 0.05, one_cell(0.0, None)),
        quiet("looks-cv10", "40 v 760 pods, CV 10 %, looked at 180 times", 0.05, one_cell(0.1, None)),
        quiet(
            "looks-wandering",
            "40 v 760 pods, CV 5 %, each function of each pod wandering by CV 5 % (correlation .9 a hop), looked at 180 times",
            0.05,
            one_cell(0.05, Some(SLOWLY)),
        ),
        quiet(
            "looks-hour",
            "40 v 760 pods, CV 10 %, shares falling as 1/i, looked at 360 times over an hour that another hour cuts",
            SEVENTEEN_OF_200,
            hour(1, (40, 760)),
        ),
        quiet(
            "looks-hour-nine-cells",
            "9 cells of 5 v 84 pods, CV 10 %, shares falling as 1/i, looked at 360 times over an hour that another hour cuts",
            SEVENTEEN_OF_200,
            hour(9, (5, 84)),
        ),
        found(
            "found-10",
            "40 v 760 pods, CV 5 %, 100 functions of 1 %; one costs 10 % more, looked at 180 times",
            soon(),
            of_a_hundred(1.10, None),
        ),
        found("found-5", "the same; it costs 5 % more", mostly(), of_a_hundred(1.05, None)),
        found(
            "found-10-wandering",
            "as found-10; each function of each pod wandering by CV 5 % (correlation .5 a hop)",
            soon(),
            of_a_hundred(1.10, Some(FAST)),
        ),
        found(
            "found-10-wandering-slowly",
            "the same with correlation .9, stated only",
            stated(),
            of_a_hundred(1.10, Some(SLOWLY)),
        ),
        found(
            "found-10-of-500",
            "as found-10, but 500 functions, of which one of .95 % costs 10 % more; stated only",
            stated(),
            of_five_hundred(1.10),
        ),
        found("found-5-of-500", "the same; it costs 5 % more; stated only", stated(), of_five_hundred(1.05)),
    ]
}

/// 40 v 760 pods of one cell, watched for half an hour; nothing changes.
fn one_cell(cv: f64, wander: Option<Wander>) -> Design {
    Design { cells: 1, pods: (40, 760), shares: zipf(), cv, wander, changed: None, hops: HALF_HOUR, edge: None }
}

/// A number of cells with a number of pods each, watched for an hour in whose middle the hour of the day changes;
/// nothing changes.
fn hour(cells: usize, pods: (usize, usize)) -> Design {
    Design { cells, pods, shares: flat_zipf(), hops: 2 * HALF_HOUR, edge: Some(HALF_HOUR), ..one_cell(0.1, None) }
}

/// The function of this rank costs `factor` times as much.
fn changed(rank: usize, factor: f64) -> Changed {
    Changed { function: rank - 1, cells: vec![0], factor }
}

/// The rate that plus three standard errors is 17 of 200 runs.
const SEVENTEEN_OF_200: f64 = 0.0425;

/// A fleet in which nothing changed.
fn quiet(name: &'static str, simulates: &'static str, bound: f64, design: Design) -> Row {
    let figures = vec![Figure::rate("P(any alert)").at_most(bound), Figure::mean("alerts a run")];
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let watched = watch(&design, chance);
        vec![
            Observed::beside(Seen::whether(!watched.raised.is_empty()), Seen::whether(!watched.plain.is_empty())),
            Observed::beside(Seen::count(watched.raised.len()), Seen::count(watched.plain.len())),
        ]
    })
}

/// What may be required of how a change is found: seconds to its alert, that there is an alert, and that it is
/// significant by the window rule at the end.
type Finding = [Figure; 3];

/// Nothing is required.
fn stated() -> Finding {
    [
        Figure::median("seconds to its alert"),
        Figure::rate("alert raised"),
        Figure::rate("called by the window rule at the end"),
    ]
}

/// It is always found, and in half of the runs within 90 seconds.
fn soon() -> Finding {
    let [seconds, alert, window] = stated();
    [seconds.at_most(90.0), alert.at_least(1.0), window]
}

/// It is found in two of three runs, and by the window rule in three of four.
fn mostly() -> Finding {
    let [seconds, alert, window] = stated();
    [seconds, alert.at_least(0.65), window.at_least(0.75)]
}

/// A fleet in which one function changed.
fn found(name: &'static str, simulates: &'static str, [seconds_to, alert, window]: Finding, design: Design) -> Row {
    let figures = vec![
        seconds_to,
        alert,
        window,
        Figure::median("seconds to its alert, delta 0"),
        Figure::rate("alert raised, delta 0"),
        Figure::rate("called by the window rule at the end, delta 0"),
        Figure::rate("P(any other alert)").at_most(0.05),
    ];
    let function = design.changed.as_ref().map_or(0, |changed| changed.function);
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let watched = watch(&design, chance);
        let its = |raised: &Raised| raised.get(&(0, function)).copied();
        let seconds_to = |raised: &Raised| Seen::Number(seconds(its(raised)));
        let was_raised = |raised: &Raised| Seen::whether(its(raised).is_some());
        let others = |raised: &Raised| Seen::whether(raised.keys().any(|row| *row != (0, function)));
        let window = |min_effect| Observed::only(Seen::whether(watched.window_rule(min_effect)[function]));
        let Watched { raised, raised_without_min_effect, plain, .. } = &watched;
        vec![
            Observed::beside(seconds_to(raised), seconds_to(plain)),
            Observed::beside(was_raised(raised), was_raised(plain)),
            window(MIN_EFFECT),
            Observed::only(seconds_to(raised_without_min_effect)),
            Observed::only(was_raised(raised_without_min_effect)),
            window(0.0),
            Observed::beside(others(raised), others(plain)),
        ]
    })
}

/// Rows (cell, function) with the look at which each was raised, counted from 1.
type Raised = BTreeMap<(usize, usize), u64>;

/// What was observed of a fleet.
pub(super) struct Watched {
    /// By the live rule.
    pub(super) raised: Raised,
    /// The same if a change of any size were raised.
    pub(super) raised_without_min_effect: Raised,
    /// The rows that were significant at any look in the plain test of all counts so far.
    pub(super) plain: Raised,
    /// The fleet after the last hop.
    pub(super) stream: Stream,
}

/// Watches a fleet from its first hop to its last.
pub(super) fn watch(design: &Design, chance: &mut Chance) -> Watched {
    let mut watched = Watched {
        raised: Raised::new(),
        raised_without_min_effect: Raised::new(),
        plain: Raised::new(),
        stream: Stream::new(design, &mut chance.rng),
    };
    let mut family = Family { joined: vec![vec![false; design.shares.len()]; design.cells] };
    for look in 1..=design.hops {
        watched.stream.advance(&mut chance.rng);
        for (row, theta) in family.look(&watched.stream) {
            watched.raised_without_min_effect.entry(row).or_insert(look);
            if theta.abs() >= MIN_EFFECT {
                watched.raised.entry(row).or_insert(look);
            }
        }
        watched.look_plainly(design, look);
    }
    watched
}

impl Watched {
    fn look_plainly(&mut self, design: &Design, look: u64) {
        let ln_p: Vec<f64> = self.stream.blocks().flat_map(ln_p_pooled).collect();
        for (place, _) in significant(&ln_p).into_iter().enumerate().filter(|(_, significant)| *significant) {
            let row = (place / design.shares.len(), place % design.shares.len());
            self.plain.entry(row).or_insert(look);
        }
    }

    /// Which rows are significant at the end in a single look at a window with one cell.
    fn window_rule(&self, min_effect: f64) -> Vec<bool> {
        let ln_p: Vec<f64> =
            self.stream.contrasts().take(1).flat_map(|cell| rows_of_cell(&cell, None, min_effect).ln_p_row).collect();
        bh(&ln_p).iter().map(|&q| selected(q, Q)).collect()
    }
}

/// The seconds of event time after which a row was raised, infinite if it never was.
pub(super) fn seconds(raised: Option<u64>) -> f64 {
    raised.and_then(|look| usize::try_from(look).ok()).map_or(f64::INFINITY, |look| HOP * length_float(look))
}

/// Which rows have been tested since the epoch began.
struct Family {
    /// By cell, then function.
    joined: Vec<Vec<bool>>,
}

impl Family {
    /// The rows that e-BH selects at this look, with their theta.
    fn look(&mut self, stream: &Stream) -> Vec<((usize, usize), f64)> {
        let mut candidates = Vec::new();
        for (cell, contrast) in stream.contrasts().enumerate() {
            self.look_at_cell(cell, contrast, &mut candidates);
        }
        let members = self.joined.iter().flatten().filter(|&&joined| joined).count();
        let ln_e: Vec<f64> = candidates.iter().map(|(_, _, ln_e)| *ln_e).collect();
        let significant = e_bh(&ln_e, Q, members);
        candidates
            .into_iter()
            .zip(significant)
            .filter(|(_, significant)| *significant)
            .map(|((row, theta, _), _)| (row, theta))
            .collect()
    }

    fn look_at_cell(
        &mut self,
        cell: usize,
        mut contrast: Contrast<'_>,
        candidates: &mut Vec<((usize, usize), f64, f64)>,
    ) {
        contrast.keep_family(MIN_COUNT);
        let moments = Moments::measure(&contrast, Model::Share, MIN_COUNT);
        if support(moments.k_head, moments.k_base, moments.df) == Support::Untestable {
            return;
        }
        let functions: Vec<usize> =
            contrast.only.iter().flatten().filter_map(|&function| usize::try_from(function).ok()).collect();
        let live = live_rows_of(moments, None, 1.0 / Q, MIN_EFFECT);
        for (&function, &tested) in functions.iter().zip(&live.moments.tested) {
            self.joined[cell][function] |= tested;
        }
        candidates.extend(live.candidates.iter().map(|row| ((cell, functions[row.function]), row.theta, row.ln_e)));
    }
}
