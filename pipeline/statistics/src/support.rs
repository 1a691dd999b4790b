//! How many replicates a test stands on.

/// What the number of pods allows to be said about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// Figures are shown, nothing is tested: an arm has fewer than two pods, or the spread between pods cannot be estimated.
    Untestable,
    /// Two to four pods in the smaller arm: tested, and said to be tentative.
    Tentative,
    /// At least five pods in each arm.
    Firm,
}

/// The support of a cell with `k_head` and `k_base` distinct pods and `df` degrees of freedom between buckets.
///
/// Untestable with fewer than 2 pods in an arm or `df`, rounded to a whole number, below 2; firm from 5 pods in each arm;
/// tentative between. Why 5: with 3 v 3 pods of unequal spread the chance of any false call was .14 (measured). Why rounded:
/// pods that are seen in two blocks of time with unlike totals carry a little less than K1 + K0 - 2 degrees of freedom, and
/// 2 v 2 pods must not become untestable because an hour struck.
#[inline]
#[must_use]
pub fn support(k_head: f64, k_base: f64, df: f64) -> Support {
    let fewest = k_head.min(k_base);
    if fewest.is_nan() || df.is_nan() || fewest < 2.0 || df.round() < 2.0 {
        Support::Untestable
    } else if fewest < 5.0 {
        Support::Tentative
    } else {
        Support::Firm
    }
}
