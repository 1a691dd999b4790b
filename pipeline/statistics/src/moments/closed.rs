//! Strata that never change any more, as what they leave in the sums of a test.
//!
//! The law: sums over strata are taken in ascending order, and strata close in that order, so the deviations of a bucket that
//! were summed over the closed ones are where a sum over all strata would be when it comes to the first open one. What is
//! measured on top of them has the same bits as if every stratum were measured anew, whenever and in whatever portions strata
//! were folded in.
//!
//! A bucket's deviation over several strata is no whole number, hence eight bytes a function are kept for it. All else follows
//! from whole numbers that take a byte or two: a bucket's counts over all closed strata, and a stratum's over all buckets.

use std::collections::BTreeMap;

use crate::number::float;
use crate::strata::{Arm, BucketCounts, BucketRow, Stratum};

/// The deviations of both arms over closed strata, in one kind of count.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    /// Exposure of head and base by stratum.
    exposures: Vec<(u64, u64)>,
    /// Head and base, by bucket.
    arms: [BTreeMap<u16, Residual>; 2],
}

/// One bucket over closed strata.
#[derive(Clone, Debug, Default)]
struct Residual {
    /// In which strata the bucket is, and its exposure there; ascending.
    parts: Vec<(usize, u64)>,
    /// By function: sum over strata of w (x - p n); with a single part x - p n, since a bucket in one stratum is weighted later.
    /// Functions beyond its end have none.
    sums: Vec<f64>,
}

/// Counts by function over all of an arm's builds.
pub type Counts<'a> = Vec<&'a dyn BucketCounts>;

/// Closed strata as a contrast takes them.
#[derive(Clone)]
pub struct Prefix<'a> {
    /// The deviations.
    pub residuals: &'a Closed,
    /// By stratum: whole counts of head and base over all their buckets.
    pub strata: Vec<[Counts<'a>; 2]>,
    /// Of head and base, by bucket: whole counts over all closed strata.
    pub buckets: [BTreeMap<u16, Counts<'a>>; 2],
}

/// One arm of [`Prefix`].
#[derive(Default)]
pub(super) struct ClosedArm<'c> {
    pub strata: Vec<&'c [&'c dyn BucketCounts]>,
    pub buckets: Vec<(u16, ClosedBucket<'c>)>,
}

/// One bucket of one arm over all closed strata.
pub(super) struct ClosedBucket<'c> {
    pub parts: &'c [(usize, u64)],
    pub residuals: &'c [f64],
    pub counts: &'c [&'c dyn BucketCounts],
}

impl Closed {
    /// Adds a stratum that has both arms, later than all before it, whose counts never change again; `functions` as in
    /// [`crate::Contrast`]: those of a later stratum may be more.
    pub fn fold(&mut self, stratum: &Stratum<'_>, functions: usize) {
        let last = self.exposures.len();
        self.exposures.push((stratum.head.exposure(), stratum.base.exposure()));
        let Self { exposures, arms } = self;
        for (side, (arm, buckets)) in [&stratum.head, &stratum.base].into_iter().zip(arms).enumerate() {
            let shares = shares(arm, functions);
            for row in arm.rows.iter().filter(|row| row.exposure > 0) {
                let bucket = buckets.entry(row.bucket).or_default();
                bucket.parts.push((last, row.exposure));
                bucket.add(deviations(row, &shares), |stratum| weight_in(exposures[stratum], side));
            }
        }
    }

    /// Number of strata.
    #[must_use]
    pub fn strata(&self) -> usize {
        self.exposures.len()
    }

    /// Exposure of head and base by stratum.
    pub fn exposures(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.exposures.iter().copied()
    }

    /// Bytes of all deviations.
    #[must_use]
    pub fn size(&self) -> usize {
        self.arms.iter().flat_map(BTreeMap::values).map(|bucket| bucket.sums.capacity() * size_of::<f64>()).sum()
    }
}

/// w = N_other/N.
pub(super) fn weight(total: f64, other: f64) -> f64 {
    other / (total + other)
}

/// w = N_other/N of an arm in a stratum with these exposures.
fn weight_in((head, base): (u64, u64), side: usize) -> f64 {
    let (own, other) = if side == 0 { (head, base) } else { (base, head) };
    weight(float(own), float(other))
}

impl Residual {
    /// Adds the deviations in the last of `parts`, given the weights of strata.
    fn add(&mut self, deviations: Vec<f64>, weight: impl Fn(usize) -> f64) {
        let [(first, _), .., (last, _)] = *self.parts else {
            self.sums = deviations;
            return;
        };
        if self.parts.len() == 2 {
            self.sums.iter_mut().for_each(|sum| *sum = weighted(*sum, weight(first)));
        }
        self.sums.resize(deviations.len().max(self.sums.len()), 0.0);
        let last = weight(last);
        self.sums.iter_mut().zip(deviations).for_each(|(sum, deviation)| *sum += deviation * last);
    }
}

/// x - p n of one bucket, by function.
fn deviations(row: &BucketRow<'_>, shares: &[f64]) -> Vec<f64> {
    let mut counts = vec![0.0; shares.len()];
    row.counts.iter().for_each(|held| held.add_to(0, &mut counts));
    let exposure = float(row.exposure);
    counts.iter_mut().zip(shares).for_each(|(x, share)| *x -= share * exposure);
    counts
}

/// The first term of a sum of weighted deviations.
#[inline(always)]
pub(super) fn weighted(deviation: f64, weight: f64) -> f64 {
    0.0 + deviation * weight
}

/// Shares of an arm over all its buckets in a stratum.
fn shares(arm: &Arm<'_>, functions: usize) -> Vec<f64> {
    let mut sums = vec![0.0; functions];
    arm.rows.iter().flat_map(|row| &row.counts).for_each(|counts| counts.add_to(0, &mut sums));
    let total = float(arm.exposure());
    sums.iter_mut().for_each(|sum| *sum /= total);
    sums
}

impl Prefix<'_> {
    pub(super) fn arm(&self, side: usize) -> ClosedArm<'_> {
        let buckets = self.residuals.arms[side].iter().map(|(number, held)| {
            let counts = self.buckets[side].get(number).map(Vec::as_slice).unwrap_or_default();
            (*number, ClosedBucket { parts: &held.parts, residuals: &held.sums, counts })
        });
        ClosedArm { strata: self.strata.iter().map(|arms| arms[side].as_slice()).collect(), buckets: buckets.collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Contrast, Model, Moments};

    /// Counts by bucket; an empty one is not there.
    type Buckets = Vec<Vec<u32>>;
    /// Head and base by stratum.
    type Strata = Vec<[Buckets; 2]>;

    /// Functions that are met in time for the first stratum, and later.
    const FUNCTIONS: (usize, usize) = (30, 45);

    fn arm(buckets: &Buckets) -> Arm<'_> {
        let exposure = |counts: &Vec<u32>| counts.iter().map(|&count| u64::from(count)).sum::<u64>() + 7;
        let held = (0u16..).zip(buckets).filter(|(_, counts)| !counts.is_empty());
        let rows = held.map(|(bucket, counts)| BucketRow { bucket, exposure: exposure(counts), counts: vec![counts] });
        Arm { rows: rows.collect() }
    }

    fn strata() -> impl Strategy<Value = Strata> {
        let counts = |functions| proptest::collection::vec(prop_oneof![Just(0u32), 0u32..9, 0u32..400], functions);
        let bucket = move |functions| prop_oneof![1 => Just(Vec::new()), 3 => counts(functions)];
        let arm = move |functions| {
            (counts(functions), proptest::collection::vec(bucket(functions), 1..6))
                .prop_map(|(one, others)| [vec![one], others].concat())
        };
        let stratum = move |functions| [arm(functions), arm(functions)];
        (proptest::collection::vec(stratum(FUNCTIONS.0), 1..3), proptest::collection::vec(stratum(FUNCTIONS.1), 1..4))
            .prop_map(|(early, late)| [early, late].concat())
    }

    fn sum<'a>(columns: impl Iterator<Item = &'a Vec<u32>>) -> Vec<u64> {
        let mut sums = vec![0; FUNCTIONS.1];
        columns.for_each(|counts| sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u64::from(count)));
        sums
    }

    /// What is kept of the first strata, folded in one by one.
    struct Kept {
        residuals: Closed,
        strata: Vec<[Vec<u64>; 2]>,
        buckets: [BTreeMap<u16, Vec<u64>>; 2],
    }

    impl Kept {
        fn of(strata: &[[Buckets; 2]]) -> Self {
            let mut residuals = Closed::default();
            for [head, base] in strata {
                residuals.fold(&Stratum { head: arm(head), base: arm(base) }, head[0].len());
            }
            let bucket =
                |side: usize, bucket: u16| sum(strata.iter().filter_map(|arms| arms[side].get(usize::from(bucket))));
            let numbers = [0, 1].map(|side: usize| residuals.arms[side].keys().copied().collect::<Vec<_>>());
            let buckets =
                [0, 1].map(|side: usize| numbers[side].iter().map(|&number| (number, bucket(side, number))).collect());
            Self {
                strata: strata.iter().map(|arms| arms.each_ref().map(|arm| sum(arm.iter()))).collect(),
                buckets,
                residuals,
            }
        }

        fn prefix(&self) -> Prefix<'_> {
            fn counts(sums: &Vec<u64>) -> Counts<'_> {
                vec![sums]
            }
            Prefix {
                residuals: &self.residuals,
                strata: self.strata.iter().map(|arms| arms.each_ref().map(counts)).collect(),
                buckets: self
                    .buckets
                    .each_ref()
                    .map(|arm| arm.iter().map(|(&bucket, sums)| (bucket, counts(sums))).collect()),
            }
        }
    }

    /// Every number of a measurement and of its test at a scale.
    fn bits(moments: &Moments) -> Vec<u64> {
        let test = moments.normalized(1.03);
        let one_by_one = [
            moments.n_head,
            moments.n_base,
            moments.k_head,
            moments.k_base,
            moments.df,
            moments.df_total,
            moments.df_log_total,
            moments.tau2,
            moments.d0,
            moments.s02,
        ];
        let by_function = [
            &moments.a,
            &moments.b,
            &moments.mu,
            &moments.phi,
            &moments.phi_tilde,
            &moments.theta_raw,
            &moments.se,
            &test.stat,
            &test.ln_p_f,
            &test.ln_p_log,
            &test.ln_p,
            &test.se,
        ];
        one_by_one.into_iter().chain(by_function.into_iter().flatten().copied()).map(f64::to_bits).collect()
    }

    proptest! {
        /// Law: on top of any first strata, folded in before later functions were met, what is measured has the bits of
        /// measuring all strata anew; with few pods and many, for samples and requests, all functions and some.
        #[test]
        fn open_strata_on_top_of_closed_ones_give_the_same_bits(strata in strata(), many in any::<bool>(), rate in any::<bool>(), listed in any::<bool>()) {
            let pods: BTreeMap<u16, u32> = (0..8).map(|bucket| (bucket, if many { 12 } else { 1 })).collect();
            let model = if rate { Model::Rate } else { Model::Share };
            let only: Vec<u32> = (0..45).filter(|f| f % 7 != 2).collect();
            let measure = |closed: usize| {
                let kept = Kept::of(&strata[..closed]);
                let open = strata[closed..].iter().map(|[head, base]| Stratum { head: arm(head), base: arm(base) });
                let mut contrast = Contrast::new(FUNCTIONS.1, open.collect(), pods.clone(), pods.clone());
                contrast.closed = (closed > 0).then(|| kept.prefix());
                contrast.only = listed.then(|| only.clone());
                let measured = Moments::measure(&contrast, model, 30.0);
                (measured.strata, measured.tests, measured.few, bits(&measured))
            };
            let anew = measure(0);
            prop_assert!(anew.1 > 0 && anew.2 != many, "nothing was tested: {} strata, {} tests", anew.0, anew.1);
            for closed in 1..=strata.len() {
                prop_assert_eq!(&measure(closed), &anew, "{} of {} strata closed", closed, strata.len());
            }
        }
    }
}
