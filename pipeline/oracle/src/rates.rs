//! The tests of rates: samples with requests as exposure.

use fleetdiff_schemas::number::float;

use super::arms::{LEAST_DF, by_bucket, numbers_of_pods, occupied};
use super::counts::{BASE, BucketCounts, HEAD, Stratum};
use super::statistics::geometry::ArmData;
use super::statistics::levels::{Model, StrataTest, strata_test};

/// The number of samples from which a function is tested, whatever is set for shares.
const FLOOR: f64 = 30.0;
/// A share that moves against the change is overruled by a cost per request with at most this p.
const OVERRULES: f64 = 0.05;

/// Tests of rates of one cell and one count kind.
pub(super) struct Rate {
    /// Which functions; empty for the test of all samples together.
    pub functions: Vec<usize>,
    pub test: StrataTest,
}

/// The test of all samples together, if the requests of both arms are known.
pub(super) fn rate_of_all(used: &[&Stratum]) -> Option<Rate> {
    let all = |bucket: &BucketCounts| vec![float(bucket.samples)];
    are_known(used).then(|| {
        let mut test = test(used, 1, &all);
        test.leave_out_below_df(LEAST_DF);
        Rate { functions: Vec::new(), test }
    })
}

impl Rate {
    /// The tests.
    pub fn test(&self) -> &StrataTest {
        &self.test
    }

    /// ln of the ratio of all samples per request and its standard error, if it was tested and has one.
    pub fn anchor(&self) -> Option<(f64, f64)> {
        let (theta, se) = (self.test.theta[0], self.test.variance[0].sqrt());
        (self.test.tested[0] && theta.is_finite() && se > 0.0).then_some((theta, se))
    }

    /// Whether the test of all samples leaves room for no change; `None` if it was not made.
    pub fn is_open(&self) -> Option<bool> {
        self.test.tested[0].then(|| self.test.ln_p(0, 1.0) > OVERRULES.ln())
    }

    /// Whether the cost per request of a function moved with the sign of `theta`.
    pub fn agrees(&self, function: usize, theta: f64) -> bool {
        let place = self.functions.iter().position(|one| *one == function);
        place.is_some_and(|place| {
            self.test.tested[place]
                && self.test.ln_p(place, 1.0) <= OVERRULES.ln()
                && self.test.theta[place] * theta > 0.0
        })
    }
}

/// Whether each bucket of both arms has requests in some stratum.
pub(super) fn are_known(used: &[&Stratum]) -> bool {
    let requests = |arm: usize, bucket: u8| -> u64 {
        used.iter().filter_map(|stratum| stratum[arm].buckets.get(&bucket)).map(|bucket| bucket.requests).sum()
    };
    [HEAD, BASE].into_iter().all(|arm| occupied(used, arm).into_iter().all(|bucket| requests(arm, bucket) > 0))
}

/// The test with requests as exposure; samples of a bucket in a stratum in which it served nothing are left out.
pub(super) fn test(used: &[&Stratum], width: usize, counts: &dyn Fn(&BucketCounts) -> Vec<f64>) -> StrataTest {
    let none = vec![0.0; width];
    let served = |bucket: &BucketCounts| if bucket.requests > 0 { counts(bucket) } else { none.clone() };
    let [head, base] = [HEAD, BASE].map(|arm| ArmData {
        counts: by_bucket(used, arm, none.clone(), served),
        exposure: by_bucket(used, arm, 0.0, |bucket| float(bucket.requests)),
        pods: numbers_of_pods(used, arm),
    });
    strata_test(&head, &base, Model::Rate, FLOOR, None, None, None)
}
