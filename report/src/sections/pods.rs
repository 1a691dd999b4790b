//! Pods as dots: whether the change is in most pods of the head or in a few.

use std::collections::BTreeMap;

use fleetdiff_pipeline::rules::advice::plural;
use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, EvidenceRow};
use fleetdiff_schemas::verdict::Scope;

use super::by_cell::Known;
use super::incidents::place;
use crate::chart::{Bucket, Lane, Undrawn, pods};
use crate::comparison::Comparison;
use crate::document::{Chart, Span, Text, Tone, name, words};
use crate::figures::total;
use crate::references::{Literal, References};

/// The counts of a bucket, over all strata.
#[derive(Clone, Copy, Default)]
struct Counts {
    count: i64,
    samples: i64,
    pods: i64,
}

/// The picture; none without evidence of the last report, and none of all functions together, whose share is always 1.
pub(super) fn chart(
    comparison: &Comparison<'_>,
    known: &Known<'_>,
    references: &mut References,
) -> Result<Option<Chart>, Undrawn> {
    let Some((cell, of)) = known.in_order().into_iter().next() else { return Ok(None) };
    let rows: Vec<&EvidenceRow> = comparison
        .records
        .evidence
        .iter()
        .map(|filed| &filed.row)
        .filter(|row| row.comparison == *known.key && row.count_kind == known.kind && row.cell == *cell)
        .filter(|row| &*row.function == known.cause && known.cause != ALL_FUNCTIONS)
        .collect();
    let Some(first) = rows.first() else { return Ok(None) };
    let filter = same_row(comparison, first);
    let lane = |side: Side, build: &str, share, tone| {
        let buckets = buckets(&rows, side);
        let held: i64 = buckets.values().map(|counts| counts.pods).sum();
        let number = buckets.len();
        let dots = buckets.iter().map(|(number, counts)| Bucket {
            number: *number,
            share: signed_float(counts.count) / signed_float(counts.samples.max(1)),
        });
        let pods = plural(usize::try_from(held).unwrap_or(0), "pod");
        let name = format!("{build}: {held} {pods} in {number} {}", plural(number, "dot"));
        Lane { name, buckets: dots.collect(), share, tone }
    };
    let subject = comparison.subject;
    let lanes = [
        lane(Side::Head, subject.head.as_str(), of.row.head.share, of.verdict().tone),
        lane(Side::Base, subject.base.as_str(), of.row.base.share, Tone::Same),
    ];
    let place = place(comparison, known).unwrap_or_default();
    let describes = format!("Share of {} in each bucket of pods in {place}", known.cause);
    let svg = pods(&lanes, &describes)?;
    let evidence = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let caption: Text = vec![
        words(
            "The share of the function among all samples of each bucket of pods. A dot is a bucket: pods that share a node are in \
             one. The line is the whole build. Drawn from ",
        ),
        total(evidence, references.count::<EvidenceRow>(filter)),
        words(" rows of evidence."),
    ];
    let says = outliers(comparison, known, references);
    Ok(Some(Chart { title: vec![words(format!("Pods, in {place}"))], caption, says, svg }))
}

/// What the rows of evidence of one row of `cells` have in common.
fn same_row(comparison: &Comparison<'_>, row: &EvidenceRow) -> Vec<(&'static str, Literal)> {
    let text = |text: &str| Literal::Text(text.to_owned());
    let mut filter = comparison.subject.filter();
    filter.extend([
        ("scope", text(row.scope.name())),
        ("profile_type", text(row.comparison.profile_type.name())),
        ("count_kind", text(row.count_kind.name())),
        ("region", text(row.cell.region.as_str())),
        ("cohort", text(row.cell.cohort.as_str())),
        ("is_roll_up", Literal::Truth(row.is_roll_up)),
        ("function", text(&row.function)),
        ("window_end_at", Literal::Instant(row.window_end_at)),
    ]);
    filter
}

/// The buckets of an arm by number.
fn buckets(rows: &[&EvidenceRow], side: Side) -> BTreeMap<i64, Counts> {
    let mut buckets: BTreeMap<i64, Counts> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.arm == side) {
        let counts = buckets.entry(row.bucket).or_default();
        counts.count += row.count;
        counts.samples += row.samples;
        // NB: pods are those of all strata, repeated in each.
        counts.pods = row.pods;
    }
    buckets
}

/// The pods that differ from the others of their build, by name.
fn outliers(comparison: &Comparison<'_>, known: &Known<'_>, references: &mut References) -> Vec<Span> {
    let of_window = comparison.last_report(known.key, known.kind, Scope::Window);
    let named = of_window.filter(|filed| filed.row.function == known.cause && !filed.row.outlying_pods.is_empty());
    let mut text = Vec::new();
    for filed in named {
        let at = comparison.places(known.key, fleetdiff_schemas::verdict::BaseKind::Concurrent, [&filed.row.cell]);
        let citation = references.row(filed);
        text.extend((!text.is_empty()).then(|| words(" ")));
        text.push(crate::figures::figure(format!("Outlying in {at}"), citation, &[]));
        text.push(words(": "));
        for (place, pod) in filed.row.outlying_pods.iter().enumerate() {
            text.extend((place > 0).then(|| words(", ")));
            text.push(name(pod.as_str()));
        }
        text.push(words("."));
    }
    if text.is_empty() {
        text.push(words("No single pod was found to differ from the others of its build."));
    }
    text
}
