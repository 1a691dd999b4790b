//! The median, and integers that order as floats do.

/// The median, the mean of the middle two of an even number; NaN of none. As `numpy.median`.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut keys: Vec<i64> = values.iter().map(|&value| ordered(value.to_bits().cast_signed())).collect();
    let (middle, even) = (keys.len() / 2, keys.len().is_multiple_of(2));
    let (below, &mut upper, _) = keys.select_nth_unstable(middle);
    let value = |key| f64::from_bits(ordered(key).cast_unsigned());
    if even {
        0.5 * (below.iter().copied().max().map_or(f64::NEG_INFINITY, value) + value(upper))
    } else {
        value(upper)
    }
}

/// Integers that order as the floats with these bits do ([`f64::total_cmp`]), and back: integers are selected faster.
#[inline]
pub(crate) fn ordered(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// Places in ascending order of their values ([`f64::total_cmp`]); those of equal ones ascend.
pub(crate) fn ascending(values: impl Iterator<Item = (usize, f64)>) -> Vec<usize> {
    let mut keyed: Vec<(i64, usize)> =
        values.map(|(place, value)| (ordered(value.to_bits().cast_signed()), place)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, place)| place).collect()
}
