//! What requests waited for, in words.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fleetdiff_pipeline::rules::advice::words;
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::waiting::words::sentence;
use fleetdiff_pipeline::rules::waiting::{has_changed, is_of_cell, mostly_in, moved};
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rows::{CellKey, WaitingRow};
use fleetdiff_schemas::verdict::LevelDirection;

/// Functions and threads with their own line in a cell; the rest is counted.
const LINES: usize = 6;

/// Prints, for each comparison, the cells in which a time changed, and whose it is: first what is longer. Of the kinds of count the first is used: callers
/// follow their callees.
pub(crate) fn print(out: &mut impl Write, rows: &[WaitingRow]) -> io::Result<()> {
    let Some(kind) = rows.iter().map(|row| row.count_kind).min() else { return Ok(()) };
    let mut comparisons: BTreeMap<(&Service, &Build, &Build), BTreeMap<&CellKey, Vec<&WaitingRow>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.count_kind == kind && has_changed(row)) {
        let cells = comparisons.entry((&row.service, &row.head_build, &row.base_build)).or_default();
        cells.entry(&row.cell).or_default().push(row);
    }
    for ((service, head, base), cells) in comparisons {
        let of_comparison =
            rows.iter().filter(|row| (&row.service, &row.head_build, &row.base_build) == (service, head, base));
        writeln!(out, "\n{service} waiting, {head} against {base}\n")?;
        for (cell, mut changed) in cells {
            writeln!(out, "{}", words(&extents([cell], rows.iter().map(|row| &row.cell))))?;
            let is_longer = |row: &WaitingRow| row.time.direction == LevelDirection::Up;
            let order = |row: &WaitingRow| (!is_of_cell(row), !is_longer(row));
            changed.sort_by(|a, b| order(a).cmp(&order(b)).then(moved(b).total_cmp(&moved(a))));
            for row in changed.iter().take(LINES) {
                writeln!(out, "  {}", sentence(row, &mostly_in(row, of_comparison.clone())))?;
            }
            if changed.len() > LINES {
                writeln!(out, "  and {} more, all in the table waiting", changed.len() - LINES)?;
            }
        }
    }
    Ok(())
}
