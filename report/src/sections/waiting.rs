//! What requests waited for: time off the CPU, by thread, and behind locks.

use std::collections::BTreeSet;

use fleetdiff_pipeline::rules::advice::plural;
use fleetdiff_pipeline::rules::levels::undecided;
use fleetdiff_pipeline::rules::waiting::words::{duration, measure, members, per, why};
use fleetdiff_pipeline::rules::waiting::{has_changed, is_of_cell, mostly, mostly_in, moved, subject};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, WaitingRow};
use fleetdiff_schemas::verdict::{LevelDirection, Support};

use super::{in_table, rest};
use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Text, Tone, name, paragraph, words};
use crate::figures::{Columns, figure, level_ratio, ratio};
use crate::records::Filed;
use crate::references::References;

/// Rows with a line of their own; the others are counted.
const SHOWN: usize = 20;
/// Rows that are said at the top of the report.
const IN_SHORT: usize = 4;
const RATIO: Columns = ["ratio", "ratio_low", "ratio_high"];

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let (cells, mut parts): (Vec<_>, Vec<_>) = shown(comparison).partition(|filed| is_of_cell(&filed.row));
    if cells.is_empty() {
        return Ok(None);
    }
    let (head, base) = (&comparison.subject.head, &comparison.subject.base);
    let changed = cells.iter().filter(|filed| has_changed(&filed.row)).count();
    let mut blocks = vec![paragraph(vec![words(format!(
        "Time off the CPU, by the wall's clock or behind locks, and its sum with time on the CPU, of {head} against {base} at the last report. \
         Idle waiting is left out. The whole changed in {changed} of {} {} of cells; a thread can wait longer though the whole falls.",
        cells.len(),
        plural(cells.len(), "row")
    ))])];
    if cells.iter().all(|filed| filed.row.support == Support::Untestable) {
        let reasons: BTreeSet<&str> = cells.iter().map(|filed| why(filed.row.time.reason)).collect();
        let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
        blocks.push(paragraph(vec![words(format!("Nothing could be judged: {reasons}."))]));
        return Ok(Some(Section { title: Some("Waiting".to_owned()), blocks }));
    }
    parts.sort_by(|a, b| moved(&b.row).total_cmp(&moved(&a.row)));
    blocks.extend(list("Waiting in each cell", &cells, comparison, references));
    blocks.extend(list("Functions and threads whose time changed", &parts, comparison, references));
    Ok(Some(Section { title: Some("Waiting".to_owned()), blocks }))
}

/// The rows of the first kind that is counted: callers follow their callees.
fn shown<'a>(comparison: &Comparison<'a>) -> impl Iterator<Item = &'a Filed<WaitingRow>> {
    let rows = comparison.waiting().map_or(&[][..], |waiting| &waiting.rows);
    let first = rows.iter().map(|filed| filed.row.count_kind).min();
    rows.iter().filter(move |filed| Some(filed.row.count_kind) == first)
}

/// What a row is about, and in which functions most of it lies if the row itself does not say.
fn about(row: &WaitingRow, comparison: &Comparison<'_>) -> Text {
    let rows = comparison.waiting().into_iter().flat_map(|waiting| &waiting.rows).map(|filed| &filed.row);
    let mut text = vec![if &*row.function == ALL_FUNCTIONS { words(subject(row)) } else { name(subject(row)) }];
    for (place, function) in mostly_in(row, rows).into_iter().enumerate() {
        text.push(words(if place == 0 { mostly(row) } else { ", " }));
        text.push(name(function));
    }
    text
}

/// Whether requests of a whole cell wait longer: the cause of what its threads, and the kernel for them, do.
pub(super) fn is_longer(comparison: &Comparison<'_>) -> bool {
    shown(comparison).any(|filed| is_of_cell(&filed.row) && filed.row.time.direction == LevelDirection::Up)
}

/// Cells and threads of which all time changed, what is longer first; nothing if none did.
pub(super) fn in_short(comparison: &Comparison<'_>, references: &mut References) -> Option<Text> {
    let is_whole = |filed: &&Filed<WaitingRow>| &*filed.row.function == ALL_FUNCTIONS && has_changed(&filed.row);
    let mut whole: Vec<&Filed<WaitingRow>> = shown(comparison).filter(is_whole).collect();
    whole.sort_by_key(|filed| (filed.row.time.direction != LevelDirection::Up, !is_of_cell(&filed.row)));
    let mut text = Text::new();
    for filed in whole.iter().take(IN_SHORT) {
        let row = &filed.row;
        let Some(of) = row.time.change else { continue };
        let citation = references.row(filed);
        text.push(words(format!("In {}, ", comparison.place(&row.cell))));
        text.extend(about(row, comparison));
        text.push(words(format!(": {} {} ", measure(row.measure), per(row.per))));
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
    text.extend(rest(whole.len(), IN_SHORT, ["row", ""]));
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
    let table = Block::list(title, &["what", "cell", "time", "base", "head", "head / base"], rows);
    let title = paragraph(vec![words(format!("{title}:"))]);
    [title, table].into_iter().chain(in_table(filed.len(), SHOWN, "row", "waiting")).collect()
}

fn line(filed: &Filed<WaitingRow>, comparison: &Comparison<'_>, references: &mut References) -> Vec<Cell> {
    let (row, citation) = (&filed.row, references.row(filed));
    let level = |level: Option<f64>, column: &'static str| {
        let known = level.map(|level| Cell::of(vec![figure(duration(level), citation, &[column])]));
        known.unwrap_or_else(|| Cell::words("unknown"))
    };
    let (how, tone) = match row.time.direction {
        LevelDirection::Up => ("longer".to_owned(), Tone::More),
        LevelDirection::Down => ("shorter".to_owned(), Tone::Less),
        LevelDirection::Flat => ("as long".to_owned(), Tone::Same),
        LevelDirection::Unknown => (undecided(&row.time, members(row), false), Tone::Open),
    };
    let tentative = if row.support == Support::Tentative { ". Tentative: fewer than 5 pods in an arm." } else { "" };
    let judged = match level_ratio(&row.time, citation, RATIO) {
        Some(ratio) => Cell::of(vec![words(format!("{how}: ")), ratio, words(tentative)]),
        None => Cell::words(format!("unknown: {}", why(row.time.reason))),
    };
    vec![
        Cell::of(about(row, comparison)),
        Cell::words(comparison.place(&row.cell)),
        Cell::words(format!("{} {}", measure(row.measure), per(row.per))),
        level(row.time.base, "base"),
        level(row.time.head, "head"),
        judged.toned(tone),
    ]
}
