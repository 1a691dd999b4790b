//! Incidents, ranked by what they cost: what each did in which cell, with pictures of it.

use std::collections::BTreeSet;

use fleetdiff_diff::figures::grouped;
use fleetdiff_pipeline::rules::advice;
use fleetdiff_pipeline::rules::kernel::callers_outside;
use fleetdiff_pipeline::rules::wording::Wording;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, IncidentRow};
use fleetdiff_schemas::verdict::{BaseKind, IncidentState, Severity};

use super::by_cell::{Known, known};
use super::{course, pods};
use crate::chart::{Undrawn, forest};
use crate::comparison::{Comparison, Incident};
use crate::document::{Block, Cell, Chart, Fact, Section, Text, Tone, Verdict, name, paragraph, words};
use crate::figures::{EFFECT, instant, points, quote, ratio};
use crate::records::Filed;
use crate::references::{Citation, References};

/// Incidents with a line in the first table; the others have theirs near the end of the report.
const LISTED: usize = 12;
/// Incidents that are shown in full.
const SHOWN: usize = 6;
/// Most cells of one incident that are drawn and listed.
const CELLS: usize = 40;
/// Most names of functions that move with a cause.
const EXPLAINED: usize = 12;

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let incidents = comparison.incidents();
    if incidents.is_empty() {
        return Ok(None);
    }
    let introduction = match incidents.len() {
        1 => "One incident. An incident is all that one cause does: its cells, and the callers that move with it."
            .to_owned(),
        number => format!(
            "{} incidents, ranked by how much of all samples they move. An incident is all that one cause does: its cells, and the \
             callers that move with it.{}",
            grouped(number),
            if incidents.iter().any(is_diluted) { DILUTED } else { "" }
        ),
    };
    let mut blocks = vec![paragraph(vec![words(introduction)])];
    if incidents.len() > 1 {
        let largest = &incidents[..incidents.len().min(LISTED)];
        blocks.push(ranking("Incidents, the largest first", comparison, largest, references));
        let more = incidents.len() - largest.len();
        let text =
            format!("{} smaller {}: see All other incidents, below.", grouped(more), advice::plural(more, "incident"));
        blocks.extend((more > 0).then(|| paragraph(vec![words(text)])));
    }
    // NB: what another incident explains has no story of its own.
    let told = incidents.iter().filter(|incident| !is_superseded(incident));
    for incident in told.take(SHOWN) {
        blocks.extend(story(comparison, incident, references)?);
    }
    Ok(Some(Section { title: Some("Incidents".to_owned()), blocks }))
}

/// The incidents without a line in the first table.
pub(crate) fn others(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let incidents = comparison.incidents();
    let Some(others) = incidents.get(LISTED..).filter(|others| !others.is_empty()) else { return Ok(None) };
    let blocks = vec![ranking("All other incidents", comparison, others, references)];
    Ok(Some(Section { title: Some("All other incidents".to_owned()), blocks }))
}

/// What has to be known where a share falls although the function does more.
const DILUTED: &str = " Head / base is relative to what did not change; a share can fall although the function does more, if others \
                       take much more of the whole.";

/// Whether the share of a cause moved the other way than its cost.
fn is_diluted(incident: &Incident<'_>) -> bool {
    let row = &incident.standing.row;
    row.effect.zip(row.share_delta).is_some_and(|(effect, delta)| (effect.value > 1.0) != (delta.value > 0.0))
}

/// The cause, and what it is below if it is a function of the kernel.
fn cause(row: &IncidentRow) -> Text {
    let whole = if row.cause == ALL_FUNCTIONS { words(advice::name(&row.cause)) } else { name(&*row.cause) };
    let mut text = vec![whole];
    let callers = callers_outside(&row.cause, &row.explains);
    if let Some(first) = callers.first() {
        text.extend([words(" below "), name(first.as_str())]);
        let more = callers.len() - 1;
        text.extend((more > 0).then(|| words(format!(" and {more} more"))));
    }
    text
}

/// The cell in which the effect of an incident was measured, if it stands in several.
fn measured_in(comparison: &Comparison<'_>, incident: &Incident<'_>) -> Option<String> {
    let row = &incident.standing.row;
    let flags = comparison.flags_of(incident);
    let cells: BTreeSet<&CellKey> = flags.iter().map(|filed| &filed.row.row.cell).collect();
    let lead = flags.iter().map(|filed| &filed.row.row).find(|flag| flag.effect() == row.effect)?;
    (cells.len() > 1).then(|| comparison.place(&lead.cell))
}

fn is_superseded(incident: &Incident<'_>) -> bool {
    incident.ended.is_some_and(|end| end.row.state == IncidentState::Superseded)
}

/// Incidents, a line each.
fn ranking(
    caption: &str,
    comparison: &Comparison<'_>,
    incidents: &[Incident<'_>],
    references: &mut References,
) -> Block {
    let rows = incidents.iter().map(|incident| {
        let row = &incident.standing.row;
        let citation = references.row(incident.standing);
        let unknown = || Cell::words("unknown");
        vec![
            Cell::of(cause(row)),
            Cell::verdict(standing(incident)),
            Cell::words(row.regressed_in.iter().chain(&row.improved_in).cloned().collect::<Vec<_>>().join(", ")),
            effect(row, measured_in(comparison, incident), citation),
            row.share_delta.map_or_else(unknown, |delta| Cell::of(vec![points(delta, citation)])),
            Cell::words(instant(row.raised_at)),
        ]
    });
    let head = ["cause", "state", "where", "head / base", "change of share", "raised"];
    Block::list(caption, &head, rows)
}

/// By how much a cause changed, and where that was measured if it may be asked.
fn effect(row: &IncidentRow, measured_in: Option<String>, citation: Citation) -> Cell {
    let Some(effect) = row.effect else { return Cell::words(one_sided(row)) };
    let place = measured_in.map(|place| words(format!(" in {place}")));
    Cell::of([ratio(effect, citation, EFFECT)].into_iter().chain(place).collect())
}

/// Why there is no ratio: only one build has the cause, or what a request costs could not be compared.
fn one_sided(row: &IncidentRow) -> &'static str {
    if row.cause == ALL_FUNCTIONS {
        return "unknown";
    }
    if row.regressed_in.is_empty() { "only in the base" } else { "only in the head" }
}

/// What an incident is now, in a word.
fn standing(incident: &Incident<'_>) -> Verdict {
    match incident.ended.map(|end| end.row.state) {
        Some(IncidentState::Superseded) => Verdict::new("explained by another", Tone::Same),
        Some(_) => Verdict::new("ended", Tone::Same),
        None if incident.standing.row.severity == Severity::Info => Verdict::new("improved", Tone::Less),
        None => Verdict::new(format!("regressed, {}", incident.standing.row.severity.name()), Tone::More),
    }
}

/// One incident in full.
fn story(
    comparison: &Comparison<'_>,
    incident: &Incident<'_>,
    references: &mut References,
) -> Result<Vec<Block>, Undrawn> {
    let row = &incident.standing.row;
    let mut blocks = vec![Block::Heading { text: cause(row), verdict: standing(incident) }];
    let Some(known) = known(comparison, incident) else {
        blocks.push(facts(incident, references));
        return Ok(blocks);
    };
    let effects = known.effects(comparison, CELLS);
    let mut charts = Vec::new();
    if effects.iter().any(|effect| effect.ratio.is_some()) {
        let describes = format!(
            "{} in {} {}: head divided by base, with 95 % intervals",
            row.cause,
            effects.len(),
            advice::plural(effects.len(), "cell")
        );
        charts.push(Chart {
            title: vec![words("Where it changed, cell by cell")],
            caption: vec![words(format!(
                "Head divided by base, with 95 % intervals; right of the line at x 1 it {} more in the head. Filled: flagged. The \
                 figures are in the table below.",
                Wording::of(known.key.profile_type).does
            ))],
            says: Text::new(),
            svg: forest(&effects, &describes)?,
        });
    }
    charts.extend(course::chart(comparison, incident, &known, references)?);
    charts.extend(pods::chart(comparison, &known, references)?);
    blocks.push(Block::Charts { charts });
    blocks.push(facts(incident, references));
    blocks.push(known.table(comparison, CELLS, references));
    blocks.extend(left_out(&known));
    Ok(blocks)
}

/// How many cells are not listed.
fn left_out(known: &Known<'_>) -> Option<Block> {
    let more = known.cells.len().saturating_sub(CELLS);
    let text =
        format!("{} more {} with smaller changes are in the table cells.", grouped(more), advice::plural(more, "cell"));
    (more > 0).then(|| paragraph(vec![words(text)]))
}

fn facts(incident: &Incident<'_>, references: &mut References) -> Block {
    let (filed, row) = (incident.standing, &incident.standing.row);
    let citation = references.row(filed);
    let mut facts = vec![Fact::new("What", vec![quote(&row.summary, citation, "summary")])];
    if let Some(end) = incident.ended {
        let ended = quote(&end.row.summary, references.row(end), "summary");
        facts.push(Fact::new("Ended", vec![words(format!("{}: ", instant(end.row.changed_at))), ended]));
    }
    facts.push(Fact::new("Impact", vec![quote(&row.impact, citation, "impact")]));
    facts.push(Fact::new("How sure", vec![quote(&row.confidence, citation, "confidence")]));
    facts.push(Fact::new("Since", since(incident, references)));
    if !row.explains.is_empty() {
        facts.push(Fact::new("Moves with it", explained(row)));
    }
    Block::Facts { facts }
}

/// When it was raised, and when it changed last.
fn since(incident: &Incident<'_>, references: &mut References) -> Text {
    let raised: &Filed<IncidentRow> = incident.raised;
    let link = |filed: &Filed<IncidentRow>, at, references: &mut References| {
        crate::figures::figure(instant(at), references.row(filed), &[])
    };
    let mut text = vec![words("raised "), link(raised, raised.row.raised_at, references)];
    if incident.standing.row.sequence != raised.row.sequence {
        text.push(words(", last changed "));
        text.push(link(incident.standing, incident.standing.row.changed_at, references));
    }
    text
}

/// Functions that move only because the cause does.
fn explained(row: &IncidentRow) -> Text {
    let mut text = Text::new();
    for (place, explained) in row.explains.iter().take(EXPLAINED).enumerate() {
        if place > 0 {
            text.push(words(", "));
        }
        text.push(name(explained.as_str()));
    }
    let more = row.explains.len().saturating_sub(EXPLAINED);
    if more > 0 {
        text.push(words(format!(" and {more} more")));
    }
    text.push(words(". They changed because of it and have no incident of their own."));
    text
}

/// The cell with the largest flagged change, in words.
pub(super) fn place(comparison: &Comparison<'_>, known: &Known<'_>) -> Option<String> {
    let (cell, _) = known.in_order().into_iter().next()?;
    Some(comparison.places(known.key, BaseKind::Concurrent, [cell]))
}
