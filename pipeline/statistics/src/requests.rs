//! Cost per request: requests as exposure, with a dispersion of its own.
//!
//! Shares cannot show a change that hits all functions alike; samples per request can. Pods differ in samples per request far
//! more than in shares (their load, their hardware, their neighbours), so the dispersion of the shares must not be used: with
//! pods that differ by CV 10 % in samples per request it calls something in .44 of runs in which nothing changed. Here the
//! spread of the buckets' own rates decides. One more row, all samples of the cell together, is the uniform change.
//!
//! What makes it wrong: requests that cost unlike amounts and are mixed otherwise in one arm; requests that only some pods of a
//! bucket report.

use std::collections::BTreeMap;

use crate::contrast::Contrast;
use crate::moments::Moments;
use crate::number::float;
use crate::strata::{Arm, BucketCounts, BucketRow, Model, Stratum};
use crate::test::Test;
use crate::thresholds::MIN_COUNT;

/// One bucket of one arm in one stratum, with what it served.
#[derive(Clone)]
pub struct ServedRow<'a> {
    /// The bucket's number, the same in every stratum.
    pub bucket: u16,
    /// Requests it served; a row without any is left out, its samples too.
    pub requests: u64,
    /// All its samples.
    pub samples: u64,
    /// Its counts by function; several builds of one arm add up.
    pub counts: Vec<&'a dyn BucketCounts>,
}

/// Two arms that ran side by side, rows ascending by bucket.
#[derive(Clone, Default)]
pub struct ServedStratum<'a> {
    /// The arm in question.
    pub head: Vec<ServedRow<'a>>,
    /// The arm it is held against.
    pub base: Vec<ServedRow<'a>>,
}

/// One cell with its requests.
#[derive(Clone, Default)]
pub struct Served<'a> {
    /// Number of functions; their ids are `0..functions`.
    pub functions: usize,
    /// All strata; those in which an arm served nothing are left out of the tests.
    pub strata: Vec<ServedStratum<'a>>,
    /// Distinct head pods by bucket; an occupied bucket that is missing here counts one pod.
    pub head_pods: BTreeMap<u16, u32>,
    /// Distinct base pods by bucket.
    pub base_pods: BTreeMap<u16, u32>,
    /// A function that is in no family.
    pub untested: Option<usize>,
    /// The functions that are measured, ascending, if not all are: results then go by place in this list.
    pub only: Option<Vec<u32>>,
}

/// A test of rates: what does not depend on the scale, and the test at scale 1.
#[derive(Clone, Debug)]
pub struct RateTest {
    /// Counts, dispersion, ratio and error; `moments.strata` is 0 where the arms share no stratum with requests.
    pub moments: Moments,
    /// The test of "as many samples a request as before"; `theta` is ln of the ratio of samples per request.
    pub test: Test,
}

/// Cost per request of one cell.
#[derive(Clone, Debug)]
pub struct PerRequest {
    /// Every function, moderated over the functions of the cell.
    pub functions: RateTest,
    /// All samples together: one row, whose dispersion is its own.
    pub all: RateTest,
}

/// All samples of a bucket, as if they were one function.
struct AllSamples(f64);

impl BucketCounts for AllSamples {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        if let (0, Some(first)) = (start, out.first_mut()) {
            *first += self.0;
        }
    }
}

impl PerRequest {
    /// Tests every function of the cell and their sum per request; a row is tested with at least 30 samples in both arms.
    ///
    /// [`Moments::measure`] with [`Model::Rate`]: one stratum takes the likelihood ratio of two Poisson rates, more take U^2/V
    /// with U = sum(x1 - X R1/R), V = sum X R1 R0/R^2; dispersion, moderation and the few-pods rule are those of shares, with
    /// requests in the place of samples. Checked against the reference program (`decide.json`, `per_request_all.json`) to 1e-7.
    #[must_use]
    pub fn measure(served: &Served<'_>) -> Self {
        let totals: Vec<[Vec<AllSamples>; 2]> =
            served.strata.iter().map(|s| [all_samples(&s.head), all_samples(&s.base)]).collect();
        let mut functions = served.contrast(served.functions, served.strata.iter().map(ServedStratum::by_function));
        functions.untested = served.untested;
        functions.only.clone_from(&served.only);
        let all = served.contrast(1, served.strata.iter().zip(&totals).map(|(stratum, totals)| stratum.as_one(totals)));
        Self { functions: RateTest::of(&functions), all: RateTest::of(&all) }
    }
}

impl RateTest {
    fn of(contrast: &Contrast<'_>) -> Self {
        let moments = Moments::measure(contrast, Model::Rate, MIN_COUNT);
        let test = moments.normalized(1.0);
        Self { moments, test }
    }
}

impl Served<'_> {
    fn contrast<'c>(&self, functions: usize, strata: impl Iterator<Item = Stratum<'c>>) -> Contrast<'c> {
        Contrast::new(functions, strata.collect(), self.head_pods.clone(), self.base_pods.clone())
    }
}

impl<'a> ServedStratum<'a> {
    fn by_function(&self) -> Stratum<'a> {
        let row =
            |row: &ServedRow<'a>| BucketRow { bucket: row.bucket, exposure: row.requests, counts: row.counts.clone() };
        let arm = |rows: &[ServedRow<'a>]| Arm { rows: rows.iter().map(row).collect() };
        Stratum { head: arm(&self.head), base: arm(&self.base) }
    }

    fn as_one<'t>(&self, [head, base]: &'t [Vec<AllSamples>; 2]) -> Stratum<'t> {
        Stratum { head: as_one(&self.head, head), base: as_one(&self.base, base) }
    }
}

fn all_samples(rows: &[ServedRow<'_>]) -> Vec<AllSamples> {
    rows.iter().map(|row| AllSamples(float(row.samples))).collect()
}

fn as_one<'t>(rows: &[ServedRow<'_>], totals: &'t [AllSamples]) -> Arm<'t> {
    let row = |(row, total): (&ServedRow<'_>, &'t AllSamples)| BucketRow {
        bucket: row.bucket,
        exposure: row.requests,
        counts: vec![total],
    };
    Arm { rows: rows.iter().zip(totals).map(row).collect() }
}
