//! What was found, in a sentence: which functions changed where and by how much.
//!
//! What to do about it is the column `action` of the table `comparisons`, and is printed as it is there.

use std::collections::BTreeSet;

use fleetdiff_pipeline::rules::advice::{self, LISTED, capitalised, instant, plural, share_delta, words};
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::wording::Wording;
use fleetdiff_schemas::fan_out::{Extent, listed};
use fleetdiff_schemas::rows::{CellKey, CellRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ComparisonVerdict, FanOutState, Support};

use super::findings::{Findings, FlaggedFunction};

/// What was found over all cells.
pub(crate) fn sentence(findings: &Findings<'_>) -> String {
    let Wording { more, less, .. } = Wording::of(findings.key.profile_type);
    let mut parts = flagged(findings, FanOutState::Regressed, more);
    parts.extend(flagged(findings, FanOutState::Improved, less));
    if findings.history.is_some() {
        parts.extend(against_history(findings));
    } else if parts.is_empty() {
        parts.push("no function is flagged".to_owned());
    }
    format!("{}.", capitalised(&parts.join("; ")))
}

/// The cells in which history shows no change, those in which it does not show whether there is one, and those without any.
fn against_history(findings: &Findings<'_>) -> Vec<String> {
    let with = |verdict: ComparisonVerdict| -> Vec<&CellKey> {
        findings.cells.iter().filter(|(_, row)| row.verdict == verdict).map(|(cell, _)| *cell).collect()
    };
    let kinds = [
        ("no change", ComparisonVerdict::Clean, ""),
        ("inconclusive against history", ComparisonVerdict::Inconclusive, ""),
        (
            "not comparable",
            ComparisonVerdict::NotComparable,
            ": no hour of the day and hardware has samples of both builds",
        ),
    ];
    let parts = kinds.into_iter().map(|(word, verdict, why)| (word, with(verdict), why));
    let parts = parts.filter(|(_, cells, _)| !cells.is_empty());
    parts.map(|(word, cells, why)| format!("{word} in {}{why}", place(findings, &cells))).collect()
}

/// The shortest description of cells.
fn place(findings: &Findings<'_>, cells: &[&CellKey]) -> String {
    words(&extents(cells.iter().copied(), findings.cells.keys().copied()))
}

/// The cells in which functions are significant in one direction: one part for each function that is the worst in cells
/// not named yet, what is provisional apart; the other functions are counted.
fn flagged(findings: &Findings<'_>, state: FanOutState, what: &str) -> Vec<String> {
    let mut named: BTreeSet<&CellKey> = BTreeSet::new();
    let mut groups: Vec<(&FlaggedFunction<'_>, Vec<&CellKey>, usize)> = Vec::new();
    for flagged in &findings.flagged {
        let cells: Vec<&CellKey> = flagged.cells(state).collect();
        let new = cells.iter().copied().filter(|cell| !named.contains(cell));
        let (provisional, new): (Vec<&CellKey>, Vec<&CellKey>) =
            new.partition(|cell| provisional(flagged, &[cell]).is_some());
        if !(new.is_empty() && provisional.is_empty()) {
            named.extend(new.iter().chain(&provisional));
            let each = [new, provisional].into_iter().filter(|cells| !cells.is_empty());
            groups.extend(each.map(|cells| (flagged, cells, 0)));
        } else if let Some((_, _, more)) =
            groups.iter_mut().find(|(_, group, _)| cells.iter().any(|cell| group.contains(cell)))
        {
            *more += 1;
        }
    }
    let part = |(flagged, cells, more): (&FlaggedFunction<'_>, Vec<&CellKey>, usize)| {
        let more = if more == 0 { String::new() } else { format!(", and {more} more {}", plural(more, "function")) };
        let place = place(findings, &cells);
        let effect = format!("{} {}{more}", flagged.named(), effects(flagged, &cells));
        let few = tentative(findings, flagged, &cells);
        let until_at =
            provisional(flagged, &cells).map(|at| format!(" (provisional until {}: pods are young)", instant(at)));
        format!("{what} in {place}: {effect}{few}{}", until_at.unwrap_or_default())
    };
    groups.into_iter().map(part).collect()
}

/// The number of pods behind a result, if they are few.
fn tentative(findings: &Findings<'_>, flagged: &FlaggedFunction<'_>, cells: &[&CellKey]) -> String {
    let weak = |cell: &&&CellKey| flagged.rows.get(**cell).is_some_and(|row| row.support == Support::Tentative);
    let pods = |cell: &&CellKey| {
        findings.cells.get(*cell).map(|row| format!("{} against {} pods", row.head_pods, row.base_pods))
    };
    let pods: BTreeSet<String> = cells.iter().filter(weak).filter_map(pods).collect();
    if pods.is_empty() {
        String::new()
    } else {
        format!(" (tentative: {})", pods.into_iter().collect::<Vec<_>>().join(", "))
    }
}

/// Until when a result may be a warm-up, if it may be one in any of these cells.
fn provisional(flagged: &FlaggedFunction<'_>, cells: &[&CellKey]) -> Option<Nanos> {
    let rows = cells.iter().filter_map(|cell| flagged.rows.get(*cell));
    rows.filter_map(|row| row.provisional_until_at).max()
}

/// By how much a function's cost changed in these cells.
fn effects(flagged: &FlaggedFunction<'_>, cells: &[&CellKey]) -> String {
    let rows: Vec<&CellRow> = cells.iter().filter_map(|cell| flagged.rows.get(*cell).copied()).collect();
    advice::effects(&rows)
}

/// Whether a row's share moved one way and its cost the other, because other functions moved more.
fn moves_against_its_share(row: &CellRow) -> bool {
    let (Some(delta), Some(ratio)) = (row.share_delta, row.effect()) else { return false };
    delta.value * (ratio.value - 1.0) < 0.0
}

/// Where a function is significant and by how much it changed, for its line.
pub(crate) fn places(flagged: &FlaggedFunction<'_>) -> String {
    let side = |state: FanOutState, extents: &[Extent]| {
        let cells: Vec<&CellKey> = flagged.cells(state).collect();
        let rows: Vec<&CellRow> = cells.iter().filter_map(|cell| flagged.rows.get(*cell).copied()).collect();
        let (where_found, changed) = (format!("{} in {}", state.name(), words(extents)), effects(flagged, &cells));
        let shares: Vec<String> = rows.iter().copied().filter_map(share_delta).collect();
        // All functions together have no share.
        let line = if !(1..=LISTED).contains(&shares.len()) {
            format!("{where_found}: {changed}")
        } else if rows.iter().copied().any(moves_against_its_share) {
            let why = match state {
                FanOutState::Regressed => "fell, since others rose more",
                _ => "rose, since others fell more",
            };
            format!("{where_found}: {changed}; its share {why} ({})", listed(&shares))
        } else {
            format!("{where_found}: {}, {changed}", listed(&shares))
        };
        (!cells.is_empty()).then_some(line)
    };
    let sides = [side(FanOutState::Regressed, &flagged.regressed), side(FanOutState::Improved, &flagged.improved)];
    sides.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
