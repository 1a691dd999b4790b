//! The sums of the strata of a comparison's epoch that no longer change. With them, a look reads one column per closed
//! stratum and arm, not one per bucket of each.
//!
//! A time block is closed once it has ended and all its hops have left the window. Then it is also fixed which of its
//! strata count: those in which both arms have samples. Each leaves the deviations of its buckets
//! ([`fleetdiff_statistics::moments::closed`]) and whole counts, over buckets and over strata.
//!
//! NB: besides these sums a cell keeps the columns of closed strata: at reports, requests and roll-ups need every
//! stratum by bucket. The columns are whole numbers of a byte or two, while the sums of deviations take as much memory
//! as about ten closed blocks, more than an epoch of six hours has.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use fleetdiff_schemas::identity::Bucket;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_statistics::BucketCounts;
use fleetdiff_statistics::moments::closed::{Closed, Counts};

use crate::counts::bucket::BucketState;
use crate::counts::cell::CellCounts;
use crate::evidence::strata::{Row, StratumArms, occupied};

/// The number of closed blocks from which their sums are kept. With fewer blocks, measuring them again at each look is
/// just as fast, and a short comparison then needs no memory for deviations (eight bytes per function, bucket and kind
/// of count). *Measured* (bench `epoch`).
const FIRST_BLOCKS: usize = 3;

/// The closed strata of one comparison in one cell.
#[derive(Debug, Default)]
pub struct ClosedStrata {
    epoch: Hop,
    /// Strata of earlier blocks are included.
    first_open: Hop,
    /// Deviations of self and of total counts; nothing of a kind that is not counted.
    residuals: [Closed; 2],
    /// By stratum: head and base over all their buckets.
    strata: Vec<[BucketState; 2]>,
    /// Of head and base: buckets over all strata.
    buckets: [BTreeMap<Bucket, BucketState>; 2],
    /// The block of the last stratum, and the number of blocks.
    blocks: (Option<Hop>, usize),
    dropped: usize,
}

impl ClosedStrata {
    /// Adds the strata of blocks before `first_open` ([`crate::counts::cell::Blocks::first_open`]), for `kinds` of
    /// counts and self counts, once there are three such blocks. Starts again with each epoch.
    pub fn advance(&mut self, cell: &CellCounts, comparison: &OpenComparison, first_open: Hop, kinds: &[CountKind]) {
        if self.epoch != comparison.epoch || self.first_open < comparison.epoch {
            *self = Self { epoch: comparison.epoch, first_open: comparison.epoch, ..Self::default() };
        }
        let begun = self.first_open > self.epoch;
        if first_open <= self.first_open || !begun && blocks_before(first_open, cell, comparison) < FIRST_BLOCKS {
            return;
        }
        let closing = occupied(cell, Scope::Epoch, comparison, self.first_open)
            .into_iter()
            .filter(|stratum| stratum.block < first_open);
        for stratum in closing {
            if stratum.is_shared() {
                self.fold(&stratum, cell.functions().len(), kinds);
            } else {
                self.dropped += 1;
            }
        }
        self.first_open = first_open;
    }

    fn fold(&mut self, stratum: &StratumArms<'_>, functions: usize, kinds: &[CountKind]) {
        for kind in CountKind::ALL.into_iter().filter(|kind| *kind == CountKind::SelfCount || kinds.contains(kind)) {
            self.residuals[index(kind)].fold(&stratum.of_kind(kind), functions);
        }
        let mut sums: [BucketState; 2] = Default::default();
        for ((rows, sum), buckets) in [&stratum.head, &stratum.base].into_iter().zip(&mut sums).zip(&mut self.buckets) {
            for row in rows {
                let bucket = buckets.entry(row.bucket).or_default();
                row.states.iter().for_each(|state| {
                    sum.gain(state);
                    bucket.gain(state);
                });
            }
            sum.pods.clear();
        }
        self.strata.push(sums);
        if self.blocks.0 != Some(stratum.block) {
            self.blocks = (Some(stratum.block), self.blocks.1 + 1);
        }
    }

    /// First hop of the epoch.
    pub fn epoch(&self) -> Hop {
        self.epoch
    }

    /// Strata from this block on are not included.
    pub fn first_open(&self) -> Hop {
        self.first_open
    }

    /// Strata with both arms.
    pub fn kept(&self) -> usize {
        self.strata.len()
    }

    /// Strata in which an arm is missing.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Time blocks of the strata with both arms.
    pub fn blocks(&self) -> usize {
        self.blocks.1
    }

    /// Bytes of deviations and of columns.
    pub fn size(&self) -> (usize, usize) {
        let states = self.strata.iter().flatten().chain(self.buckets.iter().flat_map(BTreeMap::values));
        (self.residuals.iter().map(Closed::size).sum(), states.map(BucketState::size).sum())
    }

    /// The deviations in one kind of count; `None` for a kind that is not counted.
    pub(super) fn residuals(&self, kind: CountKind) -> Option<&Closed> {
        Some(&self.residuals[index(kind)]).filter(|residuals| residuals.strata() == self.kept())
    }

    /// By stratum: counts of head and base over all buckets.
    pub(super) fn counts(&self, kind: CountKind) -> Vec<[Counts<'_>; 2]> {
        self.strata.iter().map(|arms| arms.each_ref().map(|sums| columns(sums, kind))).collect()
    }

    /// The buckets of an arm over all strata.
    pub(super) fn rows(&self, side: Side) -> Vec<Row<'_>> {
        let [head, base] = &self.buckets;
        let buckets = if side == Side::Head { head } else { base };
        buckets.iter().map(|(&bucket, state)| Row { bucket, states: vec![Cow::Borrowed(state)] }).collect()
    }
}

/// How many blocks of the epoch have strata and are closed.
fn blocks_before(first_open: Hop, cell: &CellCounts, comparison: &OpenComparison) -> usize {
    let strata = cell.strata(Scope::Epoch, comparison.epoch).map(|(key, _)| key.block);
    strata.take_while(|block| *block < first_open).collect::<BTreeSet<_>>().len()
}

fn columns(sums: &BucketState, kind: CountKind) -> Counts<'_> {
    sums.planes(kind).iter().map(|plane| -> &dyn BucketCounts { plane }).collect()
}

fn index(kind: CountKind) -> usize {
    match kind {
        CountKind::SelfCount => 0,
        CountKind::Total => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::comparison::ComparisonId;
    use fleetdiff_schemas::config::Method;
    use fleetdiff_schemas::profile::ProfileType;
    use fleetdiff_schemas::rows::{CellKey, ComparisonKey};
    use fleetdiff_schemas::time::{HopClock, Nanos};
    use proptest::prelude::*;

    use super::*;
    use crate::counts::bucket::Addition;
    use crate::counts::cell::Blocks;
    use crate::counts::encoding::{Entry, encode};
    use crate::counts::functions::FunctionTable;
    use crate::evidence::family::Family;
    use crate::evidence::look::{LookAt, look};
    use crate::evidence::report::report;
    use crate::evidence::view::CellView;

    const WINDOW: u64 = 10;
    const FUNCTIONS: usize = 40;

    /// One pod at one hop.
    #[derive(Clone, Debug)]
    struct Seen {
        pod: u8,
        on_new: bool,
        counts: Vec<(u64, u64)>,
    }

    /// Pods below the first number run the head; those from the second number on run a base build of their own.
    const BUILDS: (u8, u8) = (5, 10);

    fn seen() -> impl Strategy<Value = Seen> {
        let count = || prop_oneof![Just(0u64), 0u64..4, 0u64..90];
        (0u8..14, any::<bool>(), proptest::collection::vec((count(), count()), FUNCTIONS))
            .prop_map(|(pod, on_new, counts)| Seen { pod, on_new, counts })
    }

    /// Hops and whether a block begins with each.
    fn hops() -> impl Strategy<Value = Vec<(bool, Vec<Seen>)>> {
        proptest::collection::vec((prop::bool::weighted(0.25), proptest::collection::vec(seen(), 0..4)), 20..50)
    }

    fn addition(own: Hop, seen: &Seen, names: usize, table: &FunctionTable) -> Addition {
        let ids = table.intern(&(0..names).map(|f| Arc::from(format!("f{f}"))).collect::<Vec<_>>());
        let counted = ids.into_iter().zip(&seen.counts).filter(|(_, (own, above))| own + above > 0);
        let entries: Vec<Entry> =
            counted.map(|(function, &(own, above))| Entry { function, own, total: own + above }).collect();
        let build = if seen.pod < BUILDS.0 {
            "head"
        } else if seen.pod < BUILDS.1 {
            "base"
        } else {
            "other"
        };
        Addition {
            own,
            hardware: if seen.on_new { "new" } else { "old" }.into(),
            build: build.into(),
            pod: format!("p{}", seen.pod).as_str().into(),
            bucket: Bucket(seen.pod % 9),
            started: fleetdiff_schemas::time::Nanos(0),
            samples: entries.iter().map(|entry| entry.own).sum::<u64>() + 3,
            requests: 0,
            functions: encode(&entries),
            paths: Vec::new(),
        }
    }

    /// A look and a report as text with all digits of floats, and the number of rows that the look tested.
    fn looked(counts: &CellCounts, comparison: &OpenComparison, hop: Hop, closed: &ClosedStrata) -> (String, u64) {
        let kind = ProfileType::Cpu;
        let key = ComparisonKey {
            service: "s".into(),
            profile_type: kind,
            measure: kind.measure(),
            base_build: "base".into(),
            head_build: "head".into(),
        };
        let view = CellView {
            counts,
            cell: CellKey { region: "r".into(), cohort: "c".into() },
            key,
            epoch: comparison.epoch,
            hop,
            window_hops: WINDOW,
            clock: HopClock::new(Nanos::from_seconds(10)),
            min_count: 30.0,
            min_effect: 0.01,
            q: 0.9,
            untested: (counts.functions().len() > 3).then_some(3),
            method: Method::Honest,
        };
        let mut families = [Family::default(), Family::default()];
        let seen = look(&LookAt { view: &view, comparison, closed }, &CountKind::ALL, &mut families);
        let rows = report(&view, comparison, Scope::Epoch, &CountKind::ALL, &families, closed);
        (format!("{seen:?} {rows:?}"), seen.iter().map(|kind| kind.tests).sum())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Law: looks and reports are the same to the last bit whether closed strata are measured again, were added
        /// when they closed, or all at once. Functions, pods and a third build appear at any time, and a new epoch
        /// begins in between.
        #[test]
        fn looks_do_not_depend_on_what_was_taken_in(hops in hops()) {
            let (table, mut counts, mut blocks) = (FunctionTable::default(), CellCounts::default(), Blocks::default());
            let id = ComparisonId { service: "s".into(), base: vec!["base".into(), "other".into()], head: "head".into() };
            let (mut comparison, mut step_by_step, none) = (OpenComparison { id, epoch: Hop(0) }, ClosedStrata::default(), ClosedStrata::default());
            let (mut most, mut tests) = (0, 0);
            for (at, (begins, seen)) in (0u64..).zip(&hops) {
                let (hop, first) = (Hop(at), Hop((at + 1).saturating_sub(WINDOW)));
                if at == 40 {
                    comparison.epoch = hop;
                }
                if at == 0 || *begins || comparison.epoch == hop {
                    blocks.begin(hop);
                }
                let names = if at < 15 { FUNCTIONS / 2 } else { FUNCTIONS };
                counts.add(seen.iter().map(|seen| addition(hop, seen, names, &table)).collect(), &blocks, &table);
                counts.expire(first, Some(comparison.epoch));
                step_by_step.advance(&counts, &comparison, blocks.first_open(first), &CountKind::ALL);
                let mut at_once = ClosedStrata::default();
                at_once.advance(&counts, &comparison, blocks.first_open(first), &CountKind::ALL);
                let anew = looked(&counts, &comparison, hop, &none);
                prop_assert_eq!(&looked(&counts, &comparison, hop, &step_by_step), &anew, "hop {}", at);
                prop_assert_eq!(&looked(&counts, &comparison, hop, &at_once), &anew, "hop {}, at once", at);
                if step_by_step.kept() > 0 {
                    (most, tests) = (most.max(step_by_step.kept()), tests + anew.1);
                }
            }
            prop_assume!(most >= 2 && tests > 0);
        }
    }
}
