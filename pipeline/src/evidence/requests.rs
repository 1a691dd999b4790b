//! Cost per request on rows, and the row of all functions together.

use std::sync::Arc;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, Interval};
use fleetdiff_statistics::effect::{interval_from_t, is_equivalent};
use fleetdiff_statistics::requests::RateTest;

use super::row::{Quantiles, RowEvidence, RowFrame, Uniform};

/// Adds the cost per request of its function to a row, with the `quantiles` of this test; nothing if it was not tested.
pub fn add_requests(evidence: &mut RowEvidence, requests: &RateTest, quantiles: &Quantiles, f: usize) {
    let moments = &requests.moments;
    if !moments.tested[f] {
        return;
    }
    let (theta, se) = (requests.test.theta[f], requests.test.se[f]);
    let row = &mut evidence.row;
    row.per_request_ln_p = Some(requests.test.ln_p[f]).filter(|ln_p| !ln_p.is_nan());
    if moments.a[f] > 0.0 && moments.b[f] > 0.0 {
        let bounds = interval_from_t(theta, se, quantiles.t95);
        row.per_request_ratio = Some(Interval { value: libm::exp(theta), low: bounds.low, high: bounds.high });
    }
}

/// The row of all samples of a cell: whether a request costs more, over all functions.
pub fn row_of_all(frame: &RowFrame, all: &RateTest) -> RowEvidence {
    let name: Arc<str> = ALL_FUNCTIONS.into();
    let count = |total: i64| u64::try_from(total).unwrap_or(0);
    let mut evidence = frame.row(stable_hash(name.as_bytes()), &name, count(frame.head.total), count(frame.base.total));
    evidence.decided = frame.not_testable(&evidence.row);
    // A share of 1 against a share of 1 carries no information.
    (evidence.row.g, evidence.row.ln_p_iid) = (None, None);
    let moments = &all.moments;
    let quantiles = Quantiles::of(moments.df_total);
    add_requests(&mut evidence, all, &quantiles, 0);
    if moments.tested[0] {
        let (theta, se) = (all.test.theta[0], all.test.se[0]);
        evidence.uniform = Some(Uniform { theta, equivalent: is_equivalent(theta, se, quantiles.t90) });
    }
    evidence
}
