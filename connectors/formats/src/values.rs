//! What counts are: samples, or times.

/// What the counts of a profile are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Samples; times without a known period are refused.
    #[default]
    Samples,
    /// Nanoseconds, as the file weighs its samples: weights, and no numbers of anything that was seen. Files that only count are
    /// refused.
    Times,
}
