//! Memory in words.

use fleetdiff_schemas::rows::{ALL_FUNCTIONS, HeapRow, Interval, LevelFace};
use fleetdiff_schemas::verdict::{HeapClass, LevelDirection, LevelReason, Support};

use crate::rules::heap::grown;
use crate::rules::levels::{one_sided, undecided};

/// What a row says, in sentences: each figure that is known, then what they are together.
///
/// ```
/// use fleetdiff_pipeline::rules::heap::words::sentence;
/// use fleetdiff_schemas::{rows::HeapRow, tables::TableRow};
/// let row = HeapRow { function: "(all)".into(), ..HeapRow::blank() };
/// assert!(sentence(&row).starts_with("all functions together: bytes allocated per request unknown"));
/// ```
pub fn sentence(row: &HeapRow) -> String {
    let name = if &*row.function == ALL_FUNCTIONS { "all functions together" } else { &row.function };
    let slope = match (row.slope.direction, row.slope.change) {
        (direction, Some(slope)) if direction != LevelDirection::Unknown => {
            let how = match direction {
                LevelDirection::Up => "faster",
                LevelDirection::Down => "more slowly",
                _ => "no faster",
            };
            format!("it grows {how} ({})", rate(slope))
        }
        (_, Some(slope)) => {
            format!("its growth is {} ({})", undecided(&row.slope, members(row), true), rate(slope))
        }
        (_, None) => format!("whether it grows faster is unknown ({})", why(row.slope.reason)),
    };
    let tentative = if row.support == Support::Tentative { " Tentative: fewer than 5 pods in an arm." } else { "" };
    format!(
        "{name}: bytes allocated per request {}; bytes in use {}; {slope}. {}{tentative}",
        moved(&row.alloc, members(row)),
        moved(&row.live, members(row)),
        meaning(row)
    )
}

/// What is tested together with a row.
pub fn members(row: &HeapRow) -> &'static str {
    if &*row.function == ALL_FUNCTIONS { "cells" } else { "functions" }
}

/// How much more is in use after a time.
fn rate(slope: Interval) -> String {
    let (Interval { value, low, high }, time) = grown(slope);
    format!("x {value:.2} in {time}, {low:.2} to {high:.2}")
}

/// By how much a figure moved.
fn moved(face: &LevelFace, members: &str) -> String {
    let Some(Interval { value, low, high }) = face.change else {
        return format!("unknown ({})", why(face.reason));
    };
    let high = if high.is_finite() { format!("{high:.2}") } else { "any".to_owned() };
    let ends = one_sided(face).map_or_else(|| format!("x {value:.2}, {low:.2} to {high}"), str::to_owned);
    match face.direction {
        LevelDirection::Up => format!("up ({ends})"),
        LevelDirection::Down => format!("down ({ends})"),
        LevelDirection::Flat => format!("unchanged ({ends})"),
        LevelDirection::Unknown => format!("{} ({ends})", undecided(face, members, false)),
    }
}

/// Why a figure is unknown.
pub fn why(reason: Option<LevelReason>) -> &'static str {
    match reason {
        Some(LevelReason::NoAllocations) => "no profiles of allocations",
        Some(LevelReason::NoSnapshots) => "no snapshots of the memory in use",
        Some(LevelReason::NoValues) => "profiles do not say bytes",
        Some(LevelReason::NoRequests) => "requests are not known",
        Some(LevelReason::FewPods) => {
            "at least 2 pods in each arm are needed at the same time, on the same hardware and of the same age"
        }
        Some(LevelReason::NeedsTime) => "at least 3 snapshots over 5 minutes are needed of 2 pods in each arm",
        Some(LevelReason::CountNeeded) => "more samples are needed",
        Some(LevelReason::LoadDiffers) => "pods of one build serve more requests, and load alone may have made it",
        Some(LevelReason::AgeDiffers) => {
            "processes of one build have run longer, and memory grows by itself; start pods of both builds together, or wait until \
             they have run equally long"
        }
        Some(LevelReason::Imprecise | LevelReason::NoClass) | None => "pods differ too much",
    }
}

/// What the figures of a row mean together, in a sentence.
pub fn meaning(row: &HeapRow) -> &'static str {
    match row.class {
        HeapClass::Unknown
            if (row.alloc.direction, row.live.direction) == (LevelDirection::Down, LevelDirection::Up) =>
        {
            "A trade: less is allocated and more is kept; growth would show whether that is a step or a hidden leak."
        }
        HeapClass::HiddenLeak => "A hidden leak: more is kept from hour to hour, and requests do not allocate more.",
        HeapClass::Leak if row.alloc.direction == LevelDirection::Unknown => {
            "A leak: more is kept from hour to hour; whether requests allocate more is not known."
        }
        HeapClass::Leak => "A leak: more is allocated, and more is kept from hour to hour.",
        HeapClass::RetentionStep => "A step: more is kept, and it does not grow.",
        HeapClass::Churn => "Churn: more is allocated, and as much is kept.",
        HeapClass::Win => "A win: less is allocated, and no more is kept.",
        HeapClass::Unchanged => "Unchanged.",
        HeapClass::Unknown => "No class: one of the three is not known, or they fit none.",
    }
}
