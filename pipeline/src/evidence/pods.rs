//! The samples of each pod within the window, which buckets of pods no longer show.
//!
//! They are computed from the ring at each report, so that nothing is kept for them in between.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::{ComparisonId, Side};
use fleetdiff_schemas::identity::{Hardware, PodId};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::Hop;
use fleetdiff_statistics::outliers::PodRow;

use crate::counts::bucket::{Age, StratumKey};
use crate::counts::cell::CellCounts;
use crate::counts::plane::Plane;

/// The pods of both arms in the strata of the window that both share.
#[derive(Debug)]
pub struct WindowPods {
    /// How many functions the cell has.
    functions: usize,
    head: ArmPods,
    base: ArmPods,
}

#[derive(Debug, Default)]
struct ArmPods {
    /// Distinct pods, ascending; a pod's number is its place.
    names: Vec<PodId>,
    /// Ascending by pod, then stratum.
    rows: Vec<PodSamples>,
}

/// One pod in one stratum.
#[derive(Debug)]
struct PodSamples {
    pod: u32,
    stratum: usize,
    samples: u64,
    /// By the cell's numbers of functions.
    own: Plane,
    total: Plane,
}

/// A stratum; without an age where ages are merged.
type Place<'a> = (Hop, &'a Hardware, Option<Age>);

impl WindowPods {
    /// The pods of a comparison in one cell.
    pub fn of(counts: &CellCounts, comparison: &ComparisonId) -> Self {
        let of_same_age = Strata::shared(counts, comparison, true);
        let strata =
            if of_same_age.numbers.is_empty() { Strata::shared(counts, comparison, false) } else { of_same_age };
        let [head, base] = [Side::Head, Side::Base].map(|side| ArmPods::of(counts, comparison, side, &strata));
        Self { functions: counts.functions().len(), head, base }
    }

    /// How many functions the cell has.
    pub(super) fn functions(&self) -> usize {
        self.functions
    }

    /// How many pods an arm has.
    pub fn len(&self, side: Side) -> usize {
        self.arm(side).names.len()
    }

    /// The name of a pod of the head.
    pub(crate) fn head_name(&self, pod: u32) -> Option<&PodId> {
        usize::try_from(pod).ok().and_then(|pod| self.head.names.get(pod))
    }

    /// The number of the stratum in which the smaller arm has most samples.
    pub(super) fn largest_stratum(&self) -> Option<usize> {
        let mut sums: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
        for side in [Side::Head, Side::Base] {
            for row in &self.arm(side).rows {
                sums.entry(row.stratum).or_default()[index(side)] += row.samples;
            }
        }
        // NB: of equal ones the last.
        sums.into_iter().max_by_key(|(_, [head, base])| *head.min(base)).map(|(stratum, _)| stratum)
    }

    /// The pods of an arm in a stratum: name, samples, and samples by function as its own.
    pub(super) fn in_stratum(&self, side: Side, stratum: usize) -> impl Iterator<Item = (&PodId, u64, &Plane)> {
        let arm = self.arm(side);
        let rows = arm.rows.iter().filter(move |row| row.stratum == stratum);
        rows.filter_map(|row| {
            let name = arm.names.get(usize::try_from(row.pod).ok()?)?;
            Some((name, row.samples, &row.own))
        })
    }

    /// One row a pod and stratum.
    pub fn rows(&self, side: Side, kind: CountKind) -> Vec<PodRow<'_>> {
        self.arm(side).rows.iter().map(|row| row.of_kind(kind)).collect()
    }

    /// By function: how many pods of an arm have samples of it.
    pub fn showing(&self, side: Side, kind: CountKind) -> Vec<u64> {
        let mut showing = vec![0; self.functions];
        let mut counted_in = vec![None; self.functions];
        for row in &self.arm(side).rows {
            for f in row.counts(kind).used() {
                if counted_in[f] != Some(row.pod) {
                    counted_in[f] = Some(row.pod);
                    showing[f] += 1;
                }
            }
        }
        showing
    }

    fn arm(&self, side: Side) -> &ArmPods {
        match side {
            Side::Head => &self.head,
            Side::Base => &self.base,
        }
    }
}

/// The strata of the window that both arms share, numbered.
struct Strata<'a> {
    by_age: bool,
    numbers: BTreeMap<Place<'a>, usize>,
}

impl<'a> Strata<'a> {
    fn shared(counts: &'a CellCounts, comparison: &ComparisonId, by_age: bool) -> Self {
        let mut seen: BTreeMap<Place<'a>, [u64; 2]> = BTreeMap::new();
        for (key, addition) in counts.in_window() {
            if let Some(side) = comparison.side(&addition.build) {
                seen.entry(place(key, by_age)).or_default()[index(side)] += addition.samples;
            }
        }
        seen.retain(|_, arms| arms.iter().all(|&samples| samples > 0));
        Self { by_age, numbers: seen.into_keys().zip(0..).collect() }
    }

    fn number(&self, key: &StratumKey) -> Option<usize> {
        self.numbers.get(&place(key, self.by_age)).copied()
    }
}

fn place(key: &StratumKey, by_age: bool) -> Place<'_> {
    (key.block, &key.hardware, by_age.then_some(key.age))
}

impl ArmPods {
    fn of(counts: &CellCounts, comparison: &ComparisonId, side: Side, strata: &Strata<'_>) -> Self {
        let mut rows: BTreeMap<(&PodId, usize), PodSamples> = BTreeMap::new();
        for (key, addition) in counts.in_window() {
            let counted = comparison.side(&addition.build) == Some(side) && addition.samples > 0;
            let Some(stratum) = strata.number(key).filter(|_| counted) else {
                continue;
            };
            let new = || PodSamples { pod: 0, stratum, samples: 0, own: Plane::default(), total: Plane::default() };
            let row = rows.entry((&addition.pod, stratum)).or_insert_with(new);
            row.samples += addition.samples;
            for (function, entry) in counts.entries(addition) {
                if entry.own > 0 {
                    row.own.add(function, entry.own);
                }
                row.total.add(function, entry.total);
            }
        }
        let mut arm = Self::default();
        for ((pod, _), mut row) in rows {
            if arm.names.last() != Some(pod) {
                arm.names.push(pod.clone());
            }
            row.pod = u32::try_from(arm.names.len() - 1).unwrap_or(u32::MAX);
            arm.rows.push(row);
        }
        arm
    }
}

impl PodSamples {
    fn of_kind(&self, kind: CountKind) -> PodRow<'_> {
        PodRow { stratum: self.stratum, pod: self.pod, samples: self.samples, counts: vec![self.counts(kind)] }
    }

    fn counts(&self, kind: CountKind) -> &Plane {
        match kind {
            CountKind::SelfCount => &self.own,
            CountKind::Total => &self.total,
        }
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Head => 0,
        Side::Base => 1,
    }
}
