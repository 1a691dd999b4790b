//! What samples stand for, bytes or nanoseconds: sections 19 and 20 of `docs/semantics.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Hardware, PodId};
use fleetdiff_schemas::profile::{ProfileType, Samples};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::Hop;

use super::super::admission::{Counted, leaf, on_stack};
use super::super::timeline::Timeline;
use super::{Archive, Origin, cell_of};

/// What one profile holds of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub own: Hop,
    pub samples: u64,
    pub requests: u64,
    pub bytes: u64,
    /// Of each function: samples by self and total, then bytes.
    pub functions: BTreeMap<Arc<str>, [u64; 4]>,
}

/// Whose it is: type, cell, build, hardware, whether young, bucket, pod.
pub(crate) type Holder = (ProfileType, CellKey, Build, (Hardware, bool), u8, PodId);

/// A counted profile whose samples stand for something.
#[derive(Clone, Debug)]
pub(crate) struct OfMemory {
    origin: Origin,
    pod: PodId,
    bucket: u8,
    held: Held,
}

/// All profiles whose values matter, in their order.
pub(super) fn of_memory(config: &Config, timeline: &Timeline, counted: &[&Counted]) -> Vec<OfMemory> {
    let mut all = Vec::new();
    // Time on the CPU matters beside time off it alone.
    let has_waiting = counted.iter().any(|one| one.profile.profile_type == ProfileType::OffCpu);
    for one in counted.iter().filter(|one| has_waiting || one.profile.profile_type != ProfileType::Cpu) {
        let (id, Samples::Stacks(stacks)) = (&one.profile.identity, &one.profile.samples) else { continue };
        // Functions by their places among the profile's names.
        let mut cells: BTreeMap<CellKey, (OfMemory, BTreeMap<usize, [u64; 4]>)> = BTreeMap::new();
        for stack in stacks {
            let cohort = stack.cohort.as_ref().unwrap_or(&id.cohort);
            let new = || OfMemory {
                origin: Origin::new(config, timeline, one, cohort),
                pod: id.pod.clone(),
                bucket: id.bucket().0,
                held: Held { own: one.own, ..Held::default() },
            };
            let (OfMemory { held, .. }, functions) =
                cells.entry(cell_of(config, id, cohort)).or_insert_with(|| (new(), BTreeMap::new()));
            held.samples += stack.count;
            held.bytes += stack.value;
            for function in on_stack(&one.profile, &stack.frames) {
                let sums = functions.entry(function).or_default();
                (sums[1], sums[3]) = (sums[1] + stack.count, sums[3] + stack.value);
            }
            if let Some(leaf) = leaf(&one.profile, &stack.frames) {
                let sums = functions.entry(leaf).or_default();
                (sums[0], sums[2]) = (sums[0] + stack.count, sums[2] + stack.value);
            }
        }
        all.extend(cells.into_values().map(|(mut of_cell, functions)| {
            let Held { samples, bytes, .. } = of_cell.held;
            let named = functions.into_iter().map(|(place, sums)| (Arc::clone(&one.profile.names[place]), sums));
            of_cell.held.functions = one.over.functions(named.collect(), [samples, samples, bytes, bytes]);
            of_cell
        }));
    }
    all
}

impl Archive {
    /// What each pod of these builds held, and served, within the window at the close of `hop`.
    pub fn memory(&self, config: &Config, builds: &[&Build], hop: Hop) -> BTreeMap<Holder, Vec<Held>> {
        let first = hop.plus(1).minus(config.window_hops());
        let counts = |origin: &Origin| {
            origin.applied <= hop && first <= origin.own && origin.own <= hop && builds.contains(&&origin.build)
        };
        let mut pods: BTreeMap<Holder, Vec<Held>> = BTreeMap::new();
        let mut add = |origin: &Origin, bucket: u8, pod: &PodId, held: Held| {
            if counts(origin) {
                let place = (origin.hardware.clone(), origin.age > 0);
                let holder =
                    (origin.profile_type, origin.cell.clone(), origin.build.clone(), place, bucket, pod.clone());
                pods.entry(holder).or_default().push(held);
            }
        };
        for one in &self.memory {
            add(&one.origin, one.bucket, &one.pod, one.held.clone());
        }
        for one in &self.requests {
            let served = Held { own: one.origin.own, requests: one.count, ..Held::default() };
            add(&one.origin, one.bucket, &one.pod, served);
        }
        pods
    }
}
