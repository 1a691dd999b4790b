//! Figures as numbers and as text.

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

/// A ratio with its interval.
pub fn ratio(ratio: Interval) -> String {
    format!("x {:.3} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high)
}

/// The ratio of a function, or the only side that has it.
pub fn ratio_or_side(finding: &Finding) -> String {
    match (finding.ratio, finding.count.base, finding.count.head) {
        (Some(of), ..) => ratio(of),
        (None, 0, 1..) => "new".to_owned(),
        (None, 1.., 0) => "gone".to_owned(),
        _ => "-".to_owned(),
    }
}
