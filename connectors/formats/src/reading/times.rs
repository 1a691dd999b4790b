//! Stretches of a recording, as `perf diff --time` takes them.

use std::str::FromStr;

use fleetdiff_schemas::time::Nanos;

use crate::seconds::nanoseconds;

/// Which stretches of a recording are read; one at least. Both ends of each are part of it.
///
/// | text | what it is |
/// |---|---|
/// | `12.5,13` | from one time to another, in seconds of the file's own clock; either may be left out |
/// | `10%-20%` | parts of the time between the file's first and last sample |
/// | `10%/2` | the second tenth of it |
///
/// Several are separated by spaces, parts by commas too.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(Vec<Slice>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Slice {
    Between {
        start: Option<i64>,
        stop: Option<i64>,
    },
    /// Parts of 1.
    Part {
        from: f64,
        to: f64,
    },
}

impl Times {
    /// First and last nanosecond of each stretch, in a recording with this first and last sample.
    pub(super) fn bounds(&self, first: Nanos, last: Nanos) -> Vec<[i64; 2]> {
        let bounds = |slice: &Slice| match *slice {
            Slice::Between { start, stop } => [start.unwrap_or(i64::MIN), stop.unwrap_or(i64::MAX)],
            Slice::Part { from, to } => {
                let at = |part: f64| first.0.saturating_add(part_of(last.since(first), part));
                let (start, stop) = (at(from), at(to));
                // As perf has it: a stretch ends before the next one begins, the last one with the last sample.
                let open = stop > start && stop != last.0;
                [start, if open { stop - 1 } else { stop }]
            }
        };
        self.0.iter().map(bounds).collect()
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "within the length, to its 53rd bit"
)]
fn part_of(length: Nanos, part: f64) -> i64 {
    libm::round(length.0 as f64 * part) as i64
}

impl FromStr for Times {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut slices = Vec::new();
        for word in text.split_whitespace() {
            if word.contains('%') {
                let parts = word.split(',').map(|word| part(word).ok_or_else(|| wrong(word)));
                slices.extend(parts.collect::<Result<Vec<_>, _>>()?);
            } else {
                slices.push(between(word).ok_or_else(|| wrong(word))?);
            }
        }
        if slices.is_empty() { Err(wrong(text)) } else { Ok(Self(slices)) }
    }
}

fn wrong(word: &str) -> String {
    format!(
        "{word:?} is no stretch of time, expected START,STOP in seconds (either may be left out), 10%-20%, or 10%/2 for the second tenth"
    )
}

/// `a%-b%` or `a%/n`.
fn part(word: &str) -> Option<Slice> {
    let percent = |text: &str| {
        let number = text.strip_suffix('%').filter(|text| text.starts_with(|first: char| first.is_ascii_digit()))?;
        number.parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number)).map(|number| number / 100.0)
    };
    let slice = match word.split_once('/') {
        Some((width, place)) => {
            let (width, place) = (percent(width)?, f64::from(place.parse::<u32>().ok().filter(|place| *place > 0)?));
            Slice::Part { from: width * (place - 1.0), to: width * place }
        }
        None => {
            let (from, to) = word.split_once('-')?;
            Slice::Part { from: percent(from)?, to: percent(to)? }
        }
    };
    // A third thrice is a little more than 1.
    let within = |from: f64, to: f64| from < to && to <= 1.0 + 1e-9;
    matches!(slice, Slice::Part { from, to } if within(from, to)).then_some(slice)
}

/// `start,stop`.
fn between(word: &str) -> Option<Slice> {
    let (start, stop) = word.split_once(',')?;
    let end = |text: &str| if text.is_empty() { Some(None) } else { nanoseconds(text).map(Some) };
    let (start, stop) = (end(start)?, end(stop)?);
    let forward = start.zip(stop).is_none_or(|(start, stop)| start <= stop);
    forward.then_some(Slice::Between { start, stop })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(text: &str) -> Vec<[i64; 2]> {
        text.parse::<Times>().unwrap().bounds(Nanos(1_000), Nanos(2_000))
    }

    #[test]
    fn stretches_of_seconds() {
        assert_eq!(bounds("1.5,2"), [[1_500_000_000, 2_000_000_000]]);
        assert_eq!(bounds("73837.372335,"), [[73_837_372_335_000, i64::MAX]]);
        assert_eq!(bounds(",0.000000001 1,1"), [[i64::MIN, 1], [1_000_000_000, 1_000_000_000]]);
        assert_eq!(bounds(","), [[i64::MIN, i64::MAX]]);
    }

    /// As `set_percent_time` of perf's `util/time-utils.c` has it: each ends a nanosecond before the next, the last with the last sample.
    #[test]
    fn published_parts_of_the_time() {
        assert_eq!(bounds("10%/1"), [[1_000, 1_099]]);
        assert_eq!(bounds("10%/2,10%/10"), [[1_100, 1_199], [1_900, 2_000]]);
        assert_eq!(bounds("0%-10%,30%-40%"), [[1_000, 1_099], [1_300, 1_399]]);
        assert_eq!(bounds("0%-10% 90%-100%"), [[1_000, 1_099], [1_900, 2_000]]);
    }

    #[test]
    fn what_is_no_stretch_is_said() {
        for text in [
            "",
            " ",
            "x",
            "12",
            "2,1",
            "1,2,3",
            "-1,2",
            "1.0000000001,",
            "10%",
            "20%/6",
            "10%/0",
            "10%-5%",
            "0%-101%",
            "10%-x%",
            "1%/x",
            "-5%-5%",
            "inf%-1%",
        ] {
            assert!(text.parse::<Times>().unwrap_err().contains("is no stretch of time"), "{text}");
        }
    }
}
