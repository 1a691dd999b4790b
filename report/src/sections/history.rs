//! What is significant against history, once no base build runs any more.

use fleetdiff_diff::figures::grouped;
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::verdict::{BaseKind, Scope};

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Span, name, paragraph, words};
use crate::figures::{ADJUSTED_RATIO, points, quote, ratio};
use crate::records::Filed;
use crate::references::References;
use crate::verdicts;

/// Rows that are listed; the others are counted.
const SHOWN: usize = 40;

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let mut blocks = Vec::new();
    for key in comparison.keys.iter().copied() {
        let Some(verdict) = comparison.over_all(key, BaseKind::History) else { continue };
        let citation = references.row(verdict);
        let mut text = vec![
            words(format!("No build of {} runs any more. ", comparison.subject.base)),
            quote(&verdict.row.sentence, citation, "sentence"),
            words(". "),
        ];
        text.extend(verdict.row.warnings.iter().map(|warning| words(format!("{warning}. "))));
        text.push(words(
            "Load and traffic of other days cannot be separated from the build, so nothing here raises an alert.",
        ));
        blocks.push(paragraph(text));
        let kind = comparison.kind(key, BaseKind::History);
        let rows = comparison.last_report(key, kind, Scope::Window).filter(|filed| filed.row.verdict.is_significant());
        let mut rows: Vec<&Filed<CellRow>> = rows.collect();
        rows.sort_by(|a, b| {
            let size = |filed: &Filed<CellRow>| filed.row.share_delta.map_or(0.0, |delta| delta.value.abs());
            size(b).total_cmp(&size(a))
        });
        if rows.is_empty() {
            blocks.push(paragraph(vec![words("No function is significant against history at the last report.")]));
            continue;
        }
        blocks.push(table(comparison, &rows, references));
        let more = rows.len().saturating_sub(SHOWN);
        if more > 0 {
            let text = format!("{} more significant rows are in the table cells.", grouped(more));
            blocks.push(paragraph(vec![words(text)]));
        }
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("Against history".to_owned()), blocks }))
}

fn table(comparison: &Comparison<'_>, rows: &[&Filed<CellRow>], references: &mut References) -> Block {
    let of_row = |filed: &&Filed<CellRow>| {
        let (row, citation) = (&filed.row, references.row(*filed));
        let unknown = || Cell::words("only one build has it");
        vec![
            Cell::of(vec![name(row.function.as_str())]),
            Cell::words(comparison.places(&row.comparison, BaseKind::History, [&row.cell])),
            Cell::of(vec![Span::Verdict(verdicts::of_row(row.verdict))]),
            row.adjusted_ratio.map_or_else(unknown, |of| Cell::of(vec![ratio(of, citation, ADJUSTED_RATIO)])),
            row.share_delta.map_or_else(unknown, |delta| Cell::of(vec![points(delta, citation)])),
        ]
    };
    let head = ["function", "cell", "verdict", "head / history", "change of share"];
    Block::list("Functions that are significant against history", &head, rows.iter().take(SHOWN).map(of_row))
}
