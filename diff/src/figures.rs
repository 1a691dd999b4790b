//! Figures, as they are computed with and as people read them.

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

/// A count of samples as a number; exact below 2^53.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts of samples are below 2^53")]
pub fn float(count: u64) -> f64 {
    count as f64
}
