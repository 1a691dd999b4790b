//! What changed of the time that requests wait: false discovery over functions, threads and cells.

pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::{CountKind, is_of_kernel};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, WaitingRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{LevelDirection, TimeMeasure};
use fleetdiff_statistics::families::bh;

use super::advice::LISTED;
use super::levels::direct_one;
use crate::evidence::waiting::WaitingEvidence;

/// The part of a change that lies in a function, for the function to be named.
const PART: f64 = 0.5;
/// Times that differ by less than this factor are those of functions of which one calls the other.
const SAME: f64 = 1.01;

/// Rows among which false discovery is controlled together.
type Family = (TimeMeasure, Option<(CellKey, Option<CountKind>)>);

/// The rows of a report of one comparison, of all cells: `(all)` in each cell, and functions and threads whose time changed.
/// `window_hops` is the length of the window, and `q` the false-discovery rate of each family.
pub fn decide(
    id: &ComparisonId,
    evidence: Vec<(CellKey, WaitingEvidence)>,
    hop: Hop,
    (clock, window_hops): (HopClock, u64),
    q: f64,
) -> Vec<WaitingRow> {
    let row = |(cell, found): (CellKey, WaitingEvidence)| WaitingRow {
        service: id.service.clone(),
        base_build: id.base_name(),
        head_build: id.head.clone(),
        measure: found.measure,
        count_kind: found.count_kind,
        cell,
        function: found.function,
        thread: found.thread,
        window_start_at: clock.start_of(hop.plus(1).minus(window_hops)),
        window_end_at: clock.end_of(hop),
        per: found.per,
        time: found.time,
        cpu_head: found.parts.map(|[cpu, _]| cpu.head),
        cpu_base: found.parts.map(|[cpu, _]| cpu.base),
        off_cpu_head: found.parts.map(|[_, off]| off.head),
        off_cpu_base: found.parts.map(|[_, off]| off.base),
        samples_head: table_count(found.samples.head),
        samples_base: table_count(found.samples.base),
        support: found.support,
    };
    let mut rows: Vec<WaitingRow> = evidence.into_iter().map(row).collect();
    direct(&mut rows, q);
    rows.retain(|row| is_of_cell(row) || has_changed(row));
    rows
}

/// Whether it is all time of a cell.
pub fn is_of_cell(row: &WaitingRow) -> bool {
    &*row.function == ALL_FUNCTIONS && row.thread.is_none()
}

/// Whether its time went up or down.
pub fn has_changed(row: &WaitingRow) -> bool {
    matches!(row.time.direction, LevelDirection::Up | LevelDirection::Down)
}

/// Finds directions, family by family.
fn direct(rows: &mut [WaitingRow], q: f64) {
    let mut families: BTreeMap<Family, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.time.ln_p.is_some()) {
        // Threads have no kind of count; all time of cells is one family.
        let kind = (&*row.function != ALL_FUNCTIONS).then_some(row.count_kind);
        let within = (!is_of_cell(row)).then(|| (row.cell.clone(), kind));
        families.entry((row.measure, within)).or_default().push(place);
    }
    for places in families.into_values() {
        let ln_p: Vec<f64> = places.iter().filter_map(|&place| rows[place].time.ln_p).collect();
        for (place, q_value) in places.into_iter().zip(bh(&ln_p)) {
            direct_one(&mut rows[place].time, (q_value, ln_p.len()), q, false);
        }
    }
}

/// What a row is about: `poll in threads worker-*`, a thread, or all.
pub fn subject(row: &WaitingRow) -> String {
    let is_all = &*row.function == ALL_FUNCTIONS;
    match (&row.thread, is_all) {
        (Some(thread), true) => format!("all of threads {thread}"),
        (Some(thread), false) => format!("{} in threads {thread}", row.function),
        (None, true) => "all functions together".to_owned(),
        (None, false) => row.function.to_string(),
    }
}

/// The functions in which most of a row's change lies, if the row itself does not say: it is one of the kernel's, or all of a cell or a
/// thread. They are the innermost outside the kernel whose total counts moved the same way by half as much or more. Several if they
/// moved by the same time, since one of them calls the other then.
pub fn mostly_in<'a>(row: &WaitingRow, rows: impl Iterator<Item = &'a WaitingRow> + Clone) -> Vec<&'a str> {
    let is_silent = &*row.function == ALL_FUNCTIONS || is_of_kernel(&row.function);
    if !is_silent || !has_changed(row) {
        return Vec::new();
    }
    let of_row = moved(row);
    let inside = rows.filter(|inner| {
        let is_within = row.thread.is_none() || inner.thread == row.thread;
        let is_same = (inner.measure, &inner.cell) == (row.measure, &row.cell) && is_within;
        let is_named = &*inner.function != ALL_FUNCTIONS && !is_of_kernel(&inner.function);
        let is_part = inner.count_kind == CountKind::Total && inner.time.direction == row.time.direction;
        is_same && is_named && is_part && moved(inner) >= PART * of_row
    });
    let least = inside.clone().map(moved).fold(f64::INFINITY, f64::min);
    let innermost = inside.filter(|inner| moved(inner) <= SAME * least).map(|inner| &*inner.function);
    innermost.collect::<BTreeSet<_>>().into_iter().take(LISTED).collect()
}

/// How these functions are said after the row: a function of the kernel is below them.
pub fn mostly(row: &WaitingRow) -> &'static str {
    if &*row.function == ALL_FUNCTIONS { ", mostly in " } else { ", mostly below " }
}

/// By how much a time moved, in nanoseconds.
pub fn moved(row: &WaitingRow) -> f64 {
    (row.time.head.unwrap_or(0.0) - row.time.base.unwrap_or(0.0)).abs()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::rows::{Interval, LevelFace};
    use fleetdiff_schemas::tables::TableRow;
    use fleetdiff_schemas::time::Nanos;
    use fleetdiff_schemas::verdict::{LevelReason, Support, TimePer};
    use fleetdiff_statistics::arms::Arms;

    use super::*;

    fn evidence(function: &str, thread: Option<&str>, ln_p: f64) -> (CellKey, WaitingEvidence) {
        let change = Interval { value: 2.0, low: 1.5, high: 3.0 };
        let unknown = LevelFace::unknown(LevelReason::Imprecise);
        let found = WaitingEvidence {
            measure: TimeMeasure::OffCpu,
            count_kind: CountKind::SelfCount,
            function: function.into(),
            thread: thread.map(Arc::from),
            per: TimePer::Request,
            time: LevelFace { change: Some(change), ln_p: Some(ln_p), ..unknown },
            parts: None,
            samples: Arms { head: 3, base: 4 },
            support: Support::Firm,
        };
        (CellKey { region: "north".into(), cohort: "tv".into() }, found)
    }

    fn row(function: &str, count_kind: CountKind, [base, head]: [f64; 2]) -> WaitingRow {
        let direction = if head > base { LevelDirection::Up } else { LevelDirection::Down };
        let time = LevelFace::unknown(LevelReason::Imprecise);
        let time = LevelFace { base: Some(base), head: Some(head), direction, ..time };
        WaitingRow { function: function.into(), count_kind, thread: Some("main".into()), time, ..WaitingRow::blank() }
    }

    /// Off the CPU every leaf is the kernel's scheduler.
    #[test]
    fn regression_a_kernel_function_is_said_with_the_function_that_waits() {
        let (own, total) = (CountKind::SelfCount, CountKind::Total);
        let leaf = row("__schedule_[k]", own, [10.0, 500.0]);
        let rows = [
            row("main", total, [15.0, 510.0]),
            row("fsync", total, [10.0, 500.0]),
            row("flush", total, [10.0, 500.0]),
            row("do_fsync_[k]", total, [10.0, 500.0]),
            row("poll", total, [0.0, 20.0]),
            row("read", total, [600.0, 10.0]),
            WaitingRow { thread: Some("helper".into()), ..row("wait", total, [10.0, 500.0]) },
        ];
        assert_eq!(mostly_in(&leaf, rows.iter()), ["flush", "fsync"], "one calls the other");
        assert_eq!(mostly_in(&row(ALL_FUNCTIONS, own, [10.0, 900.0]), rows.iter()), ["flush", "fsync"]);
        assert!(mostly_in(&row(ALL_FUNCTIONS, own, [10.0, 2000.0]), rows.iter()).is_empty(), "less than half");
        assert!(mostly_in(&row("fsync", own, [10.0, 500.0]), rows.iter()).is_empty(), "it says so itself");
    }

    #[test]
    fn threads_functions_and_cells_have_families_of_their_own() {
        let id = ComparisonId { service: "api".into(), base: vec!["v1".into()], head: "v2".into() };
        let found = vec![
            evidence(ALL_FUNCTIONS, None, -4.0),
            evidence(ALL_FUNCTIONS, Some("worker-*"), -4.0),
            evidence("poll", Some("worker-*"), -3.3),
            evidence("read", Some("worker-*"), -0.1),
            evidence("poll", Some("main"), -9.0),
        ];
        let rows = decide(&id, found, Hop(60), (HopClock::new(Nanos::from_seconds(10)), 6), 0.05);
        let named: Vec<String> = rows.iter().map(subject).collect();
        let expected = ["all functions together", "all of threads worker-*", "poll in threads main"];
        // exp(-3.3) is .037: alone it would be significant, among three functions it is not beyond .05 x 2/3.
        assert_eq!(named, expected);
        assert!(rows.iter().all(has_changed));
    }
}
