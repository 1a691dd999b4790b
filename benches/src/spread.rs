//! A measurement is always given with its spread.

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Median and quartiles of repeats, in the unit of the repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// A quarter of the repeats lies below.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// A quarter of the repeats lies above.
    pub high: f64,
}

impl Spread {
    /// The quartiles of these repeats; NaN if there are none.
    #[must_use]
    pub fn of(mut repeats: Vec<f64>) -> Self {
        repeats.sort_by(f64::total_cmp);
        let at = |quarter: usize| {
            repeats.get((repeats.len().saturating_sub(1) * quarter + 2) / 4).copied().unwrap_or(f64::NAN)
        };
        Self { low: at(1), median: at(2), high: at(3) }
    }

    /// Applies `f` to each; `f` may reverse the order.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (f(self.low), f(self.high));
        Self { low: a.min(b), median: f(self.median), high: a.max(b) }
    }
}

/// How many seconds some work takes.
pub fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let made = black_box(work());
    let spent = start.elapsed().as_secs_f64();
    // The output is dropped after the clock has stopped.
    drop(made);
    spent
}

/// Milliseconds since a moment.
#[must_use]
pub fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median >= 100.0 { 0 } else { 1 };
        f.pad(&format!("{:.digits$} [{:.digits$}..{:.digits$}]", self.median, self.low, self.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_five() {
        let spread = Spread::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(spread.map(|v| 12.0 / v), Spread { low: 3.0, median: 4.0, high: 6.0 });
    }
}
