//! The course of the leading cell's ratio over the reports, with the band that holds at every look.

use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::verdict::Scope;

use super::by_cell::Known;
use super::incidents::place;
use crate::chart::{Course, Moment, Undrawn, course};
use crate::comparison::{Comparison, Incident};
use crate::document::{Chart, Text, words};
use crate::figures::{ADJUSTED_RATIO, ALWAYS_VALID_RATIO, PER_REQUEST_RATIO, minute, ratio};
use crate::records::Filed;
use crate::references::References;

/// Reports whose figures are written out below the picture; of more, the first and the last.
const WRITTEN: usize = 6;

/// The picture; none with fewer than two reports.
pub(super) fn chart(
    comparison: &Comparison<'_>,
    incident: &Incident<'_>,
    known: &Known<'_>,
    references: &mut References,
) -> Result<Option<Chart>, Undrawn> {
    let Some((cell, of)) = known.in_order().into_iter().next() else { return Ok(None) };
    let end = incident.ended.map(|end| end.row.changed_at);
    let mut rows: Vec<&Filed<CellRow>> = comparison
        .reports(known.key, known.kind, Scope::Epoch)
        .filter(|Filed { row, .. }| row.function == known.cause && row.cell == *cell)
        .filter(|Filed { row, .. }| row.effect().is_some() && end.is_none_or(|end| row.window_end_at <= end))
        .collect();
    rows.sort_by_key(|filed| filed.row.window_end_at);
    if rows.len() < 2 {
        return Ok(None);
    }
    let moments = rows.iter().filter_map(|Filed { row, .. }| {
        let always = row.always_valid_ratio;
        Some(Moment { at: row.window_end_at, epoch: row.window_start_at, ratio: row.effect()?, always })
    });
    let drawn =
        Course { moments: moments.collect(), raised_at: incident.standing.row.raised_at, tone: of.verdict().tone };
    let place = place(comparison, known).unwrap_or_default();
    let describes = format!("{} in {place}: head divided by base at {} reports", known.cause, rows.len());
    let title = vec![words(format!("How it went over time, in {place}"))];
    let caption = vec![words(
        "Head divided by base since the comparison opened, at each report (UTC), with 95 % intervals. The band holds however often \
         and whenever one looks:",
    )];
    Ok(Some(Chart { title, caption, says: figures(&rows, references), svg: course(&drawn, &describes)? }))
}

/// The figures of the band.
fn figures(rows: &[&Filed<CellRow>], references: &mut References) -> Text {
    let mut text = Text::new();
    let most = if rows.len() > WRITTEN { vec![rows[0], rows[rows.len() - 1]] } else { rows.to_vec() };
    for (place, filed) in most.into_iter().enumerate() {
        if place > 0 {
            text.push(words(", "));
        }
        let citation = references.row(filed);
        text.push(words(format!("{} ", minute(filed.row.window_end_at))));
        match (filed.row.always_valid_ratio, filed.row.adjusted_ratio, filed.row.per_request_ratio) {
            (Some(always), ..) => text.push(ratio(always, citation, ALWAYS_VALID_RATIO)),
            (None, Some(adjusted), _) => text.push(ratio(adjusted, citation, ADJUSTED_RATIO)),
            (None, None, Some(per_request)) => text.push(ratio(per_request, citation, PER_REQUEST_RATIO)),
            (None, None, None) => {}
        }
    }
    text.push(words("."));
    text
}
