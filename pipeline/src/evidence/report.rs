//! The rows of one cell for a table.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{Scope, Support};
use fleetdiff_statistics::outliers;
use fleetdiff_statistics::requests::all_samples;
use serde::{Deserialize, Serialize};

use super::gap::Gap;
use super::hidden::hidden;
use super::imbalance::{Imbalance, imbalance};
use super::kind::{KindEvidence, PodEvidence, RareRows};
use super::look::LookMemory;
use super::pod_by_pod::merge_pods;
use super::pods::WindowPods;
use super::requests::{anchor_of, row_of_all};
use super::row::RowEvidence;
use super::snapshot::Snapshot;
use super::splits::{Split, splits};
use super::strata_detail::{History, StrataDetail};
use super::tests::{Places, ShareTests};
use super::view::CellView;
use super::young::YoungArms;

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
    /// Those of young pods of both arms, if pods of different ages are compared and history has some of the base.
    pub young: Option<Snapshot>,
    /// How the arms' pods differ in load and age.
    pub gap: Gap,
    /// Imbalances of the arms within the window; scope `window` only.
    pub imbalance: Vec<Imbalance>,
    /// The base divided by what the arms differ in; scope `window` only.
    pub splits: Vec<Split>,
    /// Where the arms ran, if they share no stratum.
    pub strata_detail: Option<StrataDetail>,
    /// Which history the base is, if it is history.
    pub history: Option<History>,
}

/// The rows of a cell in one scope; none if the head has no sample in it. What functions share is measured afresh.
pub fn report(view: &CellView<'_>, scope: Scope, kinds: &[CountKind], memory: &LookMemory) -> Option<ScopeReport> {
    let arms = view.arms(scope);
    if arms.figures(Side::Head).total == 0 {
        return None;
    }
    let support = arms.support();
    let knows_requests = support != Support::Untestable && !view.merges_strata() && arms.knows_requests();
    let all = knows_requests.then(|| all_samples(&arms.contrast(CountKind::SelfCount, view.untested)));
    let measure = |kind| ShareTests::measure(arms.contrast(kind, view.untested), view.min_count);
    let mut own = (support != Support::Untestable).then(|| measure(CountKind::SelfCount));
    let scales = own.as_ref().map(|own| own.scales(anchor_of(all.as_ref()), knows_requests || view.merges_strata()));
    let one_by_one = view.method.tests_pods_one_by_one();
    let pods = window_pods(view, scope);
    let young = view.young_beside(&arms);
    let (mut rows, mut rare) = (Vec::new(), Vec::new());
    for (&kind, family) in kinds.iter().zip(&memory.families) {
        let tests = match kind {
            CountKind::SelfCount => own.take(),
            CountKind::Total => scales.as_ref().map(|_| measure(kind)),
        };
        let shares = tests.zip(scales.as_ref()).map(|(tests, scales)| tests.rows(scales, view.min_effect));
        let frame = view.frame(scope, kind, &arms, support);
        let per_request = knows_requests.then(|| view.request_tests(&arms, kind));
        let (head, base) = (arms.counts(Side::Head, kind), arms.counts(Side::Base, kind));
        let evidence = KindEvidence {
            functions: view.counts.functions().entries(),
            frame: &frame,
            counts: (&head, &base),
            min_count: view.min_count,
            places: Places(Some(view.counts.functions().places())),
            tests: shares.as_ref(),
            pods_of_bucket: &|side, bucket| arms.pods_of_bucket(side, bucket),
            requests: per_request.as_ref(),
            family: (scope == Scope::Epoch).then_some((family, view.comparison.epoch)),
            pods: pods.as_ref().filter(|_| !one_by_one).map(|pods| pods.evidence(view, kind, support)),
            young: young.map(|young| young.all_tests(kind)),
        };
        let (mut of_kind, rare_of_kind) = evidence.rows(view.q);
        if let (CountKind::SelfCount, Some(all)) = (kind, &all) {
            let largest = (scope == Scope::Epoch).then(|| memory.all.largest_ln_e(view.comparison.epoch, 0));
            of_kind.push(row_of_all(&frame, all, largest));
        }
        if let Some(pods) = pods.as_ref().filter(|_| one_by_one) {
            merge_pods(&mut of_kind, view.counts.functions(), pods, kind, view.method);
        }
        rows.push(of_kind);
        rare.push(rare_of_kind);
    }
    let (imbalance, splits) = differences(view, scope, pods.as_ref().filter(|_| !one_by_one));
    Some(ScopeReport {
        scope,
        rows,
        rare,
        snapshot: Snapshot::of(view.counts.functions(), &arms),
        young: young.map(YoungArms::snapshot),
        gap: view.gap(),
        imbalance,
        splits,
        strata_detail: view.strata_detail(&arms),
        history: None,
    })
}

/// The pods of the window, one by one, where a method looks at them.
fn window_pods(view: &CellView<'_>, scope: Scope) -> Option<WindowPods> {
    let looks_at_them = view.method.tests_pods_one_by_one() || !view.merges_strata();
    (scope == Scope::Window && looks_at_them).then(|| WindowPods::of(view.counts, &view.comparison.id))
}

/// What the arms differ in and how the base is split by that; in the window only.
fn differences(view: &CellView<'_>, scope: Scope, pods: Option<&WindowPods>) -> (Vec<Imbalance>, Vec<Split>) {
    if scope == Scope::Epoch {
        return (Vec::new(), Vec::new());
    }
    let arms = view.arm_facts();
    let now = view.clock.end_of(view.hop);
    let mut imbalance = imbalance(arms, view.clock, now);
    let Some(pods) = pods else { return (imbalance, Vec::new()) };
    imbalance.extend(hidden(pods, view.untested));
    (imbalance, splits(arms, now))
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
