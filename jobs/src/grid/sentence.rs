//! One sentence: what to roll back, what may stay, and what is inconclusive and what it needs.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::outlook::{Outlook, outlook};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::fan_out::{Extent, listed};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, Interval};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::verdict::{ComparisonVerdict, FanOutState, Support};

use super::findings::{Findings, FlaggedFunction};

/// Up to this many cells of a function have their ratios listed; for more cells the range is given.
const RATIOS: usize = 3;
/// Up to this many functions or pods are named.
const NAMED: usize = 3;

/// The verdict over all cells, in words.
pub(crate) fn sentence(findings: &Findings<'_>, config: &Config) -> String {
    let verb = if findings.history.is_some() { "more expensive in " } else { "roll back " };
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

pub(crate) fn words(extents: &[Extent]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The cells in which functions are significant in one direction: one part for each function that is the worst in cells
/// not named yet; the other functions are counted.
fn flagged(findings: &Findings<'_>, state: FanOutState, verb: &str) -> Vec<String> {
    let mut named: BTreeSet<&CellKey> = BTreeSet::new();
    let mut groups: Vec<(&FlaggedFunction<'_>, Vec<&CellKey>, usize)> = Vec::new();
    for flagged in &findings.flagged {
        let cells: Vec<&CellKey> = flagged.cells(state).collect();
        let new: Vec<&CellKey> = cells.iter().copied().filter(|cell| !named.contains(cell)).collect();
        if !new.is_empty() {
            named.extend(&new);
            groups.push((flagged, new, 0));
        } else if let Some((_, _, more)) =
            groups.iter_mut().find(|(_, group, _)| cells.iter().any(|cell| group.contains(cell)))
        {
            *more += 1;
        }
    }
    let part = |(flagged, cells, more): (&FlaggedFunction<'_>, Vec<&CellKey>, usize)| {
        let more = if more == 0 { String::new() } else { format!(", and {more} more {}", plural(more, "function")) };
        format!(
            "{verb}{}: {} {}{more}{}{}",
            place(findings, &cells),
            name(flagged.function),
            effects(flagged, &cells),
            tentative(findings, flagged, &cells),
            provisional(flagged, &cells)
        )
    };
    groups.into_iter().map(part).collect()
}

/// A function in a sentence.
fn name(function: &str) -> &str {
    if function == ALL_FUNCTIONS { "cost per request of all functions together" } else { function }
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

/// Until when a result may be a warm-up: then it must be waited for before anyone acts on it.
fn provisional(flagged: &FlaggedFunction<'_>, cells: &[&CellKey]) -> String {
    let rows = cells.iter().filter_map(|cell| flagged.rows.get(*cell));
    let until_at = rows.filter_map(|row| row.provisional_until_at).max();
    until_at.map_or_else(String::new, |at| {
        format!(" (provisional: pods are young, wait until {} to exclude a warm-up)", rfc3339(at))
    })
}

/// By how much a function's cost changed in these cells.
fn effects(flagged: &FlaggedFunction<'_>, cells: &[&CellKey]) -> String {
    let rows: Vec<&CellRow> = cells.iter().filter_map(|cell| flagged.rows.get(*cell).copied()).collect();
    if rows.len() > RATIOS {
        return range(&rows);
    }
    let effects_in_words: Vec<String> = rows.into_iter().map(effect).collect();
    listed(&effects_in_words)
}

fn effect(row: &CellRow) -> String {
    match row.effect() {
        Some(ratio) => effect_of(ratio),
        None if row.base.count == 0 => "only in the head".to_owned(),
        None => "only in the base".to_owned(),
    }
}

/// A ratio with its interval.
pub(crate) fn effect_of(Interval { value, low, high }: Interval) -> String {
    format!("x {} ({} to {})", number(value), number(low), number(high))
}

fn range(rows: &[&CellRow]) -> String {
    let ratios: Vec<Interval> = rows.iter().filter_map(|row| row.effect()).collect();
    let least = |of: fn(&Interval) -> f64| ratios.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Interval) -> f64| ratios.iter().map(of).fold(0.0, f64::max);
    if ratios.is_empty() {
        return "only in one build".to_owned();
    }
    format!(
        "x {} to {} (intervals from {} to {})",
        number(least(|r| r.value)),
        number(most(|r| r.value)),
        number(least(|r| r.low)),
        number(most(|r| r.high))
    )
}

/// The change of a row's share with its interval, in percentage points.
pub(crate) fn share_delta(row: &CellRow) -> Option<String> {
    row.share_delta.map(|delta| format!("{:+.2} pp +- {:.2}", delta.value * 100.0, (delta.high - delta.low) * 50.0))
}

/// Two decimals, three where the first would be nought.
fn number(value: f64) -> String {
    if value < 0.1 { format!("{value:.3}") } else { format!("{value:.2}") }
}

/// Where a function is significant and by how much it changed, for its line.
pub(crate) fn places(flagged: &FlaggedFunction<'_>) -> String {
    let side = |state: FanOutState, extents: &[Extent]| {
        let cells: Vec<&CellKey> = flagged.cells(state).collect();
        let shares: Vec<String> = cells.iter().filter_map(|cell| share_delta(flagged.rows.get(*cell)?)).collect();
        let shares = if shares.len() > RATIOS { String::new() } else { format!("{}, ", listed(&shares)) };
        (!cells.is_empty())
            .then(|| format!("{} in {}: {shares}{}", state.name(), words(extents), effects(flagged, &cells)))
    };
    let sides = [side(FanOutState::Regressed, &flagged.regressed), side(FanOutState::Improved, &flagged.improved)];
    sides.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What is inconclusive, with cells that need the same together.
fn unknown(findings: &Findings<'_>, config: &Config) -> Vec<String> {
    let mut by_need: BTreeMap<String, Vec<&CellKey>> = BTreeMap::new();
    for (cell, row) in findings.cells.iter().filter(|(_, row)| row.verdict == ComparisonVerdict::Inconclusive) {
        let rows = findings.rows.get(cell).map_or(&[][..], Vec::as_slice);
        let pods = (row.head_pods, row.base_pods);
        by_need.entry(need(outlook(row, rows, config), pods, findings.key)).or_default().push(cell);
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

/// What would decide it.
fn need(outlook: Outlook, (head, base): (i64, i64), key: &ComparisonKey) -> String {
    let more = |count: u32, build: &str, now: i64| {
        (count > 0).then(|| {
            format!("{count} more {} of {build} ({now} now)", plural(usize::try_from(count).unwrap_or(0), "pod"))
        })
    };
    let pods = [
        more(outlook.head_pods, key.head_build.as_str(), head),
        more(outlook.base_pods, key.base_build.as_str(), base),
    ];
    let pods = listed(&pods.into_iter().flatten().collect::<Vec<_>>());
    match (pods.is_empty(), outlook.seconds) {
        (true, Some(seconds)) if seconds >= 1.0 => format!("needs about {} more", length(seconds)),
        (true, Some(_)) => "there are enough samples, but too few functions are equivalent".to_owned(),
        (true, None) => "its samples are spread over functions that are too rare to say how long it needs".to_owned(),
        (false, Some(seconds)) => {
            format!(
                "needs {pods}, watched for about {}; more time with the present pods does not help",
                length(seconds)
            )
        }
        (false, None) => format!("needs at least {pods}"),
    }
}

/// A length of time in words, rounded up.
fn length(seconds: f64) -> String {
    let (count, unit) = match seconds {
        s if s <= 90.0 => (s, "second"),
        s if s <= 5400.0 => (s / 60.0, "minute"),
        s if s <= 172_800.0 => (s / 3600.0, "hour"),
        s => (s / 86_400.0, "day"),
    };
    let count = count.ceil();
    format!("{count:.0} {unit}{}", if count > 1.0 { "s" } else { "" })
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}
