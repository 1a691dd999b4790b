//! One sentence: what to roll back, what may stay, and what is inconclusive and what it needs.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::advice::{self, LISTED, instant, name, need, plural, share_delta, words};
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::outlook::outlook;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::fan_out::{Extent, listed};
use fleetdiff_schemas::rows::{CellKey, CellRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ComparisonVerdict, FanOutState, Support};

use super::findings::{Findings, FlaggedFunction};

/// What is advised for cells in which a function costs more.
const ROLL_BACK: &str = "roll back ";

/// Up to this many functions or pods are named.
const NAMED: usize = 3;

/// The verdict over all cells, in words.
pub(crate) fn sentence(findings: &Findings<'_>, config: &Config) -> String {
    let verb = if findings.history.is_some() { "more expensive in " } else { ROLL_BACK };
    let mut parts = flagged(findings, FanOutState::Regressed, verb);
    parts.extend(flagged(findings, FanOutState::Improved, "cheaper in "));
    let with = |verdict: ComparisonVerdict| {
        findings.cells.iter().filter(move |(_, row)| row.verdict == verdict).map(|(cell, _)| *cell)
    };
    // Shares that did not move do not rule out a change of everything.
    let (more_expensive, unchanged): (Vec<&CellKey>, Vec<&CellKey>) =
        with(ComparisonVerdict::Clean).partition(|cell| findings.is_more_expensive(cell));
    let (uneven, clean): (Vec<&CellKey>, Vec<&CellKey>) =
        unchanged.into_iter().partition(|cell| findings.outlying.contains_key(cell));
    if !more_expensive.is_empty() {
        parts.push(format!(
            "more expensive per request, by the same factor in every function, in {}",
            place(findings, &more_expensive)
        ));
    }
    parts.extend(uneven.into_iter().map(|cell| some_pods(cell, findings)));
    if !clean.is_empty() {
        let place = place(findings, &clean);
        parts.push(if findings.history.is_some() {
            format!("no change in {place}")
        } else {
            format!("{place} may stay")
        });
    }
    match findings.history {
        None => parts.extend(unknown(findings, config)),
        // History does not grow, so there is nothing to wait for.
        Some(_) => parts.extend(inconclusive_against_history(findings)),
    }
    let not_comparable: Vec<&CellKey> = with(ComparisonVerdict::NotComparable).collect();
    if !not_comparable.is_empty() {
        let stratum = if findings.history.is_some() { "hour of the day" } else { "time block" };
        parts.push(format!(
            "not comparable in {1}: no {0} and hardware has samples of both builds",
            stratum,
            place(findings, &not_comparable)
        ));
    }
    let sentence = format!("{}.", parts.join("; "));
    let mut letters = sentence.chars();
    let known_name = findings
        .cells
        .keys()
        .any(|cell| sentence.starts_with(cell.region.as_str()) || sentence.starts_with(cell.cohort.as_str()));
    letters
        .next()
        .filter(|_| !known_name)
        .map_or_else(|| sentence.clone(), |first| first.to_uppercase().chain(letters).collect())
}

/// A cell of which the head as a whole did not change, and in which some of its pods did.
fn some_pods(cell: &CellKey, findings: &Findings<'_>) -> String {
    let rows = findings.outlying.get(cell).map_or(&[][..], Vec::as_slice);
    let pods: BTreeSet<&str> = rows.iter().flat_map(|row| &row.outlying_pods).map(String::as_str).collect();
    let functions: Vec<&str> = rows.iter().map(|row| row.function.as_str()).take(NAMED).collect();
    let more = rows.len() - functions.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let named: Vec<&str> = pods.iter().copied().take(NAMED).collect();
    let others = if pods.len() > named.len() { ", ..." } else { "" };
    format!(
        "in {} the canary as a whole did not change, but {} {} differ from the others in {}{more}: look at {}{others} first",
        place(findings, &[cell]),
        pods.len(),
        plural(pods.len(), "pod"),
        functions.join(", "),
        named.join(", "),
    )
}

/// The shortest description of cells.
fn place(findings: &Findings<'_>, cells: &[&CellKey]) -> String {
    words(&extents(cells.iter().copied(), findings.cells.keys().copied()))
}

/// The cells in which functions are significant in one direction: one part for each function that is the worst in cells
/// not named yet, what is provisional apart; the other functions are counted.
fn flagged(findings: &Findings<'_>, state: FanOutState, verb: &str) -> Vec<String> {
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
        let effect = format!("{} {}{more}", name(flagged.function), effects(flagged, &cells));
        let few = tentative(findings, flagged, &cells);
        match provisional(flagged, &cells) {
            Some(until_at) if verb == ROLL_BACK => {
                let until_at = instant(until_at);
                format!(
                    "wait until {until_at} before rolling back {place}: {effect}{few} may be the warm-up of young pods"
                )
            }
            Some(until_at) => {
                format!("{verb}{place}: {effect}{few} (provisional until {}: pods are young)", instant(until_at))
            }
            None => format!("{verb}{place}: {effect}{few}"),
        }
    };
    groups.into_iter().map(part).collect()
}

/// The number of pods behind a result, if they are few: then it must be repeated before anyone acts on it.
fn tentative(findings: &Findings<'_>, flagged: &FlaggedFunction<'_>, cells: &[&CellKey]) -> String {
    let weak = |cell: &&&CellKey| flagged.rows.get(**cell).is_some_and(|row| row.support == Support::Tentative);
    let pods = |cell: &&CellKey| {
        findings.cells.get(*cell).map(|row| format!("{} against {} pods", row.head_pods, row.base_pods))
    };
    let pods: BTreeSet<String> = cells.iter().filter(weak).filter_map(pods).collect();
    if pods.is_empty() {
        String::new()
    } else {
        format!(" (tentative: {}; repeat with more pods first)", pods.into_iter().collect::<Vec<_>>().join(", "))
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

/// Where a function is significant and by how much it changed, for its line.
pub(crate) fn places(flagged: &FlaggedFunction<'_>) -> String {
    let side = |state: FanOutState, extents: &[Extent]| {
        let cells: Vec<&CellKey> = flagged.cells(state).collect();
        let shares: Vec<String> = cells.iter().filter_map(|cell| share_delta(flagged.rows.get(*cell)?)).collect();
        let shares = if shares.len() > LISTED { String::new() } else { format!("{}, ", listed(&shares)) };
        (!cells.is_empty())
            .then(|| format!("{} in {}: {shares}{}", state.name(), words(extents), effects(flagged, &cells)))
    };
    let sides = [side(FanOutState::Regressed, &flagged.regressed), side(FanOutState::Improved, &flagged.improved)];
    sides.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What is inconclusive, with cells that need the same together.
fn unknown(findings: &Findings<'_>, config: &Config) -> Vec<String> {
    let mut by_need: BTreeMap<String, Vec<&CellKey>> = BTreeMap::new();
    let builds = (&findings.key.head_build, &findings.key.base_build);
    for (cell, row) in findings.cells.iter().filter(|(_, row)| row.verdict == ComparisonVerdict::Inconclusive) {
        let rows = findings.rows.get(cell).map_or(&[][..], Vec::as_slice);
        let pods = (row.head_pods, row.base_pods);
        by_need.entry(need(outlook(row, rows, config), pods, builds)).or_default().push(cell);
    }
    by_need.into_iter().map(|(need, cells)| format!("inconclusive in {}: {need}", place(findings, &cells))).collect()
}

/// Cells for which history does not show whether they changed.
fn inconclusive_against_history(findings: &Findings<'_>) -> Option<String> {
    let cells =
        findings.cells.iter().filter(|(_, row)| row.verdict == ComparisonVerdict::Inconclusive).map(|(cell, _)| *cell);
    let cells: Vec<&CellKey> = cells.collect();
    (!cells.is_empty()).then(|| format!("inconclusive against history in {}", place(findings, &cells)))
}
