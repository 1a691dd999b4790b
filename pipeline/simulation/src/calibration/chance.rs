//! Normal and Poisson numbers, by the hundred million.
//!
//! Fleets of [`crate::fleet`] prepare tables for a pod's means and draw from them for hours. A simulated window draws
//! each mean once, so preparation does not pay; and a pod's noise that changes with every hop needs about 70 million
//! normal numbers per run. Only integer arithmetic, IEEE basic operations and `libm` are used: the numbers are the same
//! on every machine.

#![expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and layers are small whole numbers"
)]

use std::sync::LazyLock;

use rand::{Rng, SeedableRng};

use crate::fleet::random::{Generator, key_of, next_uniform};

/// The generator of one run: it depends on the seed, the row's name and the run's number, and on nothing else.
pub(super) fn generator_of(seed: u64, row: &str, run: u64) -> (u64, Generator) {
    let key = key_of(key_of(seed, row), &run.to_string());
    (key, Generator::seed_from_u64(key))
}

/// Layers of the ziggurat.
const LAYERS: usize = 128;
/// The start of the tail in its lowest layer, and the area of each layer, for 128 layers (Doornik 2005, ZIGNOR).
const TAIL: f64 = 3.442_619_855_899;
const AREA: f64 = 9.912_563_035_262_17e-3;

/// Right edges of the layers, from the base up.
static EDGES: LazyLock<[f64; LAYERS + 1]> = LazyLock::new(|| {
    let mut edges = [0.0; LAYERS + 1];
    let mut height = libm::exp(-0.5 * TAIL * TAIL);
    (edges[0], edges[1]) = (AREA / height, TAIL);
    for layer in 2..LAYERS {
        edges[layer] = libm::sqrt(-2.0 * libm::log(AREA / edges[layer - 1] + height));
        height = libm::exp(-0.5 * edges[layer] * edges[layer]);
    }
    edges
});

/// Standard normal numbers by the ziggurat of Marsaglia and Tsang (2000).
pub(super) struct Normal {
    edges: &'static [f64; LAYERS + 1],
}

impl Normal {
    pub(super) fn new() -> Self {
        Self { edges: &EDGES }
    }

    /// The next standard normal number.
    #[inline]
    pub(super) fn next(&self, rng: &mut Generator) -> f64 {
        let word = rng.next_u64();
        let layer = (word & (LAYERS as u64 - 1)) as usize;
        // The layer takes 7 bits, the position in it 53 others.
        let place = ((word >> 11) as i64 - (1 << 52)) as f64 * (1.0 / (1u64 << 52) as f64);
        let x = place * self.edges[layer];
        if x.abs() < self.edges[layer + 1] { x } else { self.at_the_edge(layer, x, rng) }
    }

    #[cold]
    fn at_the_edge(&self, layer: usize, x: f64, rng: &mut Generator) -> f64 {
        if layer == 0 {
            return beyond_the_base(rng).copysign(x);
        }
        let density = |edge: f64| libm::exp(-0.5 * (edge * edge - x * x));
        let (outer, inner) = (density(self.edges[layer]), density(self.edges[layer + 1]));
        if outer + next_uniform(rng) * (inner - outer) < 1.0 { x } else { self.next(rng) }
    }
}

/// A normal number given that it lies beyond [`TAIL`] (Marsaglia 1964).
fn beyond_the_base(rng: &mut Generator) -> f64 {
    loop {
        let x = -libm::log(1.0 - next_uniform(rng)) / TAIL;
        let y = -libm::log(1.0 - next_uniform(rng));
        if 2.0 * y > x * x {
            return TAIL + x;
        }
    }
}

/// Log-normal multipliers.
pub(super) struct Multipliers {
    normal: Normal,
    sigma: f64,
    centre: f64,
}

impl Multipliers {
    /// With mean 1 and this coefficient of variation; with 0 every multiplier is 1 and nothing is drawn.
    pub(super) fn with_cv(cv: f64) -> Self {
        let variance = libm::log1p(cv * cv);
        Self { normal: Normal::new(), sigma: libm::sqrt(variance), centre: -0.5 * variance }
    }

    /// With median 1 and this standard deviation of the logarithm; with 0 every multiplier is 1 and nothing is drawn.
    pub(super) fn with_sd(sigma: f64) -> Self {
        Self { normal: Normal::new(), sigma, centre: 0.0 }
    }

    /// The next multiplier.
    #[inline]
    pub(super) fn next(&self, rng: &mut Generator) -> f64 {
        if self.sigma > 0.0 { libm::exp(self.sigma * self.normal.next(rng) + self.centre) } else { 1.0 }
    }
}

/// Means from which on a Poisson number is drawn by rejection.
const BY_REJECTION: f64 = 10.0;

/// A Poisson number with this mean, 0 to 1e8.
///
/// Below ten by inversion, above by transformed rejection (Hörmann 1993, PTRS).
pub(super) fn poisson(mean: f64, rng: &mut Generator) -> u32 {
    if mean < BY_REJECTION { by_inversion(mean, rng) } else { by_rejection(mean, rng) }
}

fn by_inversion(mean: f64, rng: &mut Generator) -> u32 {
    if mean <= 0.0 {
        return 0;
    }
    let mut left = next_uniform(rng);
    let (mut count, mut mass) = (0, libm::exp(-mean));
    // The sum of all masses reaches the end except for rounding.
    while left >= mass && count < 200 {
        left -= mass;
        count += 1;
        mass *= mean / f64::from(count);
    }
    count
}

fn by_rejection(mean: f64, rng: &mut Generator) -> u32 {
    let b = 0.931 + 2.53 * libm::sqrt(mean);
    let a = -0.059 + 0.024_83 * b;
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let u = next_uniform(rng) - 0.5;
        let v = 1.0 - next_uniform(rng);
        let room = 0.5 - u.abs();
        let count = libm::floor((2.0 * a / room + b) * u + mean + 0.43);
        if room >= 0.07 && v <= squeeze {
            return count as u32;
        }
        if count < 0.0 || (room < 0.013 && v > room) {
            continue;
        }
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let bound = count * libm::log(mean) - mean - libm::lgamma(count + 1.0);
        if libm::log(v * inverse_alpha / (a / (room * room) + b)) <= bound {
            return count as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum over cells of (observed - expected)^2 / expected, with cells of an expectation below 10 merged.
    fn chi_square(observed: &[f64], expected: &[f64]) -> (f64, f64) {
        let (mut sum, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
        for (&o, &e) in observed.iter().zip(expected) {
            if e < 10.0 {
                rest = (rest.0 + o, rest.1 + e);
            } else {
                sum += (o - e) * (o - e) / e;
                cells += 1.0;
            }
        }
        if rest.1 >= 10.0 {
            sum += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
            cells += 1.0;
        }
        (sum, cells - 1.0)
    }

    fn assert_fits(observed: &[f64], expected: &[f64], what: &str) {
        let (statistic, df) = chi_square(observed, expected);
        // Four standard deviations: one in thirty thousand.
        assert!(statistic < df + 4.0 * (2.0 * df).sqrt(), "{what}: chi-square {statistic} on {df}");
    }

    #[test]
    fn poisson_numbers_have_the_law_of_poisson() {
        for mean in [0.03_f64, 0.7, 4.0, 9.99, 10.0, 31.0, 400.0, 26_500.0] {
            let (_, mut rng) = generator_of(5, "poisson", mean.to_bits());
            let draws = 200_000.0;
            let (least, reach) = ((mean - 8.0 * mean.sqrt()).max(0.0).floor(), (16.0 * mean.sqrt() + 30.0) as usize);
            let mut observed = vec![0.0; reach];
            for _ in 0..200_000 {
                observed[(f64::from(poisson(mean, &mut rng)) - least) as usize] += 1.0;
            }
            let mass = |k: f64| libm::exp(k * libm::log(mean) - mean - libm::lgamma(k + 1.0));
            let expected: Vec<f64> = (0..reach).map(|i| draws * mass(least + i as f64)).collect();
            assert_fits(&observed, &expected, &format!("mean {mean}"));
        }
    }

    #[test]
    fn normal_numbers_have_the_law_of_gauss() {
        let (_, mut rng) = generator_of(5, "normal", 0);
        let (normal, draws) = (Normal::new(), 2_000_000.0);
        // 400 cells of .025 from -5 to 5; the tail begins at 3.44.
        let cell = |x: f64| ((x + 5.0) * 40.0).clamp(0.0, 399.0) as usize;
        let mut observed = vec![0.0; 400];
        for _ in 0..2_000_000 {
            observed[cell(normal.next(&mut rng))] += 1.0;
        }
        let below = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let expected: Vec<f64> =
            (0..400).map(|i| -5.0 + f64::from(i) / 40.0).map(|x| draws * (below(x + 0.025) - below(x))).collect();
        assert_fits(&observed, &expected, "normal");
    }

    #[test]
    fn multipliers_have_mean_one_and_the_stated_spread() {
        for cv in [0.1_f64, 0.5, 3.0] {
            let (_, mut rng) = generator_of(5, "multipliers", 0);
            let multipliers = Multipliers::with_cv(cv);
            let draws: Vec<f64> = (0..400_000).map(|_| multipliers.next(&mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / 400_000.0;
            assert!((mean - 1.0).abs() < 6.0 * cv / 632.0, "cv {cv}: mean {mean}");
            let logs: Vec<f64> = draws.iter().map(|x| x.ln()).collect();
            let centre = logs.iter().sum::<f64>() / 400_000.0;
            let spread = (logs.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / 400_000.0).sqrt();
            let sigma = (1.0 + cv * cv).ln().sqrt();
            assert!((spread / sigma - 1.0).abs() < 0.01, "cv {cv}: spread {spread} of logs, not {sigma}");
        }
    }

    #[test]
    fn a_run_depends_on_seed_row_and_number() {
        let words: Vec<u64> = [(1, "a", 0), (2, "a", 0), (1, "b", 0), (1, "a", 1)]
            .map(|(s, r, i)| generator_of(s, r, i).1.next_u64())
            .to_vec();
        assert!((1..4).all(|i| !words[..i].contains(&words[i])));
        assert_eq!(generator_of(1, "a", 0).1.next_u64(), words[0]);
    }
}
