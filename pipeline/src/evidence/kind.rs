//! The rows of one kind of count: all tests of a function on one row.

use std::sync::Arc;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::{table_count, whole};
use fleetdiff_schemas::rows::RARE;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};
use fleetdiff_statistics::outliers::Outliers;
use fleetdiff_statistics::rare::{RareArm, ln_p_rare};
use serde::{Deserialize, Serialize};

use super::family::Family;
use super::pods::WindowPods;
use super::requests::RequestTests;
use super::row::{RowEvidence, RowFrame, add_always_valid, add_tests};
use super::tests::{Places, ShareRows};
use super::young::YoungTests;

/// What is known of the functions of one cell, or of several together, in one scope and kind.
pub struct KindEvidence<'a> {
    /// Stable hash and name of each function.
    pub functions: &'a [(u64, Arc<str>)],
    /// What rows have in common.
    pub frame: &'a RowFrame,
    /// Samples of each function, head and base.
    pub counts: (&'a [f64], &'a [f64]),
    /// Smallest combined count that is tested.
    pub min_count: f64,
    /// Where the functions are in tests.
    pub places: Places<'a>,
    /// The tests of shares, if there are enough pods for a test.
    pub tests: Option<&'a ShareRows<'a>>,
    /// The names of an arm's pods that share a bucket.
    pub pods_of_bucket: &'a dyn Fn(Side, u16) -> Vec<String>,
    /// Cost per request, if requests are known.
    pub requests: Option<&'a RequestTests>,
    /// For the live rule: the largest e-values, and the epoch to which they must belong.
    pub family: Option<(&'a Family, Hop)>,
    /// Pod by pod, within the window.
    pub pods: Option<PodEvidence<'a>>,
    /// Where pods of different ages are compared: against the base's own young pods of earlier, if history has any.
    pub young: Option<&'a YoungTests>,
}

/// Evidence that needs single pods.
pub struct PodEvidence<'a> {
    /// The pods.
    pub pods: &'a WindowPods,
    /// How many pods have samples of each function, head and base.
    pub showing: (Vec<u64>, Vec<u64>),
    /// Whether a minority of the pods differs, if there are enough pods.
    pub outliers: Option<Outliers>,
}

/// The rare functions of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RareRows {
    /// How many were tested.
    pub tested: u64,
    /// The functions that a family could reject, each with its own row.
    pub candidates: Vec<RowEvidence>,
}

impl KindEvidence<'_> {
    /// A row for every function with enough samples, and one for all others; also the rows of rare functions that could
    /// be significant at level `q`.
    pub fn rows(&self, q: f64) -> (Vec<RowEvidence>, RareRows) {
        let left_out = self.tests.map(ShareRows::leave_one_out);
        let is_rare = |f: usize| self.counts.0[f] + self.counts.1[f] < self.min_count;
        // NB: rows are large, so that a list that grows copies much; besides these there are the rows of all others and of all together.
        let mut rows = Vec::with_capacity((0..self.functions.len()).filter(|&f| !is_rare(f)).count() + 2);
        let mut rare = RareRows::default();
        let (mut functions, mut rare_head, mut rare_base) = (0usize, 0, 0);
        for (f, (hash, name)) in self.functions.iter().enumerate() {
            let (head, base) = (whole(self.counts.0[f]), whole(self.counts.1[f]));
            if head + base == 0 {
                continue;
            }
            if is_rare(f) {
                functions += 1;
                rare_head += head;
                rare_base += base;
                self.add_rare(&mut rare, (*hash, name, f), (head, base), q);
                continue;
            }
            let mut evidence = self.frame.row(*hash, name, head, base);
            self.add_all(&mut evidence, f);
            let place = self.places.of(f);
            if let (true, Some(left_out)) = (evidence.tested, &left_out)
                && let Some((side, bucket)) = left_out(place)
            {
                evidence.one_pod = (self.pods_of_bucket)(side, bucket);
            }
            rows.push(evidence);
        }
        if functions > 0 {
            let mut evidence = self.frame.row(0, &RARE.into(), rare_head, rare_base);
            evidence.row.functions = Some(table_count(functions));
            evidence.decided = Some((Verdict::TooRare, RowReason::CountNeeded));
            evidence.row.detail = self.frame.detail(evidence.decided);
            rows.push(evidence);
        }
        (rows, rare)
    }

    /// Adds every test of function `f`.
    fn add_all(&self, evidence: &mut RowEvidence, f: usize) {
        let place = self.places.of(f);
        match self.tests {
            Some(tests) if tests.rows.tests.tested[place] => {
                add_tests(evidence, self.frame, tests, place);
                if let Some((family, epoch)) = self.family {
                    add_always_valid(evidence, tests, family.largest_ln_e(epoch, f), place);
                }
            }
            Some(_) if evidence.decided.is_none() => evidence.lacks_degrees_of_freedom(self.frame),
            _ => {}
        }
        if let Some(requests) = self.requests {
            requests.add_to(evidence, self.frame, place);
        }
        if let Some(young) = self.young.filter(|_| evidence.tested) {
            young.weaken(evidence);
        }
        if let Some(PodEvidence { pods, outliers: Some(outliers), .. }) = &self.pods {
            let ln_p = outliers.ln_p[f];
            evidence.row.outlier_ln_p = (!ln_p.is_nan()).then_some(ln_p);
            let named = |pod: u32, ln_p: f64| Some((pods.head_name(pod)?.as_str().to_owned(), ln_p));
            evidence.deviating_pods = outliers.pods(f).iter().filter_map(|pod| named(pod.pod, pod.ln_p)).collect();
        }
    }

    /// Tests a rare function by its counts and by the pods that have it, if there are enough pods for a test.
    fn add_rare(
        &self,
        rare: &mut RareRows,
        (hash, name, f): (u64, &Arc<str>, usize),
        (head, base): (u64, u64),
        q: f64,
    ) {
        let Some(evidence) = &self.pods else { return };
        let mut row = self.frame.row(hash, name, head, base);
        if row.decided.is_some() {
            return;
        }
        let arm = |side, count, total: i64, showing: &[u64]| RareArm {
            count,
            total: u64::try_from(total).unwrap_or(0),
            showing: showing.get(f).copied().unwrap_or(0),
            pods: u64::try_from(evidence.pods.len(side)).unwrap_or(u64::MAX),
        };
        let ln_p = ln_p_rare(
            arm(Side::Head, head, self.frame.head.total, &evidence.showing.0),
            arm(Side::Base, base, self.frame.base.total, &evidence.showing.1),
        );
        if ln_p.is_nan() {
            return;
        }
        rare.tested += 1;
        if ln_p <= libm::log(q) {
            row.row.rare_ln_p = Some(ln_p);
            row.row.support = Support::Tentative;
            rare.candidates.push(row);
        }
    }
}
