//! Pods that differ by something without a label: does the self-check see it, and only where it is?

use std::collections::BTreeMap;

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::hidden_factor::{BucketCountsOf, HiddenFactor};
use fleetdiff_statistics::{Arms, MIN_EFFECT};

use super::design::{Also, Cell};
use super::figure::{Figure, Observed, Seen};
use super::model::{Pair, Row as BucketRow, Table, bucket, contrast_of_one};
use super::plain::{ln_p_pooled, rejections};
use super::row::{Chance, Row};
use super::window::Window;
use crate::fleet::random::Generator;

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
        let drawn = cell.apart().draw(&cell.unchanged(), &mut chance.rng);
        let hashed = drawn.strata[0].as_ref().map(|table| hashed(table, &mut chance.rng));
        let seen = |pair| Observed::only(Seen::whether(hidden_factor(pair).as_ref().is_some_and(is_seen)));
        let is_any = Window::of(contrast_of_one(&hashed), MIN_EFFECT).significant().contains(&true);
        let plain = rejections(&ln_p_pooled(&drawn.strata)) > 0;
        let any = Observed::beside(Seen::whether(is_any), Seen::whether(plain));
        vec![seen(&drawn.strata[0]), seen(&hashed), any]
    })
}

/// The same counts with pods in buckets by hash.
fn hashed(pods: &Table, rng: &mut Generator) -> Table {
    let mut buckets: BTreeMap<u16, (u32, Vec<u64>)> = BTreeMap::new();
    for pod in &pods.rows {
        let (pods, counts) = buckets.entry(bucket(rng)).or_insert_with(|| (0, vec![0; pod.counts.len()]));
        *pods += 1;
        counts.iter_mut().zip(&pod.counts).for_each(|(sum, count)| *sum += count);
    }
    let pods = buckets.iter().map(|(&bucket, (pods, _))| (bucket, *pods)).collect();
    let rows = buckets.into_iter().map(|(bucket, (_, counts))| BucketRow::new(bucket, counts)).collect();
    Table { rows, pods, hop_pairs: Vec::new() }
}

/// Whether the self-check reports that something without a label divides pods.
pub(super) fn is_reported(pair: &Pair) -> bool {
    hidden_factor(pair).is_some_and(|found| found.has_groups() || found.divides_arms())
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
