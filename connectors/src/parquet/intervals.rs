//! Which file a row belongs to, and when a file has all its rows.

use std::collections::BTreeMap;
use std::time::Duration;

use fleetdiff_schemas::rows::{Archived, Tables};
use fleetdiff_schemas::tables::{TableRow, calendar};
use fleetdiff_schemas::time::Nanos;

use crate::output::OutputError;

/// The length of time that one file spans; divides an hour, so that a file lies in one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushInterval {
    seconds: i64,
}

impl FlushInterval {
    /// An interval of this length.
    ///
    /// # Errors
    /// [`OutputError::FlushInterval`]: it is not a whole number of seconds that divides an hour.
    pub fn new(length: Duration) -> Result<Self, OutputError> {
        let seconds = i64::try_from(length.as_secs()).unwrap_or(0);
        let divides = seconds > 0 && 3_600 % seconds == 0 && length.subsec_nanos() == 0;
        if divides { Ok(Self { seconds }) } else { Err(OutputError::FlushInterval { seconds: length.as_secs_f64() }) }
    }

    /// Start of the interval that holds an instant, in Unix seconds.
    pub(super) fn start_of(self, at: Nanos) -> i64 {
        let second = at.0.div_euclid(1_000_000_000);
        second - second.rem_euclid(self.seconds)
    }

    /// The end of the interval whose file has this path.
    pub(super) fn end_of(self, path: &str) -> Option<Nanos> {
        let start = path.rsplit('/').next()?.strip_suffix(".parquet")?.parse::<i64>().ok()?;
        Some(Nanos::from_seconds(start.saturating_add(self.seconds)))
    }

    /// Start of the first interval in which any table has a row.
    pub(super) fn first_of(self, tables: &[Tables]) -> Option<i64> {
        tables.iter().filter_map(Tables::filed_from).min().map(|at| self.start_of(at))
    }

    /// Rows by the start of their interval.
    pub(super) fn split<'r, R: TableRow>(self, rows: impl Iterator<Item = &'r R>) -> BTreeMap<i64, Vec<&'r R>> {
        let mut by_interval: BTreeMap<i64, Vec<&R>> = BTreeMap::new();
        for row in rows {
            by_interval.entry(self.start_of(row.filed_at())).or_default().push(row);
        }
        by_interval
    }
}

/// The path of the file that holds the rows of the interval that starts at `start` Unix seconds.
pub(super) fn path_of<R: TableRow>(start: i64) -> String {
    let at = Nanos::from_seconds(start);
    format!("{}/date={}/hour={}/{start}.parquet", R::TABLE, calendar::date(at), calendar::hour(at))
}

/// Rows that wait until their interval is over, as they came: a report may have hundreds of thousands, which are not copied.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingRows {
    interval: FlushInterval,
    pushed: Vec<Tables>,
}

impl PendingRows {
    /// No rows.
    pub fn new(interval: FlushInterval) -> Self {
        Self { interval, pushed: Vec::new() }
    }

    /// Adds rows, in any order; keeps those of tables that are written.
    pub fn push(&mut self, mut rows: Tables) {
        rows.verdicts = Vec::new();
        rows.scaling_findings = Vec::new();
        rows.heap_findings = Vec::new();
        rows.fan_out = Vec::new();
        rows.archived = Archived::default();
        self.pushed.push(rows);
    }

    /// Gives the rows of intervals that are over, given that every row of hops that end at or before `closed_through`
    /// was pushed. A row at the very end of an interval belongs to the next one. Rejected rows without a hop stay until
    /// [`Self::take_all`], since it is unknown when the last of them comes.
    pub fn take_complete(&mut self, closed_through: Nanos) -> Vec<Tables> {
        let open_from = self.interval.start_of(closed_through);
        let is_over = |at: Nanos| self.interval.start_of(at) < open_from;
        let complete = self.pushed.iter_mut().map(|rows| complete_of(rows, is_over));
        let complete = complete.filter(|rows| rows.filed_from().is_some()).collect();
        self.pushed.retain(|rows| rows.filed_from().is_some());
        complete
    }

    /// The rows that wait.
    pub fn waiting(&self) -> &[Tables] {
        &self.pushed
    }

    /// Gives every row that is left, at the end of a run.
    pub fn take_all(&mut self) -> Vec<Tables> {
        std::mem::take(&mut self.pushed)
    }
}

/// Takes the rows that are over, of the tables that are written.
fn complete_of(rows: &mut Tables, is_over: impl Fn(Nanos) -> bool) -> Tables {
    Tables {
        cells: extract(&mut rows.cells, |row| is_over(row.filed_at())),
        evidence: extract(&mut rows.evidence, |row| is_over(row.filed_at())),
        flags: extract(&mut rows.flags, |row| is_over(row.filed_at())),
        comparisons: extract(&mut rows.comparisons, |row| is_over(row.filed_at())),
        incidents: extract(&mut rows.incidents, |row| is_over(row.filed_at())),
        scaling: extract(&mut rows.scaling, |row| is_over(row.filed_at())),
        rings: extract(&mut rows.rings, |row| is_over(row.filed_at())),
        heap: extract(&mut rows.heap, |row| is_over(row.filed_at())),
        waiting: extract(&mut rows.waiting, |row| is_over(row.filed_at())),
        stacks: extract(&mut rows.stacks, |row| is_over(row.filed_at())),
        load_curves: extract(&mut rows.load_curves, |row| is_over(row.filed_at())),
        ledger: extract(&mut rows.ledger, |row| is_over(row.filed_at())),
        rejected: extract(&mut rows.rejected, |row| row.hop_at.is_some_and(&is_over)),
        clocks: extract(&mut rows.clocks, |row| is_over(row.filed_at())),
        limits: extract(&mut rows.limits, |row| is_over(row.filed_at())),
        ..Tables::default()
    }
}

/// Takes the wanted rows; most often all, or none.
fn extract<R>(rows: &mut Vec<R>, is_wanted: impl Fn(&R) -> bool) -> Vec<R> {
    if rows.iter().all(&is_wanted) {
        return std::mem::take(rows);
    }
    rows.extract_if(.., |row| is_wanted(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetdiff_schemas::rows::{LedgerRow, RejectedRow};

    fn ledger_at(seconds: i64) -> LedgerRow {
        LedgerRow { hop_at: Nanos::from_seconds(seconds), ..LedgerRow::default() }
    }

    #[test]
    fn a_path_names_the_hour_of_its_rows() {
        assert_eq!(path_of::<LedgerRow>(1_709_208_600), "ledger/date=2024-02-29/hour=12/1709208600.parquet");
        let interval = FlushInterval::new(Duration::from_secs(600)).unwrap();
        assert_eq!(interval.start_of(Nanos::from_seconds(1_709_209_199)), 1_709_208_600);
        assert_eq!(interval.start_of(Nanos::from_seconds(1_709_209_200)), 1_709_209_200);
        assert_eq!(interval.start_of(Nanos(-1)), -600);
    }

    #[test]
    fn only_lengths_that_divide_an_hour_are_taken() {
        for seconds in [1, 10, 60, 600, 1_800, 3_600] {
            assert!(FlushInterval::new(Duration::from_secs(seconds)).is_ok(), "{seconds}");
        }
        for millis in [0, 500, 1_500, 7_000, 420_000, 7_200_000] {
            let refused = FlushInterval::new(Duration::from_millis(millis)).unwrap_err();
            assert_eq!(refused.code(), "invalid_flush_interval", "{millis} ms");
        }
    }

    /// The law: however often rows are asked for, each comes once, and those of one interval come together.
    #[test]
    fn rows_of_an_interval_come_together() {
        for step in 1..=13 {
            let interval = FlushInterval::new(Duration::from_secs(60)).unwrap();
            let mut pending = PendingRows::new(interval);
            let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
            for hop in 0..60 {
                pending.push(Tables { ledger: vec![ledger_at(hop * 10)], ..Tables::default() });
                if hop % step == 0 {
                    let taken = pending.take_complete(Nanos::from_seconds((hop + 1) * 10));
                    for (start, rows) in interval.split(taken.iter().flat_map(|rows| &rows.ledger)) {
                        assert_eq!((rows.len(), seen.insert(start, rows.len())), (6, None), "step {step}");
                    }
                }
            }
            let rest: usize = pending.take_all().iter().map(|rows| rows.ledger.len()).sum();
            assert_eq!(seen.len() * 6 + rest, 60, "step {step}");
            assert!(rest < 60, "step {step}");
        }
    }

    #[test]
    fn rows_without_a_hop_wait_for_the_end() {
        let mut pending = PendingRows::new(FlushInterval::new(Duration::from_secs(60)).unwrap());
        let undated = RejectedRow { hop_at: None, ..RejectedRow::blank() };
        pending.push(Tables { rejected: vec![undated.clone()], ..Tables::default() });
        assert_eq!(pending.take_complete(Nanos::from_seconds(600)), []);
        assert_eq!(pending.take_all(), [Tables { rejected: vec![undated], ..Tables::default() }]);
    }
}
