//! The rows of a report: what is called in one scope and kind, over all cells of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::identity::{MERGED, stable_hash};
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{CellKey, CellRow};
use fleetdiff_schemas::verdict::{Scope, Support};

use super::verdict::{Decided, verdict};
use crate::evidence::arms::Side;
use crate::evidence::report::{ScopeReport, rows_of_kind};
use crate::evidence::row::{RowEvidence, RowFrame, support_of};
use crate::evidence::snapshot::{Snapshot, Together};
use crate::statistics::families::{bh, selected, two_level, within_selected};
use crate::statistics::rows::rows_of;
use crate::statistics::{Model, Moments};

/// How rows are called.
#[derive(Clone, Copy, Debug)]
pub struct TableRules {
    /// False-discovery rate of each family.
    pub q: f64,
    /// Smallest change that is called.
    pub delta: f64,
    /// Smallest combined count that is tested.
    pub min_count: f64,
}

/// The cells of one comparison in one scope, ascending.
#[derive(Debug)]
pub struct ScopeCells {
    /// Window or epoch.
    pub scope: Scope,
    /// Each cell's rows and counts.
    pub cells: BTreeMap<CellKey, ScopeReport>,
}

/// A row that the live rule has raised and not cleared: kind, cell, stable hash.
pub type RaisedKey = (CountKind, CellKey, u64);

/// Decides every row of a scope, the roll-ups included, and gives them in no particular order.
pub fn decide(cells: &ScopeCells, kinds: &[CountKind], raised: &BTreeSet<RaisedKey>, rules: &TableRules) -> Vec<CellRow> {
    let roll_ups = roll_ups(cells, kinds, rules);
    let mut causes = BTreeMap::new();
    let mut rows = Vec::new();
    for (index, &kind) in kinds.iter().enumerate() {
        let of_kind: Vec<(&CellKey, &[RowEvidence])> = cells.cells.iter().map(|(cell, report)| (cell, &report.rows[index][..])).collect();
        let rolled: Vec<(&CellKey, &[RowEvidence])> = roll_ups.iter().map(|roll| (&roll.cell, &roll.rows[index][..])).collect();
        let mut decided = decide_kind(cells.scope, kind, &of_kind, &rolled, raised, rules);
        name_causes(&mut decided, kind, &mut causes);
        rows.extend(decided.into_iter().map(|(_, row)| row));
    }
    rows
}

struct RollUp {
    cell: CellKey,
    rows: Vec<Vec<RowEvidence>>,
}

/// The roll-ups of a scope: over all cells first, then over each region's and each cohort's.
fn roll_ups(cells: &ScopeCells, kinds: &[CountKind], rules: &TableRules) -> Vec<RollUp> {
    let Some(first) = cells.cells.values().next() else { return Vec::new() };
    let merged = |region: Option<&CellKey>, cohort: Option<&CellKey>| CellKey {
        region: region.map_or_else(|| MERGED.into(), |cell| cell.region.clone()),
        cohort: cohort.map_or_else(|| MERGED.into(), |cell| cell.cohort.clone()),
    };
    let mut keys = vec![merged(None, None)];
    if cells.cells.len() > 1 {
        keys.extend(cells.cells.keys().map(|cell| merged(Some(cell), None)));
        keys.extend(cells.cells.keys().map(|cell| merged(None, Some(cell))));
    }
    keys.retain(|key| !cells.cells.contains_key(key));
    let all = keys.first().is_some_and(|key| *key == merged(None, None)).then(|| keys.remove(0));
    keys.sort();
    keys.dedup();
    let under = |key: &CellKey| -> Vec<&Snapshot> {
        let inside = |cell: &CellKey| {
            (key.region.as_str() == MERGED || key.region == cell.region) && (key.cohort.as_str() == MERGED || key.cohort == cell.cohort)
        };
        cells.cells.iter().filter(|(cell, _)| inside(cell)).map(|(_, report)| &report.snapshot).collect()
    };
    let keys = all.into_iter().chain(keys);
    keys.map(|key| roll_up(under(&key), key, first, cells.scope, kinds, rules)).collect()
}

fn roll_up(snapshots: Vec<&Snapshot>, cell: CellKey, like: &ScopeReport, scope: Scope, kinds: &[CountKind], rules: &TableRules) -> RollUp {
    let together = Together::of(&snapshots);
    let unsymbolised = stable_hash(UNSYMBOLISED.as_bytes());
    let untested = together.functions.iter().position(|(hash, _)| *hash == unsymbolised);
    let measure = |kind| {
        let moments = Moments::measure(&together.contrast(kind, untested), Model::Share, rules.min_count);
        (together.kept > 0 && support_of(&moments) != Support::Untestable).then_some(moments)
    };
    let own = measure(CountKind::SelfCount);
    let scale = own.as_ref().map(Moments::scale);
    let rows = kinds.iter().zip(&like.rows).map(|(&kind, example)| {
        let moments = match kind {
            CountKind::SelfCount => own.clone(),
            CountKind::Total => measure(kind),
        };
        let tests = moments.map(|moments| rows_of(moments, scale, rules.delta));
        let support = tests.as_ref().map_or(Support::Untestable, |tests| support_of(&tests.moments));
        let Some(frame) = frame(&together, &cell, example, scope, kind, support) else { return Vec::new() };
        let (head, base) = (together.counts(Side::Head, kind), together.counts(Side::Base, kind));
        rows_of_kind(&together.functions, &frame, (&head, &base), tests.as_ref(), rules.min_count)
    });
    RollUp { rows: rows.collect(), cell }
}

fn frame(together: &Together, cell: &CellKey, example: &[RowEvidence], scope: Scope, kind: CountKind, support: Support) -> Option<RowFrame> {
    let example = &example.first()?.row;
    Some(RowFrame {
        scope,
        comparison: example.comparison.clone(),
        count_kind: kind,
        cell: cell.clone(),
        window_start_at: example.window_start_at,
        window_end_at: example.window_end_at,
        head: together.figures(Side::Head),
        base: together.figures(Side::Base),
        strata: together.kept,
        support,
    })
}

type Rows<'a> = [(&'a CellKey, &'a [RowEvidence])];

/// The q-values of rows: by cell, then by stable hash.
struct QValues(Vec<BTreeMap<u64, f64>>);

fn decide_kind(scope: Scope, kind: CountKind, cells: &Rows<'_>, rolled: &Rows<'_>, raised: &BTreeSet<RaisedKey>, rules: &TableRules) -> Vec<(RowEvidence, CellRow)> {
    let (of_cells, of_rolled) = q_values(cells, rolled);
    let moved = shares_moved(cells, rules.q);
    let mut rows = Vec::new();
    for (index, (cell, evidence)) in cells.iter().enumerate() {
        for row in *evidence {
            let q_value = of_cells.0[index].get(&row.hash).copied();
            let called = match scope {
                Scope::Window => q_value.is_some_and(|q_value| selected(q_value, rules.q)),
                Scope::Epoch => row.tested && raised.contains(&(kind, (*cell).clone(), row.hash)),
            };
            let share_moved = moved.0[index].get(&row.hash).is_some_and(|&q| selected(q, rules.q));
            rows.push(decided(row, q_value, Decided { called, share_moved }, rules.delta));
        }
    }
    for (index, (_, evidence)) in rolled.iter().enumerate() {
        for row in *evidence {
            let q_value = of_rolled.0[index].get(&row.hash).copied();
            let called = scope == Scope::Window && q_value.is_some_and(|q_value| selected(q_value, rules.q));
            rows.push(decided(row, q_value, Decided { called, share_moved: false }, rules.delta));
        }
    }
    rows
}

fn decided(evidence: &RowEvidence, q_value: Option<f64>, decided: Decided, delta: f64) -> (RowEvidence, CellRow) {
    let (verdict, reason) = verdict(evidence, decided, delta);
    let row = CellRow { q_value, verdict, reason, ..evidence.row.clone() };
    (evidence.clone(), row)
}

/// Two-level q-values of cells, and of roll-ups: the first level's over all cells, the second's for regions and for cohorts.
fn q_values(cells: &Rows<'_>, rolled: &Rows<'_>) -> (QValues, QValues) {
    let hashes = union(cells.iter().chain(rolled));
    let matrix: Vec<Vec<f64>> = cells.iter().map(|(_, rows)| column(rows, &hashes, |row| row.ln_p_row)).collect();
    let cell_columns: Vec<&[f64]> = matrix.iter().map(Vec::as_slice).collect();
    let over_all = rolled.iter().position(|(cell, _)| cell.is_over_all());
    let roll_up = over_all.map_or_else(
        || matrix.first().cloned().unwrap_or_default(),
        |index| column(rolled[index].1, &hashes, |row| row.ln_p_row),
    );
    let levels = two_level(&cell_columns, &roll_up);
    let mut of_rolled = vec![BTreeMap::new(); rolled.len()];
    if let Some(index) = over_all {
        let tested = |(f, _): &(usize, &u64)| !roll_up[*f].is_nan();
        of_rolled[index] = hashes.iter().enumerate().filter(tested).map(|(f, &hash)| (hash, levels.q_f[f])).collect();
    }
    for by_region in [true, false] {
        let family: Vec<usize> = (0..rolled.len())
            .filter(|&index| !rolled[index].0.is_over_all() && (rolled[index].0.cohort.as_str() == MERGED) == by_region)
            .collect();
        let columns: Vec<Vec<f64>> = family.iter().map(|&index| column(rolled[index].1, &hashes, |row| row.ln_p_row)).collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        for (&index, q_values) in family.iter().zip(within_selected(&levels.q_f, &columns)) {
            of_rolled[index] = by_hash(&hashes, &q_values);
        }
    }
    let of_cells = levels.q_value.iter().map(|q_values| by_hash(&hashes, q_values)).collect();
    (QValues(of_cells), QValues(of_rolled))
}

/// q-values of "the share moved", one family over all cells.
fn shares_moved(cells: &Rows<'_>, q: f64) -> QValues {
    debug_assert!(q > 0.0);
    let all: Vec<f64> = cells.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.ln_p_comp)).collect();
    let mut q_values = bh(&all).into_iter();
    let of_cell = |rows: &[RowEvidence]| rows.iter().map(|row| row.hash).zip(q_values.by_ref()).collect::<BTreeMap<_, _>>();
    let mut of_cell = of_cell;
    QValues(cells.iter().map(|(_, rows)| of_cell(rows)).collect())
}

fn union<'a>(rows: impl Iterator<Item = &'a (&'a CellKey, &'a [RowEvidence])>) -> Vec<u64> {
    let hashes: BTreeSet<u64> = rows.flat_map(|(_, rows)| rows.iter().filter(|row| row.tested).map(|row| row.hash)).collect();
    hashes.into_iter().collect()
}

fn column(rows: &[RowEvidence], hashes: &[u64], of: impl Fn(&RowEvidence) -> f64) -> Vec<f64> {
    let mut column = vec![f64::NAN; hashes.len()];
    for row in rows.iter().filter(|row| row.tested) {
        if let Ok(index) = hashes.binary_search(&row.hash) {
            column[index] = of(row);
        }
    }
    column
}

fn by_hash(hashes: &[u64], values: &[f64]) -> BTreeMap<u64, f64> {
    hashes.iter().copied().zip(values.iter().copied()).filter(|(_, value)| !value.is_nan()).collect()
}

/// Gives compositional rows their cause: the called self row of their cell with the largest change.
fn name_causes(rows: &mut [(RowEvidence, CellRow)], kind: CountKind, causes: &mut BTreeMap<CellKey, (f64, u64, Arc<str>)>) {
    if kind == CountKind::SelfCount {
        for (evidence, row) in rows.iter().filter(|(_, row)| row.verdict.is_called()) {
            let candidate = (evidence.theta.abs(), evidence.hash, Arc::from(row.function.as_str()));
            let best = causes.entry(row.cell.clone()).or_insert_with(|| candidate.clone());
            if candidate.0 > best.0 || (candidate.0.total_cmp(&best.0).is_eq() && candidate.1 < best.1) {
                *best = candidate;
            }
        }
    }
    for (_, row) in rows.iter_mut().filter(|(_, row)| row.verdict == fleetdiff_schemas::verdict::Verdict::Compositional) {
        row.cause = causes.get(&row.cell).map(|(_, _, name)| name.to_string());
    }
}
