//! The rings of a roll-out: what functions cost from build to build.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::rings::changed;
use fleetdiff_schemas::fan_out::Extent;
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, RingRow, RingStep};
use fleetdiff_schemas::verdict::Verdict;

use crate::chart::{Effect, Undrawn, forest};
use crate::document::{Block, Cell, Chart, Section, Shape, Table, Text, Tone, name, paragraph, words};
use crate::figures::{Columns, count, ratio};
use crate::records::{Filed, LastReport, Records};
use crate::references::{Citation, References};
use crate::verdicts;

/// Paths with a line of their own; the others are counted.
const SHOWN: usize = 20;
/// Paths with a picture.
const DRAWN: usize = 2;
const TO_PREVIOUS: Columns = ["ratio_to_previous", "ratio_to_previous_low", "ratio_to_previous_high"];
const TO_FIRST: Columns = ["ratio_to_first", "ratio_to_first_low", "ratio_to_first_high"];

/// One function in one cell, ring by ring.
type Path<'a> = Vec<&'a Filed<RingRow>>;

pub(crate) fn section(records: &Records, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let mut blocks = Vec::new();
    for ((service, profile_type), last) in &records.rings {
        blocks.extend(of_service(service, *profile_type, last, references)?);
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("Rings: from build to build".to_owned()), blocks }))
}

fn of_service(
    service: &Service,
    profile_type: ProfileType,
    paths: &LastReport<RingRow>,
    references: &mut References,
) -> Result<Vec<Block>, Undrawn> {
    let grid: BTreeSet<&CellKey> = paths.rows.iter().map(|filed| &filed.row.cell).collect();
    let builds: BTreeMap<i64, &str> =
        paths.rows.iter().map(|filed| (filed.row.ring, filed.row.build.as_str())).collect();
    let moved: Vec<Path<'_>> = changed(&paths.rows, |filed| &filed.row);
    let names: Vec<&str> = builds.values().copied().collect();
    let order = names.join(", then ");
    let kind = profile_type.name();
    let number = if moved.is_empty() { "none".to_owned() } else { moved.len().to_string() };
    let mut blocks = vec![paragraph(vec![words(format!(
        "{service} {kind}: the builds {order} run side by side, each compared with the one before it and with the first. Changes \
         between any two of them within the last window: {number} (one for each function and cell). A flag asks for more than that: it must \
         hold however often one looks."
    ))])];
    if moved.is_empty() {
        return Ok(blocks);
    }
    let charts: Result<Vec<Chart>, Undrawn> = moved.iter().take(DRAWN).map(|path| chart(path, &grid)).collect();
    blocks.push(Block::Charts { charts: charts? });
    blocks.push(table(&builds, &moved, &grid, references));
    if moved.len() > SHOWN {
        let rest = moved.len() - SHOWN;
        blocks.push(paragraph(vec![words(format!("{rest} more are in the table rings."))]));
    }
    Ok(blocks)
}

/// A path as a picture: each ring against the first.
fn chart(path: &Path<'_>, grid: &BTreeSet<&CellKey>) -> Result<Chart, Undrawn> {
    let effects: Vec<Effect> = path
        .iter()
        .filter(|filed| filed.row.ring > 1)
        .map(|filed| {
            let RingRow { build, first, .. } = &filed.row;
            Effect {
                place: first
                    .build
                    .as_ref()
                    .map_or_else(|| build.to_string(), |first| format!("{build} against {first}")),
                ratio: first.ratio,
                tone: tone(first),
                is_flagged: first.verdict.is_some_and(Verdict::is_significant),
            }
        })
        .collect();
    let (function, place) = subject(path, grid);
    let describes = format!("{function} in {place}: each ring divided by the first, with 95 % intervals");
    Ok(Chart {
        title: vec![name(function), words(format!(" in {place}"))],
        caption: vec![words(
            "Each build divided by the first, with 95 % intervals; right of the line at x 1 is more expensive. Filled: significant. The \
             figures are in the table below.",
        )],
        says: Text::new(),
        svg: forest(&effects, &describes)?,
    })
}

fn tone(step: &RingStep) -> Tone {
    step.verdict.map_or(Tone::Open, |verdict| verdicts::of_row(verdict).tone)
}

/// The function and the cell of a path in words.
fn subject(path: &Path<'_>, grid: &BTreeSet<&CellKey>) -> (String, String) {
    let Some(first) = path.first() else { return (String::new(), String::new()) };
    let whole: Vec<CellKey> = grid.iter().map(|cell| (*cell).clone()).collect();
    let places: Vec<Extent> = extents([&first.row.cell], &whole);
    let place = places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let function = if &*first.row.function == ALL_FUNCTIONS { "all functions together" } else { &first.row.function };
    (function.to_owned(), place)
}

/// A line for each path, a column for each ring.
fn table(
    builds: &BTreeMap<i64, &str>,
    moved: &[Path<'_>],
    grid: &BTreeSet<&CellKey>,
    references: &mut References,
) -> Block {
    let mut head = vec![vec![words("function")], vec![words("cell")]];
    head.extend(builds.values().map(|build| vec![words(*build)]));
    let rows = moved.iter().take(SHOWN).map(|path| {
        let (function, place) = subject(path, grid);
        let mut line = vec![Cell::of(vec![name(function)]), Cell::words(place)];
        line.extend(builds.keys().map(|ring| {
            let filed = path.iter().find(|filed| filed.row.ring == *ring);
            filed.map_or_else(|| Cell::words("no samples"), |filed| ring_cell(filed, references))
        }));
        line
    });
    Block::Table(Table {
        caption: "What functions cost from build to build".to_owned(),
        shape: Shape::List,
        head,
        rows: rows.collect(),
    })
}

/// One ring: its pods, and its cost against the ring before it and against the first.
fn ring_cell(filed: &Filed<RingRow>, references: &mut References) -> Cell {
    let (row, citation) = (&filed.row, references.row(filed));
    let pods =
        vec![count(row.figures.pods, citation, "pods"), words(if row.figures.pods == 1 { " pod" } else { " pods" })];
    if row.ring == 1 {
        return Cell::of(pods);
    }
    let mut text = against(&row.previous, citation, TO_PREVIOUS);
    if row.first.build != row.previous.build {
        text.push(words("; "));
        text.extend(against(&row.first, citation, TO_FIRST));
    }
    text.push(words("; "));
    text.extend(pods);
    Cell::of(text).toned(if tone(&row.previous) == Tone::Open { tone(&row.first) } else { tone(&row.previous) })
}

fn against(step: &RingStep, citation: Citation, columns: Columns) -> Text {
    let Some(build) = &step.build else { return vec![words("not compared with the build before")] };
    let verdict = step.verdict.map_or_else(verdicts::too_rare, verdicts::of_row).word;
    let doubt = verdicts::doubt(step.reason);
    match step.ratio {
        Some(of) => vec![ratio(of, citation, columns), words(format!(" against {build}, {verdict}{doubt}"))],
        None => vec![words(format!("against {build}: {verdict}{doubt}"))],
    }
}
