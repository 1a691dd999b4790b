//! The rows of one cell for a table.

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{Scope, Support};
use fleetdiff_statistics::requests::PerRequest;
use fleetdiff_statistics::rows::rows_of;
use fleetdiff_statistics::{Moments, outliers};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use super::closed::ClosedStrata;
use super::family::Family;
use super::imbalance::{Imbalance, imbalance};
use super::kind::{KindEvidence, PodEvidence, RareRows};
use super::look::measured;
use super::pod_by_pod::merge_pods;
use super::pods::WindowPods;
use super::requests::row_of_all;
use super::row::{RowEvidence, support_of};
use super::snapshot::Snapshot;
use super::strata_detail::{History, StrataDetail};
use super::view::CellView;

/// The rows of one cell in one scope, and its counts for the roll-ups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeReport {
    /// Window or epoch.
    pub scope: Scope,
    /// Rows of each kind, in the order of kinds.
    pub rows: Vec<Vec<RowEvidence>>,
    /// Rare functions of each kind; tested in the window only.
    pub rare: Vec<RareRows>,
    /// The cell's counts.
    pub snapshot: Snapshot,
    /// Imbalances of the arms within the window; scope `window` only.
    pub imbalance: Vec<Imbalance>,
    /// Where the arms ran, if they share no stratum.
    pub strata_detail: Option<StrataDetail>,
    /// Which history the base is, if it is history.
    pub history: Option<History>,
}

/// The rows of a cell in one scope; none if the head has no sample in it. `closed` holds the strata of the epoch that
/// no longer change and have been added so far; how many those are does not affect a row.
pub fn report(
    view: &CellView<'_>,
    comparison: &OpenComparison,
    scope: Scope,
    kinds: &[CountKind],
    families: &[Family],
    closed: &ClosedStrata,
) -> Option<ScopeReport> {
    let arms_of = if view.merges_strata() { CellArms::merged } else { CellArms::of };
    let every_stratum = arms_of(view.counts, scope, comparison);
    let resuming =
        (scope == Scope::Epoch && !view.merges_strata()).then(|| CellArms::resuming(view.counts, comparison, closed));
    let arms = resuming.as_ref().unwrap_or(&every_stratum);
    if arms.figures(Side::Head).total == 0 {
        return None;
    }
    let own = measured(view, arms, CountKind::SelfCount);
    let normalization = own.as_ref().map(Moments::normalization);
    let served_of = |kind| every_stratum.served(kind, view.untested).filter(|_| !view.merges_strata());
    let served = served_of(CountKind::SelfCount);
    let one_by_one = view.method.tests_pods_one_by_one();
    let pods = (scope == Scope::Window && (one_by_one || !view.merges_strata()))
        .then(|| WindowPods::of(view.counts, &comparison.id));
    let (mut rows, mut rare) = (Vec::new(), Vec::new());
    for (&kind, family) in kinds.iter().zip(families) {
        let moments = match kind {
            CountKind::SelfCount => own.clone(),
            CountKind::Total => measured(view, arms, kind),
        };
        let tests = moments.map(|moments| rows_of(moments, normalization, view.min_effect));
        let support = tests.as_ref().map_or(Support::Untestable, |tests| support_of(&tests.moments));
        let frame = view.frame(scope, kind, arms, support);
        let per_request = served.as_ref().filter(|_| support != Support::Untestable).map(|served| match kind {
            CountKind::SelfCount => PerRequest::measure(served),
            CountKind::Total => PerRequest::measure(&served_of(kind).unwrap_or_default()),
        });
        let (head, base) = (arms.counts(Side::Head, kind), arms.counts(Side::Base, kind));
        let evidence = KindEvidence {
            functions: view.counts.functions().entries(),
            frame: &frame,
            counts: (&head, &base),
            min_count: view.min_count,
            tests: tests.as_ref(),
            requests: per_request.as_ref().map(|rates| &rates.functions),
            family: (scope == Scope::Epoch).then_some((family, view.epoch)),
            pods: pods.as_ref().filter(|_| !one_by_one).map(|pods| pods.evidence(view, kind, support)),
        };
        let (mut of_kind, rare_of_kind) = evidence.rows(view.q);
        if let (CountKind::SelfCount, Some(rates)) = (kind, &per_request) {
            of_kind.push(row_of_all(&frame, &rates.all));
        }
        if let Some(pods) = pods.as_ref().filter(|_| one_by_one) {
            merge_pods(&mut of_kind, view.counts.functions(), pods, kind, view.method);
        }
        rows.push(of_kind);
        rare.push(rare_of_kind);
    }
    Some(ScopeReport {
        scope,
        rows,
        rare,
        snapshot: Snapshot::of(view.counts.functions(), &every_stratum),
        imbalance: imbalance_within(view, comparison, scope),
        strata_detail: view.strata_detail(arms),
        history: None,
    })
}

/// Imbalance of the arms is reported for the window only.
fn imbalance_within(view: &CellView<'_>, comparison: &OpenComparison, scope: Scope) -> Vec<Imbalance> {
    match scope {
        Scope::Window => imbalance(view.counts, &comparison.id, view.clock, view.clock.end_of(view.hop)),
        Scope::Epoch => Vec::new(),
    }
}

impl WindowPods {
    /// The evidence of single pods about the functions of a kind; outliers need five pods in each arm.
    fn evidence(&self, view: &CellView<'_>, kind: CountKind, support: Support) -> PodEvidence<'_> {
        let settings = outliers::Settings { untested: view.untested, keep_ln_p: libm::log(view.q) };
        let functions = view.counts.functions().len();
        let held =
            || outliers::outliers(functions, &self.rows(Side::Head, kind), &self.rows(Side::Base, kind), &settings);
        PodEvidence {
            pods: self,
            showing: (self.showing(Side::Head, kind), self.showing(Side::Base, kind)),
            outliers: (support == Support::Firm).then(held),
        }
    }
}
