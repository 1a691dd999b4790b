//! What one cell brings to one look of the live rule: its figures, what has joined the family, and the rows that may be raised.

use std::collections::BTreeSet;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{Scope, Support};
use serde::{Deserialize, Serialize};

use super::arms::{CellArms, Side};
use super::report::CellView;
use super::row::{Quantiles, RowEvidence, add_tests, support_of};
use crate::rules::comparisons::OpenComparison;
use crate::statistics::live::live_rows_of;
use crate::statistics::rows::rows_of;
use crate::statistics::{Contrast, LiveRows, Model, Moments};

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
    /// Stable hashes of the head's pods.
    pub head_pods: Vec<u64>,
    /// Stable hashes of the base's pods.
    pub base_pods: Vec<u64>,
    /// What the pods can carry.
    pub support: Support,
    /// Functions tested now.
    pub tests: u64,
    /// Functions tested at some look of this epoch.
    pub joined: u64,
    /// The cell's scale, where something was tested.
    pub scale: Option<f64>,
    /// Moderation of this kind: tau^2, d0, s0^2, where something was tested.
    pub moderation: Option<(f64, f64, f64)>,
    /// Time blocks with both arms.
    pub time_blocks: u64,
    /// Strata in which an arm is missing.
    pub strata_dropped: u64,
    /// Share of the base's self samples in functions that are firm and alike.
    pub equivalent_share: Option<f64>,
    /// Rows whose e-value has reached 1/q at some look since the comparison opened, tested now.
    pub watched: Vec<RowEvidence>,
}

/// What a cell remembers of one comparison and kind between looks.
#[derive(Debug, Default)]
pub struct Family {
    epoch: Hop,
    joined: Vec<bool>,
    watched: BTreeSet<usize>,
}

impl Family {
    /// Begins a look in this epoch, with so many functions in the cell.
    fn begin(&mut self, epoch: Hop, functions: usize) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.joined.clear();
        }
        self.joined.resize(functions.max(self.joined.len()), false);
    }

    /// Those of `functions` that are `tested` join.
    fn join(&mut self, functions: &[u32], tested: &[bool]) {
        for (&function, &tested) in functions.iter().zip(tested) {
            if let Some(joined) = self.joined.get_mut(number(function)) {
                *joined |= tested;
            }
        }
    }

    fn members(&self) -> u64 {
        self.joined.iter().map(|&joined| u64::from(joined)).sum()
    }
}

/// Everything that a look at one cell is made from.
pub struct LookAt<'a> {
    /// The cell.
    pub view: &'a CellView<'a>,
    /// The comparison.
    pub comparison: &'a OpenComparison,
    /// False-discovery rate.
    pub q: f64,
}

/// Looks at every kind of count of a cell. `families` has one entry a kind.
pub fn look(at: &LookAt<'_>, kinds: &[CountKind], families: &mut [Family]) -> Vec<KindLook> {
    let arms = CellArms::of(at.view.counts, Scope::Epoch, at.comparison);
    if arms.figures(Side::Head).total == 0 && arms.figures(Side::Base).total == 0 {
        return Vec::new();
    }
    let mut own = family_of(at.view, &arms, CountKind::SelfCount);
    let scale = own.as_ref().map(|own| own.moments.scale());
    let base_self = if arms.kept > 0 { arms.counts(Side::Base, CountKind::SelfCount) } else { Vec::new() };
    let each = kinds.iter().zip(families).map(|(&kind, family)| {
        let measured = match kind {
            CountKind::SelfCount => own.take(),
            CountKind::Total => family_of(at.view, &arms, kind),
        };
        look_at_kind(at, &arms, kind, measured.zip(scale), &base_self, family)
    });
    each.collect()
}

/// The functions of a cell that are tested in a kind, ascending, and their moments by place in this list.
struct Measured {
    functions: Vec<u32>,
    moments: Moments,
}

/// The tested functions of a kind, unless the pods cannot carry a test.
fn family_of(view: &CellView<'_>, arms: &CellArms<'_>, kind: CountKind) -> Option<Measured> {
    if !has_replicates(arms) {
        return None;
    }
    let mut contrast = arms.contrast(kind, view.untested);
    contrast.keep_family(view.min_count);
    let moments = carried(view, &contrast)?;
    Some(Measured { functions: contrast.only.unwrap_or_default(), moments })
}

fn has_replicates(arms: &CellArms<'_>) -> bool {
    let enough = |side| arms.pods(side).len() >= 2;
    arms.kept > 0 && enough(Side::Head) && enough(Side::Base)
}

fn look_at_kind(at: &LookAt<'_>, arms: &CellArms<'_>, kind: CountKind, measured: Option<(Measured, f64)>, base_self: &[f64], family: &mut Family) -> KindLook {
    let hashes = |side| {
        let mut hashes: Vec<_> = arms.pods(side).into_iter().map(|pod| stable_hash(pod.as_str().as_bytes())).collect();
        hashes.sort_unstable();
        hashes
    };
    let mut seen = KindLook {
        count_kind: kind,
        comparable: arms.kept > 0,
        head_total: arms.figures(Side::Head).total,
        base_total: arms.figures(Side::Base).total,
        head_pods: hashes(Side::Head),
        base_pods: hashes(Side::Base),
        support: Support::Untestable,
        tests: 0,
        joined: 0,
        scale: None,
        moderation: None,
        time_blocks: u64::try_from(arms.blocks).unwrap_or(0),
        strata_dropped: u64::try_from(arms.dropped).unwrap_or(0),
        equivalent_share: None,
        watched: Vec::new(),
    };
    family.begin(at.comparison.epoch, at.view.counts.functions().len());
    if let Some((Measured { functions, moments }, scale)) = measured {
        seen.support = support_of(&moments);
        let live = live_rows_of(moments, Some(scale), 1.0 / at.q, at.view.delta);
        family.join(&functions, &live.moments.tested);
        seen.equivalent_share = equivalent_share(Some((&functions, &live, seen.support)), arms, base_self);
        seen.tests = u64::try_from(live.moments.tests).unwrap_or(0);
        if seen.tests > 0 {
            seen.scale = Some(live.scale);
            seen.moderation = Some((live.moments.tau2, live.moments.d0, live.moments.s02));
        }
        seen.watched = watched_rows(at, arms, kind, &functions, &live, family);
    } else {
        seen.equivalent_share = equivalent_share(None, arms, base_self);
    }
    seen.joined = family.members();
    seen
}

/// Share of the base's self samples whose functions are firm and shown to be alike; `None` where nothing is comparable.
fn equivalent_share(live: Option<(&[u32], &LiveRows, Support)>, arms: &CellArms<'_>, base_self: &[f64]) -> Option<f64> {
    let all: f64 = base_self.iter().sum();
    if arms.kept == 0 || all <= 0.0 {
        return None;
    }
    let Some((functions, live, Support::Firm)) = live else { return Some(0.0) };
    let alike = live.equivalent.iter().zip(functions).filter(|(alike, _)| **alike).map(|(_, &function)| base_self[number(function)]);
    Some(alike.sum::<f64>() / all)
}

/// The rows of tested functions that are watched, in full; all others are left at the screen.
fn watched_rows(at: &LookAt<'_>, arms: &CellArms<'_>, kind: CountKind, functions: &[u32], live: &LiveRows, family: &mut Family) -> Vec<RowEvidence> {
    let threshold = -libm::log(at.q);
    family.watched.extend(live.candidates.iter().filter(|row| row.ln_e >= threshold).map(|row| number(functions[row.function])));
    let place = |function: usize| u32::try_from(function).ok().and_then(|function| functions.binary_search(&function).ok());
    let tested = family.watched.iter().filter_map(|&function| Some((function, place(function)?)));
    let tested: Vec<(usize, usize)> = tested.filter(|&(_, place)| live.moments.tested[place]).collect();
    if tested.is_empty() {
        return Vec::new();
    }
    let frame = at.view.frame(Scope::Epoch, kind, arms, support_of(&live.moments));
    let quantiles = Quantiles::of(live.moments.df_total);
    let places: Vec<usize> = tested.iter().map(|&(_, place)| place).collect();
    let rows = rows_of(live.moments.only(&places), Some(live.scale), at.view.delta);
    let entries = at.view.counts.functions().entries();
    let each = tested.iter().enumerate().map(|(i, &(function, _))| {
        let (hash, name) = &entries[function];
        let mut evidence = frame.row(*hash, name, count(rows.moments.a[i]), count(rows.moments.b[i]));
        add_tests(&mut evidence, &frame, &rows, &quantiles, i);
        evidence
    });
    each.collect()
}

/// The moments of a kind, unless the pods cannot carry a test.
pub fn measured(view: &CellView<'_>, arms: &CellArms<'_>, kind: CountKind) -> Option<Moments> {
    if !has_replicates(arms) {
        return None;
    }
    carried(view, &arms.contrast(kind, view.untested))
}

/// The moments of a contrast, if its degrees of freedom can carry a test.
fn carried(view: &CellView<'_>, contrast: &Contrast<'_>) -> Option<Moments> {
    let moments = Moments::measure(contrast, Model::Share, view.min_count);
    (support_of(&moments) != Support::Untestable).then_some(moments)
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of whole counts below 2^53")]
pub(super) fn count(sum: f64) -> u64 {
    sum as u64
}

#[expect(clippy::as_conversions, reason = "usize is at least 32 bits on every platform that this builds for")]
fn number(function: u32) -> usize {
    function as usize
}
