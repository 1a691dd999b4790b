//! Instants as dates and hours in UTC, for file paths and JSON.

use crate::time::Nanos;

/// An instant as the proleptic Gregorian calendar shows it, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Year; 1677 to 2262 for any [`Nanos`].
    pub year: i64,
    /// Month, 1..=12.
    pub month: i64,
    /// Day of the month, 1..=31.
    pub day: i64,
    /// Hour, 0..=23.
    pub hour: i64,
    /// Minute, 0..=59.
    pub minute: i64,
    /// Second, 0..=59.
    pub second: i64,
    /// Microsecond, 0..=999999; what is below is cut off.
    pub microsecond: i64,
}

const SECONDS_A_DAY: i64 = 86_400;

impl Calendar {
    /// The calendar's view of an instant.
    ///
    /// ```
    /// use fleetdiff_schemas::{tables::calendar::Calendar, time::Nanos};
    /// let leap = Calendar::of(Nanos::from_seconds(1_709_210_096));
    /// assert_eq!((leap.date().as_str(), leap.hour), ("2024-02-29", 12));
    /// ```
    pub fn of(at: Nanos) -> Self {
        let seconds = at.0.div_euclid(1_000_000_000);
        let within_day = seconds.rem_euclid(SECONDS_A_DAY);
        let (year, month, day) = civil(seconds.div_euclid(SECONDS_A_DAY));
        Self {
            year,
            month,
            day,
            hour: within_day / 3_600,
            minute: within_day / 60 % 60,
            second: within_day % 60,
            microsecond: at.0.rem_euclid(1_000_000_000) / 1_000,
        }
    }

    /// `2024-02-29`.
    pub fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// An instant as RFC 3339 writes it in UTC; with microseconds only where they are not 0.
///
/// ```
/// use fleetdiff_schemas::{tables::calendar::rfc3339, time::Nanos};
/// assert_eq!(rfc3339(Nanos(0)), "1970-01-01T00:00:00Z");
/// assert_eq!(rfc3339(Nanos(1_709_210_096_000_007_999)), "2024-02-29T12:34:56.000007Z");
/// ```
pub fn rfc3339(at: Nanos) -> String {
    let calendar = Calendar::of(at);
    let Calendar { hour, minute, second, microsecond, .. } = calendar;
    let seconds = format!("{}T{hour:02}:{minute:02}:{second:02}", calendar.date());
    if microsecond == 0 { format!("{seconds}Z") } else { format!("{seconds}.{microsecond:06}Z") }
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Source: Howard Hinnant, `chrono`-Compatible Low-Level Date Algorithms, `civil_from_days`: years begin in March, so
/// that the leap day is the last of a year, and 400 years are 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let era = from_march.div_euclid(146_097);
    let day_of_era = from_march.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law: each day is the day after the one before it, as counting days by month lengths has it.
    #[test]
    fn days_follow_each_other_for_six_centuries() {
        let (mut year, mut month, mut day) = civil(-106_752);
        assert_eq!((year, month, day), (1677, 9, 21));
        for days in -106_751..=106_751 {
            day += 1;
            if day > days_in(year, month) {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
            assert_eq!(civil(days), (year, month, day), "{days} days from 1970");
        }
        assert_eq!((year, month, day), (2262, 4, 11));
    }

    fn days_in(year: i64, month: i64) -> i64 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        match month {
            2 => 28 + i64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn instants_before_1970_lie_in_the_past() {
        assert_eq!(rfc3339(Nanos(-1)), "1969-12-31T23:59:59.999999Z");
    }
}
