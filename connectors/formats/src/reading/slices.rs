//! A recording cut into stretches of time.

use crate::observed::Observed;

/// How many stretches a recording is cut into.
///
/// As few as tell how much a function varies from one to the next, since what varies slowly shows only between long ones.
pub const SLICES: usize = 20;

/// Fewer samples a stretch than this tell nothing of their functions.
const FEWEST: u64 = 20;

/// Puts samples in the order in which they were taken, and gives where each stretch ends: all have as many samples, as far as
/// entries can be divided. Nothing if the file does not say of each when it was taken, or has too few.
pub(super) fn cut(observed: &mut Observed<'_>) -> Option<Vec<usize>> {
    let samples = &mut observed.samples;
    let all = samples.iter().fold(0u64, |all, sample| all.saturating_add(sample.stack.count));
    let slices = u64::try_from(SLICES).unwrap_or(u64::MAX);
    if all < slices * FEWEST || samples.iter().any(|sample| sample.details.at.is_none()) {
        return None;
    }
    samples.sort_by_key(|sample| sample.details.at);
    let mut ends = Vec::with_capacity(SLICES);
    let (mut before, mut number) = (0u64, 1u64);
    for (place, sample) in (1..).zip(samples.iter()) {
        before = before.saturating_add(sample.stack.count);
        while number <= slices && u128::from(before) * u128::from(slices) >= u128::from(all) * u128::from(number) {
            ends.push(place);
            number += 1;
        }
    }
    Some(ends)
}
