//! Independent Poisson counts for hundreds of stacks in about a microsecond.
//!
//! A sum of independent Poisson numbers is Poisson. So the mean of a frequent stack is split into the nearest smaller
//! mean for which a table exists (one random number, one look-up) and a small rest. The rests of all stacks and the
//! rare stacks are drawn together: first their total, then for each sample its stack (an alias table: one random
//! number, one look-up). The result is exactly one independent Poisson count per stack; probabilities are multiples of
//! 2^-32, which is the only rounding.

use std::hint::select_unpredictable;

use fleetdiff_schemas::number::{float, whole};
use rand::Rng;

use super::random::Generator;

/// Probabilities are counted in these: 2^32.
const PARTS: f64 = 4_294_967_296.0;

/// The alias method in integers (Walker 1977, Vose 1991): one 32-bit random number gives an index with the
/// probabilities asked for.
#[derive(Clone, Debug)]
struct Alias {
    /// Bits of a random number that are not the column.
    shift: u32,
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// Below this the result is the column itself.
    keep: u32,
    /// Otherwise it is this one.
    other: u32,
}

impl Alias {
    /// Probabilities proportional to `weights`, which are finite, not negative and not all 0; each is rounded to a
    /// multiple of 2^-32, and what is left over goes to the largest.
    fn new(weights: &[f64]) -> Self {
        let bits = weights.len().next_power_of_two().trailing_zeros().max(1);
        let capacity = 1u64 << (32 - bits);
        let mut mass = masses(weights);
        mass.resize(1 << bits, 0);
        let mut columns = vec![Column { keep: u32::MAX, other: 0 }; mass.len()];
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..mass.len()).partition(|&i| mass[i] < capacity);
        while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
            columns[poor] = Column { keep: low_word(mass[poor]), other: low_word(index_word(rich)) };
            mass[rich] -= capacity - mass[poor];
            if mass[rich] < capacity {
                large.pop();
                small.push(rich);
            }
        }
        Self { shift: 32 - bits, columns }
    }

    #[inline]
    #[expect(clippy::as_conversions, reason = "32 bits fit an index on every machine this is built for")]
    fn pick(&self, random: u32) -> usize {
        let column = random >> self.shift;
        let Column { keep, other } = self.columns[column as usize];
        let coin = random & ((1 << self.shift) - 1);
        // A branch would be mispredicted half of the time: a third of the whole cost.
        select_unpredictable(coin < keep, column, other) as usize
    }
}

/// Weights as parts of 2^32 that add up to exactly that.
fn masses(weights: &[f64]) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let mut mass: Vec<u64> = weights.iter().map(|weight| whole(weight / total * PARTS)).collect();
    let given: u64 = mass.iter().sum();
    if let Some(largest) = (0..mass.len()).max_by_key(|&i| mass[i]) {
        mass[largest] = (mass[largest] + (1 << 32)).saturating_sub(given);
    }
    mass
}

/// Ready tables of the Poisson distribution for a ladder of means.
#[derive(Debug)]
pub(crate) struct Ladder {
    rungs: Vec<Rung>,
}

#[derive(Debug)]
struct Rung {
    mean: f64,
    /// The smallest count that the table holds.
    least: u64,
    counts: Alias,
}

impl Ladder {
    /// The smallest mean with a table; below it drawing sample by sample is as fast.
    const LOWEST: f64 = 1.5;
    /// Each mean is this multiple of the one below it: on average 2.4 % of a mean is left over.
    const STEP: f64 = 1.05;
    /// The largest mean is about 4,000; larger ones are drawn in pieces.
    const RUNGS: i32 = 162;

    /// Computes all tables (about a millisecond).
    pub(crate) fn new() -> Self {
        let rungs = (0..Self::RUNGS).map(|i| Rung::new(Self::LOWEST * libm::pow(Self::STEP, f64::from(i)))).collect();
        Self { rungs }
    }

    /// The highest rung whose mean is at most `mean`.
    fn at_most(&self, mean: f64) -> Option<usize> {
        self.rungs.partition_point(|rung| rung.mean <= mean).checked_sub(1)
    }

    /// Draws a Poisson number with this mean.
    pub(super) fn draw(&self, mean: f64, rng: &mut Generator) -> u64 {
        let (mut count, mut rest) = (0, mean);
        while let Some(rung) = self.at_most(rest) {
            count += self.rungs[rung].draw(rng);
            rest -= self.rungs[rung].mean;
        }
        // What is below the ladder is its lowest rung, thinned.
        let keep = low_word(whole(rest.max(0.0) / Self::LOWEST * PARTS));
        let candidates = self.rungs[0].draw(rng);
        (0..candidates).fold(count, |count, _| count + u64::from(rng.next_u32() < keep))
    }
}

impl Rung {
    fn new(mean: f64) -> Self {
        let reach = 7.0 * libm::sqrt(mean) + 12.0;
        let least = whole((mean - reach).max(0.0));
        let weights: Vec<f64> = (least..=whole(mean + reach)).map(|count| probability(mean, count)).collect();
        Self { mean, least, counts: Alias::new(&weights) }
    }

    #[inline]
    fn draw(&self, rng: &mut Generator) -> u64 {
        self.least + index_word(self.counts.pick(rng.next_u32()))
    }
}

/// Draws independent Poisson counts for a list of means, many times.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Slots with a table of their own.
    frequent: Vec<(usize, usize)>,
    /// Which slot a sample of the rest belongs to.
    rest: Option<Alias>,
    rest_mean: f64,
}

impl Sampler {
    /// Prepares for these means, which are finite and not negative; each draw must be given the same `ladder`.
    pub(crate) fn new(means: &[f64], ladder: &Ladder) -> Self {
        let mut frequent = Vec::new();
        let mut rests = means.to_vec();
        for (slot, rest) in rests.iter_mut().enumerate() {
            // One table takes all but a twentieth; only means beyond the ladder's top need more than one.
            while let Some(rung) = ladder.at_most(*rest) {
                frequent.push((slot, rung));
                *rest -= ladder.rungs[rung].mean;
                if rung + 1 < ladder.rungs.len() {
                    break;
                }
            }
        }
        let rest_mean: f64 = rests.iter().sum();
        let rest = (rest_mean > 0.0).then(|| Alias::new(&rests));
        Self { frequent, rest, rest_mean }
    }

    /// Adds one draw to `counts`, which has one entry a mean.
    pub(crate) fn draw(&self, ladder: &Ladder, rng: &mut Generator, counts: &mut [u64]) {
        for &(slot, rung) in &self.frequent {
            counts[slot] += ladder.rungs[rung].draw(rng);
        }
        let Some(rest) = &self.rest else { return };
        let samples = ladder.draw(self.rest_mean, rng);
        for _ in 0..samples / 2 {
            let random = rng.next_u64();
            counts[rest.pick(low_word(random))] += 1;
            counts[rest.pick(low_word(random >> 32))] += 1;
        }
        if samples % 2 == 1 {
            counts[rest.pick(rng.next_u32())] += 1;
        }
    }
}

/// mean^count e^-mean / count!
fn probability(mean: f64, count: u64) -> f64 {
    let count = float(count);
    libm::exp(count * libm::log(mean) - mean - libm::lgamma(count + 1.0))
}

#[expect(clippy::as_conversions, reason = "an index fits 64 bits")]
fn index_word(index: usize) -> u64 {
    index as u64
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low_word(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::super::random::{Purpose, generator};
    use super::*;

    /// Probability of each index, read off the table itself.
    fn probabilities(alias: &Alias) -> Vec<f64> {
        let capacity = 1u64 << alias.shift;
        let mut mass = vec![0u64; alias.columns.len()];
        for (own, column) in alias.columns.iter().enumerate() {
            let keep = u64::from(column.keep).min(capacity);
            mass[own] += keep;
            mass[usize::try_from(column.other).unwrap()] += capacity - keep;
        }
        assert_eq!(mass.iter().sum::<u64>(), 1 << 32);
        mass.into_iter().map(|part| float(part) / PARTS).collect()
    }

    #[test]
    fn alias_holds_the_weights_to_two_to_the_minus_32() {
        let weights: Vec<f64> = (1..=500).map(|i| 1.0 / f64::from(i)).collect();
        let total: f64 = weights.iter().sum();
        let held = probabilities(&Alias::new(&weights));
        // All are rounded down; the largest takes what is left, at most 500 units.
        assert!((held[0] - weights[0] / total).abs() < 501.0 / PARTS);
        for (i, weight) in weights.iter().enumerate().skip(1) {
            assert!((held[i] - weight / total).abs() < 1.0 / PARTS, "index {i}");
        }
        assert!(held[500..].iter().all(|&p| p == 0.0), "columns beyond the weights are never picked");
    }

    #[test]
    fn every_rung_is_the_poisson_distribution() {
        for rung in &Ladder::new().rungs {
            let held = probabilities(&rung.counts);
            let strata_detail: f64 =
                (rung.least..).zip(&held).map(|(k, p)| (p - probability(rung.mean, k)).abs()).sum();
            assert!(strata_detail < 1e-6, "mean {}: total difference {strata_detail}", rung.mean);
        }
    }

    #[test]
    fn sampler_has_mean_and_variance_of_poisson_in_every_slot_and_no_covariance() {
        let means = [0.0, 0.02, 0.7, 1.6, 4.9, 30.0, 880.0, 9000.0];
        let ladder = Ladder::new();
        let sampler = Sampler::new(&means, &ladder);
        let mut rng = generator(3, Purpose::Counts, 0);
        let rounds = 40_000u32;
        let (mut sums, mut squares, mut cross) = ([0.0; 8], [0.0; 8], 0.0);
        for _ in 0..rounds {
            let mut counts = [0; 8];
            sampler.draw(&ladder, &mut rng, &mut counts);
            for slot in 0..8 {
                let deviation = float(counts[slot]) - means[slot];
                sums[slot] += deviation;
                squares[slot] += deviation * deviation;
            }
            cross += (float(counts[4]) - means[4]) * (float(counts[5]) - means[5]);
        }
        let n = f64::from(rounds);
        assert_eq!((sums[0], squares[0]), (0.0, 0.0));
        for slot in 1..8 {
            let mean = means[slot];
            assert!((sums[slot] / n).abs() < 5.0 * (mean / n).sqrt(), "slot {slot}");
            // Var of the squared deviation of a Poisson number is 2 mean^2 + mean.
            let error = ((2.0 * mean * mean + mean) / n).sqrt();
            assert!((squares[slot] / n - mean).abs() < 5.0 * error, "slot {slot}: {}", squares[slot] / n);
        }
        assert!((cross / n).abs() < 5.0 * (means[4] * means[5] / n).sqrt(), "covariance {}", cross / n);
    }

    #[test]
    fn single_draws_have_the_mean_asked_for() {
        let ladder = Ladder::new();
        let mut rng = generator(4, Purpose::Requests, 0);
        for mean in [0.0, 0.3, 1.5, 77.7, 5000.0] {
            let sum: u64 = (0..20_000).map(|_| ladder.draw(mean, &mut rng)).sum();
            let off = (float(sum) / 20_000.0 - mean).abs();
            assert!(off <= 5.0 * (mean / 20_000.0).sqrt(), "mean {mean} off by {off}");
        }
    }
}
