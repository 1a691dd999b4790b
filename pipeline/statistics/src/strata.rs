//! What is compared with what: arms, strata, and the buckets of pods inside them.
//!
//! Head and base are compared inside a stratum (a block of time on one hardware) and only then put together, so that a fleet
//! whose load drifts during a roll-out does not look changed. Inside a stratum an arm is a list of buckets of pods: the pod is
//! the replicate, and a bucket keeps its number across strata, hours and restarts, so that its deviations can be added up
//! before they are squared.

use std::collections::BTreeMap;

use crate::moments::closed::Prefix;

/// Counts by function of one bucket, in whatever form they are kept.
pub trait BucketCounts {
    /// Adds the counts of the functions `start..start + out.len()` to `out`; functions that are not held count 0.
    ///
    /// Counts are whole numbers below 2^53, or values divided by their unit.
    fn add_to(&self, start: usize, out: &mut [f64]);

    /// Adds the counts of these functions, ascending, to `out`, which has one place for each.
    fn add_only(&self, functions: &[u32], out: &mut [f64]) {
        let place = |&function: &u32| usize::try_from(function).unwrap_or(usize::MAX);
        let (Some(start), Some(last)) = (functions.first().map(place), functions.last().map(place)) else { return };
        let mut all = vec![0.0; last - start + 1];
        self.add_to(start, &mut all);
        for (sum, function) in out.iter_mut().zip(functions) {
            *sum += all[place(function) - start];
        }
    }
}

/// Adds a slice of any number that becomes a float without loss worth speaking of.
fn add_slice<T: Copy>(counts: &[T], start: usize, out: &mut [f64], as_float: impl Fn(T) -> f64) {
    let held = counts.get(start..).unwrap_or_default();
    for (sum, &count) in out.iter_mut().zip(held) {
        *sum += as_float(count);
    }
}

impl BucketCounts for Vec<u32> {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        add_slice(self, start, out, f64::from);
    }
}

impl BucketCounts for Vec<u64> {
    #[expect(clippy::as_conversions, reason = "counts are below 2^53")]
    fn add_to(&self, start: usize, out: &mut [f64]) {
        add_slice(self, start, out, |count| count as f64);
    }
}

impl BucketCounts for Vec<f64> {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        add_slice(self, start, out, |count| count);
    }
}

/// What an arm's exposure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Samples: a function's count is part of the exposure, and shares are compared.
    Share,
    /// Requests: a function's count is a Poisson count per request.
    Rate,
}

/// One bucket of one arm in one stratum.
#[derive(Clone)]
pub struct BucketRow<'a> {
    /// The bucket's number, the same in every stratum.
    pub bucket: u16,
    /// Samples (or requests) of the bucket in this stratum, more than 0.
    pub exposure: u64,
    /// Its counts by function; several builds of one arm add up.
    pub counts: Vec<&'a dyn BucketCounts>,
}

/// One arm in one stratum: occupied buckets only, ascending.
#[derive(Clone, Default)]
pub struct Arm<'a> {
    /// Rows by ascending bucket, each with exposure.
    pub rows: Vec<BucketRow<'a>>,
}

impl Arm<'_> {
    /// Total exposure of the arm in this stratum.
    #[must_use]
    pub fn exposure(&self) -> u64 {
        self.rows.iter().map(|row| row.exposure).sum()
    }
}

/// Two arms that ran side by side.
#[derive(Clone, Default)]
pub struct Stratum<'a> {
    /// The arm in question.
    pub head: Arm<'a>,
    /// The arm it is held against.
    pub base: Arm<'a>,
}

/// All that one test of a cell needs.
#[derive(Clone, Default)]
pub struct Contrast<'a> {
    /// Number of functions; their ids are `0..functions`.
    pub functions: usize,
    /// Strata with both arms that never change, if their sums are kept: they come before `strata`.
    pub closed: Option<Prefix<'a>>,
    /// Strata in which both arms have exposure.
    pub strata: Vec<Stratum<'a>>,
    /// Strata left out since an arm was missing.
    pub strata_dropped: usize,
    /// Distinct head pods by bucket, over all strata; an occupied bucket that is missing here counts one pod.
    pub head_pods: BTreeMap<u16, u32>,
    /// Distinct base pods by bucket.
    pub base_pods: BTreeMap<u16, u32>,
    /// A function that is in no family: its samples count only to the exposure.
    pub untested: Option<usize>,
    /// The functions that are measured, ascending, if not all are: results then go by place in this list. The others count
    /// to the exposure only.
    pub only: Option<Vec<u32>>,
    /// Whether pods of one arm gave far more or fewer samples than those of the other, so that one dispersion does not fit both:
    /// the test on the log scale must then agree whatever the number of pods, and the standard error is the larger of the two.
    pub unlike: bool,
}

impl<'a> Contrast<'a> {
    /// The contrast of `strata`, without those in which an arm has no exposure; these are counted. Rows without exposure are
    /// left out.
    #[must_use]
    pub fn new(
        functions: usize,
        strata: Vec<Stratum<'a>>,
        head_pods: BTreeMap<u16, u32>,
        base_pods: BTreeMap<u16, u32>,
    ) -> Self {
        let all = strata.len();
        let mut strata = strata;
        for stratum in &mut strata {
            stratum.head.rows.retain(|row| row.exposure > 0);
            stratum.base.rows.retain(|row| row.exposure > 0);
        }
        strata.retain(|stratum| stratum.head.exposure() > 0 && stratum.base.exposure() > 0);
        let strata_dropped = all - strata.len();
        Self {
            functions,
            closed: None,
            strata,
            strata_dropped,
            head_pods,
            base_pods,
            untested: None,
            only: None,
            unlike: false,
        }
    }

    /// How many functions are measured.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.only.as_ref().map_or(self.functions, Vec::len)
    }

    /// Measures only functions that can be tested: at least `min_count` samples in both arms together, and not
    /// [`Contrast::untested`]. Nothing that is tested changes by a bit, since what is shared within a cell rests on its family.
    pub fn keep_family(&mut self, min_count: f64) {
        const BLOCK: usize = 1024;
        let mut family = Vec::new();
        let mut sums = [0.0; BLOCK];
        for start in (0..self.functions).step_by(BLOCK) {
            let sums = &mut sums[..BLOCK.min(self.functions - start)];
            sums.fill(0.0);
            let rows = self.strata.iter().flat_map(|stratum| stratum.head.rows.iter().chain(&stratum.base.rows));
            let closed = self.closed.iter().flat_map(|closed| closed.strata.iter().flatten().flatten());
            rows.flat_map(|row| &row.counts).chain(closed).for_each(|counts| counts.add_to(start, sums));
            let enough = (start..).zip(&*sums).filter(|&(f, &sum)| sum >= min_count && Some(f) != self.untested);
            family.extend(enough.map(|(f, _)| u32::try_from(f).unwrap_or(u32::MAX)));
        }
        self.untested = None;
        self.only = Some(family);
    }
}
