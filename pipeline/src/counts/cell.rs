//! The counts of one cell: window and epochs, by stratum, build and bucket.
//!
//! What is added is remembered by its own hop, as bytes; when that hop leaves the window the same bytes are subtracted. An
//! epoch consists of whole time blocks, so as long as nothing of a stratum has left the window its columns serve both the
//! window and every epoch. Only when the first hop of a stratum leaves is a copy kept aside, and only while a
//! comparison is open whose epoch holds the block.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{Bucket, Build, Hardware, PodId};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Scope;
use serde::{Deserialize, Serialize};

use super::encoding::decode;
use super::functions::{CellFunctions, FunctionTable};
use super::plane::Plane;

/// A time block and a kind of machine: like is compared with like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StratumKey {
    /// First hop of the time block.
    pub block: Hop,
    /// The kind of machine.
    pub hardware: Hardware,
}

/// What one profile of one pod adds to a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    /// The hop of its event time.
    pub own: Hop,
    /// The kind of machine.
    pub hardware: Hardware,
    /// The build.
    pub build: Build,
    /// The replicate.
    pub pod: PodId,
    /// Its bucket.
    pub bucket: Bucket,
    /// Samples in all.
    pub samples: u64,
    /// Operations served.
    pub requests: u64,
    /// Counts by function, see [`super::encoding`].
    #[serde(with = "serde_bytes")]
    pub functions: Vec<u8>,
}

/// Counts of the pods of one build that share a bucket, in one stratum.
#[derive(Clone, Debug, Default)]
pub struct BucketState {
    /// Samples in all.
    pub samples: u64,
    /// Operations served.
    pub requests: u64,
    /// Counts by function where it is the leaf.
    pub own: Plane,
    /// Counts by function where it stands above the leaf. Apart from `own`, since most functions are nearly always the one or
    /// the other, so that a sample touches one column.
    pub above: Plane,
    /// Distinct pods with samples, and how many additions hold each.
    pub pods: BTreeMap<PodId, u32>,
}

impl BucketState {
    /// The columns that add up to a kind of count.
    pub fn planes(&self, kind: CountKind) -> impl Iterator<Item = &Plane> {
        let above = match kind {
            CountKind::SelfCount => None,
            CountKind::Total => Some(&self.above),
        };
        std::iter::once(&self.own).chain(above)
    }

    fn add(&mut self, addition: &Addition, entries: &[CellEntry]) {
        self.samples += addition.samples;
        self.requests += addition.requests;
        if addition.samples > 0 {
            *self.pods.entry(addition.pod.clone()).or_insert(0) += 1;
        }
        for entry in entries {
            if entry.own > 0 {
                self.own.add(entry.function, entry.own);
            }
            if entry.above > 0 {
                self.above.add(entry.function, entry.above);
            }
        }
    }

    fn subtract(&mut self, addition: &Addition, entries: impl Iterator<Item = CellEntry>) {
        self.samples -= addition.samples;
        self.requests -= addition.requests;
        if addition.samples > 0
            && let Some(held) = self.pods.get_mut(&addition.pod)
        {
            *held -= 1;
            if *held == 0 {
                self.pods.remove(&addition.pod);
            }
        }
        for entry in entries {
            if entry.own > 0 {
                self.own.subtract(entry.function, entry.own);
            }
            if entry.above > 0 {
                self.above.subtract(entry.function, entry.above);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.samples == 0 && self.requests == 0
    }
}

/// One function's samples by the cell's number: where it is the leaf, and where it stands above.
#[derive(Clone, Copy, Debug)]
struct CellEntry {
    function: usize,
    own: u64,
    above: u64,
}

/// The entries of an addition, by the cell's numbers. A function that the cell has not met is left out.
fn entries<'a>(addition: &'a Addition, functions: &'a CellFunctions) -> impl Iterator<Item = CellEntry> + 'a {
    decode(&addition.functions).filter_map(|entry| {
        let function = functions.get(entry.function)?;
        Some(CellEntry { function, own: entry.own, above: entry.total.saturating_sub(entry.own) })
    })
}

/// Counts by build and bucket; only occupied buckets exist.
pub type Arms = BTreeMap<(Build, Bucket), BucketState>;

#[derive(Debug, Default)]
struct Stratum {
    /// What is in the window.
    window: Arms,
    /// What was ever added, kept aside since the first hop left the window.
    whole: Option<Arms>,
}

/// The counts of one cell.
#[derive(Debug, Default)]
pub struct CellCounts {
    functions: CellFunctions,
    strata: BTreeMap<StratumKey, Stratum>,
    ring: BTreeMap<Hop, Vec<(StratumKey, Addition)>>,
}

impl CellCounts {
    /// The functions that the cell has met.
    pub fn functions(&self) -> &CellFunctions {
        &self.functions
    }

    /// Adds what one hop brought. Own hops lie in the window.
    pub fn add(&mut self, additions: Vec<Addition>, blocks: &Blocks, table: &FunctionTable) {
        let ids = additions.iter().flat_map(|addition| decode(&addition.functions).map(|entry| entry.function));
        self.functions.admit(ids, table);
        let mut counted = Vec::new();
        for addition in additions {
            counted.clear();
            counted.extend(entries(&addition, &self.functions));
            let key = StratumKey { block: blocks.of(addition.own), hardware: addition.hardware.clone() };
            let stratum = self.strata.entry(key.clone()).or_default();
            let place = (addition.build.clone(), addition.bucket);
            if let Some(whole) = &mut stratum.whole {
                whole.entry(place.clone()).or_default().add(&addition, &counted);
            }
            stratum.window.entry(place).or_default().add(&addition, &counted);
            self.ring.entry(addition.own).or_default().push((key, addition));
        }
    }

    /// Lets leave the window what happened before `first`, the first hop in it. Whole strata of blocks from `epoch` on,
    /// the earliest epoch of an open comparison, are kept for it; without one, nothing outside the window is.
    pub fn expire(&mut self, first: Hop, epoch: Option<Hop>) {
        let kept = |block: Hop| epoch.is_some_and(|epoch| epoch <= block);
        while let Some(hop) = self.ring.first_entry().filter(|hop| *hop.key() < first) {
            for (key, addition) in hop.remove() {
                let Some(stratum) = self.strata.get_mut(&key) else { continue };
                if stratum.whole.is_none() && kept(key.block) {
                    stratum.whole = Some(stratum.window.clone());
                }
                let place = (addition.build.clone(), addition.bucket);
                if let Some(state) = stratum.window.get_mut(&place) {
                    state.subtract(&addition, entries(&addition, &self.functions));
                    if state.is_empty() {
                        stratum.window.remove(&place);
                    }
                }
            }
        }
        self.strata.retain(|key, stratum| {
            if !kept(key.block) {
                stratum.whole = None;
            }
            !(stratum.window.is_empty() && stratum.whole.is_none())
        });
    }

    /// The strata of a scope in ascending order; an epoch begins at `since`.
    pub fn strata(&self, scope: Scope, since: Hop) -> impl Iterator<Item = (&StratumKey, &Arms)> {
        self.strata.iter().filter_map(move |(key, stratum)| match scope {
            Scope::Window => Some((key, &stratum.window)),
            Scope::Epoch if key.block >= since => Some((key, stratum.whole.as_ref().unwrap_or(&stratum.window))),
            Scope::Epoch => None,
        })
    }

    /// Bytes of columns and of the ring.
    pub fn size(&self) -> (usize, usize) {
        let columns = |arms: &Arms| arms.values().map(|state| state.own.size() + state.above.size()).sum::<usize>();
        let strata = self.strata.values();
        let planes = strata.map(|stratum| columns(&stratum.window) + stratum.whole.as_ref().map_or(0, columns)).sum();
        (planes, self.ring.values().flatten().map(|(_, addition)| addition.functions.len()).sum())
    }
}

/// The time blocks of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    starts: Vec<Hop>,
}

impl Blocks {
    /// From `block` on, hops belong to a new time block.
    pub fn begin(&mut self, block: Hop) {
        self.starts.push(block);
    }

    /// Forgets blocks that ended before `first`.
    pub fn forget_before(&mut self, first: Hop) {
        let after = self.starts.partition_point(|&block| block <= first);
        self.starts.drain(..after.saturating_sub(1));
    }

    /// The block that holds a hop. A hop before the first block, which only a late record has, lies in the first.
    pub fn of(&self, own: Hop) -> Hop {
        let after = self.starts.partition_point(|&block| block <= own);
        self.starts.get(after.saturating_sub(1)).copied().unwrap_or_default()
    }
}
