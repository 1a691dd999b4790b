//! Which pods are held, and for how long.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::{Build, PodId, Service};
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::Map;

use super::hops::Hops;
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::counts::bucket::Age;
use crate::operators::by_pod::Activity;
use crate::operators::common::Common;
use crate::operators::route;
use crate::rules::comparisons::PRESENT_HOPS;
use crate::rules::pods::Presence;

/// For how long after its last counted profile a pod is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Horizon {
    /// [`PRESENT_HOPS`].
    Present,
    /// The same, but only of pods that were old in it.
    Old,
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
    fn held_pods(self, window_hops: u64, common: &Common) -> StreamVec<'scope, u64, HeldChange>;
}

impl<'scope> HeldPods<'scope> for StreamVec<'scope, u64, Activity> {
    fn held_pods(self, window_hops: u64, common: &Common) -> StreamVec<'scope, u64, HeldChange> {
        let mut held = HeldPodsState { window_hops, last: BTreeMap::new(), leaving: BTreeMap::new() };
        let mut keeper = common.keeper((self.scope().index(), self.scope().peers()), &mut held);
        let workers = u64::try_from(self.scope().peers()).unwrap_or(1);
        // Every worker knows of every hop: the last ones close all at once, and pods may leave at them on any worker.
        let to_workers = self.flat_map(move |activity| {
            let (first, copies) = match &activity {
                Activity::Applied => (0, workers),
                Activity::Counted(presence) => (route_of(&presence.service, &presence.pod), 1),
            };
            (0..copies).map(move |copy| (first.wrapping_add(copy), activity.clone()))
        });
        let pact = Exchange::new(|(to, _): &(u64, Activity)| *to);
        to_workers.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
            pact,
            "HeldPods",
            move |capability, _| {
                let mut hops = Hops::new(capability);
                // What counts them has no state of its own: the pods that are held enter anew.
                let begun_from = keeper.as_ref().map_or(0, |keeper| keeper.begun_from().0);
                let mut entering = held.enter(begun_from);
                if !entering.is_empty() {
                    hops.begin_with(begun_from);
                }
                move |(input, frontier), output| {
                    if !entering.is_empty()
                        && let Some(capability) = hops.capability_at(begun_from)
                    {
                        output.session(&capability).give_iterator(entering.drain(..));
                    }
                    input.for_each_time(|time, data| {
                        data.flat_map(|batch| batch.drain(..))
                            .for_each(|(_, activity)| hops.put(*time.time(), activity));
                    });
                    let open_from = frontier.frontier().first().copied();
                    hops.advance(open_from, |hop, capability, activities, _| {
                        if let Some(keeper) = &mut keeper {
                            keeper.reach(Hop(hop), &held);
                        }
                        let changes = held.step(hop, activities);
                        output.session(capability).give_iterator(changes.into_iter());
                        held.leaving.is_empty().then_some(0)
                    });
                    if let (Some(keeper), Some(hop)) = (&mut keeper, open_from) {
                        keeper.reach(Hop(hop), &held);
                    }
                }
            },
        )
    }
}

type PodOfBuild = (Service, Build, PodId);

struct HeldPodsState {
    window_hops: u64,
    /// When each pod was last counted in a horizon.
    last: BTreeMap<(Horizon, PodOfBuild), u64>,
    /// Pods that leave a horizon at a hop unless they were counted again.
    leaving: BTreeMap<u64, Vec<(Horizon, PodOfBuild)>>,
}

impl State for HeldPodsState {
    const NAME: &'static str = "held_pods";

    fn save(&self, to: &mut Saving) {
        for held in &self.last {
            let (service, _, pod) = &held.0.1;
            to.routed("pod", route_of(service, pod), &held);
        }
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.last = from.all("pod")?.into_iter().collect();
        for (held, last) in &self.last {
            self.leaving.entry(last + self.hops_of(held.0)).or_default().push(held.clone());
        }
        Ok(())
    }
}

fn route_of(service: &Service, pod: &PodId) -> u64 {
    route(&[service.as_str(), pod.as_str()])
}

impl HeldPodsState {
    /// All pods that are held, as if they entered at this hop.
    fn enter(&self, hop: u64) -> Vec<HeldChange> {
        self.last.keys().map(|(horizon, key)| (named(key, *horizon), hop, 1)).collect()
    }

    fn step(&mut self, hop: u64, activities: Vec<Activity>) -> Vec<HeldChange> {
        let mut changes = Vec::new();
        for activity in activities {
            let Activity::Counted(Presence { service, build, pod, age, .. }) = activity else { continue };
            let key = (service, build, pod);
            let old = (age == Age::Old).then_some(Horizon::Old);
            for horizon in [Horizon::Present, Horizon::Window].into_iter().chain(old) {
                let before = self.last.insert((horizon, key.clone()), hop);
                let hops = self.hops_of(horizon);
                if before.is_none_or(|before| before + hops < hop) {
                    changes.push((named(&key, horizon), hop, 1));
                }
                if before != Some(hop) {
                    self.leaving.entry(hop + hops).or_default().push((horizon, key.clone()));
                }
            }
        }
        for (horizon, key) in self.leaving.remove(&hop).unwrap_or_default() {
            let held = (horizon, key);
            if self.last.get(&held).is_some_and(|last| last + self.hops_of(horizon) == hop) {
                changes.push((named(&held.1, horizon), hop, -1));
                self.last.remove(&held);
            }
        }
        changes
    }

    fn hops_of(&self, horizon: Horizon) -> u64 {
        match horizon {
            Horizon::Present | Horizon::Old => PRESENT_HOPS,
            Horizon::Window => self.window_hops,
        }
    }
}

fn named(key: &PodOfBuild, horizon: Horizon) -> HeldPod {
    (key.0.clone(), key.1.clone(), horizon, key.2.clone())
}
