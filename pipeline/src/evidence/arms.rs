//! The builds of a cell as two arms, stratum by stratum.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::comparison::{ComparisonId, OpenComparison, Side};
use fleetdiff_schemas::identity::{Bucket, Hardware, PodId};
use fleetdiff_schemas::number::{float, index_of, table_count};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::{Scope, Support};
use fleetdiff_statistics::{Arms, Contrast, Untested};

use super::requests::are_known;
use super::strata::{Row, StratumArms, occupied, rows};
use super::tests::support_of;
use crate::counts::archive::HistoryStratum;
use crate::counts::bucket::{Addition, Age, BucketState};
use crate::counts::cell::CellCounts;
use crate::counts::functions::CellFunctions;
use crate::counts::plane::{SUMMED, sums};

/// The arms of one comparison in one cell and scope. If no stratum has both arms, all strata are included, for the
/// figures.
#[derive(Debug)]
pub struct CellArms<'a> {
    functions: &'a CellFunctions,
    strata: Vec<StratumArms<'a>>,
    /// Strata that both arms share.
    pub kept: usize,
    /// Strata in which an arm is missing.
    pub dropped: usize,
    /// Time blocks of the strata that both arms share.
    pub blocks: usize,
    /// Whether the arms share strata only if pods of different ages are compared.
    pub across_ages: bool,
    /// When the first young pod of the window started, if pods of different ages are compared.
    pub first_young: Option<Nanos>,
}

impl<'a> CellArms<'a> {
    /// The arms of a comparison.
    pub fn of(cell: &'a CellCounts, scope: Scope, comparison: &OpenComparison) -> Self {
        Self::sharing(cell.functions(), occupied(cell, scope, comparison, comparison.epoch)).dated(cell, &comparison.id)
    }

    /// The arms for methods that do not use strata: all samples of a build merged, including those of strata in which
    /// the other arm is missing.
    pub fn merged(cell: &'a CellCounts, scope: Scope, comparison: &OpenComparison) -> Self {
        let all = occupied(cell, scope, comparison, comparison.epoch);
        let block = all.first().map_or(Hop(0), |stratum| stratum.block);
        let (head, base): (Vec<_>, Vec<_>) = all.into_iter().map(|stratum| (stratum.head, stratum.base)).unzip();
        Self::sharing(
            cell.functions(),
            vec![StratumArms { block, hardware: None, head: by_bucket(head), base: by_bucket(base) }],
        )
    }

    /// The head within the window against the history of builds that no longer run, at the same hours of the day. A
    /// stratum's block is that hour.
    pub fn against_history(
        cell: &'a CellCounts,
        comparison: &ComparisonId,
        history: &[HistoryStratum<'a>],
        hour_of_day: impl Fn(Hop) -> u64,
    ) -> Self {
        let mut heads: BTreeMap<(Hop, &Hardware, Age), Vec<Vec<Row<'a>>>> = BTreeMap::new();
        for (key, counts) in cell.strata(Scope::Window, Hop(0)) {
            let head = rows(counts, std::slice::from_ref(&comparison.head));
            if !head.is_empty() {
                heads.entry((Hop(hour_of_day(key.block)), &key.hardware, key.age)).or_default().push(head);
            }
        }
        let hours: BTreeSet<Hop> = heads.keys().map(|(hour, ..)| *hour).collect();
        let same = history.iter().filter(|stratum| hours.contains(&Hop(stratum.hour)));
        let of = |stratum: &HistoryStratum<'a>| (Hop(stratum.hour), stratum.hardware, stratum.age);
        let mut bases: BTreeMap<(Hop, &Hardware, Age), Vec<Row<'a>>> =
            same.map(|stratum| (of(stratum), owned_rows(stratum.buckets(cell.functions())))).collect();
        let keys: BTreeSet<(Hop, &Hardware, Age)> = heads.keys().chain(bases.keys()).copied().collect();
        let all = keys.into_iter().map(|key| StratumArms {
            block: key.0,
            hardware: Some(key.1),
            head: by_bucket(heads.remove(&key).unwrap_or_default()),
            base: bases.remove(&key).unwrap_or_default(),
        });
        Self::sharing(cell.functions(), all.collect()).dated(cell, comparison)
    }

    /// The head's young pods within the window against what history has of the base's young pods, at the same age on the
    /// same kind of machine. A stratum's block is that age in minutes.
    ///
    /// The hour of the day does not matter here: a process is started at any hour, and what it does in its first minutes
    /// follows from its age far more than from the clock. With the hour as well, a deploy at another hour than the last one
    /// would have nothing to be compared with.
    pub fn of_young(cell: &'a CellCounts, comparison: &ComparisonId, clock: HopClock) -> Self {
        let heads = cell.young(&comparison.head, clock).into_iter().map(|(age, buckets)| (age, owned_rows(buckets)));
        let young = cell.archive().young(&comparison.base);
        let bases = young.iter().map(|base| ((base.minutes, base.hardware), base.buckets(cell.functions())));
        let mut strata: BTreeMap<(u64, &Hardware), [Vec<Row<'a>>; 2]> =
            heads.map(|(age, head)| (age, [head, Vec::new()])).collect();
        for (age, base) in bases {
            strata.entry(age).or_default()[1] = owned_rows(base);
        }
        let all = strata.into_iter().map(|((minutes, hardware), [head, base])| StratumArms {
            block: Hop(minutes),
            hardware: Some(hardware),
            head,
            base,
        });
        Self::sharing(cell.functions(), all.collect())
    }

    /// The strata that both arms share. Pods are compared with pods of the same age; only where no stratum allows that,
    /// ages are merged.
    fn sharing(functions: &'a CellFunctions, all: Vec<StratumArms<'a>>) -> Self {
        let of_same_age = all.iter().any(StratumArms::is_shared);
        let all = if of_same_age { all } else { of_any_age(all) };
        let kept = all.iter().filter(|stratum| stratum.is_shared()).count();
        let dropped = all.len() - kept;
        let strata: Vec<_> = if kept == 0 { all } else { all.into_iter().filter(StratumArms::is_shared).collect() };
        let blocks = if kept == 0 { 0 } else { blocks(&strata) };
        Self { functions, strata, kept, dropped, blocks, across_ages: kept > 0 && !of_same_age, first_young: None }
    }

    /// Adds when the first young pod of either arm started, if that matters.
    fn dated(self, cell: &CellCounts, comparison: &ComparisonId) -> Self {
        let is_young = |addition: &&Addition| {
            addition.age.is_young() && addition.samples > 0 && comparison.side(&addition.build).is_some()
        };
        let young = || cell.in_window().map(|(_, addition)| addition).filter(is_young);
        let first_young = if self.across_ages { young().map(|addition| addition.started).min() } else { None };
        Self { first_young, ..self }
    }

    /// The input of the tests of one kind of count, by places in columns. `untested` are left out of every test.
    pub fn contrast(&self, kind: CountKind, untested: Untested) -> Contrast<'_> {
        let strata = self.strata.iter().map(|stratum| stratum.of_kind(kind)).collect();
        let pods = Arms { head: self.pods_by_bucket(Side::Head), base: self.pods_by_bucket(Side::Base) };
        let mut contrast = Contrast::new(self.functions.len(), strata, pods);
        contrast.untested = untested.map(|number| number.map(|number| index_of(self.functions.places()[number])));
        contrast.order = self.functions.places().to_vec();
        contrast
    }

    /// The support that the pods of both arms give, whatever the degrees of freedom of a row; none without a stratum in
    /// common.
    pub(crate) fn support(&self) -> Support {
        let pods = |side| table_count(self.pods(side).len());
        if self.kept > 0 { support_of(pods(Side::Head), pods(Side::Base), f64::INFINITY) } else { Support::Untestable }
    }

    /// The pods of an arm that share a bucket, ascending.
    pub(crate) fn pods_of_bucket(&self, side: Side, bucket: u16) -> Vec<String> {
        let rows = self.rows(side).filter(|row| u16::from(row.bucket.0) == bucket);
        let pods: BTreeSet<&PodId> =
            rows.flat_map(|row| row.states.iter().flat_map(|state| state.pods.keys())).collect();
        pods.into_iter().map(|pod| pod.as_str().to_owned()).collect()
    }

    /// Whether each bucket of both arms has requests in some stratum.
    pub(crate) fn knows_requests(&self) -> bool {
        let known = |side| are_known(self.rows(side).map(|row| (row.bucket, row.requests())));
        known(Side::Head) && known(Side::Base)
    }

    /// Time block and kind of machine of an arm's strata, ascending.
    pub(crate) fn strata_of(&self, side: Side) -> impl Iterator<Item = (Hop, &Hardware)> {
        let ran = move |stratum: &&StratumArms<'_>| match side {
            Side::Head => !stratum.head.is_empty(),
            Side::Base => !stratum.base.is_empty(),
        };
        self.strata.iter().filter(ran).filter_map(|stratum| Some((stratum.block, stratum.hardware?)))
    }

    /// Figures of an arm, except those of the function.
    pub fn figures(&self, side: Side) -> ArmFigures {
        let total: u64 = self.rows(side).map(Row::samples).sum();
        let requests: u64 = self.states(side).map(|state| state.requests).sum();
        let buckets: BTreeSet<_> = self.rows(side).map(|row| row.bucket).collect();
        ArmFigures {
            count: 0,
            total: table_count(total),
            share: None,
            pods: table_count(self.pods(side).len()),
            buckets: table_count(buckets.len()),
            requests: (requests > 0).then(|| table_count(requests)),
        }
    }

    /// Distinct pods of an arm.
    pub fn pods(&self, side: Side) -> BTreeSet<&PodId> {
        self.states(side).flat_map(|state| state.pods.keys()).collect()
    }

    /// Samples of each function in an arm, by the cell's function numbers.
    pub fn counts(&self, side: Side, kind: CountKind) -> Vec<f64> {
        let sums = self.counts_by_place(side, kind);
        self.functions.places().iter().map(|&function| sums[index_of(function)]).collect()
    }

    /// Samples of each function in an arm, by their places in columns.
    pub(crate) fn counts_by_place(&self, side: Side, kind: CountKind) -> Vec<f64> {
        let planes: Vec<_> = self.states(side).flat_map(|state| state.planes(kind)).collect();
        let mut all = Vec::with_capacity(self.functions.len());
        let mut block = [0; SUMMED];
        for start in (0..self.functions.len()).step_by(SUMMED) {
            let block = &mut block[..SUMMED.min(self.functions.len() - start)];
            sums(&planes, start, block);
            all.extend(block.iter().map(|&sum| float(sum)));
        }
        all
    }

    fn rows(&self, side: Side) -> impl Iterator<Item = &Row<'a>> {
        self.strata.iter().flat_map(move |stratum| if side == Side::Head { &stratum.head } else { &stratum.base })
    }

    fn states(&self, side: Side) -> impl Iterator<Item = &BucketState> {
        self.rows(side).flat_map(|row| row.states.iter().map(Cow::as_ref))
    }

    fn pods_by_bucket(&self, side: Side) -> BTreeMap<u16, u32> {
        let mut pods: BTreeMap<u16, BTreeSet<&PodId>> = BTreeMap::new();
        for row in self.rows(side) {
            let here = pods.entry(u16::from(row.bucket.0)).or_default();
            here.extend(row.states.iter().flat_map(|state| state.pods.keys()));
        }
        pods.into_iter().map(|(bucket, pods)| (bucket, u32::try_from(pods.len()).unwrap_or(u32::MAX))).collect()
    }

    /// Every stratum's block and rows, for a snapshot: head rows, then base rows, as (bucket, states).
    pub(crate) fn for_each_row(&self, mut visit: impl FnMut(usize, Side, Bucket, &[Cow<'a, BucketState>])) {
        for (index, stratum) in self.strata.iter().enumerate() {
            stratum.head.iter().for_each(|row| visit(index, Side::Head, row.bucket, &row.states));
            stratum.base.iter().for_each(|row| visit(index, Side::Base, row.bucket, &row.states));
        }
    }
}

/// The number of time blocks of some strata.
fn blocks(strata: &[StratumArms<'_>]) -> usize {
    strata.iter().map(|stratum| stratum.block).collect::<BTreeSet<_>>().len()
}

/// The strata of each block and kind of machine as one, whatever the age of their pods.
fn of_any_age(strata: Vec<StratumArms<'_>>) -> Vec<StratumArms<'_>> {
    let mut merged: BTreeMap<(Hop, Option<&Hardware>), (Vec<_>, Vec<_>)> = BTreeMap::new();
    for stratum in strata {
        let (heads, bases) = merged.entry((stratum.block, stratum.hardware)).or_default();
        heads.push(stratum.head);
        bases.push(stratum.base);
    }
    let each = merged.into_iter().map(|((block, hardware), (heads, bases))| StratumArms {
        block,
        hardware,
        head: by_bucket(heads),
        base: by_bucket(bases),
    });
    each.collect()
}

/// The rows of several strata as one row per bucket.
fn by_bucket(strata: Vec<Vec<Row<'_>>>) -> Vec<Row<'_>> {
    let mut rows: BTreeMap<Bucket, Vec<Cow<'_, BucketState>>> = BTreeMap::new();
    for row in strata.into_iter().flatten() {
        rows.entry(row.bucket).or_default().extend(row.states);
    }
    rows.into_iter().map(|(bucket, states)| Row { bucket, states }).collect()
}

/// States that were summed elsewhere, as one row per bucket.
fn owned_rows<'a>(states: impl IntoIterator<Item = (Bucket, BucketState)>) -> Vec<Row<'a>> {
    let rows = states.into_iter().map(|(bucket, state)| vec![Row { bucket, states: vec![Cow::Owned(state)] }]);
    by_bucket(rows.collect())
}
