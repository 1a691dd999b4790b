//! Instants as dates and hours in UTC, for file paths and JSON.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

use crate::time::Nanos;

/// An instant as RFC 3339 writes it in UTC; with microseconds only where they are not 0, and what is below them cut off.
///
/// ```
/// use fleetdiff_schemas::{tables::calendar::rfc3339, time::Nanos};
/// assert_eq!(rfc3339(Nanos(0)), "1970-01-01T00:00:00Z");
/// assert_eq!(rfc3339(Nanos(1_709_210_096_000_007_999)), "2024-02-29T12:34:56.000007Z");
/// ```
pub fn rfc3339(at: Nanos) -> String {
    let at = timestamp(at);
    let digits = if at.subsec_microsecond() == 0 { 0 } else { 6 };
    DateTimePrinter::new().precision(Some(digits)).timestamp_to_string(&at)
}

/// The day of an instant in UTC: `2024-02-29`.
pub fn date(at: Nanos) -> String {
    timestamp(at).strftime("%Y-%m-%d").to_string()
}

/// The hour of the day of an instant in UTC, in two digits: `07`.
pub fn hour(at: Nanos) -> String {
    timestamp(at).strftime("%H").to_string()
}

/// An instant, to the microsecond below it.
fn timestamp(at: Nanos) -> Timestamp {
    // NB: every `Nanos` lies in the years 1677 to 2262, far within what a timestamp can hold.
    Timestamp::from_microsecond(at.0.div_euclid(1_000)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_before_1970_lie_in_the_past() {
        assert_eq!(rfc3339(Nanos(-1)), "1969-12-31T23:59:59.999999Z");
    }

    /// Expected values from GNU date 9.1: `date -u -d @SECONDS +%FT%T.%6NZ`.
    #[test]
    fn published_ends_of_the_range_equal_gnu_date() {
        assert_eq!(rfc3339(Nanos(i64::MIN)), "1677-09-21T00:12:43.145224Z");
        assert_eq!(rfc3339(Nanos(i64::MAX)), "2262-04-11T23:47:16.854775Z");
    }

    #[test]
    fn a_leap_day_has_hours_like_any_other() {
        let leap = Nanos::from_seconds(1_709_210_096);
        assert_eq!((date(leap).as_str(), hour(leap).as_str()), ("2024-02-29", "12"));
        assert_eq!(hour(Nanos::from_seconds(7 * 3_600)), "07");
    }
}
