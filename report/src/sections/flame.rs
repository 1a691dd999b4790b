//! The stacks of the cell that changed most, as a differential flame graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_diff::flame::{CallTree, Run, Sides};
use fleetdiff_diff::page::{FrameClass, Function, Ratio, Replicate, Report, ReportSide, page};
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;
use fleetdiff_schemas::number::{float, signed_float};
use fleetdiff_schemas::profile::{CountKind, ProfileType, Stack};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, ArmFigures, CellKey, CellRow, ComparisonKey, StackRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Scope;

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Flame, Section, Text, words};
use crate::figures::{instant, total};
use crate::records::Filed;
use crate::references::{Literal, References};

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let mut blocks = Vec::new();
    for rows in comparison.stacks() {
        let Some(Filed { row, .. }) = rows.first() else { continue };
        // What had changed before, and has not any more, is not shown.
        let Some(key) = comparison.keys.iter().copied().find(|key| **key == row.comparison) else { continue };
        if comparison.records.last_report(key, Scope::Epoch) == Some(row.window_end_at) {
            blocks.push(Block::Flame(flame(comparison, key, rows, references)?));
        }
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("Where the time goes".to_owned()), blocks }))
}

fn flame<'a>(
    comparison: &Comparison<'a>,
    key: &'a ComparisonKey,
    rows: &[Filed<StackRow>],
    references: &mut References,
) -> Result<Flame, Undrawn> {
    let StackRow { cell, window_start_at, .. } = &rows[0].row;
    let place = comparison.place(cell);
    let functions = functions(comparison, key, cell);
    let pods = |arm: fn(&CellRow) -> &ArmFigures| {
        let of_rows = functions.values().map(|filed| arm(&filed.row).pods).max();
        of_rows.and_then(|pods| u32::try_from(pods).ok()).unwrap_or(1).max(1)
    };
    let pods = Sides { base: pods(|row| &row.base), head: pods(|row| &row.head) };
    let sums = [|row: &StackRow| row.head_samples, |row: &StackRow| row.base_samples]
        .map(|samples| rows.iter().map(|filed| samples(&filed.row)).sum::<i64>());
    let [head, base] = sums;
    let significant = functions.values().filter(|filed| filed.row.verdict.is_significant()).count();
    let headline = format!(
        "{significant} of {} functions changed significantly here, tested with pods as replicates; only these are saturated.",
        functions.len()
    );
    let average = |samples: i64, pods: u32| signed_float(samples).max(1.0) / f64::from(pods);
    let report = Report {
        title: format!("{} against {} in {place}", key.head_build, key.base_build),
        headline,
        caution: String::new(),
        base: side(key.base_build.as_str(), pods.base, base, key.profile_type),
        head: side(key.head_build.as_str(), pods.head, head, key.profile_type),
        head_weight: average(base, pods.base) / average(head, pods.head),
        functions: functions.into_values().map(|filed| function(&filed.row)).collect(),
        tree: tree(rows).summed_over(pods),
    };
    Ok(Flame {
        title: vec![words(format!("Stacks of {} in {place}, where most changed", key.profile_type.name()))],
        says: said(key, &rows[0].row, sums, *window_start_at, references),
        name: report.title.clone(),
        page: page(&report).map_err(Undrawn::of)?,
        svg: svg(&report, Palette::OrangeBlue),
    })
}

/// Of how many samples of which build the picture is.
fn said(key: &ComparisonKey, row: &StackRow, sums: [i64; 2], since: Nanos, references: &mut References) -> Text {
    let keys = StackRow::SORTED_BY.iter().filter(|key| **key != "stack");
    let columns = keys.filter_map(|key| StackRow::columns().iter().find(|column| column.name == *key));
    let filter: Vec<_> = columns.map(|column| (column.name, Literal::of(column.value(row)))).collect();
    let mut sum = |samples, column| total(samples, references.sum::<StackRow>(column, filter.clone()));
    let [head, base] = sums;
    vec![
        sum(head, "head_samples"),
        words(format!(" samples of {} and ", key.head_build)),
        sum(base, "base_samples"),
        words(format!(
            " of {} since {}, of all pods together, as shares of each. Only functions that changed significantly are in colour. Call paths \
             with less than 0.1 % of both are summed up.",
            key.base_build,
            instant(since)
        )),
    ]
}

/// The row of each function: a significant one first, then that of self counts.
fn functions<'a>(
    comparison: &Comparison<'a>,
    key: &'a ComparisonKey,
    cell: &CellKey,
) -> BTreeMap<&'a str, &'a Filed<CellRow>> {
    let rank = |row: &CellRow| (row.verdict.is_significant(), row.count_kind == CountKind::SelfCount);
    let mut found: BTreeMap<&str, &Filed<CellRow>> = BTreeMap::new();
    for kind in CountKind::ALL {
        for filed in comparison.last_report(key, kind, Scope::Epoch) {
            let row = &filed.row;
            if row.cell != *cell || row.functions.is_some() || row.function == ALL_FUNCTIONS {
                continue;
            }
            let best = found.entry(&row.function).or_insert(filed);
            if rank(row) > rank(&best.row) {
                *best = filed;
            }
        }
    }
    found
}

fn function(row: &CellRow) -> Function {
    let count = |arm: &ArmFigures| u64::try_from(arm.count).ok();
    let ratio = row.adjusted_ratio.map(|ratio| Ratio { estimate: ratio.value, low: ratio.low, high: ratio.high });
    let cause = row.cause.as_ref().map(|cause| format!("moves because {cause} does"));
    Function {
        name: row.function.as_str().into(),
        class: FrameClass::of(&row.function),
        counted: row.count_kind,
        verdict: row.verdict,
        cause: row.cause.clone(),
        reason: cause.or_else(|| row.reason.map(|reason| reason.name().to_owned())),
        significant: row.verdict.is_significant(),
        base_count: count(&row.base),
        head_count: count(&row.head),
        base_share: row.base.share.unwrap_or(0.0),
        head_share: row.head.share.unwrap_or(0.0),
        ratio,
        ln_p: row.ln_p_row,
        q_value: row.q_value,
    }
}

fn side(build: &str, pods: u32, samples: i64, profile_type: ProfileType) -> ReportSide {
    let samples = u64::try_from(samples).unwrap_or(0);
    ReportSide {
        label: build.to_owned(),
        runs: pods,
        replicate: Replicate::Pod,
        samples: Some(samples),
        sample_type: profile_type.name().to_owned(),
        unit: "samples".to_owned(),
        total: float(samples),
    }
}

/// The call tree of both builds.
fn tree(rows: &[Filed<StackRow>]) -> CallTree {
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut sides = Sides { base: Vec::new(), head: Vec::new() };
    for Filed { row, .. } in rows {
        let numbered = row.stack.iter().map(|name| {
            *numbers.entry(name).or_insert_with(|| {
                names.push(name.as_str().into());
                u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
            })
        });
        let frames: Vec<u32> = numbered.collect();
        for (stacks, samples) in [(&mut sides.base, row.base_samples), (&mut sides.head, row.head_samples)] {
            let count = u64::try_from(samples).unwrap_or(0);
            if count > 0 {
                stacks.push(Stack { frames: frames.clone(), count, cohort: None, value: 0 });
            }
        }
    }
    let run = |stacks| [Run { names: &names, stacks }];
    CallTree::merge(&run(&sides.base), &run(&sides.head))
}
