//! Cost per request: "Per request" in section 5 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow};
use fleetdiff_schemas::verdict::{Support, Verdict};

use super::counts::{Archive, BASE, BucketCounts, Cell, HEAD, Stratum};
use super::evidence::{Evidence, KindEvidence, column, kept_or_all, pods_of_bucket};
use super::row::{About, Line, around, is_equivalent, reason, untested};
use super::statistics::strata::{Arm, Model, Tested, strata_test};
use super::statistics::tails::t_quantile;

/// The number of samples from which a function is tested, whatever is set for shares.
const FLOOR: f64 = 30.0;

/// The tests of rates of one cell.
pub(super) struct Rates {
    /// By count kind: which functions, and their tests.
    kinds: BTreeMap<CountKind, (Vec<usize>, Rate)>,
    /// The test of all samples together.
    all: Rate,
}

/// Tests of rates that share their degrees of freedom.
struct Rate {
    test: Tested,
    /// Two-sided 95 % of Student's t.
    t95: f64,
    /// Two-sided 90 %.
    t90: f64,
}

/// The tests of rates, if the requests of both arms are known and there are enough pods for a test.
pub(super) fn rates(archive: &Archive, cell: &Cell, evidence: &Evidence) -> Option<Rates> {
    let used = kept_or_all(cell);
    let known = |arm: usize| buckets(&used, arm).iter().all(|bucket| requests(&used, arm, *bucket) > 0);
    if evidence.support == Support::Untestable || !known(HEAD) || !known(BASE) {
        return None;
    }
    let rate = |width: usize, counts: &dyn Fn(&BucketCounts) -> Vec<f64>| {
        let arm = |which| arm(&used, which, width, counts);
        let test = strata_test(&arm(HEAD), &arm(BASE), Model::Rate, 1.0, FLOOR);
        let df = test.df_total;
        Rate { test, t95: t_quantile(0.95, df), t90: t_quantile(0.9, df) }
    };
    let of_kind = |(kind, found): (&CountKind, &KindEvidence)| {
        let functions: Vec<usize> =
            found.counts.keys().copied().filter(|function| *archive.names[*function] != *UNSYMBOLISED).collect();
        let counts = |bucket: &BucketCounts| {
            functions.iter().map(|function| float(bucket.functions[*function][column(*kind)])).collect()
        };
        let rate = rate(functions.len(), &counts);
        (*kind, (functions, rate))
    };
    Some(Rates {
        kinds: evidence.kinds.iter().map(of_kind).collect(),
        all: rate(1, &|bucket| vec![float(bucket.samples)]),
    })
}

impl Rates {
    /// Fills the columns of functions, and adds the row of all functions to self counts.
    pub fn add(&self, about: &About, evidence: &Evidence, lines: &mut Vec<Line>) {
        let Some((functions, rate)) = self.kinds.get(&about.kind) else { return };
        for line in lines.iter_mut() {
            let place = line.function.and_then(|function| functions.iter().position(|one| *one == function));
            if let Some(place) = place {
                rate.fill(&mut line.row, place);
            }
        }
        if about.kind == CountKind::SelfCount {
            lines.push(self.line_of_all(about, evidence));
        }
    }

    fn line_of_all(&self, about: &About, evidence: &Evidence) -> Line {
        let total = |arm: usize| u64::try_from(evidence.arms[arm].total).unwrap_or(0);
        // Its share of 1 gives no verdict.
        let row = CellRow {
            g: None,
            ln_p_iid: None,
            verdict: Verdict::Inconclusive,
            ..untested(about, evidence, ALL_FUNCTIONS, [total(HEAD), total(BASE)])
        };
        let mut line = Line::of(None, CellRow { reason: reason(&row, false), ..row });
        self.all.fill(&mut line.row, 0);
        let Rate { test, t90, .. } = &self.all;
        if test.tested[0] {
            let equivalent = is_equivalent(test.theta[0], t90 * test.se[0]);
            line.uniform = Some(test.theta[0]);
            if equivalent && evidence.support == Support::Firm {
                (line.row.verdict, line.row.reason) = (Verdict::Equivalent, None);
            }
        }
        line
    }
}

impl Rate {
    fn fill(&self, row: &mut CellRow, place: usize) {
        let Self { test, t95, .. } = self;
        if test.tested[place] {
            row.per_request_ln_p = Some(test.ln_p[place]);
            let in_both = test.a[place] > 0.0 && test.b[place] > 0.0;
            row.per_request_ratio = in_both.then(|| around(test.theta[place], t95 * test.se[place]));
        }
    }
}

/// The buckets of an arm.
fn buckets(used: &[&Stratum], arm: usize) -> BTreeSet<u8> {
    used.iter().flat_map(|stratum| stratum[arm].buckets.keys().copied()).collect()
}

/// Requests of a bucket over all strata.
fn requests(used: &[&Stratum], arm: usize, bucket: u8) -> u64 {
    used.iter().filter_map(|stratum| stratum[arm].buckets.get(&bucket)).map(|bucket| bucket.requests).sum()
}

/// An arm with requests as exposure; samples of a bucket in a stratum in which it served nothing are left out.
fn arm(used: &[&Stratum], arm: usize, width: usize, counts: &dyn Fn(&BucketCounts) -> Vec<f64>) -> Arm {
    let buckets = buckets(used, arm);
    let row = |stratum: &Stratum, bucket: &u8| match stratum[arm].buckets.get(bucket) {
        Some(found) if found.requests > 0 => counts(found),
        _ => vec![0.0; width],
    };
    let exposure =
        |stratum: &Stratum, bucket: &u8| stratum[arm].buckets.get(bucket).map_or(0.0, |found| float(found.requests));
    Arm {
        counts: used.iter().map(|stratum| buckets.iter().map(|bucket| row(stratum, bucket)).collect()).collect(),
        samples: used.iter().map(|stratum| buckets.iter().map(|bucket| exposure(stratum, bucket)).collect()).collect(),
        pods: buckets.iter().map(|bucket| pods_of_bucket(used, arm, *bucket)).collect(),
        imbalance: false,
    }
}
