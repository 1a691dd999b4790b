//! What the functions of a cell know about each other: how their dispersions are distributed.
//!
//! One function's variance rests on a few pods and is noisy; all functions together say how variances spread around what was
//! expected. A scaled inverse chi-square law with d0 degrees of freedom around s0 is fitted by the moments of logarithms, in each
//! arm and in up to four groups of functions of like count (Smyth 2004; limma `fitFDist` with a trend).
//!
//! An arm with two pods knows next to nothing of its own about that law, and an arm with a deranged pod knows something that the
//! other does not. So the spread of dispersions is that of both arms together, weighted by precision, unless an arm shows more than
//! its own standard error above it. What the prior is worth is capped at 20 degrees of freedom.

use serde::{Deserialize, Serialize};

use crate::arms::{Arms, Side};
use crate::median::{ascending, median};
use crate::number::length;
use crate::special::{digamma, pentagamma, trigamma, trigamma_inverse};
use crate::thresholds::FEW_FUNCTIONS;

/// The most degrees of freedom that a prior may have.
const D0_CAP: f64 = 20.0;
/// Dispersions below this part of the median count as this part of it.
const SMALLEST_OF_MEDIAN: f64 = 1e-5;
/// Most groups of functions.
const GROUPS: usize = 4;
/// Fewest functions in each of several groups.
const GROUP: usize = 40;

/// The law of one arm's dispersions, as a prior for each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// How many degrees of freedom it is worth, d0.
    pub df: f64,
    /// The dispersion that it expects, s0: seen over expected variance.
    pub dispersion: f64,
}

impl Prior {
    /// Expects what counting and the spread of pods give, and is worth nothing.
    pub const NONE: Self = Self { df: 0.0, dispersion: 1.0 };
}

/// The priors of functions of like count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupPrior {
    /// The smallest share of cost in the group, over both arms.
    pub least_share: f64,
    /// Of each arm.
    pub arms: Arms<Prior>,
}

/// One arm's dispersion of one function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispersion {
    /// Seen over expected variance.
    pub ratio: f64,
    /// Degrees of freedom of what was seen.
    pub df: f64,
}

/// A function that may say something about the priors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    /// Share of cost over both arms.
    pub share: f64,
    /// Dispersions of the arms that have enough counts.
    pub arms: Arms<Option<Dispersion>>,
}

impl Witness {
    fn ratio(&self, side: Side) -> f64 {
        self.arms[side].map_or(f64::NEG_INFINITY, |dispersion| dispersion.ratio)
    }
}

/// Orders by descending share, then by the ratios of base and head, so that equal shares have one order wherever they come from.
pub(crate) fn in_order(witnesses: &mut Vec<Witness>) {
    let descending = ascending(witnesses.iter().map(|witness| -witness.share).enumerate());
    *witnesses = descending.into_iter().map(|place| witnesses[place]).collect();
    let by_ratio = |side, one: &Witness, other: &Witness| one.ratio(side).total_cmp(&other.ratio(side));
    for equal in witnesses.chunk_by_mut(|one, other| one.share.total_cmp(&other.share).is_eq()) {
        equal.sort_by(|one, other| by_ratio(Side::Base, one, other).then_with(|| by_ratio(Side::Head, one, other)));
    }
}

/// The priors from `witnesses`, by descending share: up to four groups of at least 40, one of at least 20, else none.
///
/// Checked against the reference program (`test.json`) to 1e-7.
pub(crate) fn priors(witnesses: &[Witness]) -> Vec<GroupPrior> {
    let n = witnesses.len();
    let groups = match n / GROUP {
        0 => usize::from(n >= FEW_FUNCTIONS),
        groups => groups.min(GROUPS),
    };
    let group = |j: usize| {
        let members = &witnesses[j * n / groups..(j + 1) * n / groups];
        let least_share = members.iter().map(|witness| witness.share).fold(f64::INFINITY, f64::min);
        Some(GroupPrior { least_share, arms: group_priors(members)? })
    };
    (0..groups).filter_map(group).collect()
}

/// The first group that the share reaches, or the last.
pub(crate) fn group_of(groups: &[GroupPrior], share: f64) -> Option<&GroupPrior> {
    groups.iter().find(|group| share >= group.least_share).or_else(|| groups.last())
}

/// The priors of both arms from one group; an arm with fewer than 20 members takes the other's.
fn group_priors(members: &[Witness]) -> Option<Arms<Prior>> {
    let excess = Arms::of(|side| {
        let seen: Vec<Dispersion> = members.iter().filter_map(|witness| witness.arms[side]).collect();
        (seen.len() >= FEW_FUNCTIONS).then(|| Excess::of(&seen))
    });
    let known = || excess.both().into_iter().flatten();
    let precision: f64 = known().map(|excess| 1.0 / (excess.error * excess.error)).sum();
    let pooled = known().map(|excess| excess.variance / (excess.error * excess.error)).sum::<f64>() / precision;
    let own = excess.map(|excess| excess.map(|excess| excess.prior(pooled)));
    let or_other = |side: Side| own[side].or_else(|| own[side.other()]);
    Some(Arms { head: or_other(Side::Head)?, base: or_other(Side::Base)? })
}

/// How far the logarithms of dispersions spread beyond what sampling gives.
#[derive(Clone, Copy)]
struct Excess {
    /// Mean of ln s, corrected for sampling.
    mean: f64,
    /// Variance of ln s beyond that of sampling.
    variance: f64,
    /// Standard error of that excess.
    error: f64,
}

/// Moments of the logarithm of chi-square over its degrees of freedom: the same for all functions of a class.
#[derive(Clone, Copy)]
struct OfDf {
    df: f64,
    mean_ln: f64,
    variance_ln: f64,
}

impl OfDf {
    fn of(df: f64) -> Self {
        let half = 0.5 * df;
        Self { df, mean_ln: digamma(half) - libm::log(half), variance_ln: trigamma(half) }
    }
}

impl Excess {
    /// Of at least one dispersion.
    fn of(seen: &[Dispersion]) -> Self {
        let ratios: Vec<f64> = seen.iter().map(|seen| seen.ratio).collect();
        let middle = median(&ratios);
        let smallest = SMALLEST_OF_MEDIAN * if middle > 0.0 { middle } else { 1.0 };
        let n = length(seen.len());
        let (mut logs, mut sampling, mut of_df) = (Vec::with_capacity(seen.len()), 0.0, OfDf::of(seen[0].df));
        for seen in seen {
            if of_df.df.to_bits() != seen.df.to_bits() {
                of_df = OfDf::of(seen.df);
            }
            logs.push(libm::log(seen.ratio.max(smallest)) - of_df.mean_ln);
            sampling += of_df.variance_ln;
        }
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|ln| (ln - mean) * (ln - mean)).sum::<f64>() / (n - 1.0);
        let sampling = sampling / n;
        let half = 0.5 * (seen.iter().map(|seen| seen.df).sum::<f64>() / n);
        let (fourth, second) = (pentagamma(half), trigamma(half));
        Self { mean, variance: variance - sampling, error: libm::sqrt((fourth + 2.0 * second * second) / n) }
    }

    /// The prior, given the excess over both arms.
    fn prior(self, pooled: f64) -> Prior {
        let excess = pooled.max(self.variance - self.error);
        if excess > 0.0 {
            let df = 2.0 * trigamma_inverse(excess);
            let half = 0.5 * df;
            Prior { df: df.min(D0_CAP), dispersion: libm::exp(self.mean + digamma(half) - libm::log(half)) }
        } else {
            Prior { df: D0_CAP, dispersion: libm::exp(self.mean) }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: by share descending, then by ratios; what is equal in all stays in its order.
        #[test]
        fn witnesses_in_order(few in proptest::collection::vec((0u8..4, 0u8..3, 0u8..3), 0..60)) {
            let seen = |ratio: u8, place: usize| (ratio > 0).then(|| Dispersion { ratio: f64::from(ratio), df: length(place) });
            let witness = |(place, &(share, head, base)): (usize, &(u8, u8, u8))| Witness {
                share: f64::from(share),
                arms: Arms { head: seen(head, place), base: seen(base, place) },
            };
            let mut witnesses: Vec<Witness> = few.iter().enumerate().map(witness).collect();
            let mut expected = witnesses.clone();
            let key = |one: &Witness| [-one.share, one.ratio(Side::Base), one.ratio(Side::Head)];
            expected.sort_by(|one, other| key(one).partial_cmp(&key(other)).expect("no NaN"));
            in_order(&mut witnesses);
            prop_assert_eq!(format!("{witnesses:?}"), format!("{expected:?}"));
        }
    }
}
