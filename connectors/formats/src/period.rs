//! How long it is from one sample to the next, as somebody declares it.

use std::fmt;
use std::str::FromStr;

/// The shortest that a profiler's clock can be: 100,000 samples a second. What is shorter is how finely a clock is read.
pub(crate) const SHORTEST: u64 = 10_000;

/// How long it is from one sample of a profiler to the next: at least 10 microseconds.
///
/// ```
/// use fleetdiff_formats::Period;
/// let period: Period = "10ms".parse().unwrap();
/// assert_eq!((period.nanoseconds(), period.to_string()), (10_000_000, "10 ms".to_owned()));
/// assert!("1ns".parse::<Period>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u64);

impl Period {
    /// A period of so many nanoseconds; nothing if no profiler looks that often.
    pub fn of_nanoseconds(nanoseconds: u64) -> Option<Self> {
        (nanoseconds >= SHORTEST).then_some(Self(nanoseconds))
    }

    /// The same in nanoseconds, at least 10,000.
    pub fn nanoseconds(self) -> u64 {
        self.0
    }
}

impl FromStr for Period {
    type Err = String;

    /// A decimal number with `ns`, `us`, `ms` or `s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let unit = text.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
        let number = text.strip_suffix(unit).unwrap_or_default();
        let digits = match unit {
            "ns" => Some(0),
            "us" | "µs" => Some(3),
            "ms" => Some(6),
            "s" => Some(9),
            _ => None,
        };
        let nanoseconds = digits.and_then(|digits| scaled(number, digits)).ok_or_else(|| {
            format!("{text:?} is no period, expected a number with ns, us, ms or s, as in \"10ms\" or \"52.63ms\"")
        })?;
        Self::of_nanoseconds(nanoseconds)
            .ok_or_else(|| format!("a period of {text:?}, expected at least 10us: no profiler looks more often"))
    }
}

/// A decimal number times so many powers of ten, if that is whole.
fn scaled(number: &str, digits: usize) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || fraction.len() > digits {
        return None;
    }
    format!("{whole}{fraction:0<digits$}").parse().ok()
}

impl fmt::Display for Period {
    /// In the largest unit in which it has at most three digits behind the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&length(self.0))
    }
}

/// A length of time in words: in the largest unit in which it has at most three digits behind the point.
pub(crate) fn length(nanoseconds: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = UNITS.iter().find(|(unit, _)| nanoseconds >= *unit && nanoseconds.is_multiple_of(unit / 1_000));
    let Some((unit, name)) = unit else { return format!("{nanoseconds} ns") };
    let (whole, thousandths) = (nanoseconds / unit, nanoseconds % unit / (unit / 1_000));
    let fraction = format!(".{thousandths:03}");
    format!("{whole}{} {name}", fraction.trim_end_matches(['0', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_and_written() {
        for (text, nanoseconds, written) in [
            ("10ms", 10_000_000, "10 ms"),
            ("52.631578ms", 52_631_578, "52631.578 us"),
            ("10101010ns", 10_101_010, "10101.01 us"),
            ("10us", 10_000, "10 us"),
            ("12.5µs", 12_500, "12.5 us"),
            ("1s", 1_000_000_000, "1 s"),
            ("0.10s", 100_000_000, "100 ms"),
            ("1.05s", 1_050_000_000, "1.05 s"),
        ] {
            let period: Period = text.parse().unwrap();
            assert_eq!((period.nanoseconds(), period.to_string()), (nanoseconds, written.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_period_is_refused() {
        for text in
            ["", "10", "ms", ".5ms", "10 ms", "-1ms", "1.5ns", "1.0000000001s", "10min", "99999999999999s", "1.2.3s"]
        {
            assert!(text.parse::<Period>().unwrap_err().contains("is no period"), "{text}");
        }
        for text in ["0ms", "1ns", "9999ns", "9.999us"] {
            assert!(text.parse::<Period>().unwrap_err().contains("at least 10us"), "{text}");
        }
    }
}
