//! Waiting in words.

use fleetdiff_schemas::fan_out::listed;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, Interval, WaitingRow};
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, Support, TimeMeasure, TimePer};

use super::{mostly, subject};
use crate::rules::levels::undecided;

/// Which time it is.
pub fn measure(measure: TimeMeasure) -> &'static str {
    match measure {
        TimeMeasure::CpuAndOffCpu => "time on the CPU and off it",
        TimeMeasure::OffCpu => "time off the CPU",
        TimeMeasure::Wall => "wall-clock time",
        TimeMeasure::Mutex => "time that others wait for its locks",
        TimeMeasure::Block => "time blocked",
    }
}

/// What a time is divided by.
pub fn per(per: TimePer) -> &'static str {
    match per {
        TimePer::Request => "per request",
        TimePer::Profile => "per profile",
    }
}

/// What a row says, in a sentence; `mostly_in` are the functions [in which most of it lies](super::mostly_in).
///
/// ```
/// use fleetdiff_pipeline::rules::waiting::words::sentence;
/// use fleetdiff_schemas::{rows::WaitingRow, tables::TableRow};
/// let row = WaitingRow { function: "(all)".into(), ..WaitingRow::blank() };
/// assert!(sentence(&row, &[]).starts_with("all functions together: time off the CPU per request unknown"));
/// assert!(sentence(&row, &["fsync"]).starts_with("all functions together, mostly in fsync: time off the CPU"));
/// ```
pub fn sentence(row: &WaitingRow, mostly_in: &[&str]) -> String {
    let (mut what, measure, per) = (subject(row), measure(row.measure), per(row.per));
    if !mostly_in.is_empty() {
        what = format!("{what}{}{}", mostly(row), listed(mostly_in));
    }
    let tentative = if row.support == Support::Tentative { " (tentative: fewer than 5 pods in an arm)" } else { "" };
    let Some(change) = row.time.change else {
        return format!("{what}: {measure} {per} unknown ({})", why(row.time.reason));
    };
    let how = match row.time.direction {
        LevelDirection::Up => "up".to_owned(),
        LevelDirection::Down => "down".to_owned(),
        LevelDirection::Flat => "unchanged".to_owned(),
        LevelDirection::Unknown => undecided(&row.time, members(row), false),
    };
    let levels = row.time.base.zip(row.time.head);
    let between =
        levels.map_or_else(String::new, |(base, head)| format!("from {} to {}", duration(base), duration(head)));
    let moved = if change.has_both_parts() {
        let Interval { value, low, high } = change;
        let high = if high.is_finite() { format!("{high:.2}") } else { "any".to_owned() };
        format!("x {value:.2} ({low:.2} to {high}), {between}")
    } else {
        between
    };
    format!("{what}: {measure} {per} {how} {moved}{tentative}")
}

/// What is tested together with a row.
pub fn members(row: &WaitingRow) -> &'static str {
    match (&*row.function == ALL_FUNCTIONS, &row.thread) {
        (true, None) => "cells",
        (true, Some(_)) => "threads",
        (false, _) => "functions",
    }
}

/// Why it is unknown.
pub fn why(reason: Option<LevelReason>) -> &'static str {
    match reason {
        Some(LevelReason::NoValues) => "profiles do not say how much time a sample stands for",
        Some(LevelReason::FewPods) => {
            "at least 2 pods in each arm are needed at the same time, on the same hardware and of the same age"
        }
        Some(LevelReason::LoadDiffers) => "pods of one build serve more requests, and load alone may have made it",
        _ => "not enough data",
    }
}

/// A length of time, with three digits.
pub fn duration(nanoseconds: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let (unit, name) = units.into_iter().find(|(unit, _)| nanoseconds >= *unit).unwrap_or((1.0, "ns"));
    let value = nanoseconds / unit;
    let digits = if value >= 100.0 || unit <= 1.0 { 0 } else { usize::from(value < 100.0) + usize::from(value < 10.0) };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::rows::LevelFace;
    use fleetdiff_schemas::tables::TableRow;

    use super::*;

    #[test]
    fn a_ratio_is_said_where_both_builds_wait() {
        let said = |base, head, value| {
            let change = Some(Interval { value, low: value, high: value });
            let unknown = LevelFace::unknown(LevelReason::Imprecise);
            let time =
                LevelFace { base: Some(base), head: Some(head), change, direction: LevelDirection::Up, ..unknown };
            sentence(&WaitingRow { function: "fsync".into(), time, support: Support::Firm, ..WaitingRow::blank() }, &[])
        };
        let what = "fsync: time off the CPU per request up";
        assert_eq!(said(1000.0, 2000.0, 2.0), format!("{what} x 2.00 (2.00 to 2.00), from 1.00 us to 2.00 us"));
        assert_eq!(said(0.0, 2000.0, f64::INFINITY), format!("{what} from 0 ns to 2.00 us"));
    }

    #[test]
    fn durations_have_three_digits() {
        for (nanoseconds, expected) in
            [(0.0, "0 ns"), (17.4, "17 ns"), (1500.0, "1.50 us"), (23_456_000.0, "23.5 ms"), (1e11, "100 s")]
        {
            assert_eq!(duration(nanoseconds), expected);
        }
    }
}
