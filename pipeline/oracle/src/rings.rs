//! The table `rings`: section 18 of `docs/semantics.md`.

use std::collections::BTreeSet;

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow, RingRow, RingStep};
use fleetdiff_schemas::verdict::Scope;

/// The rows of one report: `cells` are its rows of all comparisons of a service.
pub(super) fn rows(rings: &[Build], cells: &[CellRow]) -> Vec<RingRow> {
    let mut rows = Vec::new();
    let among = |row: &&CellRow| {
        rings.len() > 2
            && !row.is_roll_up
            && [&row.comparison.base_build, &row.comparison.head_build].into_iter().all(|build| rings.contains(build))
    };
    let cells: Vec<&CellRow> = cells.iter().filter(among).collect();
    let moved: BTreeSet<_> = cells
        .iter()
        .filter(|row| row.function == ALL_FUNCTIONS || row.verdict.is_significant())
        .map(|row| (row.comparison.profile_type, row.count_kind, row.function.clone()))
        .collect();
    for (profile_type, kind, function) in moved {
        let of_function: Vec<&CellRow> = cells
            .iter()
            .copied()
            .filter(|row| row.scope == Scope::Window && row.comparison.profile_type == profile_type)
            .filter(|row| row.count_kind == kind && row.function == function)
            .collect();
        let places: BTreeSet<_> = of_function.iter().map(|row| &row.cell).collect();
        for cell in places {
            let here: Vec<&CellRow> = of_function.iter().copied().filter(|row| row.cell == *cell).collect();
            rows.extend((0..rings.len()).filter_map(|place| row_of(rings, place, &here)));
        }
    }
    rows
}

/// One ring of one function in one cell, from the rows of all its comparisons there.
fn row_of(rings: &[Build], place: usize, here: &[&CellRow]) -> Option<RingRow> {
    let of = |base: &Build, head: &Build| {
        let row = here.iter().find(|row| row.comparison.head_build == *head && row.comparison.base_build == *base);
        row.copied()
    };
    let build = &rings[place];
    let (previous, first) = match place {
        0 => (None, None),
        _ => (of(&rings[place - 1], build), of(&rings[0], build)),
    };
    let as_base = || rings[1..].iter().find_map(|later| of(build, later));
    let (source, figures) = match previous.or(first) {
        Some(row) => (row, row.head),
        None if place == 0 => as_base().map(|row| (row, row.base))?,
        None => return None,
    };
    Some(RingRow {
        service: source.comparison.service.clone(),
        profile_type: source.comparison.profile_type,
        measure: source.comparison.measure,
        count_kind: source.count_kind,
        cell: source.cell.clone(),
        function: source.function.as_str().into(),
        ring: table_count(place + 1),
        build: build.clone(),
        window_start_at: source.window_start_at,
        window_end_at: source.window_end_at,
        figures,
        previous: previous.map(step).unwrap_or_default(),
        first: first.map(step).unwrap_or_default(),
    })
}

fn step(row: &CellRow) -> RingStep {
    let ratio = if row.function == ALL_FUNCTIONS { row.per_request_ratio } else { row.adjusted_ratio };
    RingStep { build: Some(row.comparison.base_build.clone()), ratio, verdict: Some(row.verdict), reason: row.reason }
}
