//! Instants as senders write them: RFC 3339 text or a whole number of nanoseconds since the Unix epoch.

use std::borrow::Cow;

use fleetdiff_schemas::time::Nanos;
use jiff::Timestamp;

/// Reads an instant; `None` if it is neither form or lies outside of the years 1678 to 2261. A leap second (`:60`) is read as the
/// second before it.
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

fn rfc3339(text: &str) -> Option<Nanos> {
    let at: Timestamp = to_nine_digits(text).parse().ok()?;
    i64::try_from(at.as_nanosecond()).ok().map(Nanos)
}

/// The text without what its fraction of a second has behind the ninth digit.
fn to_nine_digits(text: &str) -> Cow<'_, str> {
    let Some((seconds, rest)) = text.split_once('.') else { return Cow::Borrowed(text) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match (rest.get(..9), rest.get(digits..)) {
        (Some(fraction), Some(zone)) if digits > 9 => format!("{seconds}.{fraction}{zone}").into(),
        _ => Cow::Borrowed(text),
    }
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
            ("2025-06-30T12:34:56.7890000019+02:00", 1_751_279_696_789_000_001),
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
            "0000-01-01T00:00:00.0000000000Z",
            "1.5",
            "é-01-01T00:00:00Z",
            "2025-01-01T00:00:00+é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
