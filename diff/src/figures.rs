//! Figures as numbers and as text.

use fleetdiff_formats::Values;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::rows::Interval;

use crate::compare::finding::Finding;

/// Digits in threes.
///
/// ```
/// use fleetdiff_diff::figures::grouped;
/// assert_eq!([grouped(7), grouped(1_234), grouped(300_000_601_u64)], ["7", "1,234", "300,000,601"]);
/// ```
pub fn grouped(count: impl ToString) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The name of a verdict or of a reason for who reads it where runs are the replicates; files for programs have the names that fleets have.
///
/// ```
/// use fleetdiff_diff::figures::of_runs;
/// assert_eq!(["needs_pods", "one_pod", "regressed"].map(of_runs), ["needs_runs", "one_run", "regressed"]);
/// ```
pub fn of_runs(name: &str) -> String {
    name.replace("pod", "run")
}

/// A ratio with its interval.
pub fn ratio(ratio: Interval) -> String {
    format!("x {:.3} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high)
}

/// The ratio of a function, or the only side that has it.
pub fn ratio_or_side(finding: &Finding) -> String {
    let amount = finding.amount();
    match (finding.ratio, amount.base, amount.head) {
        (Some(of), ..) => ratio(of),
        (None, 0, 1..) => "new".to_owned(),
        (None, 1.., 0) => "gone".to_owned(),
        _ => "-".to_owned(),
    }
}

/// Samples as a number, or nanoseconds in the largest unit of which it is one at least.
///
/// ```
/// use fleetdiff_diff::figures::figure;
/// use fleetdiff_formats::Values;
/// assert_eq!(figure(Values::Samples, 1_234), "1,234");
/// assert_eq!(figure(Values::Times, 1_234_000_000), "1.23 s");
/// assert_eq!([figure(Values::Times, 940), figure(Values::Times, 0)], ["940 ns", "0 s"]);
/// ```
pub fn figure(values: Values, value: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    if values == Values::Samples {
        return grouped(value);
    }
    match UNITS.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", float(value) / float(*unit)),
        None if value == 0 => "0 s".to_owned(),
        None => format!("{value} ns"),
    }
}

/// The same with what it is a figure of: `1,234 samples`, `1.23 s`.
pub fn amount(values: Values, value: u64) -> String {
    let figure = figure(values, value);
    if values == Values::Samples { format!("{figure} samples") } else { figure }
}
