//! The registry of pods and builds, and the plans that follow from it.
//!
//! Which pods were counted lately changes rarely, so it is kept as a differential collection: a pod enters a horizon with
//! its first counted profile and leaves it when the horizon has passed since its last. Pods a build are counted incrementally;
//! once a hop, one state machine a service turns the counts into a plan.

use std::collections::BTreeMap;

use differential_dataflow::AsCollection;
use differential_dataflow::operators::CountTotal;
use fleetdiff_schemas::identity::{Build, PodId, Service};
use fleetdiff_schemas::time::{Hop, Nanos};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Capability, Concatenate};

use super::by_pod::Activity;
use crate::rules::comparisons::{ComparisonRules, HopFacts, PRESENT_HOPS, Plan, ServiceHistory};
use crate::rules::pods::Presence;

/// For how long after its last counted profile a pod is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Horizon {
    Present,
    Window,
}

type Held = (Service, Build, Horizon);

/// See [`Register::register`].
pub trait Register<'scope> {
    /// Keeps the registry and gives one plan a service and hop in which anything follows: on the worker that keeps the plans.
    fn register(self, rules: ComparisonRules, window_hops: u64) -> StreamVec<'scope, u64, Plan>;
}

impl<'scope> Register<'scope> for StreamVec<'scope, u64, Activity> {
    fn register(self, rules: ComparisonRules, window_hops: u64) -> StreamVec<'scope, u64, Plan> {
        let pods = self.clone().held_pods(window_hops).as_collection();
        let counts = pods.map(|(service, build, horizon, _)| (service, build, horizon)).count_total();
        let counted = counts.inner.map(|((held, pods), hop, change)| Fact::Pods { held, pods, change, hop });
        let activity = self.map(Fact::Activity);
        activity.scope().concatenate([activity, counted]).plan(rules)
    }
}

/// A pod of a build within a horizon.
type HeldPod = (Service, Build, Horizon, PodId);

/// A pod enters (+1) or leaves (-1) a horizon at a hop.
type HeldChange = (HeldPod, u64, isize);

trait HeldPods<'scope> {
    fn held_pods(self, window_hops: u64) -> StreamVec<'scope, u64, HeldChange>;
}

impl<'scope> HeldPods<'scope> for StreamVec<'scope, u64, Activity> {
    /// Enters and leaves, as changes of a collection.
    fn held_pods(self, window_hops: u64) -> StreamVec<'scope, u64, HeldChange> {
        let pact = Exchange::new(|activity: &Activity| match activity {
            Activity::Applied => 0,
            Activity::Counted(presence) => super::route(&[presence.service.as_str(), presence.pod.as_str()]),
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
        for (horizon, key) in self.leaving.remove(&hop).unwrap_or_default() {
            let hops = self.horizons.iter().find(|(other, _)| *other == horizon).map_or(0, |(_, hops)| *hops);
            if self.last.get(&key).is_some_and(|last| last + hops == hop) {
                changes.push((named(&key, horizon), hop, -1));
                if hops == longest {
                    self.last.remove(&key);
                }
            }
        }
        changes
    }
}

fn named(key: &PodOfBuild, horizon: Horizon) -> HeldPod {
    (key.0.clone(), key.1.clone(), horizon, key.2.clone())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Fact {
    Activity(Activity),
    Pods { held: Held, pods: isize, change: isize, hop: u64 },
}

trait PlanHops<'scope> {
    fn plan(self, rules: ComparisonRules) -> StreamVec<'scope, u64, Plan>;
}

impl<'scope> PlanHops<'scope> for StreamVec<'scope, u64, Fact> {
    fn plan(self, rules: ComparisonRules) -> StreamVec<'scope, u64, Plan> {
        self.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
            Exchange::new(|_| 0),
            "Plan",
            move |capability, _| {
                let mut hops = Hops::new(capability);
                let mut planner = Planner { rules, services: BTreeMap::new() };
                move |(input, frontier), output| {
                    input.for_each_time(|time, data| {
                        data.flat_map(|batch| batch.drain(..)).for_each(|fact| match &fact {
                            Fact::Pods { hop, .. } => hops.put(*hop, fact),
                            Fact::Activity(_) => hops.put(*time.time(), fact),
                        });
                    });
                    hops.advance(frontier.frontier().first().copied(), |hop, capability, facts, last| {
                        let plans = planner.step(Hop(hop), facts, last);
                        output.session(capability).give_iterator(plans.into_iter());
                    });
                }
            },
        )
    }
}

struct Planner {
    rules: ComparisonRules,
    services: BTreeMap<Service, (ServiceHistory, HopFacts)>,
}

impl Planner {
    fn step(&mut self, hop: Hop, facts: Vec<Fact>, last: bool) -> Vec<Plan> {
        for (_, facts) in self.services.values_mut() {
            facts.counted.clear();
        }
        for fact in facts {
            match fact {
                Fact::Activity(Activity::Applied) => {}
                Fact::Activity(Activity::Counted(presence)) => self.count(presence),
                Fact::Pods { held, pods, change, .. } => self.recount(held, pods, change),
            }
        }
        let mut plans = Vec::new();
        for (history, facts) in self.services.values_mut() {
            let plan = history.close(hop, facts, last, &self.rules);
            if plan.begins_block || plan.look || plan.report || !plan.closed.is_empty() || !facts.counted.is_empty() {
                plans.push(plan);
            }
        }
        plans
    }

    fn service(&mut self, service: &Service) -> &mut HopFacts {
        let new = || (ServiceHistory::new(service.clone()), HopFacts::default());
        &mut self.services.entry(service.clone()).or_insert_with(new).1
    }

    fn count(&mut self, presence: Presence) {
        let facts = self.service(&presence.service);
        let start: &mut Option<Nanos> = facts.counted.entry(presence.build).or_insert(presence.process_start);
        *start = match (*start, presence.process_start) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// The count of a build in a horizon was taken back (`change` < 0) or is new.
    fn recount(&mut self, (service, build, horizon): Held, pods: isize, change: isize) {
        let facts = self.service(&service);
        let counts = match horizon {
            Horizon::Present => &mut facts.present,
            Horizon::Window => &mut facts.in_window,
        };
        let pods = u64::try_from(pods).unwrap_or(0);
        let held = counts.get(&build).copied().unwrap_or(0);
        // Changes of one hop come in any order: a sum of differences is right in all of them.
        let now = if change > 0 { held.wrapping_add(pods) } else { held.wrapping_sub(pods) };
        if now == 0 {
            counts.remove(&build);
        } else {
            counts.insert(build, now);
        }
    }
}

/// Items by hop, handed out for every hop in turn, the empty ones included, from the first that has an item to the last.
struct Hops<D> {
    capability: Option<Capability<u64>>,
    waiting: BTreeMap<u64, Vec<D>>,
    next: Option<u64>,
}

impl<D> Hops<D> {
    fn new(capability: Capability<u64>) -> Self {
        Self { capability: Some(capability), waiting: BTreeMap::new(), next: None }
    }

    fn put(&mut self, hop: u64, item: D) {
        self.waiting.entry(hop).or_default().push(item);
    }

    /// Hands out every hop before `open_from` (all, without one); `act` learns whether a hop is the last.
    fn advance(&mut self, open_from: Option<u64>, mut act: impl FnMut(u64, &Capability<u64>, Vec<D>, bool)) {
        let Some(capability) = &mut self.capability else { return };
        let next = self.next.or_else(|| self.waiting.keys().next().copied());
        let last = self.waiting.keys().next_back().copied();
        let end = open_from.or_else(|| last.map(|last| last + 1)).or(next);
        if let (Some(next), Some(end)) = (next, end) {
            for hop in next..end {
                capability.downgrade(&hop);
                let items = self.waiting.remove(&hop).unwrap_or_default();
                act(hop, capability, items, open_from.is_none() && Some(hop) == last);
            }
            if end > next {
                self.next = Some(end);
            }
        }
        match open_from {
            Some(open_from) if open_from > *capability.time() => capability.downgrade(&open_from),
            Some(_) => {}
            None => self.capability = None,
        }
    }
}
