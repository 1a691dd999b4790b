//! Whether young pods of the head differ by more than the warm-up that the base's own pods once had.
//!
//! Right after a deploy young pods are compared with old ones, and a warm-up looks like a change. If history has the first
//! minutes of the base's pods, there is a second comparison: the head's young pods against those, at the same age on the
//! same kind of machine. A row has to hold in both, in the same direction: the p that decides is the larger of both, the
//! e-value the smaller. A service that always warms up in the same way is thus quiet from its second deploy on. A function
//! that this second comparison cannot test is decided by the first one alone.
//!
//! The head's young pods are those of the window in either scope: what was young longer ago is old by now, and then pods of
//! the same age are compared.
//!
//! NB: the pods of one deploy share its moment. How much starts differ from day to day is not in the variance of this
//! comparison; the minimum effect is all that covers it.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::HopClock;
use fleetdiff_schemas::verdict::Support;
use fleetdiff_statistics::evalue::ln_e;
use fleetdiff_statistics::{Scales, Tests, Untested};

use super::arms::CellArms;
use super::row::{RowEvidence, known};
use super::snapshot::Snapshot;
use super::tests::{ShareRows, ShareTests};
use crate::counts::cell::CellCounts;
use crate::counts::functions::CellFunctions;

/// The head's young pods and the base's own young pods of earlier, in one cell. What is measured of them is measured once, for a look
/// and all rows of a report.
#[derive(Debug)]
pub struct YoungArms<'a> {
    arms: CellArms<'a>,
    functions: &'a CellFunctions,
    thresholds: Thresholds,
    own: OfKind,
    total: OfKind,
    scales: OnceCell<Scales>,
}

/// What is tested in a cell, and against what.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// The cell's numbers of the functions that are never tested.
    pub untested: Untested,
    /// Smallest combined count that is tested.
    pub min_count: f64,
    /// Smallest change that can be significant.
    pub min_effect: f64,
}

/// One kind of count, over all functions.
#[derive(Debug, Default)]
struct OfKind {
    measured: OnceCell<Tests>,
    tests: OnceCell<YoungTests>,
}

/// What the second comparison says of functions, by stable hash; only of those that it tests.
#[derive(Debug, Default)]
pub struct YoungTests(BTreeMap<u64, YoungTest>);

#[derive(Clone, Copy, Debug)]
struct YoungTest {
    /// ln of the adjusted ratio.
    theta: f64,
    /// ln p against a change of at most the smallest effect.
    ln_p: f64,
    /// Variance of theta.
    variance: f64,
}

impl<'a> YoungArms<'a> {
    /// `None` if history has no young pods of the base of any age and kind of machine that the head's young pods have.
    pub fn of(
        counts: &'a CellCounts,
        comparison: &ComparisonId,
        clock: HopClock,
        thresholds: Thresholds,
    ) -> Option<Self> {
        counts.archive().keeping()?;
        let arms = CellArms::of_young(counts, comparison, clock);
        let (functions, own, total) = (counts.functions(), OfKind::default(), OfKind::default());
        let scales = OnceCell::new();
        (arms.kept > 0).then_some(Self { arms, functions, thresholds, own, total, scales })
    }

    /// The tests of the functions at these places in columns, ascending.
    pub fn tests(&self, kind: CountKind, places: &[usize]) -> YoungTests {
        if self.arms.support() == Support::Untestable {
            return YoungTests::default();
        }
        let scales = self.scales.get_or_init(|| Scales::of(self.measured(CountKind::SelfCount), None));
        let shares = ShareTests::at(&self.arms.contrast(kind, self.thresholds.untested), self.measured(kind), places);
        let hash = |place: &usize| self.functions.entries()[self.functions.number(*place)].0;
        YoungTests::of(places.iter().map(hash), &shares.rows(scales, self.thresholds.min_effect))
    }

    /// The tests of all functions of the cell.
    pub fn all_tests(&self, kind: CountKind) -> &YoungTests {
        let all = || self.tests(kind, &(0..self.functions.len()).collect::<Vec<_>>());
        self.of_kind(kind).tests.get_or_init(all)
    }

    /// The counts, for rows over several cells.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.functions, &self.arms)
    }

    fn measured(&self, kind: CountKind) -> &Tests {
        let contrast = || self.arms.contrast(kind, self.thresholds.untested);
        let measure = || ShareTests::measure(contrast(), self.thresholds.min_count).tests;
        self.of_kind(kind).measured.get_or_init(measure)
    }

    fn of_kind(&self, kind: CountKind) -> &OfKind {
        match kind {
            CountKind::SelfCount => &self.own,
            CountKind::Total => &self.total,
        }
    }
}

impl YoungTests {
    /// From the tests of functions, by stable hash in the order of places.
    pub fn of(hashes: impl Iterator<Item = u64>, shares: &ShareRows<'_>) -> Self {
        let rows = &shares.rows;
        let tested = hashes.enumerate().filter(|(place, _)| rows.tests.tested[*place]);
        let test = |place: usize| YoungTest {
            theta: rows.theta[place],
            ln_p: rows.ln_p_row[place],
            variance: rows.tests.levels[place].variance(),
        };
        Self(tested.map(|(place, hash)| (hash, test(place))).collect())
    }

    /// The e-value of a function whose change is `theta` and whose own e-value is `own_ln_e`.
    pub fn ln_e(&self, hash: u64, theta: f64, own_ln_e: f64) -> f64 {
        self.0.get(&hash).map_or(own_ln_e, |test| own_ln_e.min(test.ln_e(theta)))
    }

    /// Decides a tested row by the weaker of both comparisons.
    pub fn weaken(&self, evidence: &mut RowEvidence) {
        let Some(test) = self.0.get(&evidence.hash) else { return };
        let ln_p = test.ln_p(evidence.theta);
        evidence.ln_p_row = evidence.ln_p_row.max(ln_p);
        evidence.row.young_ln_p = known(ln_p);
        evidence.row.ln_p_row = known(evidence.ln_p_row);
        evidence.row.ln_e = evidence.row.ln_e.map(|own| own.min(test.ln_e(evidence.theta)));
    }
}

impl YoungTest {
    /// ln p, of a change in the same direction as `theta`.
    fn ln_p(&self, theta: f64) -> f64 {
        if self.theta * theta > 0.0 { self.ln_p } else { 0.0 }
    }

    fn ln_e(&self, theta: f64) -> f64 {
        ln_e(self.ln_p(theta), self.variance)
    }
}
