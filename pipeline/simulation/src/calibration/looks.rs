//! With a look every ten seconds: is anything raised that did not change, and how soon is a change raised?
//!
//! The dataflow without everything that brings a profile to its counter: the counts so far of each hop are tested by the live rule
//! ([`super::live`]), once with everything measured afresh, and once with what functions share held for some looks. Only one kind of
//! count is used; in the dataflow self and total counts share the family.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::{Arms, MIN_EFFECT};

use super::figure::{Figure, Observed, Seen};
use super::live::{Cadence, LiveRule};
use super::model::{FUNCTIONS, MANY_FUNCTIONS, Noise, ONE_PERCENT, shares};
use super::plain::{ln_p_pooled, significant};
use super::row::{Chance, Row};
use super::stream::{Changed, Design, Stream, Wander};
use super::window::Window;

/// Seconds of a hop.
const HOP: f64 = 10.0;
/// Hops of half an hour.
pub(super) const HALF_HOUR: u64 = 180;
/// Costs whose autocorrelation is gone after some minutes.
const SLOWLY: Wander = Wander { cv: 0.05, correlation: 0.9 };

pub(super) fn rows() -> Vec<Row> {
    let large = Design {
        pods: Arms { head: 40, base: 760 },
        shares: shares(MANY_FUNCTIONS),
        wander: Some(SLOWLY),
        ..changed(0.05, 1.1)
    };
    let hour = Design { hops: 2 * HALF_HOUR, edge: Some(HALF_HOUR), ..small(0.1) };
    let mut sizes = small(0.1);
    (sizes.noise.head.size_sd, sizes.noise.base.size_sd) = (1.0, 1.0);
    let mut head_cv25 = small(0.1);
    head_cv25.noise.head.cv = 0.25;
    vec![
        quiet("looks", "12 v 60 pods, CV 10 %, looked at 180 times", small(0.1)),
        quiet("looks-sizes", "the same with sizes of sd 1", sizes),
        quiet("looks-head-cv25", "12 v 60 pods, CV 25 % v 10 %, looked at 180 times", head_cv25),
        quiet("looks-hour", "12 v 60 pods, CV 10 %, looked at 360 times over an hour that another hour cuts", hour),
        found(
            "found",
            "40 v 760 pods, CV 5 %, 500 functions, each wandering by CV 5 % in each pod (correlation .9 a hop); one of 1 % costs 10 % more, looked at 180 times",
            Some(90.0),
            large,
        ),
        found(
            "found-12v60",
            "12 v 60 pods, CV 5 %; one function of 1 % costs 10 % more, looked at 180 times; stated only",
            None,
            changed(0.05, 1.1),
        ),
    ]
}

/// 12 v 60 pods of one cell, watched for half an hour; nothing changes.
fn small(cv: f64) -> Design {
    let noise = Noise::of(cv);
    Design {
        cells: 1,
        pods: Arms { head: 12, base: 60 },
        shares: shares(FUNCTIONS),
        noise: Arms { head: noise, base: noise },
        wander: None,
        changed: None,
        hops: HALF_HOUR,
        edge: None,
    }
}

/// The same; the function of 1 % costs `factor` times as much.
fn changed(cv: f64, factor: f64) -> Design {
    Design { changed: Some(Changed { function: ONE_PERCENT, cells: vec![0], factor }), ..small(cv) }
}

/// A fleet in which nothing changed.
fn quiet(name: &'static str, simulates: &'static str, design: Design) -> Row {
    let figures = vec![
        Figure::rate("P(any alert), measured afresh at each look").at_most(0.05),
        Figure::rate("P(any alert), held for 6 looks").at_most(0.05),
        Figure::mean("alerts a run, held for 6 looks"),
    ];
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let Watched { afresh, held, plain, .. } = watch(&design, chance);
        let any =
            |raised: &Raised| Observed::beside(Seen::whether(!raised.is_empty()), Seen::whether(!plain.is_empty()));
        let number = Observed::beside(Seen::count(held.len()), Seen::count(plain.len()));
        vec![any(&afresh), any(&held), number]
    })
}

/// A fleet in which one function changed; the median of the seconds to its alert is at most `seconds`.
fn found(name: &'static str, simulates: &'static str, most_seconds: Option<f64>, design: Design) -> Row {
    let soon = |figure: Figure| most_seconds.map_or(figure, |seconds| figure.at_most(seconds));
    let figures = vec![
        soon(Figure::median("seconds to its alert, measured afresh at each look")),
        soon(Figure::median("seconds to its alert, held for 6 looks")),
        Figure::rate("alert raised, measured afresh at each look"),
        Figure::rate("alert raised, held for 6 looks"),
        Figure::rate("significant by the window rule at the end"),
        Figure::rate("P(any other alert), held for 6 looks").at_most(0.05),
    ];
    let function = design.changed.as_ref().map_or(0, |changed| changed.function);
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let watched = watch(&design, chance);
        let Watched { afresh, held, plain, .. } = &watched;
        let its = |raised: &Raised| raised.get(&(0, function)).copied();
        let beside = |ours, of: &dyn Fn(&Raised) -> Seen| Observed::beside(of(ours), of(plain));
        let seconds_to = |raised: &Raised| Seen::Number(seconds(its(raised)));
        let was_raised = |raised: &Raised| Seen::whether(its(raised).is_some());
        let others = |raised: &Raised| Seen::whether(raised.keys().any(|row| *row != (0, function)));
        vec![
            beside(afresh, &seconds_to),
            beside(held, &seconds_to),
            beside(afresh, &was_raised),
            beside(held, &was_raised),
            Observed::only(Seen::whether(watched.by_the_window_rule(function))),
            beside(held, &others),
        ]
    })
}

/// Rows (cell, function) with the look at which each was raised, counted from 1.
pub(super) type Raised = BTreeMap<(usize, usize), u64>;

/// What was observed of a fleet.
pub(super) struct Watched {
    /// By the live rule, with everything measured at each look.
    pub(super) afresh: Raised,
    /// By the live rule, with what functions share held for some looks.
    pub(super) held: Raised,
    /// The rows that were significant at any look in the plain test of all counts so far.
    pub(super) plain: Raised,
    /// The fleet after the last hop.
    pub(super) stream: Stream,
}

/// Watches a fleet from its first hop to its last.
pub(super) fn watch(design: &Design, chance: &mut Chance) -> Watched {
    let mut watched = Watched {
        afresh: Raised::new(),
        held: Raised::new(),
        plain: Raised::new(),
        stream: Stream::new(design, &mut chance.rng),
    };
    let rule = |cadence| LiveRule::new(cadence, design.cells, design.shares.len());
    let (mut afresh, mut held) = (rule(Cadence::Afresh), rule(Cadence::Held));
    for look in 1..=design.hops {
        watched.stream.advance(&mut chance.rng);
        let is_new_block = design.edge == Some(look - 1);
        let contrasts: Vec<_> = watched.stream.contrasts().collect();
        for (rule, raised) in [(&mut afresh, &mut watched.afresh), (&mut held, &mut watched.held)] {
            for row in rule.look(look, is_new_block, &contrasts) {
                raised.entry(row).or_insert(look);
            }
        }
        drop(contrasts);
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

    /// Whether a function of the first cell is significant at the end in a single look at a window with one cell.
    fn by_the_window_rule(&self, function: usize) -> bool {
        self.stream.contrasts().next().is_some_and(|cell| Window::of(cell, MIN_EFFECT).significant()[function])
    }
}

/// The seconds of event time after which a row was raised, infinite if it never was.
pub(super) fn seconds(raised: Option<u64>) -> f64 {
    raised.and_then(|look| usize::try_from(look).ok()).map_or(f64::INFINITY, |look| HOP * length_float(look))
}
