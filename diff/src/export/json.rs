//! All results as one JSON document, whose format is published as a JSON Schema.
//!
//! Findings have the members of [`COLUMNS`], null where unknown. JSON has no infinity: an infinite number is null too.

use fleetdiff_formats::Values;
use fleetdiff_schemas::tables::Value;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};

use super::columns::{COLUMNS, saturated};
use super::{Export, NotExported};
use crate::compare::times::NOTE;
use crate::compare::{Compared, Finding, Measured, Method, Reach, Settings, Spread};
use crate::sides::Sides;

/// The JSON Schema (2020-12) of the document.
pub const JSON_SCHEMA: &str = include_str!("../../diff.schema.json");

/// Version of the document; it is increased when a member changes its name or meaning.
pub const FORMAT_VERSION: u32 = 5;

/// The document, with a line end behind it.
///
/// # Errors
/// [`NotExported::NotANumber`] for NaN.
pub fn json(export: &Export<'_>) -> Result<String, NotExported> {
    let findings = &export.compared.findings;
    // Kept separate from errors of serde.
    for column in &COLUMNS {
        findings.iter().try_for_each(|finding| column.value(finding).map(|_| ()))?;
    }
    let document = Document { head: Summary::of(export), findings: findings.iter().map(FindingByColumns).collect() };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// Everything but the findings, as the text of a JSON object.
pub(super) fn head(export: &Export<'_>) -> Result<String, NotExported> {
    Ok(serde_json::to_string(&Summary::of(export))?)
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    head: Summary<'a>,
    findings: Vec<FindingByColumns<'a>>,
}

#[derive(Serialize)]
struct Summary<'a> {
    format_version: u32,
    tool: Tool,
    headline: &'a str,
    count_kind: &'static str,
    profile_type: &'static str,
    measure: &'static str,
    note: Option<&'static str>,
    base: Side<'a>,
    head: Side<'a>,
    weights_unit: Option<&'a str>,
    spread: SpreadOfRuns<'a>,
    reach: Vec<ReachOfRuns<'a>>,
    settings: Decided,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Side<'a> {
    labels: &'a [&'a str],
    runs: usize,
    samples: Option<i64>,
    weight: Option<i64>,
}

#[derive(Serialize)]
struct SpreadOfRuns<'a> {
    known: &'static str,
    background: Option<f64>,
    sentence: &'a str,
}

#[derive(Serialize)]
struct ReachOfRuns<'a> {
    function: &'a str,
    share: f64,
    ratio: f64,
    runs_for_ten_percent: Option<usize>,
}

impl<'a> ReachOfRuns<'a> {
    fn of(reach: &'a Reach) -> Self {
        let Reach { function, share, ratio, runs } = reach;
        Self { function, share: *share, ratio: *ratio, runs_for_ten_percent: *runs }
    }
}

#[derive(Serialize)]
struct Decided {
    method: &'static str,
    q: f64,
    min_effect: f64,
    min_count: Option<u64>,
    min_share: Option<f64>,
}

impl<'a> Summary<'a> {
    fn of(export: &'a Export<'_>) -> Self {
        let Export { compared, settings, labels, headline, count_kind, spread } = export;
        let weights = compared.weights.as_ref();
        let side = |labels: &'a [&'a str], of: fn(Sides<u64>) -> u64, runs| Side {
            labels,
            runs,
            samples: compared.samples.map(|samples| saturated(of(samples))),
            weight: weights.map(|weights| saturated(of(weights.totals))),
        };
        Self {
            format_version: FORMAT_VERSION,
            tool: Tool { name: "fleetdiff", version: env!("CARGO_PKG_VERSION") },
            headline,
            count_kind: count_kind.name(),
            profile_type: compared.profile_type.name(),
            measure: if is_timed(compared) { "time" } else { "samples" },
            note: is_timed(compared).then_some(NOTE),
            base: side(&labels.base, |sides| sides.base, compared.runs.base),
            head: side(&labels.head, |sides| sides.head, compared.runs.head),
            weights_unit: weights.map(|weights| &*weights.unit),
            spread: SpreadOfRuns { known: known(compared.spread), background: compared.background, sentence: spread },
            reach: compared.reach.iter().map(ReachOfRuns::of).collect(),
            settings: Decided::of(settings, compared.times),
        }
    }
}

impl Decided {
    fn of(settings: &Settings, times: Option<Measured>) -> Self {
        let method = match settings.method {
            Method::Honest => "honest",
            Method::Article => "article",
        };
        Self {
            method,
            q: settings.q,
            min_effect: settings.min_effect,
            min_count: times.is_none().then_some(settings.min_count),
            min_share: times.map(|times| times.floor),
        }
    }
}

fn is_timed(compared: &Compared) -> bool {
    compared.values() == Values::Times
}

fn known(spread: Spread) -> &'static str {
    match spread {
        Spread::Unknown => "unknown",
        Spread::Tentative => "tentative",
        Spread::Known => "known",
    }
}

/// A finding by its columns.
struct FindingByColumns<'a>(&'a Finding);

impl Serialize for FindingByColumns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(COLUMNS.len()))?;
        for column in &COLUMNS {
            match column.value(self.0).map_err(S::Error::custom)? {
                Value::Text(text) => map.serialize_entry(column.name, text)?,
                Value::Count(count) => map.serialize_entry(column.name, &count)?,
                Value::Number(number) => map.serialize_entry(column.name, &number)?,
                Value::Null | Value::Instant(_) | Value::Texts(_) | Value::Counts(_) | Value::Truth(_) => {
                    map.serialize_entry(column.name, &())?
                }
            }
        }
        map.end()
    }
}
