//! Cost per request on rows, and the row of all functions together.

use std::sync::Arc;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::rows::ALL_FUNCTIONS;
use fleetdiff_statistics::always_valid::ln_p_always_valid;
use fleetdiff_statistics::evalue::ln_e;
use fleetdiff_statistics::{Scales, Tests};

use super::others::FromOthers;
use super::row::{LEVEL, RowEvidence, RowFrame, as_ratio, known};
use super::tests::{LEAST_DF, support_of};

/// A per-request change at this level is a change.
const LN_P_MOVED: f64 = -2.995_732_273_553_991;

/// Adds the cost per request at a place of results, if it was tested, to a row of which the share was tested before.
///
/// A function whose cost per request moved as its normalized share did is not contradicted by its plain share; where shares could
/// not be normalized, its share alone does not decide.
pub fn add_requests(evidence: &mut RowEvidence, requests: &Tests, place: usize) {
    evidence.share_only = evidence.unnormalized;
    if !requests.tested[place] {
        return;
    }
    let levels = &requests.levels[place];
    let ln_p = levels.ln_p(1.0);
    evidence.row.per_request_ln_p = known(ln_p);
    if requests.counts.head[place] > 0.0 && requests.counts.base[place] > 0.0 {
        let interval = levels.interval(libm::log1p(-LEVEL));
        evidence.row.per_request_ratio = Some(as_ratio(levels.theta(), interval));
    }
    let agrees = ln_p <= LN_P_MOVED && levels.theta() * evidence.theta > 0.0;
    evidence.contradicts &= !agrees;
    evidence.share_only &= !agrees;
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
    add_requests(&mut evidence, all, 0);
    evidence.theta = levels.theta();
    evidence.from_others = Some(FromOthers::of(all, &Scales::UNCHANGED, 0, 0));
    evidence.equivalent = levels.is_equivalent(0.0);
    evidence.follows_load = frame.load_gap.may_have_made(evidence.theta, levels.variance());
    evidence.row.support = support_of(frame.head.pods, frame.base.pods, levels.df);
    evidence.row.ln_e = known(ln_e(levels.ln_p(1.0), levels.variance()));
    evidence.row.always_valid_ln_p = largest.map(ln_p_always_valid);
    evidence
}

/// Whether all samples together could be tested per request.
pub fn is_tested(all: &Tests) -> bool {
    all.tests == 1 && all.levels[0].df >= LEAST_DF
}
