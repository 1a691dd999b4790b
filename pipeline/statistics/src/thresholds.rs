//! From how much on something is tested, or rests on what functions share.

/// Combined count from which a function is in the family of its cell.
pub const MIN_COUNT: f64 = 30.0;
/// Below this number of pods in an arm the test on the log scale must agree.
pub const FEW_PODS: f64 = 10.0;
/// With fewer tested functions nothing is shared between them: no moderation, no scale.
pub const FEW_FUNCTIONS: usize = 20;
/// The change of the log ratio that is not worth a call, by default.
pub const MIN_EFFECT: f64 = 0.01;
