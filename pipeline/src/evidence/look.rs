//! What one cell contributes to one look of the live rule: its figures, the functions that joined the family, and the
//! rows that may be raised.

use std::collections::BTreeSet;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::{index_of, whole};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{Scope, Support};
use fleetdiff_statistics::always_valid::ln_p_always_valid;
use fleetdiff_statistics::compositional::moved_with_the_rest;
use fleetdiff_statistics::families::{MOST_IMPORTANCE, importance};
use fleetdiff_statistics::interval::equivalent;
use fleetdiff_statistics::live::live_rows;
use fleetdiff_statistics::normalization::Mode;
use fleetdiff_statistics::requests::all_samples;
use fleetdiff_statistics::{Arms, Pooled, Scales, Tests};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use super::family::Family;
use super::held::{Held, LookTime};
use super::requests::{RequestTests, anchor_of, is_tested, row_of_all};
use super::row::{RowEvidence, add_always_valid, add_tests};
use super::tests::ShareTests;
use super::young::{YoungArms, YoungTests};
use crate::counts::functions::CellFunctions;
use crate::evidence::view::CellView;

/// One kind of count of one cell at one look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindLook {
    /// Self or total.
    pub count_kind: CountKind,
    /// Whether a stratum has both arms.
    pub comparable: bool,
    /// Whether pods of the same age are compared.
    pub of_same_age: bool,
    /// Head samples of the epoch.
    pub head_total: i64,
    /// Base samples of the epoch.
    pub base_total: i64,
    /// Whether all pods say how many requests they served, so that a change of all functions by the same factor can be
    /// detected.
    pub requests_known: bool,
    /// Stable hashes of the head's pods.
    pub head_pods: Vec<u64>,
    /// Stable hashes of the base's pods.
    pub base_pods: Vec<u64>,
    /// Whether there are enough pods for a test.
    pub support: Support,
    /// Functions tested now.
    pub tests: u64,
    /// Functions tested at some look of this epoch.
    pub joined: u64,
    /// What these weigh together in the live rule's family.
    pub weight: f64,
    /// Whether all samples together were tested per request at some look of this epoch; self counts only.
    pub all_joined: bool,
    /// ln p of the cost per request of all samples together, if it is tested now.
    pub all_ln_p: Option<f64>,
    /// The scales of the cell, the deciding one first, if anything was tested.
    pub scales: Vec<Mode>,
    /// Variance between the pods of head and base, if anything was tested.
    pub pod_variance: Option<(f64, f64)>,
    /// Time blocks with both arms.
    pub time_blocks: u64,
    /// Strata in which an arm is missing.
    pub strata_dropped: u64,
    /// Share of the base's self samples in equivalent functions with firm support.
    pub equivalent_share: Option<f64>,
    /// Functions whose share moved only because another's did, largest change first, in a cell with watched rows; self
    /// counts only.
    pub compositional: Vec<String>,
    /// Rows tested now whose weighted e-value may have reached 1/q at some look since the comparison opened; among self
    /// counts also the row of all samples together.
    pub watched: Vec<RowEvidence>,
}

/// What a cell remembers of one comparison between looks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LookMemory {
    /// One per kind of count.
    pub families: Vec<Family>,
    /// Of all samples together per request.
    pub all: Family,
    held: Held,
}

impl LookMemory {
    /// Functions that are watched in some kind of count, by the cell's numbers.
    pub fn watched(&self) -> impl Iterator<Item = usize> {
        self.families.iter().flat_map(Family::watched)
    }
}

impl KindLook {
    /// The figures of a cell without tests. They are the same in each kind of count; the kind is set to self counts.
    pub fn untested(arms: &CellArms<'_>) -> Self {
        let hashes = |side| {
            let mut hashes: Vec<_> =
                arms.pods(side).into_iter().map(|pod| stable_hash(pod.as_str().as_bytes())).collect();
            hashes.sort_unstable();
            hashes
        };
        Self {
            count_kind: CountKind::SelfCount,
            comparable: arms.kept > 0,
            of_same_age: arms.kept > 0 && !arms.across_ages,
            head_total: arms.figures(Side::Head).total,
            base_total: arms.figures(Side::Base).total,
            requests_known: arms.knows_requests(),
            head_pods: hashes(Side::Head),
            base_pods: hashes(Side::Base),
            support: Support::Untestable,
            tests: 0,
            joined: 0,
            weight: 0.0,
            all_joined: false,
            all_ln_p: None,
            scales: Vec::new(),
            pod_variance: None,
            time_blocks: u64::try_from(arms.blocks).unwrap_or(0),
            strata_dropped: u64::try_from(arms.dropped).unwrap_or(0),
            equivalent_share: None,
            compositional: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Adds the number of tested functions and, if there are any, the scales and the variance between pods.
    pub(crate) fn add_tests(&mut self, tests: &Tests, scales: &Scales) {
        self.tests = u64::try_from(tests.tests).unwrap_or(0);
        if self.tests > 0 {
            self.scales = std::iter::once(&scales.deciding).chain(&scales.rivals).copied().collect();
            self.pod_variance = Some((tests.pooled.spread.head, tests.pooled.spread.base));
        }
    }
}

/// Looks at every kind of count of a cell. `memory` has one family per kind.
pub fn look(view: &CellView<'_>, time: LookTime, kinds: &[CountKind], memory: &mut LookMemory) -> Vec<KindLook> {
    let arms = CellArms::of(view.counts, Scope::Epoch, view.comparison);
    let mut figures = KindLook::untested(&arms);
    if figures.head_total == 0 && figures.base_total == 0 {
        return Vec::new();
    }
    let LookMemory { families, all: all_family, held } = memory;
    held.begin(time, &view.cell, &arms);
    let gap = held.gap(|| view.gap());
    view.on_demand.gap.get_or_init(|| gap);
    all_family.begin(view.comparison.epoch, arms.across_ages, 1);
    let own_counts = Sums::of(&arms, CountKind::SelfCount);
    let young = view.young_beside(&arms);
    let mut looking = Looking { view, arms: &arms, own_counts, all: None, young };
    let mut own = None;
    figures.support = arms.support();
    if figures.support != Support::Untestable {
        looking.all = figures.requests_known.then(|| all_samples(&arms.contrast(CountKind::SelfCount, [None; 2])));
        let all = looking.all.as_ref().filter(|all| is_tested(all));
        figures.all_ln_p = all.map(|all| all.levels[0].ln_p(1.0));
        let pooled = held.pooled(CountKind::SelfCount);
        let measured = looking.measure(CountKind::SelfCount, &looking.own_counts, pooled);
        let afresh = || measured.scales_of_look(anchor_of(all), figures.requests_known);
        let scales = held.scales().cloned().unwrap_or_else(afresh);
        if measured.tests.tests > 0 {
            held.hold(&measured.tests.pooled, &scales);
        }
        own = Some((measured, scales));
    }
    let all_row = looking.row_of_all(all_family);
    figures.all_joined = all_family.members() > 0;
    let scales = own.as_ref().map(|(_, scales)| scales.clone());
    let each = kinds.iter().zip(families).map(|(&kind, family)| {
        let tests = match (kind, &scales) {
            (CountKind::SelfCount, _) => own.take(),
            (CountKind::Total, None) => None,
            (CountKind::Total, Some(scales)) => {
                let sums = Sums::of(&arms, kind);
                let measured = looking.measure(kind, &sums, held.pooled(kind));
                if measured.tests.tests > 0 {
                    held.hold_total(&measured.tests.pooled);
                }
                Some((measured, scales.clone()))
            }
        };
        let mut seen = looking.at_kind(KindLook { count_kind: kind, ..figures.clone() }, tests, family);
        if kind == CountKind::SelfCount {
            seen.watched.extend(all_row.clone());
        } else {
            seen.all_joined = false;
        }
        seen
    });
    each.collect()
}

/// Samples of both arms by places of functions; empty if nothing is comparable.
struct Sums {
    head: Vec<f64>,
    base: Vec<f64>,
}

impl Sums {
    fn of(arms: &CellArms<'_>, kind: CountKind) -> Self {
        let of = |side| if arms.kept > 0 { arms.counts_by_place(side, kind) } else { Vec::new() };
        Self { head: of(Side::Head), base: of(Side::Base) }
    }
}

/// One look at a cell.
struct Looking<'l, 'v> {
    view: &'l CellView<'v>,
    arms: &'l CellArms<'l>,
    own_counts: Sums,
    /// All samples together per request, if requests are known.
    all: Option<Tests>,
    /// Young pods of both arms, if pods of different ages are compared and history has some of the base.
    young: Option<&'l YoungArms<'l>>,
}

/// The indices of a list of places, in the order of the cell's numbers.
fn order_of(places: &[u32], functions: &CellFunctions) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut indices = vec![NONE; functions.len()];
    for (index, &function) in (0..).zip(places) {
        indices[functions.number(index_of(function))] = index;
    }
    indices.retain(|&index| index != NONE);
    indices
}

impl<'l> Looking<'l, '_> {
    /// The tests of a kind, by index in the list of functions with enough samples.
    fn measure(&self, kind: CountKind, sums: &Sums, held: Option<&Pooled>) -> ShareTests<'l> {
        let view = self.view;
        let functions = view.counts.functions();
        let untested = view.untested.map(|number| number.map(|number| functions.places()[number]));
        let (mut places, mut counts) = (Vec::new(), Arms { head: Vec::new(), base: Vec::new() });
        for (function, (&head, &base)) in (0..).zip(sums.head.iter().zip(&sums.base)) {
            if head + base >= view.min_count && !untested.contains(&Some(function)) {
                places.push(function);
                counts.head.push(head);
                counts.base.push(base);
            }
        }
        let mut contrast = self.arms.contrast(kind, [None; 2]);
        // What is held was summed already.
        contrast.order = if held.is_none() { order_of(&places, functions) } else { Vec::new() };
        contrast.only = Some(places);
        ShareTests::of_summed(contrast, &counts, view.min_count, held)
    }

    /// The row of all samples together, if it is tested now.
    fn row_of_all(&self, family: &mut Family) -> Option<RowEvidence> {
        let all = self.all.as_ref().filter(|all| is_tested(all))?;
        family.join(std::iter::once(0));
        let frame = self.view.frame(Scope::Epoch, CountKind::SelfCount, self.arms, self.arms.support());
        let mut row = row_of_all(&frame, all, None);
        family.remember(0, row.row.ln_e.unwrap_or(f64::NAN));
        row.row.always_valid_ln_p = Some(ln_p_always_valid(family.largest_ln_e(self.view.comparison.epoch, 0)));
        Some(row)
    }

    /// What a kind of count contributes besides its figures.
    fn at_kind(&self, mut seen: KindLook, measured: Option<(ShareTests<'l>, Scales)>, family: &mut Family) -> KindLook {
        let functions = self.view.counts.functions();
        family.begin(self.view.comparison.epoch, self.arms.across_ages, functions.len());
        // A member without samples now weighs least.
        let mut importances = vec![1.0; functions.len()];
        let unnormalized = measured.as_ref().filter(|(_, scales)| self.all.is_some() && !scales.measured);
        let requests = unnormalized.map(|_| self.view.request_tests(self.arms, seen.count_kind));
        seen.equivalent_share = self.equivalent_share(seen.support, measured.as_ref(), requests.as_ref());
        if let Some((measured, scales)) = measured {
            seen.add_tests(&measured.tests, &scales);
            let places = measured.contrast.only.as_deref().unwrap_or_default();
            let tested = places.iter().zip(&measured.tests.tested).filter(|(_, tested)| **tested);
            family.join(tested.map(|(&place, _)| index_of(place)));
            for (index, &place) in places.iter().enumerate() {
                importances[index_of(place)] = importance(measured.tests.share_of_cost(index));
            }
            seen.watched = self.watched_rows(seen.count_kind, (&measured, &scales, requests.as_ref()), family);
            if seen.count_kind == CountKind::SelfCount && !seen.watched.is_empty() {
                seen.compositional = compositional(self.view, places, &measured.tests, &scales);
            }
        }
        seen.joined = family.members();
        seen.weight = family.weight(functions.places(), |place| importances[place]);
        seen
    }

    /// Share of the base's self samples in equivalent functions with firm support; `None` if nothing is comparable.
    /// `requests` decide with the shares, in cells without a normalization factor.
    fn equivalent_share(
        &self,
        support: Support,
        measured: Option<&(ShareTests<'_>, Scales)>,
        requests: Option<&RequestTests>,
    ) -> Option<f64> {
        let base_self = &self.own_counts.base;
        let all: f64 = base_self.iter().sum();
        if self.arms.kept == 0 || all <= 0.0 {
            return None;
        }
        let Some((measured, scales)) = measured.filter(|_| support == Support::Firm) else { return Some(0.0) };
        let (tests, ln_scale) = (&measured.tests, scales.deciding.ln_scale);
        let id = |index: usize| index_of(measured.contrast.id(index));
        let equivalent = match requests {
            Some(requests) => (0..tests.tested.len()).filter(|&index| requests.is_equivalent(id(index))).collect(),
            None => equivalent(&tests.levels, ln_scale),
        };
        let tested = equivalent.into_iter().filter(|&index| tests.tested[index]);
        Some(tested.map(|index| base_self[id(index)]).sum::<f64>() / all)
    }

    /// The complete rows of the tested functions that are watched; the others are only screened. Requests decide too where there
    /// is no normalization factor.
    fn watched_rows(
        &self,
        kind: CountKind,
        (measured, scales, requests): (&ShareTests<'l>, &Scales, Option<&RequestTests>),
        family: &mut Family,
    ) -> Vec<RowEvidence> {
        let view = self.view;
        // NB: the largest weight is kept apart, since a row's own weight says when it is watched.
        let (threshold, least) = (-libm::log(view.q), -libm::log(view.q * MOST_IMPORTANCE));
        let functions = view.counts.functions();
        let number = |index: usize| functions.number(index_of(measured.contrast.id(index)));
        let screened = live_rows(&measured.tests, scales, 1.0 / (view.q * MOST_IMPORTANCE));
        let numbers = screened.iter().map(|row| number(row.place)).chain(family.watched());
        let young = self.young_tests(kind, numbers);
        for row in screened {
            let most = libm::log(importance(measured.tests.share_of_cost(row.place)));
            let number = number(row.place);
            let (place, share) = (index_of(measured.contrast.id(row.place)), &measured.tests.levels[row.place]);
            let own = (row.theta, row.ln_e);
            let (theta, ln_e) = requests.map_or(own, |requests| requests.weakened(place, share, row.theta, row.ln_e));
            let ln_e = young.ln_e(functions.entries()[number].0, theta, ln_e);
            if ln_e + most >= threshold {
                family.watch(number);
            }
            if ln_e >= least {
                family.remember(number, ln_e);
            }
        }
        let index = |number: usize| measured.contrast.place(index_of(functions.places()[number]));
        let tested = family.watched().filter_map(|number| Some((number, index(number)?)));
        let mut tested: Vec<(usize, usize)> = tested.filter(|&(_, index)| measured.tests.tested[index]).collect();
        tested.sort_unstable_by_key(|&(_, index)| index);
        if tested.is_empty() {
            return Vec::new();
        }
        let mut rows = self.complete_rows(kind, &tested, (measured, scales, requests), family);
        rows.iter_mut().for_each(|row| young.weaken(row));
        rows
    }

    /// What the base's own young pods say of functions that may be raised, by the cell's numbers.
    fn young_tests(&self, kind: CountKind, functions: impl Iterator<Item = usize>) -> YoungTests {
        let Some(young) = self.young else { return YoungTests::default() };
        let all = self.view.counts.functions().places();
        let places: BTreeSet<usize> = functions.map(|number| index_of(all[number])).collect();
        if places.is_empty() {
            return YoungTests::default();
        }
        young.tests(kind, &Vec::from_iter(places))
    }

    /// The rows of some tested functions, each by the cell's number and the index in the tests, ascending by that.
    fn complete_rows(
        &self,
        kind: CountKind,
        functions: &[(usize, usize)],
        (measured, scales, requests): (&ShareTests<'l>, &Scales, Option<&RequestTests>),
        family: &Family,
    ) -> Vec<RowEvidence> {
        let view = self.view;
        let frame = view.frame(Scope::Epoch, kind, self.arms, self.arms.support());
        let counts = &measured.tests.counts;
        let indices: Vec<usize> = functions.iter().map(|&(_, index)| index).collect();
        let shares = measured.only(&indices).rows(scales, view.min_effect);
        let left_out = shares.leave_one_out();
        let mut rows = Vec::with_capacity(functions.len());
        for (place, &(number, index)) in functions.iter().enumerate() {
            let (hash, name) = &view.counts.functions().entries()[number];
            let mut evidence = frame.row(*hash, name, whole(counts.head[index]), whole(counts.base[index]));
            add_tests(&mut evidence, &frame, &shares, place);
            add_always_valid(&mut evidence, &shares, family.largest_ln_e(self.view.comparison.epoch, number), place);
            if let Some((side, bucket)) = left_out(place) {
                evidence.one_pod = self.arms.pods_of_bucket(side, bucket);
            }
            rows.push(evidence);
        }
        // Elsewhere only rows that their plain shares contradict need them.
        let contradicted = requests.is_none() && self.all.is_some() && rows.iter().any(|row| row.contradicts);
        let asked = contradicted.then(|| view.request_tests(self.arms, kind));
        if let Some(requests) = requests.or(asked.as_ref()) {
            let places = functions.iter().map(|&(number, _)| index_of(view.counts.functions().places()[number]));
            for (row, place) in rows.iter_mut().zip(places).filter(|(row, _)| row.contradicts || row.unnormalized) {
                requests.add_to(row, &frame, place);
            }
        }
        rows
    }
}

/// Changes are ordered in steps of 1e-9, so that changes that differ only by rounding are equal.
const STEPS: f64 = 1e9;

/// The functions of a cell that moved only because shares sum to one, the largest change first; none if the
/// normalization factor has not moved.
fn compositional(view: &CellView<'_>, places: &[u32], tests: &Tests, scales: &Scales) -> Vec<String> {
    let functions = view.counts.functions();
    let entries = functions.entries();
    let moved = moved_with_the_rest(tests, scales, view.q, view.min_effect).into_iter();
    let size = |index: usize| (tests.levels[index].theta().abs() * STEPS).round();
    let mut moved: Vec<(f64, usize)> =
        moved.map(|index| (size(index), functions.number(index_of(places[index])))).collect();
    moved.sort_by(|a, b| b.0.total_cmp(&a.0).then(entries[a.1].0.cmp(&entries[b.1].0)));
    moved.into_iter().map(|(_, function)| entries[function].1.to_string()).collect()
}
