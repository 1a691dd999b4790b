//! Cost per request: requests as exposure, with a spread, weights and priors of its own.
//!
//! Shares cannot show a change that hits all functions by one factor; samples per request can. Pods differ in samples per request
//! far more than in shares (their load, their hardware, their neighbours), so nothing of the test of shares is used. One more row,
//! all samples of the cell together, is the uniform change; it has no prior, since there is nothing like it to compare with.
//!
//! What makes it wrong: requests that cost different amounts and are mixed differently in the arms; requests that only some pods of
//! a bucket report.

use crate::arms::Arms;
use crate::contrast::Contrast;
use crate::normalization::Anchor;
use crate::number::float;
use crate::strata::{Arm, BucketCounts, BucketRow, Model, Stratum};
use crate::test::{Hops, Measure, Tests};

/// Cost per request of one cell; both have no strata where the arms share none with requests.
#[derive(Clone, Debug)]
pub struct PerRequest {
    /// Every function.
    pub functions: Tests,
    /// All samples together: one row.
    pub all: Tests,
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
    /// Tests every function of the cell and their sum per request.
    ///
    /// Checked against the reference program (`cell.json`) to 1e-7.
    #[must_use]
    pub fn measure(contrast: &Contrast<'_>) -> Self {
        Self { functions: each_function(contrast), all: all_samples(contrast) }
    }

    /// ln p of "costs as much per request" of the function at `place`; NaN where not tested.
    #[must_use]
    pub fn ln_p(&self, place: usize) -> f64 {
        if self.functions.tested[place] { self.functions.levels[place].ln_p(1.0) } else { f64::NAN }
    }
}

/// Hops tell how samples clump among samples; of requests they tell nothing.
fn per_request() -> Measure<'static> {
    Measure { hops: Hops::Unknown, ..Measure::afresh(Model::Rate) }
}

/// Every function of the cell per request.
#[must_use]
pub fn each_function(contrast: &Contrast<'_>) -> Tests {
    Tests::measure(contrast, &per_request())
}

/// All samples of the cell per request, as one row.
#[must_use]
pub fn all_samples(contrast: &Contrast<'_>) -> Tests {
    let samples = |row: &BucketRow<'_>| AllSamples(float(row.samples));
    let totals: Vec<Arms<Vec<AllSamples>>> = contrast
        .strata
        .iter()
        .map(|stratum| stratum.as_ref().map(|arm| arm.rows.iter().map(samples).collect()))
        .collect();
    let strata = contrast.strata.iter().zip(&totals).map(|(stratum, totals)| as_one(stratum, totals));
    let all = Contrast::new(1, strata.collect(), contrast.pods.clone());
    Tests::measure(&all, &per_request())
}

/// The change per request that tells which scale stood still; `None` unless it was tested and both arms have samples.
#[must_use]
pub fn anchor(all: &Tests) -> Option<Anchor> {
    let levels = all.levels.first().filter(|_| all.tests == 1)?;
    let anchor = Anchor { theta: levels.theta(), se: libm::sqrt(levels.variance()) };
    (anchor.theta.is_finite() && anchor.se > 0.0).then_some(anchor)
}

fn as_one<'t>(stratum: &Stratum<'_>, totals: &'t Arms<Vec<AllSamples>>) -> Stratum<'t> {
    Arms::of(|side| {
        let row = |(row, total): (&BucketRow<'_>, &'t AllSamples)| -> BucketRow<'t> {
            let counts: Vec<&'t dyn BucketCounts> = vec![total];
            BucketRow {
                bucket: row.bucket,
                samples: row.samples,
                requests: row.requests,
                hop_concentration: row.hop_concentration,
                counts,
            }
        };
        Arm { rows: stratum[side].rows.iter().zip(&totals[side]).map(row).collect(), hop_pairs: Vec::new() }
    })
}
