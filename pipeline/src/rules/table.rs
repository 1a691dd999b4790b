//! The rows of a report: which rows are significant in one scope and kind, over all cells of a comparison.

mod evidence;
mod families;
mod moved;
mod rare;
mod roll_ups;
pub(crate) mod scope;

pub use self::roll_ups::tests_of;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, EvidenceRow};
use fleetdiff_schemas::verdict::{RowReason, Scope, Verdict};
use fleetdiff_statistics::families::{bh, selected};

use self::evidence::evidence_of;
use self::families::{FirstLevel, family, q_values};
use self::moved::Moved;
use self::rare::{rare_rows, take_out};
use self::roll_ups::roll_ups;
use self::scope::{Rows, ScopeCells, TableRules};
use super::verdict::{Decided, verdict};
use super::{article, naive};
use crate::evidence::row::RowEvidence;

/// A row of the live rule: kind, cell, stable hash.
pub type SelectedKey = (CountKind, CellKey, u64);

/// What the live rule knows of rows.
#[derive(Debug, Default)]
pub struct LiveRows {
    /// Those that it has selected, each with the name of the function that explains it, if any.
    pub selected: BTreeMap<SelectedKey, Option<String>>,
    /// Those whose cost other functions have in the other build, each with the name of such a function.
    pub moved: BTreeMap<SelectedKey, String>,
    /// Those that stand for such functions, since these changed together.
    pub standing: BTreeSet<SelectedKey>,
}

/// What a report says of one scope, in no particular order.
#[derive(Debug, Default)]
pub struct DecidedTable {
    /// Rows of `cells`. They are large, and not moved once they are made.
    pub rows: Vec<Arc<CellRow>>,
    /// What those that are significant or flagged were computed from; by the calibrated method only.
    pub evidence: Vec<EvidenceRow>,
}

/// Decides every row of a scope by the method of the rules.
pub fn decide(cells: &ScopeCells, kinds: &[CountKind], live: &LiveRows, rules: &TableRules) -> DecidedTable {
    let without_evidence =
        |rows: Vec<CellRow>| DecidedTable { rows: rows.into_iter().map(Arc::new).collect(), evidence: Vec::new() };
    match rules.method {
        Method::Honest => decide_honestly(cells, kinds, live, rules),
        Method::Article => without_evidence(article::decide(cells, kinds, rules.q)),
        Method::ArticleB | Method::ArticleBStouffer => {
            without_evidence(article::decide_pod_by_pod(cells, kinds, rules.q))
        }
        Method::Naive => without_evidence(naive::decide(cells)),
    }
}

/// Rows of cells and of the roll-ups, with pods as replicates.
fn decide_honestly(cells: &ScopeCells, kinds: &[CountKind], live: &LiveRows, rules: &TableRules) -> DecidedTable {
    let roll_ups = roll_ups(cells, kinds, rules);
    let mut causes = BTreeMap::new();
    let (mut rows, mut evidence) = (Vec::new(), Vec::new());
    for (index, &kind) in kinds.iter().enumerate() {
        let of_kind: Vec<(&CellKey, &[RowEvidence])> =
            cells.cells.iter().map(|(cell, report)| (cell, &report.rows[index][..])).collect();
        let rolled: Vec<(&CellKey, &[RowEvidence])> =
            roll_ups.iter().map(|roll| (&roll.cell, &roll.rows[index][..])).collect();
        let mut decided = decide_kind(cells.scope, kind, &of_kind, &rolled, live, rules);
        name_causes(&mut decided, kind, &mut causes);
        evidence.extend(evidence_of(cells, kind, &decided, live));
        rows.extend(decided.into_iter().map(|(_, row)| row));
        rows.extend(rare_rows(cells, index, rules.q).into_iter().map(Arc::new));
    }
    take_out(&mut rows);
    DecidedTable { rows, evidence }
}

fn decide_kind<'a>(
    scope: Scope,
    kind: CountKind,
    cells: &Rows<'a>,
    rolled: &Rows<'a>,
    live: &LiveRows,
    rules: &TableRules,
) -> Vec<(&'a RowEvidence, Arc<CellRow>)> {
    // What has moved is in no family: a build with other names would let others pass with it.
    let moved = Moved::of(cells.iter().chain(rolled).map(|(cell, _)| *cell), kind, live);
    let (of_cells, of_rolled, functions) = q_values(cells, rolled, &moved);
    let shares_moved = family(cells, &moved, |row| Some(row.ln_p_comp));
    let per_request = family(cells, &moved, |row| row.row.per_request_ln_p.filter(|_| !row.of_all));
    let uniform = family(cells, &moved, |row| row.row.per_request_ln_p.filter(|_| row.of_all));
    let outliers = family(cells, &moved, |row| row.row.outlier_ln_p);
    let level_of_pods = {
        let (tested, selected) = outliers.count(rules.q);
        rules.q * length_float(selected) / length_float(tested.max(1))
    };
    let is_selected = |q_value: Option<f64>| q_value.is_some_and(|q_value| selected(q_value, rules.q));
    let mut rows = Vec::with_capacity(cells.iter().chain(rolled).map(|(_, evidence)| evidence.len()).sum());
    for (index, (cell, evidence)) in cells.iter().enumerate() {
        for row in *evidence {
            let q_value = of_cells.get(index, row.hash);
            let selected = live.selected.get(&(kind, (*cell).clone(), row.hash));
            let instead = moved.get(cell, row.hash);
            let uniform = uniform.get(index, row.hash);
            let outlier_q_value = outliers.get(index, row.hash);
            let decided = Decided {
                selected: match scope {
                    Scope::Window => is_selected(q_value) || is_selected(uniform),
                    Scope::Epoch => row.is_decidable() && selected.is_some(),
                },
                moved: instead.is_some(),
                share_moved: is_selected(shares_moved.get(index, row.hash)),
                outlying: if is_selected(outlier_q_value) { minority(row, level_of_pods) } else { Vec::new() },
            };
            let explained = selected.filter(|_| decided.selected).and_then(Option::as_ref);
            let cause = instead.filter(|_| row.tested).or(explained).cloned();
            let family = q_value.zip(functions.get(row.hash));
            let per_request_q_value = per_request.get(index, row.hash).or(uniform);
            let decided = as_decided(row, family, decided, rules.min_effect);
            rows.push((row, Arc::new(CellRow { cause, per_request_q_value, outlier_q_value, ..decided })));
        }
    }
    for (index, (cell, evidence)) in rolled.iter().enumerate() {
        for row in *evidence {
            let q_value = of_rolled.get(index, row.hash);
            let selected = scope == Scope::Window && is_selected(q_value);
            let family = q_value.zip(functions.get(row.hash));
            let instead = moved.get(cell, row.hash);
            let decided = Decided { selected, moved: instead.is_some(), ..Decided::default() };
            let decided = as_decided(row, family, decided, rules.min_effect);
            rows.push((row, Arc::new(CellRow { cause: instead.filter(|_| row.tested).cloned(), ..decided })));
        }
    }
    rows
}

fn as_decided(evidence: &RowEvidence, family: Option<(f64, FirstLevel)>, decided: Decided, min_effect: f64) -> CellRow {
    let (verdict, reason) = verdict(evidence, &decided, min_effect);
    let outlying_pods = match (verdict, reason) {
        (Verdict::SomePodsOutlying, Some(RowReason::OnePod)) => evidence.one_pod.clone(),
        (Verdict::SomePodsOutlying, _) => decided.outlying,
        _ => Vec::new(),
    };
    CellRow {
        q_value: family.map(|(q_value, _)| q_value),
        weight: family.map(|(_, function)| function.weight),
        function_ln_p: family.map(|(_, function)| function.ln_p),
        verdict,
        reason,
        outlying_pods,
        ..evidence.row.clone()
    }
}

/// The outlying pods of a selected function, at the level that remains after its selection, if they are at most half of
/// the head's pods.
fn minority(row: &RowEvidence, level: f64) -> Vec<String> {
    let ln_p: Vec<f64> = row.deviating_pods.iter().map(|(_, ln_p)| *ln_p).collect();
    let named = row.deviating_pods.iter().zip(bh(&ln_p)).filter(|(_, q_value)| selected(*q_value, level));
    let mut pods: Vec<String> = named.map(|((pod, _), _)| pod.clone()).collect();
    pods.sort();
    let at_most_half = i64::try_from(2 * pods.len()).is_ok_and(|twice| twice <= row.row.head.pods);
    if at_most_half { pods } else { Vec::new() }
}

/// Gives compositional rows their cause: the selected self row of their cell with the largest change. The row of all
/// functions is never a cause, since it moves no share.
fn name_causes(
    rows: &mut [(&RowEvidence, Arc<CellRow>)],
    kind: CountKind,
    causes: &mut BTreeMap<CellKey, (f64, u64, Arc<str>)>,
) {
    if kind == CountKind::SelfCount {
        for (evidence, row) in rows.iter().filter(|(evidence, row)| evidence.tested && row.verdict.is_significant()) {
            let candidate = (evidence.theta.abs(), evidence.hash, Arc::from(row.function.as_str()));
            let best = causes.entry(row.cell.clone()).or_insert_with(|| candidate.clone());
            if candidate.0 > best.0 || (candidate.0.total_cmp(&best.0).is_eq() && candidate.1 < best.1) {
                *best = candidate;
            }
        }
    }
    for (_, row) in rows.iter_mut().filter(|(_, row)| row.verdict == Verdict::Compositional) {
        let cause = causes.get(&row.cell).map(|(_, _, name)| name.to_string());
        Arc::make_mut(row).cause = cause;
    }
}
