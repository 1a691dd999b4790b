//! What costs more under load in the head than in the base.

use std::collections::BTreeMap;

use fleetdiff_pipeline::rules::advice::change;
use fleetdiff_pipeline::rules::scaling::{action, at_twice_the_load, name as as_said};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, Interval, ScalingRow};
use fleetdiff_schemas::verdict::{BaseKind, ScalingVerdict};

use super::{load_curves, rest};
use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Text, Tone, name, paragraph, words};
use crate::figures::{count, decimals, figure, percent, quote};
use crate::records::Filed;
use crate::references::{Citation, References};

/// Rows that are shown; the others are counted.
const SHOWN: usize = 20;
/// Rows that are said at the top of the report.
const IN_SHORT: usize = 2;
const ELASTICITY: [&str; 3] = ["elasticity", "elasticity_low", "elasticity_high"];
const BASE_ELASTICITY: [&str; 3] = ["base_elasticity", "base_elasticity_low", "base_elasticity_high"];

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let mut blocks = Vec::new();
    for (profile_type, last) in comparison.load() {
        let rows: Vec<&Filed<ScalingRow>> = last.rows.iter().collect();
        let (mut worse, silent): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|filed| filed.row.verdict == ScalingVerdict::ScalesWorse);
        let builds = (comparison.subject.head.as_str(), comparison.subject.base.as_str());
        let kind = profile_type.name();
        if last.tested > 0 {
            let number = if worse.is_empty() { "none".to_owned() } else { worse.len().to_string() };
            blocks.push(paragraph(vec![words(format!(
                "{kind}: {number} of {} tested rows (one for each function and cell) cost more at higher load in {} than in {}.",
                last.tested, builds.0, builds.1
            ))]));
        }
        if !worse.is_empty() {
            worse.sort_by(|a, b| size(b).total_cmp(&size(a)));
            blocks.extend(load_curves::charts(comparison, &worse, references)?);
            blocks.push(table(comparison, worse, references));
        }
        blocks.extend(unknown(comparison, &silent, references));
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("Under load".to_owned()), blocks }))
}

/// Functions of which the head scales worse, and what to do; nothing if there are none.
pub(super) fn in_short(comparison: &Comparison<'_>, references: &mut References) -> Option<Text> {
    let rows = comparison.load().flat_map(|(_, last)| &last.rows);
    let mut worse: Vec<&Filed<ScalingRow>> =
        rows.filter(|filed| filed.row.verdict == ScalingVerdict::ScalesWorse).collect();
    if worse.is_empty() {
        return None;
    }
    // All functions together follow the one that is the cause.
    worse.sort_by(|a, b| {
        let order = |filed: &Filed<ScalingRow>| (filed.row.count_kind, &*filed.row.function == ALL_FUNCTIONS);
        order(a).cmp(&order(b)).then(size(b).total_cmp(&size(a)))
    });
    let mut text = Text::new();
    for filed in worse.iter().take(IN_SHORT) {
        let place = comparison.place(&filed.row.cell);
        text.push(words(format!("In {place}, {} at twice the load costs a request ", as_said(&filed.row.function))));
        text.extend(at_twice(filed.row.elasticity, references.row(filed), ELASTICITY));
        text.push(words(format!("; in {} ", comparison.subject.base)));
        text.extend(at_twice(filed.row.base_elasticity, references.row(filed), BASE_ELASTICITY));
        text.push(words(". "));
    }
    text.extend(rest(worse.len(), IN_SHORT, ["function", ""]));
    text.push(words(action(&comparison.subject.head, &comparison.subject.base)));
    Some(text)
}

/// By how much a function scales worse at least.
fn size(filed: &Filed<ScalingRow>) -> f64 {
    filed.row.elasticity_difference.map_or(0.0, |slope| slope.low)
}

/// Functions that scale worse.
fn table(comparison: &Comparison<'_>, worse: Vec<&Filed<ScalingRow>>, references: &mut References) -> Block {
    let rows = worse.into_iter().take(SHOWN).map(|filed| {
        let (row, citation) = (&filed.row, references.row(filed));
        let function =
            if &*row.function == ALL_FUNCTIONS { words(as_said(&row.function)) } else { name(&*row.function) };
        let cost = |slope, columns| Cell::of(at_twice(slope, citation, columns));
        let per_request = |value: Option<f64>, column| {
            value.map_or_else(|| words("unknown"), |value| figure(format!("{value:.3}"), citation, &[column]))
        };
        vec![
            Cell::of(vec![function]),
            Cell::words(comparison.place(&row.cell)),
            cost(row.elasticity, ELASTICITY).toned(Tone::More),
            cost(row.base_elasticity, BASE_ELASTICITY),
            Cell::of(vec![
                per_request(row.low.per_request, "per_request_low_load"),
                words(" to "),
                per_request(row.high.per_request, "per_request_high_load"),
            ]),
            row.high.share.map_or_else(
                || Cell::words("unknown"),
                |share| Cell::of(vec![percent(share, citation, "share_high_load")]),
            ),
            row.basis.load_span.map_or_else(
                || Cell::words("unknown"),
                |span| Cell::of(vec![figure(format!("{span:.2} times"), citation, &["load_span"])]),
            ),
            Cell::of(vec![
                count(row.basis.pods, citation, "pods"),
                words(", "),
                count(row.basis.minutes, citation, "minutes"),
            ]),
        ]
    });
    let head = [
        "function",
        "cell",
        "a request at twice the load, head",
        "the same, base",
        "samples a request, low to high load",
        "share at high load",
        "load spanned",
        "pods, minutes",
    ];
    Block::list("Functions that cost more under load", &head, rows)
}

/// What a request costs at twice the load, and the elasticity that says so.
fn at_twice(slope: Option<Interval>, citation: Citation, columns: [&'static str; 3]) -> Text {
    let Some(slope) = slope else { return vec![words("unknown")] };
    let Interval { value, low, high } = slope;
    let [shown, from, to] = [value, low, high].map(decimals);
    let elasticity = figure(format!("{shown} ({from} to {to})"), citation, &columns);
    vec![words(format!("{}: elasticity ", change(at_twice_the_load(slope)))), elasticity]
}

/// Cells whose load says nothing, by what would settle it.
fn unknown(comparison: &Comparison<'_>, silent: &[&Filed<ScalingRow>], references: &mut References) -> Vec<Block> {
    let mut by_need: BTreeMap<&str, (&Filed<ScalingRow>, Vec<&CellKey>)> = BTreeMap::new();
    for filed in silent {
        let Some(reason) = filed.row.reason else { continue };
        by_need.entry(reason.name()).or_insert((filed, Vec::new())).1.push(&filed.row.cell);
    }
    let sentence = |(filed, cells): (&Filed<ScalingRow>, Vec<&CellKey>)| {
        let key = comparison.keys.iter().find(|key| key.profile_type == filed.row.profile_type);
        let places = key.map_or_else(String::new, |key| comparison.places(key, BaseKind::Concurrent, cells));
        let kind = filed.row.profile_type.name();
        let citation = references.row(filed);
        let needed = filed.row.needed.as_deref().unwrap_or("more data");
        paragraph(vec![
            words(format!("{kind}: how costs follow load cannot be said in {places}. Needed: ")),
            quote(needed, citation, "needed"),
        ])
    };
    by_need.into_values().map(sentence).collect()
}
