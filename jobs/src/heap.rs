//! What became of memory, in words.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fleetdiff_pipeline::rules::advice::words;
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::heap::words::sentence;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, HeapRow, LevelFace};

/// Functions with their own line in a cell; the rest is counted.
const LINES: usize = 3;

/// Prints, for each comparison, the cells in which a figure of memory moved, and the functions that carry it. Of the kinds of count the
/// first is used: callers follow their callees.
pub(crate) fn print(out: &mut impl Write, rows: &[HeapRow]) -> io::Result<()> {
    let Some(kind) = rows.iter().map(|row| row.count_kind).min() else { return Ok(()) };
    let mut comparisons: BTreeMap<(&Service, &Build, &Build), Vec<&HeapRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.count_kind == kind) {
        comparisons.entry((&row.service, &row.head_build, &row.base_build)).or_default().push(row);
    }
    for ((service, head, base), rows) in comparisons {
        let cells: Vec<&HeapRow> =
            rows.iter().copied().filter(|row| &*row.function == ALL_FUNCTIONS && row.moved()).collect();
        if cells.is_empty() {
            continue;
        }
        writeln!(out, "\n{service} memory, {head} against {base}\n")?;
        for cell in cells {
            writeln!(out, "{}", words(&extents([&cell.cell], rows.iter().map(|row| &row.cell))))?;
            writeln!(out, "  {}", sentence(cell))?;
            print_functions(out, cell, &rows)?;
        }
    }
    Ok(())
}

fn print_functions(out: &mut impl Write, cell: &HeapRow, rows: &[&HeapRow]) -> io::Result<()> {
    let mut functions: Vec<&HeapRow> = rows
        .iter()
        .copied()
        .filter(|row| row.cell == cell.cell && &*row.function != ALL_FUNCTIONS && row.moved())
        .collect();
    let size = |row: &HeapRow| {
        let part = |face: &LevelFace, all: &LevelFace| {
            let more = face.head.unwrap_or(0.0) - face.base.unwrap_or(0.0);
            (more / all.base.filter(|base| *base > 0.0).unwrap_or(1.0)).abs()
        };
        part(&row.alloc, &cell.alloc).max(part(&row.live, &cell.live))
    };
    functions.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.function.cmp(&b.function)));
    for row in functions.iter().take(LINES) {
        writeln!(out, "  {}", sentence(row))?;
    }
    if functions.len() > LINES {
        writeln!(out, "  and {} more, all in the table heap", functions.len() - LINES)?;
    }
    Ok(())
}
