//! Whether two results are the same: integers, keys and verdicts exactly, floats closely.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::tables::{TableRow, Value, key_of};
use fleetdiff_schemas::verdict::HeapClass;

/// Largest relative difference of two floats, and largest absolute one near 0.
const CLOSE: f64 = 1e-8;
/// Below this ln p, [`CLOSE_FAR_OUT`] holds.
const FAR_OUT: f64 = -450.0;
/// Largest relative difference of two ln p far out in the tail.
const CLOSE_FAR_OUT: f64 = 1e-6;
/// Largest absolute difference of ln p, and of what follows from p, where p is near 1: there p falls with the root of the
/// statistic, so that its rounding shows.
const CLOSE_NEAR_ONE: f64 = 1e-6;
/// Above this ln p, [`CLOSE_NEAR_ONE`] holds.
const NEAR_ONE: f64 = -1.0;
/// How many differences are listed.
const REPORTED: usize = 12;
/// Columns of prose, which the oracle does not write.
const PROSE: [(&str, &str); 4] =
    [("comparisons", "sentence"), ("comparisons", "action"), ("rejected", "detail"), ("scaling", "needed")];

/// How much was compared and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Rows of `cells`.
    pub cells: usize,
    /// Rows of `cells` that were tested.
    pub tested: usize,
    /// Of these: significant.
    pub selected: usize,
    /// Rows of `evidence`.
    pub evidence: usize,
    /// Rows of `flags`.
    pub flags: usize,
    /// Rows of `comparisons`.
    pub comparisons: usize,
    /// Rows of `scaling`.
    pub scaling: usize,
    /// Of these: with a test.
    pub scaling_tested: usize,
    /// Rows of `waiting`.
    pub waiting: usize,
    /// Rows of `stacks`.
    pub stacks: usize,
    /// Rows of `load_curves`.
    pub load_curves: usize,
    /// Rows of `heap`.
    pub heap: usize,
    /// Of these: with a class.
    pub heap_classes: usize,
    /// Rows of `ledger`.
    pub ledger: usize,
    /// Rows of `rejected`.
    pub rejected: usize,
    /// Rows of `clocks`.
    pub clocks: usize,
    /// Rows of `limits`.
    pub limits: usize,
}

/// Compares `got` with `expected`, row by row and column by column, in any order of the rows.
///
/// Every column is compared except prose: sentences, advice, and details of rejections. Floats agree to 1e-8 relative, 1e-8
/// absolute near 0, ln p below -450 to 1e-6 relative, ln p above -1 to 1e-6; infinities must be equal.
///
/// # Errors
/// The number of differences and the first of them in words: table, key, column, both values.
pub fn compare(expected: &Tables, got: &Tables) -> Result<Agreement, String> {
    let mut differences = Differences::default();
    differences.table(&expected.cells, &got.cells);
    differences.table(&expected.evidence, &got.evidence);
    differences.table(&expected.flags, &got.flags);
    differences.table(&expected.comparisons, &got.comparisons);
    differences.table(&expected.scaling, &got.scaling);
    differences.table(&expected.rings, &got.rings);
    differences.table(&expected.heap, &got.heap);
    differences.table(&expected.waiting, &got.waiting);
    differences.table(&expected.stacks, &got.stacks);
    differences.table(&expected.load_curves, &got.load_curves);
    differences.table(&expected.ledger, &got.ledger);
    differences.table(&expected.rejected, &got.rejected);
    differences.table(&expected.clocks, &got.clocks);
    differences.table(&expected.limits, &got.limits);
    if differences.count > 0 {
        return Err(format!("{} differences, the first:\n{}", differences.count, differences.reported.join("\n")));
    }
    Ok(Agreement {
        cells: expected.cells.len(),
        tested: expected.cells.iter().filter(|row| row.ln_p.is_some()).count(),
        selected: expected.cells.iter().filter(|row| row.verdict.is_significant()).count(),
        evidence: expected.evidence.len(),
        flags: expected.flags.len(),
        comparisons: expected.comparisons.len(),
        scaling: expected.scaling.len(),
        scaling_tested: expected.scaling.iter().filter(|row| row.ln_p.is_some()).count(),
        waiting: expected.waiting.len(),
        stacks: expected.stacks.len(),
        load_curves: expected.load_curves.len(),
        heap: expected.heap.len(),
        heap_classes: expected.heap.iter().filter(|row| row.class != HeapClass::Unknown).count(),
        ledger: expected.ledger.len(),
        rejected: expected.rejected.len(),
        clocks: expected.clocks.len(),
        limits: expected.limits.len(),
    })
}

/// The differences so far.
#[derive(Default)]
struct Differences {
    count: usize,
    reported: Vec<String>,
}

impl Differences {
    fn add(&mut self, difference: String) {
        self.count += 1;
        if self.reported.len() < REPORTED {
            self.reported.push(difference);
        }
    }

    fn table<R: TableRow + Debug>(&mut self, expected: &[R], got: &[R]) {
        let mut by_key: BTreeMap<String, (Vec<&R>, Vec<&R>)> = BTreeMap::new();
        expected.iter().for_each(|row| by_key.entry(key_of(row)).or_default().0.push(row));
        got.iter().for_each(|row| by_key.entry(key_of(row)).or_default().1.push(row));
        for (key, (expected, got)) in by_key {
            let place = format!("{} {key}", R::TABLE);
            match (&expected[..], &got[..]) {
                ([expected], [got]) => self.row(&place, *expected, *got),
                ([expected], []) => self.add(format!("{place}: missing; expected {expected:?}")),
                ([], [got]) => self.add(format!("{place}: not expected; got {got:?}")),
                (expected, got) => self.add(format!("{place}: {} rows expected, {} got", expected.len(), got.len())),
            }
        }
    }

    /// Compares two rows of one key.
    fn row<R: TableRow>(&mut self, place: &str, expected: &R, got: &R) {
        for column in R::columns().iter().filter(|column| !PROSE.contains(&(R::TABLE, column.name))) {
            let (expected, got) = (column.value(expected), column.value(got));
            if !agree(column.name, expected, got) {
                self.add(format!("{place}: {}: expected {expected:?}, got {got:?}", column.name));
            }
        }
    }
}

fn agree(column: &str, expected: Value<'_>, got: Value<'_>) -> bool {
    match (expected, got) {
        (Value::Number(expected), Value::Number(got)) => close(column, expected, got),
        (expected, got) => expected == got,
    }
}

fn close(column: &str, expected: f64, got: f64) -> bool {
    if expected.is_nan() || got.is_nan() || expected.is_infinite() || got.is_infinite() {
        return expected.total_cmp(&got).is_eq();
    }
    let (is_ln_p, is_q) = (column.contains("ln_p"), column.ends_with("q_value"));
    let relative = if is_ln_p && expected < FAR_OUT { CLOSE_FAR_OUT } else { CLOSE };
    let near_one = is_ln_p && expected > NEAR_ONE || is_q && expected > NEAR_ONE.exp();
    let absolute = if near_one { CLOSE_NEAR_ONE } else { CLOSE };
    (expected - got).abs() <= (relative * expected.abs().max(got.abs())).max(absolute)
}
