//! Random numbers that depend only on names: what one pod draws never depends on which other pods exist, on the order
//! of draws, or on the number of threads.
//!
//! Every draw comes from a generator that is seeded by [`derive()`] from (fleet seed, what is drawn for, when), so a
//! profile can be made again at any time. Only integer arithmetic, IEEE basic operations and `libm` are used: the
//! numbers are the same on every machine.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// The generator of everything that is drawn: fast, small, of a fixed algorithm.
pub(crate) type Generator = Xoshiro256PlusPlus;

/// What a number is drawn for. Separates the streams of one pod, so that late delivery changes no count.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Phase,
    Size,
    Functions,
    HopNoise,
    Counts,
    Late,
    Duplicate,
    Restart,
    Age,
    Hardware,
    Drift,
    WarmUp,
    Order,
    Requests,
    Minority,
    Missing,
    Crash,
    Settling,
    Sway,
}

/// The seed of a stream: the fleet's (or pod's) key, its purpose, and its number.
pub(super) fn derive(key: u64, purpose: Purpose, index: u64) -> u64 {
    let purpose = match purpose {
        Purpose::Phase => 1,
        Purpose::Size => 2,
        Purpose::Functions => 3,
        Purpose::HopNoise => 4,
        Purpose::Counts => 5,
        Purpose::Late => 6,
        Purpose::Duplicate => 7,
        Purpose::Restart => 8,
        Purpose::Age => 9,
        Purpose::Hardware => 10,
        Purpose::Drift => 11,
        Purpose::WarmUp => 12,
        Purpose::Order => 13,
        Purpose::Requests => 14,
        Purpose::Minority => 15,
        Purpose::Missing => 16,
        Purpose::Crash => 17,
        Purpose::Settling => 18,
        Purpose::Sway => 19,
    };
    mix(mix(mix(key).wrapping_add(purpose)).wrapping_add(index))
}

/// The key of something with a name, within a fleet.
pub(crate) fn key_of(seed: u64, name: &str) -> u64 {
    mix(mix(seed) ^ fleetdiff_schemas::identity::stable_hash(name.as_bytes()))
}

/// A fresh generator for a stream.
pub(super) fn generator(key: u64, purpose: Purpose, index: u64) -> Generator {
    Generator::seed_from_u64(derive(key, purpose, index))
}

/// One uniform number in [0, 1) for a stream of which only one is needed.
pub(super) fn uniform(key: u64, purpose: Purpose, index: u64) -> f64 {
    unit_interval(derive(key, purpose, index))
}

/// The next uniform number in [0, 1).
pub(crate) fn next_uniform(rng: &mut Generator) -> f64 {
    unit_interval(rng.next_u64())
}

/// The next standard normal number (Box and Muller; the second of each pair is not used).
pub(super) fn next_normal(rng: &mut Generator) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - next_uniform(rng)));
    radius * libm::cos(std::f64::consts::TAU * next_uniform(rng))
}

/// Log-normal multipliers with mean 1 and a stated coefficient of variation (the standard deviation, as a fraction).
#[derive(Clone, Copy, Debug)]
pub(super) struct LogNormal {
    sigma: f64,
}

impl LogNormal {
    /// sigma = sqrt(ln(1 + cv^2)); a `cv` of 0 always gives 1.
    pub(super) fn with_cv(cv: f64) -> Self {
        Self { sigma: libm::sqrt(libm::log(1.0 + cv * cv)) }
    }

    /// The multiplier that belongs to a standard normal number.
    pub(super) fn at(self, normal: f64) -> f64 {
        libm::exp(self.sigma * normal - self.sigma * self.sigma / 2.0)
    }

    /// The next multiplier.
    pub(super) fn next(self, rng: &mut Generator) -> f64 {
        if self.sigma == 0.0 { 1.0 } else { self.at(next_normal(rng)) }
    }
}

/// The finaliser of SplitMix64 after one step of its counter.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[expect(clippy::as_conversions, reason = "53 bits fit a double exactly")]
fn unit_interval(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_normal_has_mean_one_and_the_stated_spread() {
        let mut rng = generator(7, Purpose::Size, 0);
        let draws: Vec<f64> = (0..200_000).map(|_| LogNormal::with_cv(0.3).next(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / 200_000.0;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 200_000.0;
        assert!((mean - 1.0).abs() < 0.004, "six standard errors of the mean are .004: {mean}");
        assert!((variance.sqrt() - 0.3).abs() < 0.006, "cv {}", variance.sqrt());
    }

    #[test]
    fn streams_of_one_key_differ() {
        let seeds = [
            derive(1, Purpose::Late, 0),
            derive(1, Purpose::Late, 1),
            derive(1, Purpose::Duplicate, 0),
            derive(2, Purpose::Late, 0),
        ];
        assert!((1..4).all(|i| !seeds[..i].contains(&seeds[i])), "{seeds:?}");
    }
}
