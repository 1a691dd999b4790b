//! Cost per request: "Per request" in section 5 of `docs/semantics.md`.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow};
use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};

use super::counts::{Archive, BASE, BucketCounts, Cell, HEAD, Stratum};
use super::evidence::{Evidence, by_bucket, column, kept_or_all, numbers_of_pods, occupied, support};
use super::row::{About, Line, OfAll, around, is_equivalent, reason, untested};
use super::statistics::always_valid::ln_e;
use super::statistics::levels::{ArmData, Model, StrataTest, strata_test};

/// The number of samples from which a function is tested, whatever is set for shares.
const FLOOR: f64 = 30.0;
/// Fewer degrees of freedom are no test of all samples.
const LEAST_DF: f64 = 2.0;
/// A share that moves against the change is overruled by a cost per request with at most this p.
const OVERRULES: f64 = 0.05;

/// Tests of rates of one cell and one count kind.
pub(super) struct Rate {
    /// Which functions; empty for the test of all samples together.
    functions: Vec<usize>,
    test: StrataTest,
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

/// The tests of all functions by count kind, where requests are known and used.
pub(super) fn rates(archive: &Archive, cell: &Cell, evidence: &Evidence) -> BTreeMap<CountKind, Rate> {
    let used = kept_or_all(cell);
    let kinds = evidence.kinds.iter().filter(|_| evidence.all.is_some());
    let of_kind = |(kind, found): (&CountKind, &super::evidence::KindEvidence)| {
        let functions: Vec<usize> =
            found.counts.keys().copied().filter(|function| *archive.names[*function] != *UNSYMBOLISED).collect();
        let counts = |bucket: &BucketCounts| {
            functions.iter().map(|function| float(bucket.functions[*function][column(*kind)])).collect()
        };
        let test = test(&used, functions.len(), &counts);
        (*kind, Rate { functions, test })
    };
    kinds.map(of_kind).collect()
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

    /// Fills the columns of functions.
    pub fn fill_functions<'a>(&self, lines: impl IntoIterator<Item = &'a mut Line>) {
        for line in lines {
            let place = line.function.and_then(|function| self.functions.iter().position(|one| *one == function));
            if let Some(place) = place {
                self.fill(&mut line.row, place);
            }
        }
    }

    /// The row of all functions.
    pub fn line_of_all(&self, about: &About, evidence: &Evidence) -> Line {
        let total = |arm: usize| u64::try_from(evidence.arms[arm].total).unwrap_or(0);
        // Its share of 1 gives no verdict.
        let row = CellRow {
            g: None,
            ln_p_iid: None,
            verdict: Verdict::Inconclusive,
            support: support(evidence.arms.map(|arm| arm.pods), self.test.df[0]),
            ..untested(about, evidence, ALL_FUNCTIONS, [total(HEAD), total(BASE)])
        };
        if !self.test.tested[0] {
            let (verdict, reason) = (Verdict::Untestable, Some(RowReason::FewPods));
            return Line::of(None, CellRow { verdict, reason, support: Support::Untestable, ..row });
        }
        let mut line = Line::of(None, CellRow { reason: reason(&row, false), ..row });
        self.fill(&mut line.row, 0);
        let all = OfAll {
            theta: self.test.theta[0],
            ln_e: ln_e(self.test.ln_p(0, 1.0), self.test.variance[0]),
            equivalent: is_equivalent(&self.test, 0, 0.0),
        };
        line.row.ln_e = Some(all.ln_e);
        line.all = Some(all);
        if line.is_equivalent() {
            (line.row.verdict, line.row.reason) = (Verdict::Equivalent, None);
        }
        line
    }

    fn fill(&self, row: &mut CellRow, place: usize) {
        let test = &self.test;
        if test.tested[place] {
            row.per_request_ln_p = Some(test.ln_p(place, 1.0));
            let in_both = test.counts.iter().all(|counts| counts[place] > 0.0);
            row.per_request_ratio = in_both.then(|| around(test, place, 0.05_f64.ln(), (0.0, 0.0)));
        }
    }
}

/// Whether each bucket of both arms has requests in some stratum.
fn are_known(used: &[&Stratum]) -> bool {
    let requests = |arm: usize, bucket: u8| -> u64 {
        used.iter().filter_map(|stratum| stratum[arm].buckets.get(&bucket)).map(|bucket| bucket.requests).sum()
    };
    [HEAD, BASE].into_iter().all(|arm| occupied(used, arm).into_iter().all(|bucket| requests(arm, bucket) > 0))
}

/// The test with requests as exposure; samples of a bucket in a stratum in which it served nothing are left out.
fn test(used: &[&Stratum], width: usize, counts: &dyn Fn(&BucketCounts) -> Vec<f64>) -> StrataTest {
    let none = vec![0.0; width];
    let served = |bucket: &BucketCounts| if bucket.requests > 0 { counts(bucket) } else { none.clone() };
    let [head, base] = [HEAD, BASE].map(|arm| ArmData {
        counts: by_bucket(used, arm, none.clone(), served),
        exposure: by_bucket(used, arm, 0.0, |bucket| float(bucket.requests)),
        pods: numbers_of_pods(used, arm),
    });
    strata_test(&head, &base, Model::Rate, FLOOR, None, None, None)
}
