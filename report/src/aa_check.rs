//! The A/A check: at every report the baseline's pods are split in two and compared, and what is significant there is a false positive.

use std::fmt;

use fleetdiff_pipeline::rules::advice::plural;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::rows::ComparisonRow;
use fleetdiff_statistics::intervals::wilson;

/// Tests of one half of the baseline against the other, and how many of them were significant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AaCheckRate {
    /// Reports that had such tests.
    pub reports: u64,
    /// Tests, of all kinds of count.
    pub tests: u64,
    /// Significant ones, each a false positive.
    pub flags: u64,
}

impl AaCheckRate {
    /// Adds the rows of one evaluation: those over all cells hold the sums of their cells.
    pub fn take(&mut self, rows: &[ComparisonRow]) {
        let over_all = rows.iter().filter(|row| row.cell.is_over_all());
        let checked: Vec<(i64, i64)> =
            over_all.filter_map(|row| Some((row.aa_check_tests?, row.aa_check_flags?))).collect();
        self.reports += u64::from(!checked.is_empty());
        self.tests += checked.iter().filter_map(|(tests, _)| u64::try_from(*tests).ok()).sum::<u64>();
        self.flags += checked.iter().filter_map(|(_, flags)| u64::try_from(*flags).ok()).sum::<u64>();
    }

    /// The rate with its 95 % interval (Wilson), each 0..1; `None` before the first test. Windows of reports overlap,
    /// so the interval assumes more independence than there is.
    pub fn rate(&self) -> Option<(f64, f64, f64)> {
        let interval = wilson(self.flags, self.tests, 0.95);
        (self.tests > 0).then_some((ratio(self.flags, self.tests), interval.low, interval.high))
    }
}

impl fmt::Display for AaCheckRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((rate, low, high)) = self.rate() else {
            return f.write_str("A/A check (baseline split in two): not run, because the baseline had too few pods.");
        };
        write!(
            f,
            "A/A check (baseline split in two): {} of {} tests in {} {} were significant, {:.3} % (95 % interval {:.3} to {:.3} %).",
            self.flags,
            self.tests,
            self.reports,
            plural(usize::try_from(self.reports).unwrap_or(usize::MAX), "report"),
            100.0 * rate,
            100.0 * low,
            100.0 * high,
        )
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    float(part) / float(whole)
}
