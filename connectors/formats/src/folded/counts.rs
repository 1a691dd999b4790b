//! What the counts of a file show that they are.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::ticks::Seen;

/// Whether every line has two counts.
///
/// NB: a file of nothing but lines like `worker 7 12` cannot be told from that, and is refused.
#[derive(Default)]
pub(super) struct Columns {
    lines: u64,
    two: u64,
    example: Option<String>,
}

impl Columns {
    /// Takes what stands before the count of a line.
    pub(super) fn take(&mut self, stack: &str) {
        self.lines += 1;
        let before = stack.trim_end_matches(|character: char| character.is_ascii_digit());
        if before.len() < stack.len() && before.ends_with([' ', '\t']) {
            self.two += 1;
            self.example.get_or_insert_with(|| stack.to_owned());
        }
    }

    /// Refuses a file in which all are so.
    pub(super) fn check(self) -> Result<(), Rejection> {
        let Some(line) = self.are_two() else { return Ok(()) };
        let detail = format!(
            "each line ends in two counts, as in {line:?} and a count: the difference of two profiles, expected one"
        );
        Err(Rejection::new(Reason::UnsupportedType, detail))
    }

    /// The first line, if all are so.
    pub(super) fn are_two(self) -> Option<String> {
        self.example.filter(|_| self.two == self.lines)
    }
}

/// From so many on, what every count is a multiple of is no accident.
const PERIOD: u64 = 1_000;

/// What all counts are multiples of.
#[derive(Default)]
pub(super) struct Counts {
    /// The labels say that they are counts, whatever they look like.
    meant: bool,
    seen: Seen,
}

impl Counts {
    /// None yet. `meant`: the labels say that they are counts, whatever they look like.
    pub(super) fn new(meant: bool) -> Self {
        Self { meant, ..Self::default() }
    }

    pub(super) fn take(&mut self, count: u64) {
        self.seen.add(count);
    }

    /// The period that all counts are multiples of, if that is no accident.
    ///
    /// NB: one or two counts may well be multiples of a thousand; three or more are so once in millions.
    pub(super) fn period(&self) -> Option<u64> {
        Some(self.seen.multiples_of()).filter(|divisor| !self.meant && self.seen.values() >= 3 && *divisor >= PERIOD)
    }

    /// Whether it can be nothing but the period: enough counts show it, and not all are one number.
    pub(super) fn show_it(&self) -> bool {
        self.seen.divisor().is_some() && !self.seen.are_equal()
    }
}

/// Why counts that are multiples of a period are refused.
pub(super) fn added_up_periods(period: u64) -> Rejection {
    let detail = format!(
        "every count is a multiple of {period}: periods that were added up, not samples; fold without periods (perf script \
         without the field period), or label the unit count"
    );
    Rejection::new(Reason::UnitMismatch, detail)
}
