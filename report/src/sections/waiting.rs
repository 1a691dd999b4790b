//! What requests waited for: time off the CPU, by thread, and behind locks.

use std::collections::BTreeSet;

use fleetdiff_pipeline::rules::waiting::words::{duration, measure, per, why};
use fleetdiff_pipeline::rules::waiting::{has_changed, is_of_cell, subject};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, WaitingRow};
use fleetdiff_schemas::verdict::{LevelDirection, Support};

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Text, Tone, name, paragraph, words};
use crate::figures::{Columns, figure, ratio};
use crate::records::Filed;
use crate::references::References;

/// Rows with a line of their own; the others are counted.
const SHOWN: usize = 20;
/// Rows that are said at the top of the report.
const IN_SHORT: usize = 4;
const RATIO: Columns = ["ratio", "ratio_low", "ratio_high"];

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let Some(waiting) = comparison.waiting() else { return Ok(None) };
    let (cells, mut parts): (Vec<_>, Vec<_>) = waiting.rows.iter().partition(|filed| is_of_cell(&filed.row));
    let (head, base) = (&comparison.subject.head, &comparison.subject.base);
    let changed = cells.iter().filter(|filed| has_changed(&filed.row)).count();
    let mut blocks = vec![paragraph(vec![words(format!(
        "Time off the CPU, by the wall's clock or behind locks, and its sum with time on the CPU, of {head} against {base} at the last report. \
         Idle waiting is left out. The whole changed in {changed} of {} rows of cells; a thread can wait longer though the whole falls.",
        cells.len()
    ))])];
    if cells.iter().all(|filed| filed.row.support == Support::Untestable) {
        let reasons: BTreeSet<&str> = cells.iter().map(|filed| why(filed.row.time.reason)).collect();
        let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
        blocks.push(paragraph(vec![words(format!("Nothing could be judged: {reasons}."))]));
        return Ok(Some(Section { title: Some("Waiting".to_owned()), blocks }));
    }
    let size = |row: &WaitingRow| (row.time.head.unwrap_or(0.0) - row.time.base.unwrap_or(0.0)).abs();
    parts.sort_by(|a, b| size(&b.row).total_cmp(&size(&a.row)));
    blocks.extend(list("Waiting in each cell", &cells, comparison, references));
    blocks.extend(list("Functions and threads whose time changed", &parts, comparison, references));
    Ok(Some(Section { title: Some("Waiting".to_owned()), blocks }))
}

/// Cells and threads of which all time changed, what is longer first; nothing if none did.
pub(super) fn in_short(comparison: &Comparison<'_>, references: &mut References) -> Option<Text> {
    let is_whole = |filed: &&Filed<WaitingRow>| &*filed.row.function == ALL_FUNCTIONS && has_changed(&filed.row);
    let mut whole: Vec<&Filed<WaitingRow>> = comparison.waiting()?.rows.iter().filter(is_whole).collect();
    whole.sort_by_key(|filed| filed.row.time.direction != LevelDirection::Up);
    let mut text = Text::new();
    for filed in whole.iter().take(IN_SHORT) {
        let row = &filed.row;
        let Some(of) = row.time.change else { continue };
        let (place, what) = (comparison.place(&row.cell), subject(row));
        let citation = references.row(filed);
        text.push(words(format!("In {place}, {what}: {} {} ", measure(row.measure), per(row.per))));
        if of.has_both_parts() {
            text.push(ratio(of, citation, RATIO));
            text.push(words(", "));
        }
        if let (Some(base), Some(head)) = (row.time.base, row.time.head) {
            text.push(words("from "));
            text.push(figure(duration(base), citation, &["base"]));
            text.push(words(" to "));
            text.push(figure(duration(head), citation, &["head"]));
        }
        text.push(words(". "));
    }
    if whole.len() > IN_SHORT {
        text.push(words(format!("{} more are below. ", whole.len() - IN_SHORT)));
    }
    (!text.is_empty()).then_some(text)
}

fn list(
    title: &str,
    filed: &[&Filed<WaitingRow>],
    comparison: &Comparison<'_>,
    references: &mut References,
) -> Vec<Block> {
    if filed.is_empty() {
        return Vec::new();
    }
    let rows = filed.iter().take(SHOWN).map(|filed| line(filed, comparison, references));
    let mut blocks = vec![Block::list(title, &["what", "cell", "time", "base", "head", "head by base"], rows)];
    if filed.len() > SHOWN {
        let more = filed.len() - SHOWN;
        blocks.push(paragraph(vec![words(format!("{more} more are in the table waiting."))]));
    }
    blocks
}

fn line(filed: &Filed<WaitingRow>, comparison: &Comparison<'_>, references: &mut References) -> Vec<Cell> {
    let (row, citation) = (&filed.row, references.row(filed));
    let level = |level: Option<f64>, column: &'static str| {
        let known = level.map(|level| Cell::of(vec![figure(duration(level), citation, &[column])]));
        known.unwrap_or_else(|| Cell::words("unknown"))
    };
    let (how, tone) = match row.time.direction {
        LevelDirection::Up => ("longer", Tone::More),
        LevelDirection::Down => ("shorter", Tone::Less),
        LevelDirection::Flat => ("as long", Tone::Same),
        LevelDirection::Unknown => ("not known to have changed", Tone::Open),
    };
    let tentative = if row.support == Support::Tentative { ". Tentative: fewer than 5 pods in an arm" } else { "" };
    let judged = match row.time.change {
        Some(of) => Cell::of(vec![words(format!("{how}{tentative}: ")), ratio(of, citation, RATIO)]),
        None => Cell::words(format!("unknown: {}", why(row.time.reason))),
    };
    vec![
        Cell::of(vec![name(subject(row))]),
        Cell::words(comparison.place(&row.cell)),
        Cell::words(format!("{} {}", measure(row.measure), per(row.per))),
        level(row.time.base, "base"),
        level(row.time.head, "head"),
        judged.toned(tone),
    ]
}
