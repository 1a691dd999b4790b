//! Which pods are held, and for how long.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{Build, PodId, Service};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;

use super::hops::Hops;
use crate::operators::by_pod::Activity;
use crate::operators::route;
use crate::rules::comparisons::PRESENT_HOPS;
use crate::rules::pods::Presence;

/// For how long after its last counted profile a pod is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Horizon {
    /// [`PRESENT_HOPS`].
    Present,
    /// The window.
    Window,
}

/// A build of a service within a horizon.
pub(super) type Held = (Service, Build, Horizon);

/// A pod of a build within a horizon.
pub(super) type HeldPod = (Service, Build, Horizon, PodId);

/// A pod enters (+1) or leaves (-1) a horizon at a hop.
pub(super) type HeldChange = (HeldPod, u64, isize);

/// See [`HeldPods::held_pods`].
pub(super) trait HeldPods<'scope> {
    /// Pods that enter and leave horizons, as changes of a collection.
    fn held_pods(self, window_hops: u64) -> StreamVec<'scope, u64, HeldChange>;
}

impl<'scope> HeldPods<'scope> for StreamVec<'scope, u64, Activity> {
    fn held_pods(self, window_hops: u64) -> StreamVec<'scope, u64, HeldChange> {
        let pact = Exchange::new(|activity: &Activity| match activity {
            Activity::Applied => 0,
            Activity::Counted(presence) => route(&[presence.service.as_str(), presence.pod.as_str()]),
        });
        self.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(pact, "HeldPods", move |capability, _| {
            let mut hops = Hops::new(capability);
            let horizons = [(Horizon::Present, PRESENT_HOPS), (Horizon::Window, window_hops)];
            let mut held = HeldPodsState { horizons, last: BTreeMap::new(), leaving: BTreeMap::new() };
            move |(input, frontier), output| {
                input.for_each_time(|time, data| {
                    data.flat_map(|batch| batch.drain(..)).for_each(|activity| hops.put(*time.time(), activity));
                });
                hops.advance(frontier.frontier().first().copied(), |hop, capability, activities, _| {
                    let changes = held.step(hop, activities);
                    output.session(capability).give_iterator(changes.into_iter());
                    held.leaving.is_empty().then_some(0)
                });
            }
        })
    }
}

type PodOfBuild = (Service, Build, PodId);

struct HeldPodsState {
    horizons: [(Horizon, u64); 2],
    last: BTreeMap<PodOfBuild, u64>,
    /// Pods that leave a horizon at a hop unless they were counted again.
    leaving: BTreeMap<u64, Vec<(Horizon, PodOfBuild)>>,
}

impl HeldPodsState {
    fn step(&mut self, hop: u64, activities: Vec<Activity>) -> Vec<HeldChange> {
        let longest = self.horizons.iter().map(|(_, hops)| *hops).max().unwrap_or(0);
        let mut changes = Vec::new();
        for activity in activities {
            let Activity::Counted(Presence { service, build, pod, .. }) = activity else { continue };
            let key = (service, build, pod);
            let before = self.last.insert(key.clone(), hop);
            for (horizon, hops) in self.horizons {
                if before.is_none_or(|before| before + hops < hop) {
                    changes.push((named(&key, horizon), hop, 1));
                }
                if before != Some(hop) {
                    self.leaving.entry(hop + hops).or_default().push((horizon, key.clone()));
                }
            }
        }
        let mut forgotten = Vec::new();
        for (horizon, key) in self.leaving.remove(&hop).unwrap_or_default() {
            let hops = self.horizons.iter().find(|(other, _)| *other == horizon).map_or(0, |(_, hops)| *hops);
            if self.last.get(&key).is_some_and(|last| last + hops == hop) {
                changes.push((named(&key, horizon), hop, -1));
                if hops == longest {
                    forgotten.push(key);
                }
            }
        }
        // Only now: both horizons may be of one length.
        for key in forgotten {
            self.last.remove(&key);
        }
        changes
    }
}

fn named(key: &PodOfBuild, horizon: Horizon) -> HeldPod {
    (key.0.clone(), key.1.clone(), horizon, key.2.clone())
}
