//! The rings of a roll-out side by side: what a function costs from ring to ring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, ArmFigures, CellKey, CellRow, ComparisonKey, RingRow, RingStep};
use fleetdiff_schemas::verdict::Scope;

/// From how many rings on they have a table: two are one comparison.
pub const LEAST_RINGS: usize = 3;

/// What a path is of: type of profile, kind of count, function.
type Subject<'a> = (ProfileType, CountKind, &'a str);
/// A row of one comparison: base, head, and which function of which cell.
type Place<'a> = (&'a Build, &'a Build, Subject<'a>, &'a CellKey);

/// The rows of `rings` that follow from the rows of a report about all comparisons of a service. Of functions that are significant in
/// some cell between any two rings, and of all functions together; nothing for fewer than [`LEAST_RINGS`].
pub fn paths<'r>(rings: &[Build], rows: impl Iterator<Item = &'r CellRow>) -> Vec<RingRow> {
    if rings.len() < LEAST_RINGS {
        return Vec::new();
    }
    let is_ring = |build: &Build| rings.contains(build);
    let of_rings: Vec<&CellRow> = rows
        .filter(|row| !row.is_roll_up && is_ring(&row.comparison.base_build) && is_ring(&row.comparison.head_build))
        .collect();
    let has_path = |row: &&&CellRow| row.verdict.is_significant() || row.function == ALL_FUNCTIONS;
    let subjects: BTreeSet<Subject<'_>> = of_rings.iter().filter(has_path).map(|row| subject_of(row)).collect();
    let in_window = of_rings.iter().filter(|row| row.scope == Scope::Window && subjects.contains(&subject_of(row)));
    let by_place: BTreeMap<Place<'_>, &CellRow> = in_window
        .map(|row| ((&row.comparison.base_build, &row.comparison.head_build, subject_of(row), &row.cell), *row))
        .collect();
    let cells: BTreeSet<(Subject<'_>, &CellKey)> =
        by_place.keys().map(|(_, _, subject, cell)| (*subject, *cell)).collect();
    let each = cells.into_iter().flat_map(|(subject, cell)| path(rings, &by_place, subject, cell));
    each.collect()
}

/// Rows by function and cell in which some ring differs significantly from an earlier one, the largest change first; `row` is how `R`
/// holds a row.
pub fn changed<R>(rows: &[R], row: impl Fn(&R) -> &RingRow) -> Vec<Vec<&R>> {
    let mut by_place: BTreeMap<(String, CellKey), (f64, Vec<&R>)> = BTreeMap::new();
    for held in rows {
        let of = row(held);
        let (size, path) = by_place.entry((of.function.to_string(), of.cell.clone())).or_default();
        path.push(held);
        *size = [&of.previous, &of.first].into_iter().map(size_of).fold(*size, f64::max);
    }
    let mut changed: Vec<(f64, Vec<&R>)> = by_place.into_values().filter(|(size, _)| *size > 0.0).collect();
    changed.sort_by(|a, b| b.0.total_cmp(&a.0));
    changed.into_iter().map(|(_, path)| path).collect()
}

/// How large a significant change is, as the size of its logarithm; 0 if it is not significant.
fn size_of(step: &RingStep) -> f64 {
    match step.verdict {
        Some(verdict) if verdict.is_significant() => step.ratio.map_or(f64::MAX, |ratio| libm::log(ratio.value).abs()),
        _ => 0.0,
    }
}

fn subject_of(row: &CellRow) -> Subject<'_> {
    (row.comparison.profile_type, row.count_kind, &row.function)
}

/// One function in one cell, ring by ring.
fn path(rings: &[Build], rows: &BTreeMap<Place<'_>, &CellRow>, subject: Subject<'_>, cell: &CellKey) -> Vec<RingRow> {
    let between = |base: usize, head: usize| rows.get(&(rings.get(base)?, rings.get(head)?, subject, cell)).copied();
    let mut path = Vec::new();
    for (ring, build) in rings.iter().enumerate() {
        let before = ring.checked_sub(1);
        let previous = before.and_then(|before| between(before, ring));
        let first = before.and_then(|_| between(0, ring));
        // The first ring is never a head: its figures are those that it has as the base of a later one.
        let as_base = || (1..rings.len()).find_map(|later| between(0, later));
        let as_head = previous.or(first);
        let Some(example) = as_head.or_else(|| if ring == 0 { as_base() } else { None }) else { continue };
        let ComparisonKey { service, profile_type, measure, .. } = example.comparison.clone();
        path.push(RingRow {
            service,
            profile_type,
            measure,
            count_kind: example.count_kind,
            cell: cell.clone(),
            function: Arc::from(example.function.as_str()),
            ring: table_count(ring + 1),
            build: build.clone(),
            window_start_at: example.window_start_at,
            window_end_at: example.window_end_at,
            figures: figures(example, as_head.is_some()),
            previous: previous.map(step).unwrap_or_default(),
            first: first.map(step).unwrap_or_default(),
        });
    }
    path
}

fn figures(row: &CellRow, of_head: bool) -> ArmFigures {
    if of_head { row.head } else { row.base }
}

fn step(row: &CellRow) -> RingStep {
    RingStep {
        build: Some(row.comparison.base_build.clone()),
        ratio: row.effect(),
        verdict: Some(row.verdict),
        reason: row.reason,
    }
}
