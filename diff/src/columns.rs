//! Plain differences of functions, file by file, as `perf diff` computes them: arithmetic without a test.
//!
//! Values are weights if every run has them (periods, bytes, nanoseconds), otherwise samples; a share is relative to
//! the values of its own side. Checked against perf 6.1.

use std::collections::BTreeSet;

use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_schemas::profile::CountKind;

use crate::compare::recording::Recording;
use crate::compare::sums::Sums;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Difference of shares, in percentage points; the largest increase first.
    Delta,
    /// The same, sorted by absolute value.
    DeltaAbs,
    /// Value by value.
    Ratio,
    /// `head * head_weight - base * base_weight`.
    WeightedDiff {
        /// The factor of the base's values.
        base: i64,
        /// The factor of the head's values.
        head: i64,
    },
    /// The difference of shares, and how much shares vary between runs.
    Spread,
}

/// A function's value on one side, and the value of all functions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The value of the function; 0 if the side lacks it.
    pub own: u64,
    /// The value of the whole side.
    pub whole: u64,
}

impl Value {
    /// In percent of the side; 0 for an empty side.
    pub fn percent(self) -> f64 {
        if self.whole == 0 { 0.0 } else { 100.0 * float(self.own) / float(self.whole) }
    }
}

impl Compute {
    /// The column's figure for a function: percentage points, a factor, or a weighted difference. None where perf has
    /// none either: a ratio or a weighted difference with one value missing.
    pub fn of(self, base: Value, head: Value) -> Option<f64> {
        let both = base.own > 0 && head.own > 0;
        match self {
            Self::Delta | Self::DeltaAbs | Self::Spread => Some(head.percent() - base.percent()),
            Self::Ratio => both.then(|| float(head.own) / float(base.own)),
            Self::WeightedDiff { base: base_weight, head: head_weight } => {
                let product = |value: Value, weight: i64| i128::from(value.own).saturating_mul(i128::from(weight));
                both.then(|| whole(product(head, head_weight).saturating_sub(product(base, base_weight))))
            }
        }
    }

    /// How it is computed, with the function's values.
    pub fn formula(self, base: Value, head: Value) -> String {
        match self {
            Self::Delta | Self::DeltaAbs | Self::Spread => {
                format!("({} * 100 / {}) - ({} * 100 / {})", head.own, head.whole, base.own, base.whole)
            }
            Self::Ratio => format!("{} / {}", head.own, base.own),
            Self::WeightedDiff { base: base_weight, head: head_weight } => {
                format!("({} * {head_weight}) - ({} * {base_weight})", head.own, base.own)
            }
        }
    }

    /// The sort key of rows, the largest first.
    fn order(self, computed: Option<f64>) -> f64 {
        let computed = computed.unwrap_or(f64::NEG_INFINITY);
        if self == Self::DeltaAbs { computed.abs() } else { computed }
    }
}

/// One function against the base in every column.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// Its name.
    pub function: &'a str,
    /// On the base.
    pub base: Value,
    /// In each column.
    pub heads: Vec<Value>,
}

/// Every function of any side, sorted by a column: 0 is the base's share, the others are the figures of each head.
///
/// `are_weights` says whether values are weights, which every run must then have.
pub fn rows<'a>(
    base: &'a [Recording],
    heads: &[&'a [Recording]],
    kind: CountKind,
    compute: Compute,
    order: usize,
    are_weights: bool,
) -> Vec<Row<'a>> {
    let sums = |side: &'a [Recording]| if are_weights { Sums::of_weights(side) } else { Sums::of_samples(side) };
    let (base, heads) = (sums(base), heads.iter().map(|side| sums(side)).collect::<Vec<_>>());
    let functions: BTreeSet<&'a str> = std::iter::once(&base)
        .chain(&heads)
        .flat_map(|sums| sums.functions(kind))
        .map(|(function, _)| function)
        .collect();
    let value = |sums: &Sums<'_>, function| Value { own: sums.of(kind, function), whole: sums.whole() };
    let row = |function| Row {
        function,
        base: value(&base, function),
        heads: heads.iter().map(|head| value(head, function)).collect(),
    };
    let mut rows: Vec<Row<'a>> = functions.into_iter().map(row).collect();
    let key = |row: &Row<'_>| match order.checked_sub(1).and_then(|column| row.heads.get(column)) {
        Some(head) => compute.order(compute.of(row.base, *head)),
        None => row.base.percent(),
    };
    rows.sort_by(|a, b| {
        key(b).total_cmp(&key(a)).then_with(|| b.base.own.cmp(&a.base.own)).then_with(|| a.function.cmp(b.function))
    });
    rows
}

/// The runs of a side one by one, for the variation between runs.
#[derive(Clone, Debug)]
pub struct ByRun<'a>(Vec<Sums<'a>>);

impl<'a> ByRun<'a> {
    /// The runs of a side, by samples.
    pub fn of(side: &'a [Recording]) -> Self {
        Self(side.chunks(1).map(Sums::of_samples).collect())
    }

    /// The share of a function in each run, in percent, in their order.
    pub fn shares(&self, kind: CountKind, function: &str) -> Vec<f64> {
        self.0.iter().map(|run| Value { own: run.of(kind, function), whole: run.whole() }.percent()).collect()
    }
}

/// The standard deviation of figures around their mean; none for fewer than two.
///
/// ```
/// use fleetdiff_diff::columns::standard_deviation;
/// assert_eq!(standard_deviation(&[1.0, 3.0]), Some(2f64.sqrt()));
/// assert_eq!(standard_deviation(&[1.0]), None);
/// ```
pub fn standard_deviation(figures: &[f64]) -> Option<f64> {
    let number = length_float(Some(figures.len()).filter(|number| *number > 1)?);
    let mean = figures.iter().sum::<f64>() / number;
    let squares: f64 = figures.iter().map(|figure| (figure - mean) * (figure - mean)).sum();
    Some(libm::sqrt(squares / (number - 1.0)))
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "for display; exact to 2^53")]
fn whole(amount: i128) -> f64 {
    amount as f64
}
