//! How much functions differ between two single runs beyond independent samples, estimated from the functions
//! themselves.
//!
//! Runs differ in load, in layout and in what else the machine did. With one run per side this cannot be measured for a
//! single function, but hundreds of functions share it, so it can be estimated from most of them. It is modelled as a
//! variance tau^2 that is added to the variance of each function's log ratio (a random effect), so that only a function
//! that exceeds it is significant. If most functions really changed, by a few percent each, that counts as background
//! too: two files cannot distinguish the two.

/// The mean of min(z^2, 1) of a standard normal z: 1 - 2 phi(1).
const MEAN_OF_CAPPED_SQUARE: f64 = 0.516_058_550_961_713_3;

/// Halvings of the interval in the search for tau^2.
const HALVINGS: usize = 80;

/// tau^2; 0 if independent samples explain the differences.
///
/// Each function is given by its log ratio, after normalization, and the sampling variance of that. With z^2 = ratio^2
/// / (variance + tau^2), tau^2 is chosen such that the mean of min(z^2, 1), weighted by 1 / (variance + tau^2), is that
/// of a standard normal. This is an M-estimate of a random effect's variance, in which a function that changed counts
/// no more than one that is one standard deviation off.
pub(super) fn variance(functions: &[(f64, f64)]) -> f64 {
    let excess = |tau2: f64| -> f64 {
        let part = |(theta, variance): &(f64, f64)| {
            ((theta * theta / (variance + tau2)).min(1.0) - MEAN_OF_CAPPED_SQUARE) / (variance + tau2)
        };
        functions.iter().map(part).sum()
    };
    if excess(0.0) <= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) =
        (0.0, functions.iter().map(|(theta, _)| theta * theta).fold(0.0, f64::max) / MEAN_OF_CAPPED_SQUARE);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        *(if excess(middle) > 0.0 { &mut low } else { &mut high }) = middle;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of a normal with this standard deviation, each with the same sampling variance.
    fn normals(deviation: f64, variance: f64) -> Vec<(f64, f64)> {
        let level = |place: u32| (f64::from(place) + 0.5) / 400.0;
        (0..400)
            .map(|place| (deviation * fleetdiff_statistics::special::normal_quantile(level(place)), variance))
            .collect()
    }

    #[test]
    fn a_random_effect_is_measured() {
        let found = variance(&normals(0.05, 0.0009));
        assert!((found - 0.0016).abs() < 5e-5, "{found}");
        assert!(variance(&normals(0.03, 0.0009)) < 2e-5, "independent samples");
        assert!(variance(&[]).abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn a_minority_that_changed_hardly_counts() {
        let mut functions = normals(0.05, 0.0);
        functions.iter_mut().step_by(10).for_each(|function| function.0 += 0.5);
        let found = variance(&functions);
        assert!((0.0025..0.004).contains(&found), "{found}, 0.0025 without those that changed");
    }
}
