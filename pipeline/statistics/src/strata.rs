//! What is compared with what: strata, arms, and the buckets of pods inside them.
//!
//! Head and base are compared inside a stratum (a block of time, on one hardware, at one age of pods) and only then put
//! together, so that a fleet whose load drifts during a roll-out does not look changed. Inside a stratum an arm is a list of
//! buckets of pods: the pod is the replicate, and a bucket keeps its number across strata, hours and restarts, so that its
//! deviations can be added up before they are squared.

use crate::arms::Arms;
use crate::number::float;

/// Counts by function, in whatever form they are kept.
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
    fn add_to(&self, start: usize, out: &mut [f64]) {
        add_slice(self, start, out, float);
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
    /// Its samples in this stratum.
    pub samples: u64,
    /// The requests that it served in this stratum; 0 where they are not known.
    pub requests: u64,
    /// Sum over its hops of (samples of the hop)^2, over (all its samples)^2: 1 if they came in one hop, 1/60 if evenly in sixty.
    pub hop_concentration: f64,
    /// Its counts by function; several builds of one arm add up.
    pub counts: Vec<&'a dyn BucketCounts>,
}

impl BucketRow<'_> {
    /// Samples or requests, as the model has it.
    #[must_use]
    pub fn exposure(&self, model: Model) -> u64 {
        match model {
            Model::Share => self.samples,
            Model::Rate => self.requests,
        }
    }
}

/// One arm in one stratum.
#[derive(Clone, Default)]
pub struct Arm<'a> {
    /// Rows by ascending bucket; those without exposure take no part.
    pub rows: Vec<BucketRow<'a>>,
    /// By function: sum over its buckets and their hops of x (x-1), x the count in the hop; 0 for most functions. Empty where it is
    /// not kept.
    pub hop_pairs: Vec<&'a dyn BucketCounts>,
}

impl Arm<'_> {
    /// Total exposure of the arm in this stratum.
    #[must_use]
    pub fn exposure(&self, model: Model) -> u64 {
        self.rows.iter().map(|row| row.exposure(model)).sum()
    }
}

/// Two arms that ran side by side.
pub type Stratum<'a> = Arms<Arm<'a>>;
