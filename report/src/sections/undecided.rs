//! What could not be decided, why, and what would decide it.

use std::collections::BTreeMap;

use fleetdiff_pipeline::rules::advice::plural;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow, ComparisonKey, ComparisonRow, RARE};
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, RowReason, Scope, Verdict};

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Text, name, paragraph, words};
use crate::figures::{count, figure, percent, quote, seconds, total};
use crate::records::Filed;
use crate::references::{Literal, References};
use crate::verdicts::{of_cell, why};

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let base = comparison.base_kind();
    let scope = if base == BaseKind::History { Scope::Window } else { Scope::Epoch };
    let mut blocks = Vec::new();
    for key in comparison.keys.iter().copied() {
        let kind = comparison.kind(key, base);
        let rows: Vec<&Filed<CellRow>> = comparison.last_report(key, kind, scope).collect();
        let cells = comparison.cells(key, base);
        let open: Vec<&Filed<ComparisonRow>> = cells
            .values()
            .copied()
            .filter(|filed| {
                matches!(filed.row.verdict, ComparisonVerdict::Inconclusive | ComparisonVerdict::NotComparable)
            })
            .collect();
        blocks.push(paragraph(introduction(key, open.len(), cells.len())));
        if !cells.is_empty() {
            blocks.push(by_cell(comparison, key, &cells.values().copied().collect::<Vec<_>>(), &rows, references));
        }
        let reasons = by_reason(&rows);
        if !reasons.is_empty() {
            blocks.push(paragraph(vec![words(
                "Functions that were not decided at the last report, over all cells. Each counts once in each cell.",
            )]));
            blocks.push(reasons_table(comparison, key, (kind, scope), &reasons, references));
        }
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("What could not be decided".to_owned()), blocks }))
}

fn introduction(key: &ComparisonKey, open: usize, all: usize) -> Text {
    let decided = if open == 0 {
        format!("every one of {all} {} is decided", plural(all, "cell"))
    } else {
        format!("{open} of {all} {} could not be decided", plural(all, "cell"))
    };
    vec![words(format!(
        "{} profiles: {decided}. For the function with most samples: the smallest change that each cell would have shown, with \
         probability 0.8, and what is missing until 5 % would show. Functions with fewer samples need more.",
        key.profile_type.name()
    ))]
}

/// What each cell could have shown, and what it still needs.
fn by_cell(
    comparison: &Comparison<'_>,
    key: &ComparisonKey,
    cells: &[&Filed<ComparisonRow>],
    rows: &[&Filed<CellRow>],
    references: &mut References,
) -> Block {
    let head = [
        "cell",
        "verdict",
        "functions tested",
        "unchanged",
        "largest function",
        "smallest change it shows",
        "missing until 5 % shows",
    ];
    let rows = cells.iter().map(|verdict| {
        let row = &verdict.row;
        let citation = references.row(verdict);
        let place = comparison.places(key, row.base_kind, [&row.cell]);
        let unknown = || Cell::words("unknown");
        let largest = rows
            .iter()
            .filter(|filed| filed.row.cell == row.cell && filed.row.minimum_detectable_ratio.is_some())
            .max_by(|a, b| {
                let share = |filed: &Filed<CellRow>| filed.row.base.share.unwrap_or(0.0);
                share(a).total_cmp(&share(b)).then(b.row.function.cmp(&a.row.function))
            });
        let of_largest = |cell: fn(&Filed<CellRow>, &mut References) -> Cell, references: &mut References| {
            largest.map_or_else(unknown, |filed| cell(filed, references))
        };
        vec![
            Cell::words(place),
            Cell::verdict(of_cell(row.verdict)),
            Cell::of(vec![count(row.functions_tested, citation, "functions_tested")]),
            row.equivalent_share
                .map_or_else(unknown, |share| Cell::of(vec![percent(share, citation, "equivalent_share")])),
            largest.map_or_else(unknown, |filed| Cell::of(vec![name(filed.row.function.as_str())])),
            of_largest(detectable, references),
            if row.verdict == ComparisonVerdict::NotComparable {
                Cell::of(vec![quote(&row.sentence, citation, "sentence")])
            } else {
                of_largest(left, references)
            },
        ]
    });
    Block::list("What each cell could have shown", &head, rows)
}

/// The smallest change that a row would have shown.
fn detectable(filed: &Filed<CellRow>, references: &mut References) -> Cell {
    let citation = references.row(filed);
    let ratio = filed.row.minimum_detectable_ratio.unwrap_or(f64::INFINITY);
    let text = if ratio.is_finite() { format!("x {ratio:.3}") } else { "none".to_owned() };
    Cell::of(vec![figure(text, citation, &["minimum_detectable_ratio"])])
}

/// How long, or how many pods, until a change of 5 % shows.
fn left(filed: &Filed<CellRow>, references: &mut References) -> Cell {
    let citation = references.row(filed);
    match (filed.row.seconds_to_significance, filed.row.pods_needed) {
        (Some(time), _) if time.is_finite() => {
            let needs = Cell::of(vec![
                seconds(time, citation, "seconds_to_significance"),
                words(" of samples since the start"),
            ]);
            let seen = filed.row.window_end_at.since(filed.row.window_start_at).as_seconds();
            if time <= seen {
                Cell::of(vec![figure("nothing: it would show".to_owned(), citation, &[])])
            } else {
                needs
            }
        }
        (Some(_), Some(pods)) => Cell::of(vec![count(pods, citation, "pods_needed"), words(" more pods of the head")]),
        (Some(_), None) => Cell::of(vec![figure("no number of pods is enough".to_owned(), citation, &[])]),
        (None, _) => Cell::words("unknown"),
    }
}

/// Rows that were not decided, by verdict and reason, with the functions that rows of rare functions stand for.
fn by_reason(rows: &[&Filed<CellRow>]) -> BTreeMap<(Verdict, Option<RowReason>), (i64, i64)> {
    let is_open = |row: &CellRow| {
        matches!(
            row.verdict,
            Verdict::NotComparable
                | Verdict::Untestable
                | Verdict::TooRare
                | Verdict::SomePodsOutlying
                | Verdict::Inconclusive
        ) && row.function != ALL_FUNCTIONS
    };
    let mut reasons: BTreeMap<(Verdict, Option<RowReason>), (i64, i64)> = BTreeMap::new();
    for row in rows.iter().map(|filed| &filed.row).filter(|row| is_open(row)) {
        let (of_functions, of_rare) = reasons.entry((row.verdict, row.reason)).or_default();
        if row.function == RARE {
            *of_rare += row.functions.unwrap_or(0);
        } else {
            *of_functions += 1;
        }
    }
    reasons
}

fn reasons_table(
    comparison: &Comparison<'_>,
    key: &ComparisonKey,
    (kind, scope): (CountKind, Scope),
    reasons: &BTreeMap<(Verdict, Option<RowReason>), (i64, i64)>,
    references: &mut References,
) -> Block {
    let text = |text: &str| Literal::Text(text.to_owned());
    let at = comparison.records.last_report(key, scope);
    let rows = reasons.iter().map(|((verdict, reason), (of_functions, of_rare))| {
        let mut filter = comparison.subject.filter();
        filter.extend([
            ("scope", text(scope.name())),
            ("profile_type", text(key.profile_type.name())),
            ("count_kind", text(kind.name())),
            ("is_roll_up", Literal::Truth(false)),
            ("window_end_at", at.map_or(Literal::Null, Literal::Instant)),
            ("verdict", text(verdict.name())),
            ("reason", reason.map_or(Literal::Null, |reason| text(reason.name()))),
        ]);
        let mut counted = Text::new();
        if *of_functions > 0 {
            let mut of_named = filter.clone();
            of_named.push(("functions", Literal::Null));
            counted.push(total(*of_functions, references.count::<CellRow>(of_named)));
        }
        if *of_rare > 0 {
            let more = if counted.is_empty() { "" } else { ", and " };
            counted.push(words(more));
            filter.push(("function", text(RARE)));
            counted.push(total(*of_rare, references.sum::<CellRow>("functions", filter)));
            counted.push(words(" that are counted together"));
        }
        let word = reason.map_or(verdict.name(), RowReason::name).replace('_', " ");
        vec![Cell::of(counted), Cell::words(word), Cell::words(why(*verdict, *reason))]
    });
    Block::list("Functions that were not decided, by reason", &["functions", "reason", "what it means"], rows)
}
