//! Instants as senders write them: RFC 3339 text or a whole number of nanoseconds since the Unix epoch.

use fleetdiff_schemas::time::Nanos;

/// Reads an instant; `None` if it is neither form or lies outside of the years 1678 to 2261.
///
/// ```
/// use fleetdiff_formats::identity::instant;
/// use fleetdiff_schemas::time::Nanos;
/// assert_eq!(instant::parse("1970-01-02T00:00:00.5Z"), Some(Nanos(86_400_500_000_000)));
/// assert_eq!(instant::parse("86400500000000"), Some(Nanos(86_400_500_000_000)));
/// assert_eq!(instant::parse("yesterday"), None);
/// ```
pub fn parse(text: &str) -> Option<Nanos> {
    let text = text.trim();
    text.parse().map(Nanos).ok().or_else(|| rfc3339(text))
}

/// `YYYY-MM-DDThh:mm:ss[.fraction](Z|+hh:mm|-hh:mm)`; digits of the fraction beyond the ninth are dropped.
fn rfc3339(text: &str) -> Option<Nanos> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));

    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(clock, ':', [2, 2, 2])?;
    let in_range = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    let nanos = fraction.map_or(Some(0), nanos_of_fraction)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}

/// Unsigned numbers of the given widths.
fn fields(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, width) in numbers.iter_mut().zip(widths) {
        *number = digits(parts.next()?, width)?;
    }
    parts.next().is_none().then_some(numbers)
}

fn digits(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = zone.strip_prefix('+').map(|rest| (1, rest)).or_else(|| Some((-1, zone.strip_prefix('-')?)))?;
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn nanos_of_fraction(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    nine.parse().ok()
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the proleptic Gregorian calendar since 1970-01-01, with years counted from March so that a leap day is
/// the last of its year.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from GNU date 9.1: `date -u -d TEXT "+%s %N"`, seconds times 1e9 plus nanoseconds.
    #[test]
    fn published_rfc3339_equals_gnu_date() {
        for (text, nanos) in [
            ("2025-01-01T00:00:00Z", 1_735_689_600_000_000_000),
            ("2024-02-29T23:59:59.999999999Z", 1_709_251_199_999_999_999),
            ("2025-06-30T12:34:56.789+02:00", 1_751_279_696_789_000_000),
            ("2025-06-30T00:15:00-03:30", 1_751_255_100_000_000_000),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
            ("2000-03-01T00:00:00Z", 951_868_800_000_000_000),
            ("2100-03-01 00:00:00z", 4_107_542_400_000_000_000),
        ] {
            assert_eq!(parse(text), Some(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for text in [
            "",
            "now",
            "2025-01-01",
            "2025-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00:00.Z",
            "25-01-01T00:00:00Z",
            "2025-01-01T00:00:00+2:00",
            "9999-01-01T00:00:00Z",
            "1.5",
            "é-01-01T00:00:00Z",
            "2025-01-01T00:00:00+é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
