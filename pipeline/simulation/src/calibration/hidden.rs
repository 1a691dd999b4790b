//! Pods that differ by something without a label: does the self-check see it, and only where it is?

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::hidden_factor::{BucketCountsOf, HiddenFactor};
use fleetdiff_statistics::{Arms, MIN_EFFECT};

use super::design::{Also, ByPod, Cell, Drawn};
use super::figure::{Figure, Observed, Seen};
use super::model::{Pair, Table};
use super::plain::{ln_p_pooled, rejections};
use super::row::{Chance, Row};
use super::window::Window;

pub(super) fn rows() -> Vec<Row> {
    let newer = Arms { head: 0.9, base: 0.1 };
    vec![
        row(
            "hidden-nodes",
            "12 v 60 pods, CV 10 %, three of which share a node without a name (sd .15)",
            Figure::rate("`hidden_groups` among pods").at_least(0.95),
            Figure::rate("`hidden_groups` among buckets of pods"),
            Cell::small(0.1).also(Also::UnnamedNodes),
            HiddenFactor::has_groups,
        ),
        row(
            "hidden-hardware",
            "12 v 60 pods, CV 10 %; 90 % of the head and 10 % of the base run on newer hardware (sd .1) without a label",
            Figure::rate("`hidden_factor` among pods").at_least(0.7),
            Figure::rate("`hidden_factor` among buckets of pods"),
            Cell::small(0.1).also(Also::Hardware { newer, is_labelled: false }),
            HiddenFactor::divides_arms,
        ),
    ]
}

fn row(
    name: &'static str,
    simulates: &'static str,
    among_pods: Figure,
    among_buckets: Figure,
    cell: Cell,
    is_seen: fn(&HiddenFactor) -> bool,
) -> Row {
    // A known limit: no test on these data can know.
    let figures = vec![among_pods, among_buckets, Figure::rate("P(any row significant)")];
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let drawn = cell.draw_by_pod(&cell.unchanged(), &mut chance.rng);
        let seen = |drawn: &Drawn| Seen::whether(hidden_factor(&drawn.strata[0]).as_ref().is_some_and(is_seen));
        let (of_pods, of_buckets) = (seen(&drawn.by_pod), seen(&drawn.hashed));
        let is_any = Window::of(drawn.hashed.contrast(), MIN_EFFECT).significant().contains(&true);
        let plain = rejections(&ln_p_pooled(&drawn.hashed.strata)) > 0;
        let any = Observed::beside(Seen::whether(is_any), Seen::whether(plain));
        vec![Observed::only(of_pods), Observed::only(of_buckets), any]
    })
}

/// Whether the self-check reports that something without a label divides pods.
pub(super) fn is_reported(pair: &Pair) -> bool {
    hidden_factor(pair).is_some_and(|found| found.has_groups() || found.divides_arms())
}

/// The same among pods or among buckets of pods, in any stratum.
pub(super) fn is_reported_of_any(drawn: &ByPod) -> bool {
    drawn.by_pod.strata.iter().chain(&drawn.hashed.strata).any(is_reported)
}

fn hidden_factor(pair: &Pair) -> Option<HiddenFactor> {
    let counts = pair.as_ref().map(as_floats);
    HiddenFactor::of(&as_buckets(&counts.head), &as_buckets(&counts.base))
}

fn as_floats(table: &Table) -> Vec<Vec<f64>> {
    table.rows.iter().map(|row| row.counts.iter().copied().map(float).collect()).collect()
}

fn as_buckets(buckets: &[Vec<f64>]) -> Vec<BucketCountsOf<'_>> {
    buckets.iter().map(|counts| BucketCountsOf { samples: counts.iter().sum(), counts }).collect()
}
