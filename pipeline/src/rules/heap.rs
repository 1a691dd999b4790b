//! What became of memory: directions of allocation, memory in use and its growth, and the class that they are together.

pub(crate) mod findings;
pub mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, HeapRow, Interval, LevelFace};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{HeapClass, LevelDirection, LevelReason, Support};
use fleetdiff_statistics::families::bh;

use super::levels::direct_one;
use crate::evidence::heap::HeapEvidence;

/// A figure of a row, and whether it is one of growth.
type Face = (fn(&mut HeapRow) -> &mut LevelFace, bool);

/// The figures of a row.
const FACES: [Face; 3] = [(|row| &mut row.alloc, false), (|row| &mut row.live, false), (|row| &mut row.slope, true)];

/// The rows of a report of one comparison, of all cells: `(all)` in each cell, and functions of which a figure moved. `window_hops` is the
/// length of the window, and `q` the false-discovery rate of each family.
pub fn decide(
    id: &ComparisonId,
    evidence: Vec<(CellKey, HeapEvidence)>,
    hop: Hop,
    (clock, window_hops): (HopClock, u64),
    q: f64,
) -> Vec<HeapRow> {
    let blank = HeapRow {
        service: id.service.clone(),
        base_build: id.base_name(),
        head_build: id.head.clone(),
        window_start_at: clock.start_of(hop.plus(1).minus(window_hops)),
        window_end_at: clock.end_of(hop),
        ..HeapRow::blank()
    };
    let mut rows: BTreeMap<(CellKey, CountKind, Arc<str>), HeapRow> = BTreeMap::new();
    for (cell, found) in evidence {
        let HeapEvidence { count_kind, function, alloc, live, slope, support } = found;
        let key = (cell.clone(), count_kind, Arc::clone(&function));
        let row = rows.entry(key).or_insert_with(|| HeapRow { cell, count_kind, function, ..blank.clone() });
        row.alloc = alloc.unwrap_or(row.alloc);
        row.live = live.unwrap_or(row.live);
        row.slope = slope.unwrap_or(row.slope);
        row.support = match (row.support, support) {
            (Support::Untestable, support) | (support, Support::Untestable) => support,
            (one, other) => one.max(other),
        };
    }
    let mut rows: Vec<HeapRow> = rows.into_values().collect();
    say_what_is_missing(&mut rows);
    direct(&mut rows, q);
    for row in &mut rows {
        row.class = class(row.alloc.direction, row.live.direction, row.slope.direction);
        let unknown = row.alloc.reason.or(row.live.reason).or(row.slope.reason).unwrap_or(LevelReason::NoClass);
        row.reason = (row.class == HeapClass::Unknown).then_some(unknown);
    }
    rows.retain(|row| &*row.function == ALL_FUNCTIONS || row.moved());
    rows
}

/// A figure that a function lacks is unknown for the reason of all functions together; if these have it, too few samples are of it.
fn say_what_is_missing(rows: &mut [HeapRow]) {
    let of_all: BTreeMap<CellKey, HeapRow> =
        rows.iter().filter(|row| &*row.function == ALL_FUNCTIONS).map(|row| (row.cell.clone(), row.clone())).collect();
    for row in rows.iter_mut().filter(|row| &*row.function != ALL_FUNCTIONS) {
        let Some(mut all) = of_all.get(&row.cell).cloned() else { continue };
        for (face, _) in FACES {
            let missing = matches!(face(row).reason, Some(LevelReason::NoAllocations | LevelReason::NoSnapshots));
            if missing && face(&mut all).change.is_some() {
                face(row).reason = Some(LevelReason::CountNeeded);
            } else if missing {
                face(row).reason = face(&mut all).reason;
            }
        }
    }
}

/// Finds directions. Each figure has its own families: `(all)` over cells, functions by cell and kind of count.
fn direct(rows: &mut [HeapRow], q: f64) {
    for (face, is_slope) in FACES {
        let mut families: BTreeMap<Option<(CellKey, CountKind)>, Vec<usize>> = BTreeMap::new();
        for (place, row) in rows.iter_mut().enumerate() {
            if face(row).ln_p.is_some() {
                let family = (&*row.function != ALL_FUNCTIONS).then(|| (row.cell.clone(), row.count_kind));
                families.entry(family).or_default().push(place);
            }
        }
        for places in families.into_values() {
            let ln_p: Vec<f64> = places.iter().filter_map(|&place| face(&mut rows[place]).ln_p).collect();
            for (place, q_value) in places.into_iter().zip(bh(&ln_p)) {
                direct_one(face(&mut rows[place]), (q_value, ln_p.len()), q, is_slope);
            }
        }
    }
}

/// What to do about a leak.
pub fn action(head: &Build) -> String {
    format!("Before {head} runs out of memory, look at what these functions keep, or roll {head} back there.")
}

/// How much more is in use after a time than at the base's rate, from the slope per hour: of some times in words, the longest in
/// which that at most doubles or halves. Nobody has seen what minutes would come to in an hour.
///
/// ```
/// use fleetdiff_pipeline::rules::heap::grown;
/// use fleetdiff_schemas::rows::Interval;
///
/// let slope = |value: f64| Interval { value, low: value - 0.1, high: value + 0.1 };
/// assert_eq!(grown(slope(0.5)).1, "an hour");
/// let (ratio, time) = grown(slope(3.6));
/// assert_eq!((format!("{:.3}", ratio.value), time), ("1.822".to_owned(), "10 minutes"));
/// assert_eq!(grown(slope(-20.0)).1, "a minute");
/// ```
pub fn grown(slope: Interval) -> (Interval, &'static str) {
    let times = [(1.0, "an hour"), (1.0 / 6.0, "10 minutes"), (1.0 / 60.0, "a minute")];
    let is_readable = |(hours, _): &(f64, &str)| (slope.value * hours).abs() <= std::f64::consts::LN_2;
    let (hours, name) = times.into_iter().find(is_readable).unwrap_or(times[2]);
    let after = |slope: f64| libm::exp(slope * hours);
    (Interval { value: after(slope.value), low: after(slope.low), high: after(slope.high) }, name)
}

/// The class of three directions.
fn class(alloc: LevelDirection, live: LevelDirection, slope: LevelDirection) -> HeapClass {
    use LevelDirection::{Down, Flat, Unknown, Up};
    match (alloc, live, slope) {
        (Flat | Down, Up, Up) => HeapClass::HiddenLeak,
        (Up | Unknown, Up, Up) => HeapClass::Leak,
        (_, Up, Flat) => HeapClass::RetentionStep,
        (Up, Flat, _) => HeapClass::Churn,
        (Down, Flat | Down, _) => HeapClass::Win,
        (Flat, Flat, Flat) => HeapClass::Unchanged,
        (Unknown, ..) | (_, Unknown, _) | (.., Unknown) | (_, Up, Down) | (Up | Flat, Down, _) | (Flat, Flat, _) => {
            HeapClass::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use LevelDirection::{Down, Flat, Unknown, Up};

    use super::*;

    #[test]
    fn classes_of_the_table() {
        for (alloc, live, slope, expected) in [
            (Flat, Up, Up, HeapClass::HiddenLeak),
            (Down, Up, Up, HeapClass::HiddenLeak),
            (Up, Up, Up, HeapClass::Leak),
            (Down, Up, Flat, HeapClass::RetentionStep),
            (Unknown, Up, Flat, HeapClass::RetentionStep),
            (Up, Flat, Unknown, HeapClass::Churn),
            (Down, Flat, Unknown, HeapClass::Win),
            (Down, Down, Down, HeapClass::Win),
            (Flat, Flat, Flat, HeapClass::Unchanged),
            (Unknown, Up, Up, HeapClass::Leak),
            (Flat, Flat, Unknown, HeapClass::Unknown),
            (Down, Up, Unknown, HeapClass::Unknown),
            (Up, Down, Flat, HeapClass::Unknown),
        ] {
            assert_eq!(class(alloc, live, slope), expected, "{alloc:?} {live:?} {slope:?}");
        }
    }
}
