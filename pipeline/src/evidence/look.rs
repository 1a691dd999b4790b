//! What one cell contributes to one look of the live rule: its figures, the functions that joined the family, and the
//! rows that may be raised.

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::{index_of, whole};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{Scope, Support};
use fleetdiff_statistics::compositional::moved_with_the_rest;
use fleetdiff_statistics::live::live_rows_of;
use fleetdiff_statistics::rows::rows_of;
use fleetdiff_statistics::{LiveRows, Model, Moments};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use super::closed::ClosedStrata;
use super::family::Family;
use super::row::{Quantiles, RowEvidence, add_always_valid, add_tests, support_of};
use crate::counts::functions::CellFunctions;
use crate::evidence::view::CellView;

/// One kind of count of one cell at one look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindLook {
    /// Self or total.
    pub count_kind: CountKind,
    /// Whether a stratum has both arms.
    pub comparable: bool,
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
    /// The cell's normalization factor, if anything was tested.
    pub normalization: Option<f64>,
    /// Moderation of this kind (variance between pods tau^2, prior degrees of freedom d0, prior dispersion s0^2), if
    /// anything was tested.
    pub moderation: Option<(f64, f64, f64)>,
    /// Time blocks with both arms.
    pub time_blocks: u64,
    /// Strata in which an arm is missing.
    pub strata_dropped: u64,
    /// Share of the base's self samples in equivalent functions with firm support.
    pub equivalent_share: Option<f64>,
    /// Functions whose share moved only because another's did, largest change first, in a cell with watched rows; self
    /// counts only.
    pub compositional: Vec<String>,
    /// Rows tested now whose e-value has reached 1/q at some look since the comparison opened.
    pub watched: Vec<RowEvidence>,
}

/// The input of a look at one cell.
pub struct LookAt<'a> {
    /// The cell.
    pub view: &'a CellView<'a>,
    /// The comparison.
    pub comparison: &'a OpenComparison,
    /// Its strata that no longer change and have been added so far.
    pub closed: &'a ClosedStrata,
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
            head_total: arms.figures(Side::Head).total,
            base_total: arms.figures(Side::Base).total,
            requests_known: arms.knows_requests(),
            head_pods: hashes(Side::Head),
            base_pods: hashes(Side::Base),
            support: Support::Untestable,
            tests: 0,
            joined: 0,
            normalization: None,
            moderation: None,
            time_blocks: u64::try_from(arms.blocks).unwrap_or(0),
            strata_dropped: u64::try_from(arms.dropped).unwrap_or(0),
            equivalent_share: None,
            compositional: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Adds the number of tested functions and, if there are any, the normalization factor and the moderation.
    pub(crate) fn add_tests(&mut self, moments: &Moments, normalization: f64) {
        self.support = support_of(moments);
        self.tests = u64::try_from(moments.tests).unwrap_or(0);
        if self.tests > 0 {
            self.normalization = Some(normalization);
            self.moderation = Some((moments.tau2, moments.d0, moments.s02));
        }
    }
}

/// Looks at every kind of count of a cell. `families` has one entry per kind.
pub fn look(at: &LookAt<'_>, kinds: &[CountKind], families: &mut [Family]) -> Vec<KindLook> {
    let arms = CellArms::resuming(at.view.counts, at.comparison, at.closed);
    let figures = KindLook::untested(&arms);
    if figures.head_total == 0 && figures.base_total == 0 {
        return Vec::new();
    }
    let own_counts = Sums::of(&arms, CountKind::SelfCount);
    let mut own = family_of(at.view, &arms, CountKind::SelfCount, &own_counts);
    let normalization = own.as_ref().map(|own| own.moments.normalization());
    let each = kinds.iter().zip(families).map(|(&kind, family)| {
        let measured = match kind {
            CountKind::SelfCount => own.take(),
            CountKind::Total => family_of(at.view, &arms, kind, &Sums::of(&arms, kind)),
        };
        let seen = KindLook { count_kind: kind, ..figures.clone() };
        look_at_kind(at, &arms, seen, measured.zip(normalization), &own_counts.base, family)
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

/// The functions of a cell that are tested in a kind: their places in columns, ascending, and their moments by index in this
/// list.
struct Measured {
    places: Vec<u32>,
    moments: Moments,
}

/// The tested functions of a kind, if there are enough pods for a test.
fn family_of(view: &CellView<'_>, arms: &CellArms<'_>, kind: CountKind, sums: &Sums) -> Option<Measured> {
    if !has_replicates(arms) {
        return None;
    }
    let functions = view.counts.functions();
    let untested = view.untested.map(|number| functions.places()[number]);
    let enough =
        (0..).zip(sums.head.iter().zip(&sums.base)).filter(|(_, (head, base))| **head + **base >= view.min_count);
    let mut places = Vec::with_capacity(functions.len());
    places.extend(enough.map(|(function, _)| function).filter(|&function| Some(function) != untested));
    let order = order_of(&places, functions);
    let mut contrast = arms.contrast(kind, None);
    contrast.only = Some(places);
    let moments = carried(Moments::measure_in_order(&contrast, Model::Share, view.min_count, order))?;
    Some(Measured { places: contrast.only.unwrap_or_default(), moments })
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

fn has_replicates(arms: &CellArms<'_>) -> bool {
    let enough = |side| arms.pods(side).len() >= 2;
    arms.kept > 0 && enough(Side::Head) && enough(Side::Base)
}

/// What a kind of count contributes besides its figures.
fn look_at_kind(
    at: &LookAt<'_>,
    arms: &CellArms<'_>,
    mut seen: KindLook,
    measured: Option<(Measured, f64)>,
    base_self: &[f64],
    family: &mut Family,
) -> KindLook {
    family.begin(at.comparison.epoch, at.view.counts.functions().len());
    if let Some((Measured { places, moments }, normalization)) = measured {
        let live = live_rows_of(moments, Some(normalization), 1.0 / at.view.q, at.view.min_effect);
        seen.add_tests(&live.moments, live.normalization);
        family.join(
            places
                .iter()
                .zip(&live.moments.tested)
                .filter(|(_, tested)| **tested)
                .map(|(&function, _)| index_of(function)),
        );
        seen.equivalent_share = equivalent_share(Some((&places, &live, seen.support)), arms, base_self);
        seen.watched = watched_rows(at, arms, seen.count_kind, &places, &live, family);
        if seen.count_kind == CountKind::SelfCount && !seen.watched.is_empty() {
            seen.compositional = compositional(at.view, &places, &live);
        }
    } else {
        seen.equivalent_share = equivalent_share(None, arms, base_self);
    }
    seen.joined = family.members();
    seen
}

/// Share of the base's self samples in equivalent functions with firm support; `None` if nothing is comparable.
fn equivalent_share(live: Option<(&[u32], &LiveRows, Support)>, arms: &CellArms<'_>, base_self: &[f64]) -> Option<f64> {
    let all: f64 = base_self.iter().sum();
    if arms.kept == 0 || all <= 0.0 {
        return None;
    }
    let Some((places, live, Support::Firm)) = live else { return Some(0.0) };
    let equivalent = live
        .equivalent
        .iter()
        .zip(places)
        .filter(|(equivalent, _)| **equivalent)
        .map(|(_, &function)| base_self[index_of(function)]);
    Some(equivalent.sum::<f64>() / all)
}

/// The complete rows of the tested functions that are watched; the others are only screened.
fn watched_rows(
    at: &LookAt<'_>,
    arms: &CellArms<'_>,
    kind: CountKind,
    places: &[u32],
    live: &LiveRows,
    family: &mut Family,
) -> Vec<RowEvidence> {
    let threshold = -libm::log(at.view.q);
    let functions = at.view.counts.functions();
    for row in live.candidates.iter().filter(|row| row.ln_e >= threshold) {
        family.watch(functions.number(index_of(places[row.function])), row.ln_e);
    }
    let index = |number: usize| places.binary_search(&functions.places()[number]).ok();
    let tested = family.watched().filter_map(|number| Some((number, index(number)?)));
    let tested: Vec<(usize, usize)> = tested.filter(|&(_, index)| live.moments.tested[index]).collect();
    if tested.is_empty() {
        return Vec::new();
    }
    let frame = at.view.frame(Scope::Epoch, kind, arms, support_of(&live.moments));
    let quantiles = Quantiles::of(live.moments.df_total);
    let indices: Vec<usize> = tested.iter().map(|&(_, index)| index).collect();
    let rows = rows_of(live.moments.only(&indices), Some(live.normalization), at.view.min_effect);
    let each = tested.iter().enumerate().map(|(i, &(number, _))| {
        let (hash, name) = &functions.entries()[number];
        let mut evidence = frame.row(*hash, name, whole(rows.moments.a[i]), whole(rows.moments.b[i]));
        add_tests(&mut evidence, &frame, &rows, &quantiles, i);
        add_always_valid(&mut evidence, &rows, &quantiles, family.largest_ln_e(at.comparison.epoch, number), i);
        evidence
    });
    each.collect()
}

/// Changes are ordered in steps of 1e-9, so that changes that differ only by rounding are equal.
const STEPS: f64 = 1e9;

/// The functions of a cell that moved only because shares sum to one, the largest change first; none if the
/// normalization factor has not moved.
fn compositional(view: &CellView<'_>, places: &[u32], live: &LiveRows) -> Vec<String> {
    let functions = view.counts.functions();
    let entries = functions.entries();
    let moved = moved_with_the_rest(&live.moments, live.normalization, view.q, view.min_effect).into_iter();
    let mut moved: Vec<(f64, usize)> = moved
        .map(|index| ((live.moments.theta_raw[index].abs() * STEPS).round(), functions.number(index_of(places[index]))))
        .collect();
    moved.sort_by(|a, b| b.0.total_cmp(&a.0).then(entries[a.1].0.cmp(&entries[b.1].0)));
    moved.into_iter().map(|(_, function)| entries[function].1.to_string()).collect()
}

/// The moments of a kind, if there are enough pods for a test.
pub fn measured(view: &CellView<'_>, arms: &CellArms<'_>, kind: CountKind) -> Option<Moments> {
    if !has_replicates(arms) {
        return None;
    }
    carried(Moments::measure(&arms.contrast(kind, view.untested), Model::Share, view.min_count))
}

/// Moments with enough degrees of freedom for a test.
fn carried(moments: Moments) -> Option<Moments> {
    (support_of(&moments) != Support::Untestable).then_some(moments)
}
