//! The rows about one service. Tests of other crates include this by `#[path]`.

use fleetdiff_schemas::rows::{ComparisonKey, Tables};

/// All rows about one service, as text that shows every bit.
pub fn rows_of(tables: &Tables, service: &str) -> Vec<String> {
    let is_of = |comparison: &ComparisonKey| comparison.service.as_str() == service;
    let cells = tables.cells.iter().filter(|row| is_of(&row.comparison)).map(|row| format!("{row:?}"));
    let flags = tables.flags.iter().filter(|row| is_of(&row.row.comparison)).map(|row| format!("{row:?}"));
    let comparisons = tables.comparisons.iter().filter(|row| is_of(&row.comparison)).map(|row| format!("{row:?}"));
    cells.chain(flags).chain(comparisons).collect()
}
