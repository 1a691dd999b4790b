//! From how much on something is tested, or rests on what functions share.

/// Combined count from which a function is in the family of its cell.
pub const MIN_COUNT: f64 = 30.0;
/// Counts in an arm from which a function says something of that arm's spread and prior.
pub(crate) const MIN_IN_ARM: f64 = 10.0;
/// With fewer tested functions nothing is shared between them: no moderation, no scale.
pub const FEW_FUNCTIONS: usize = 20;
/// From how many functions on a scale is found where nothing else says which of them moved: of three, one that moved would be half
/// as much as the others, a rival.
pub(crate) const FEWEST_FUNCTIONS: usize = 4;
/// The change of the log ratio that is not worth a flag, by default.
pub const MIN_EFFECT: f64 = 0.01;

/// Whether a function with `count` of `whole` samples leaves less than one in a hundred to all others.
///
/// Its share cannot rise by more than one percent, and next to no noise of its own is left to test a fall against: whatever the
/// others err by would be taken for its change.
#[must_use]
pub fn is_whole_profile(count: f64, whole: f64) -> bool {
    100.0 * (whole - count) < whole
}
