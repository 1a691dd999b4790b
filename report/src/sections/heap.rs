//! What became of memory: what requests allocate against what pods have in use, and whether that grows.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::advice::{change, plural};
use fleetdiff_pipeline::rules::heap::words::{meaning, members, why};
use fleetdiff_pipeline::rules::heap::{action, grown};
use fleetdiff_pipeline::rules::levels::undecided;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, HeapRow, Interval, LevelFace};
use fleetdiff_schemas::verdict::{BaseKind, HeapClass, LevelDirection, Support};

use super::in_table;
use crate::chart::{Dot, Undrawn, quadrant};
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Chart, Section, Text, Tone, name, paragraph, words};
use crate::figures::{Columns, decimals, figure, level_ratio};
use crate::records::Filed;
use crate::references::{Citation, References};

/// Functions, and cells, with a line of their own; the others are counted.
const SHOWN: usize = 20;
const ALLOCATED: Columns = ["alloc_ratio", "alloc_ratio_low", "alloc_ratio_high"];
const IN_USE: Columns = ["live_ratio", "live_ratio_low", "live_ratio_high"];
const GROWTH: Columns = ["slope_difference", "slope_difference_low", "slope_difference_high"];

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let Some(memory) = comparison.memory() else { return Ok(None) };
    let rows: Vec<&Filed<HeapRow>> = memory.rows.iter().collect();
    let (cells, functions): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|filed| &*filed.row.function == ALL_FUNCTIONS);
    let moved = cells.iter().filter(|filed| filed.row.moved()).count();
    let (head, base) = (&comparison.subject.head, &comparison.subject.base);
    let mut blocks = vec![paragraph(vec![words(format!(
        "Memory of {head} against {base} at the last report: what a request allocates, what a pod has in use, and whether that grows. \
         Something changed in {moved} of {} {}.",
        cells.len(),
        plural(cells.len(), "cell")
    ))])];
    if cells.iter().all(|filed| filed.row.support == Support::Untestable) {
        let reasons: BTreeSet<&str> =
            cells.iter().flat_map(|filed| filed.row.faces()).map(|face| why(face.reason)).collect();
        let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
        blocks.push(paragraph(vec![words(format!("Nothing could be judged: {reasons}."))]));
        return Ok(titled(blocks));
    }
    blocks.extend(chart(&cells)?);
    blocks.push(of_cells(comparison, &cells, references));
    blocks.extend(in_table(cells.len(), SHOWN, "cell", "heap"));
    if !functions.is_empty() {
        blocks.extend(of_functions(comparison, functions, references));
    }
    Ok(titled(blocks))
}

/// What changed, where; nothing if that is not known of any cell.
pub(super) fn in_short(comparison: &Comparison<'_>, references: &mut References) -> Option<Text> {
    let rows = comparison.memory()?.rows.iter().filter(|filed| &*filed.row.function == ALL_FUNCTIONS);
    let mut by_class: BTreeMap<&str, Vec<&Filed<HeapRow>>> = BTreeMap::new();
    for filed in rows.filter(|filed| filed.row.moved()) {
        by_class.entry(meaning(&filed.row)).or_default().push(filed);
    }
    let (key, base) = (comparison.first_key(BaseKind::Concurrent)?, BaseKind::Concurrent);
    let mut text = Text::new();
    for (meaning, cells) in by_class {
        let places = comparison.places(key, base, cells.iter().map(|filed| &filed.row.cell));
        text.push(words(format!("In {places}")));
        let mut growth = "";
        if let [only] = cells[..] {
            for (face, what, columns) in
                [(&only.row.alloc, "allocated per request", ALLOCATED), (&only.row.live, "in use of a pod", IN_USE)]
            {
                if let Some(ratio) = level_ratio(face, references.row(only), columns) {
                    text.push(words(format!(", {what} ")));
                    text.push(ratio);
                }
            }
            growth = match only.row.slope.direction {
                LevelDirection::Up => ", and that grows faster",
                LevelDirection::Flat => ", and that grows no faster",
                LevelDirection::Down => ", and that grows more slowly",
                LevelDirection::Unknown => "",
            };
        }
        text.push(words(format!("{growth}: {meaning} ")));
        if cells.iter().any(|filed| filed.row.class.is_leak()) {
            text.push(words(format!("{} ", action(&comparison.subject.head))));
        }
    }
    (!text.is_empty()).then_some(text)
}

fn titled(blocks: Vec<Block>) -> Option<Section> {
    Some(Section { title: Some("Memory".to_owned()), blocks })
}

fn tone(class: HeapClass) -> Tone {
    match class {
        HeapClass::HiddenLeak | HeapClass::Leak | HeapClass::RetentionStep | HeapClass::Churn => Tone::More,
        HeapClass::Win => Tone::Less,
        HeapClass::Unchanged => Tone::Same,
        HeapClass::Unknown => Tone::Open,
    }
}

/// Cells of which both ratios are known, in a plane.
fn chart(cells: &[&Filed<HeapRow>]) -> Result<Option<Block>, Undrawn> {
    let known = |ratio: Option<Interval>| ratio.filter(Interval::has_both_parts);
    let dots: Vec<Dot> = cells
        .iter()
        .take(SHOWN)
        .zip(1..)
        .filter_map(|(filed, number)| {
            let row = &filed.row;
            Some(Dot {
                number,
                across: known(row.alloc.change)?,
                upwards: known(row.live.change)?,
                tone: tone(row.class),
                has_changed: row.moved(),
            })
        })
        .collect();
    if dots.is_empty() {
        return Ok(None);
    }
    let describes = "what requests allocate across what pods have in use, head divided by base, one dot for each cell";
    let svg = quadrant(&dots, ["allocated per request", "in use of a pod"], describes)?;
    let caption = "Head divided by base, one dot for each cell, with the numbers of the table below and 95 % intervals. Right of x 1 \
                   more is allocated, above x 1 more stays in use: at the upper left, less allocation hides that more is kept. Filled: \
                   something changed.";
    let title = vec![words("Allocation and memory in use")];
    Ok(Some(Block::Charts { charts: vec![Chart { title, caption: vec![words(caption)], says: Text::new(), svg }] }))
}

fn of_cells(comparison: &Comparison<'_>, cells: &[&Filed<HeapRow>], references: &mut References) -> Block {
    let rows = cells.iter().take(SHOWN).zip(1_usize..).map(|(filed, number)| {
        let mut line = vec![Cell::words(comparison.place(&filed.row.cell)), Cell::words(number.to_string())];
        line.extend(judged(filed, references));
        line
    });
    let head = ["cell", "number", "allocated per request", "in use of a pod", "growth", "together"];
    Block::list("Memory of each cell", &head, rows)
}

/// Functions of which something changed, those that hold or allocate the most beyond the base first.
fn of_functions(
    comparison: &Comparison<'_>,
    mut functions: Vec<&Filed<HeapRow>>,
    references: &mut References,
) -> Vec<Block> {
    let size = |filed: &Filed<HeapRow>| {
        let more = |face: &LevelFace| (face.head.unwrap_or(0.0) - face.base.unwrap_or(0.0)).abs();
        (more(&filed.row.live), more(&filed.row.alloc))
    };
    functions.sort_by(|a, b| {
        let ((live_a, alloc_a), (live_b, alloc_b)) = (size(a), size(b));
        live_b.total_cmp(&live_a).then(alloc_b.total_cmp(&alloc_a))
    });
    let number = functions.len();
    let rows = functions.into_iter().take(SHOWN).map(|filed| {
        let mut line = vec![Cell::of(vec![name(&*filed.row.function)]), Cell::words(comparison.place(&filed.row.cell))];
        line.extend(judged(filed, references));
        line
    });
    let head = ["function", "cell", "allocated per request", "in use of a pod", "growth", "together"];
    let mut blocks = vec![Block::list("Functions whose memory changed", &head, rows)];
    blocks.extend(in_table(number, SHOWN, "function", "heap"));
    blocks
}

/// The three figures of a row, and what they are together.
fn judged(filed: &Filed<HeapRow>, references: &mut References) -> [Cell; 4] {
    let (row, citation) = (&filed.row, references.row(filed));
    let tentative = if row.support == Support::Tentative { " Tentative: fewer than 5 pods in an arm." } else { "" };
    [
        level(&row.alloc, ["allocated", members(row)], citation, ALLOCATED),
        level(&row.live, ["in use", members(row)], citation, IN_USE),
        growth(&row.slope, members(row), citation),
        Cell::words(format!("{}{tentative}", meaning(row))).toned(tone(row.class)),
    ]
}

fn level(face: &LevelFace, [what, members]: [&str; 2], citation: Citation, columns: Columns) -> Cell {
    let Some(ratio) = level_ratio(face, citation, columns) else {
        return Cell::words(format!("unknown: {}", why(face.reason)));
    };
    let how = match face.direction {
        LevelDirection::Up => format!("more {what}"),
        LevelDirection::Down => format!("less {what}"),
        LevelDirection::Flat => format!("as much {what}"),
        LevelDirection::Unknown => undecided(face, members, false),
    };
    Cell::of(vec![words(format!("{how}: ")), ratio])
}

/// How much faster the bytes in use grow.
fn growth(face: &LevelFace, members: &str, citation: Citation) -> Cell {
    let Some(of) = face.change else { return Cell::words(format!("unknown: {}", why(face.reason))) };
    let (ratio, time) = grown(of);
    let more = change(ratio);
    let how = match face.direction {
        LevelDirection::Up => format!("grows faster: {more} after {time} than at the base's rate"),
        LevelDirection::Down => format!("grows more slowly: {more} after {time} than at the base's rate"),
        LevelDirection::Flat => "grows as fast".to_owned(),
        LevelDirection::Unknown => undecided(face, members, true),
    };
    let [value, low, high] = [of.value, of.low, of.high].map(decimals);
    let logarithm = figure(format!("{value} ({low} to {high})"), citation, &GROWTH);
    Cell::of(vec![words(format!("{how}; ln per hour ")), logarithm])
}
