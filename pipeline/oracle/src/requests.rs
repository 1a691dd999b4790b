//! Cost per request: "Per request" in section 5 of `docs/semantics.md`.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, is_of_several};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow};
use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};

use super::arms::{column, kept_of, support};
use super::counts::{Archive, BASE, BucketCounts, Cell, HEAD};
use super::evidence::{Evidence, KindEvidence};
use super::rates::{Rate, test};
use super::row::{About, Line, OfAll, around, is_equivalent, reason, untested};
use super::statistics::always_valid::ln_e;

/// The tests of all functions by count kind over these cells together, whose requests are known.
pub(super) fn rates(archive: &Archive, cells: &[&Cell], evidence: &Evidence) -> BTreeMap<CountKind, Rate> {
    let used = kept_of(cells);
    let of_kind = |(kind, found): (&CountKind, &KindEvidence)| {
        let functions: Vec<usize> =
            found.counts.keys().copied().filter(|function| !is_of_several(&archive.names[*function])).collect();
        let counts = |bucket: &BucketCounts| {
            functions.iter().map(|function| float(bucket.functions[*function][column(*kind)])).collect()
        };
        let test = test(&used, functions.len(), &counts);
        (*kind, Rate { functions, test })
    };
    evidence.kinds.iter().map(of_kind).collect()
}

impl Rate {
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
            made: evidence.differ.of_share(self.test.theta[0], self.test.variance[0]),
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
