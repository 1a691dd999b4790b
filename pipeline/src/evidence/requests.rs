//! Cost per request on rows, and the row of all functions together.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow};
use fleetdiff_statistics::always_valid::ln_p_always_valid;
use fleetdiff_statistics::evalue::ln_e;
use fleetdiff_statistics::normalization::Anchor;
use fleetdiff_statistics::requests::{anchor, each_function};
use fleetdiff_statistics::{Contrast, Levels, Scales, Tests};

use super::others::FromOthers;
use super::row::{ALWAYS_VALID_ALPHA, LEVEL, RowEvidence, RowFrame, as_ratio, known};
use super::tests::{LEAST_DF, support_of};

/// A change per request at this level is a change.
const LN_P_MOVED: f64 = -2.995_732_273_553_991;

/// Cost per request of the functions of a cell, or of several together, in one kind of count.
#[derive(Debug)]
pub struct RequestTests {
    tests: Tests,
    min_effect: f64,
}

impl RequestTests {
    /// Of every function of a contrast; `min_effect` is the smallest change that can be significant.
    pub fn of(contrast: &Contrast<'_>, min_effect: f64) -> Self {
        Self { tests: each_function(contrast), min_effect }
    }

    /// Adds the cost per request at a place of results to a row whose share was tested before.
    ///
    /// Where shares could not be normalized, the row is decided by both. Elsewhere a function whose cost per request moved as its
    /// normalized share did is not contradicted by its plain share.
    pub fn add_to(&self, evidence: &mut RowEvidence, frame: &RowFrame, place: usize) {
        if let Some(levels) = self.levels(place) {
            add_columns(&mut evidence.row, &self.tests, place);
            evidence.contradicts &= !(levels.ln_p(1.0) <= LN_P_MOVED && levels.theta() * evidence.theta > 0.0);
        }
        if evidence.unnormalized {
            self.decide(evidence, frame, place);
        }
    }

    /// The change and the e-value that decide about a function without a normalization factor, from those of its share.
    pub fn weakened(&self, place: usize, share: &Levels, theta_of_share: f64, own_ln_e: f64) -> (f64, f64) {
        match self.levels(place) {
            Some(levels) => (levels.theta(), own_ln_e.min(ln_e(ln_p(levels, theta_of_share), levels.variance()))),
            None => (theta_of_share, own_ln_e.min(ln_e(0.0, share.variance()))),
        }
    }

    /// Whether a function without a normalization factor is equivalent.
    pub fn is_equivalent(&self, place: usize) -> bool {
        self.levels(place).is_some_and(is_equivalent)
    }

    /// Decides a row without a normalization factor, of few functions of which shares cannot say which one moved: the change is
    /// that of its cost per request, and its share must have moved in the same direction.
    fn decide(&self, evidence: &mut RowEvidence, frame: &RowFrame, place: usize) {
        let row = &mut evidence.row;
        let (mut ln_p_moved, mut ln_p_min_effect) = (0.0, 0.0);
        evidence.equivalent = false;
        if let Some(levels) = self.levels(place) {
            ln_p_moved = ln_p(levels, evidence.theta);
            ln_p_min_effect = levels.tests().ln_p_min_effect(1.0, self.min_effect);
            (evidence.theta, evidence.variance) = (levels.theta(), levels.variance());
            evidence.equivalent = is_equivalent(levels);
            evidence.suspect = frame.gap.may_have_made(evidence.theta, evidence.variance);
            row.adjusted_ratio = row.per_request_ratio;
            let bounds = levels.tests().always_valid_interval(ALWAYS_VALID_ALPHA);
            row.always_valid_ratio = row.always_valid_ratio.map(|_| as_ratio(levels.theta(), bounds));
        }
        let larger = |own: Option<f64>, other: f64| own.map(|own| own.max(other));
        row.adjusted_ln_p = larger(row.adjusted_ln_p, ln_p_moved);
        row.ln_p_min_effect = larger(row.ln_p_min_effect, ln_p_min_effect);
        evidence.ln_p_row = evidence.ln_p_row.max(ln_p_moved).max(ln_p_min_effect);
        row.ln_p_row = known(evidence.ln_p_row);
        row.ln_e = row.ln_e.map(|own| own.min(ln_e(ln_p_moved, evidence.variance)));
    }

    /// What is known of the function at a place.
    fn levels(&self, place: usize) -> Option<&Levels> {
        self.tests.tested[place].then_some(&self.tests.levels[place])
    }
}

/// ln p of no change per request, for a change in the direction of `theta_of_share`; few degrees of freedom carry no test.
fn ln_p(levels: &Levels, theta_of_share: f64) -> f64 {
    if levels.df >= LEAST_DF && levels.theta() * theta_of_share > 0.0 { levels.ln_p(1.0) } else { 0.0 }
}

fn is_equivalent(levels: &Levels) -> bool {
    levels.df >= LEAST_DF && levels.is_equivalent(0.0)
}

/// The columns of cost per request.
fn add_columns(row: &mut CellRow, requests: &Tests, place: usize) {
    let levels = &requests.levels[place];
    row.per_request_ln_p = known(levels.ln_p(1.0));
    if requests.counts.head[place] > 0.0 && requests.counts.base[place] > 0.0 {
        let interval = levels.interval(libm::log1p(-LEVEL));
        row.per_request_ratio = Some(as_ratio(levels.theta(), interval));
    }
}

/// The row of all samples of a cell: whether a request costs more, over all functions; `largest` is ln of its largest
/// e-value in this epoch, in scope `epoch`.
pub fn row_of_all(frame: &RowFrame, all: &Tests, largest: Option<f64>) -> RowEvidence {
    let name: Arc<str> = ALL_FUNCTIONS.into();
    let count = |total: i64| u64::try_from(total).unwrap_or(0);
    let hash = stable_hash(name.as_bytes());
    let mut evidence = frame.row(hash, &name, count(frame.head.total), count(frame.base.total));
    evidence.of_all = true;
    evidence.decided = frame.not_testable(&evidence.row);
    // A share of 1 against a share of 1 carries no information.
    (evidence.row.g, evidence.row.ln_p_iid) = (None, None);
    if !is_tested(all) {
        if evidence.decided.is_none() {
            evidence.lacks_degrees_of_freedom(frame);
        }
        return evidence;
    }
    let levels = &all.levels[0];
    add_columns(&mut evidence.row, all, 0);
    evidence.theta = levels.theta();
    evidence.from_others = Some(FromOthers::of(all, &Scales::UNCHANGED, 0, 0));
    evidence.equivalent = levels.is_equivalent(0.0);
    evidence.suspect = frame.gap.may_have_made(evidence.theta, levels.variance());
    evidence.row.support = support_of(frame.head.pods, frame.base.pods, levels.df);
    evidence.row.ln_e = known(ln_e(levels.ln_p(1.0), levels.variance()));
    evidence.row.always_valid_ln_p = largest.map(ln_p_always_valid);
    evidence
}

/// Whether each bucket of an arm has requests in some stratum; `rows` are its buckets, stratum by stratum.
pub fn are_known<B: Ord>(rows: impl Iterator<Item = (B, u64)>) -> bool {
    let mut requests: BTreeMap<B, u64> = BTreeMap::new();
    rows.for_each(|(bucket, served)| *requests.entry(bucket).or_default() += served);
    requests.values().all(|&served| served > 0)
}

/// What the cost per request of all samples says of scales, if these were tested.
pub fn anchor_of(all: Option<&Tests>) -> Option<Anchor> {
    all.filter(|all| is_tested(all)).and_then(anchor)
}

/// Whether all samples together could be tested per request.
pub fn is_tested(all: &Tests) -> bool {
    all.tests == 1 && all.levels[0].df >= LEAST_DF
}
