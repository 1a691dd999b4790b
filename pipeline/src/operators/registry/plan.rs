//! The plan of each hop, from what the registry holds.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::time::{Hop, Nanos};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;

use super::held_pods::{Held, Horizon};
use super::hops::Hops;
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::operators::by_pod::Activity;
use crate::operators::common::Common;
use crate::rules::comparisons::{ComparisonRules, HopFacts, Plan, ServiceHistory};
use crate::rules::pods::Presence;

/// What a plan is made from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Fact {
    /// What happened to pods at a hop.
    Activity(Activity),
    /// A number of held pods was retracted (`change` < 0) or is new.
    Pods { held: Held, pods: isize, change: isize, hop: u64 },
}

/// See [`PlanHops::plan`].
pub(super) trait PlanHops<'scope> {
    /// One plan per service and hop if there is anything to do, from one worker.
    fn plan(self, rules: ComparisonRules, common: &Common) -> StreamVec<'scope, u64, Plan>;
}

impl<'scope> PlanHops<'scope> for StreamVec<'scope, u64, Fact> {
    fn plan(self, rules: ComparisonRules, common: &Common) -> StreamVec<'scope, u64, Plan> {
        let mut planner = Planner { rules, services: BTreeMap::new() };
        let mut keeper = common.keeper((self.scope().index(), self.scope().peers()), &mut planner);
        self.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
            Exchange::new(|_| 0),
            "Plan",
            move |capability, _| {
                let mut hops = Hops::new(capability);
                if !planner.services.is_empty() {
                    hops.begin_with(keeper.as_ref().map_or(0, |keeper| keeper.begun_from().0));
                }
                move |(input, frontier), output| {
                    input.for_each_time(|time, data| {
                        data.flat_map(|batch| batch.drain(..)).for_each(|fact| match &fact {
                            Fact::Pods { hop, .. } => hops.put(*hop, fact),
                            Fact::Activity(_) => hops.put(*time.time(), fact),
                        });
                    });
                    let open_from = frontier.frontier().first().copied();
                    hops.advance(open_from, |hop, capability, facts, last| {
                        if let Some(keeper) = &mut keeper {
                            keeper.reach(Hop(hop), &planner);
                        }
                        let plans = planner.step(Hop(hop), facts, last);
                        output.session(capability).give_iterator(plans.into_iter());
                        planner.hops_stepped_before_next_fact()
                    });
                    if let (Some(keeper), Some(hop)) = (&mut keeper, open_from) {
                        keeper.reach(Hop(hop), &planner);
                    }
                }
            },
        )
    }
}

struct Planner {
    rules: ComparisonRules,
    services: BTreeMap<Service, (ServiceHistory, HopFacts)>,
}

impl State for Planner {
    const NAME: &'static str = "plan";

    fn save(&self, to: &mut Saving) {
        self.services.iter().for_each(|(service, (history, _))| to.routed("service", 0, &(service, history)));
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        // Which pods are held is said again.
        let services = from.all("service")?.into_iter();
        self.services = services.map(|(service, history)| (service, (history, HopFacts::default()))).collect();
        Ok(())
    }
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
            let ends = !plan.closed.is_empty() || !plan.forgotten.is_empty();
            if plan.begins_block || plan.look || plan.report || ends || !facts.counted.is_empty() {
                plans.push(plan);
            }
        }
        plans
    }

    /// While nothing happens: how many hops before the next fact must still be stepped, so many that the time blocks of every own
    /// hop that may still be counted begin as if no hop had been skipped. Otherwise none may be skipped.
    fn hops_stepped_before_next_fact(&self) -> Option<u64> {
        let idle = |(history, facts): &(ServiceHistory, HopFacts)| history.is_idle() && facts.is_silent();
        self.services.values().all(idle).then(|| self.rules.hops_before_counts())
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

    /// The count of a build in a horizon was retracted (`change` < 0) or is new.
    fn recount(&mut self, (service, build, horizon): Held, pods: isize, change: isize) {
        let facts = self.service(&service);
        let counts = match horizon {
            Horizon::Present => &mut facts.present,
            Horizon::Old => &mut facts.old,
            Horizon::Window => &mut facts.in_window,
        };
        let pods = u64::try_from(pods).unwrap_or(0);
        let held = counts.get(&build).copied().unwrap_or(0);
        // Changes of one hop come in any order; the sum of differences does not depend on it.
        let now = if change > 0 { held.wrapping_add(pods) } else { held.wrapping_sub(pods) };
        if now == 0 {
            counts.remove(&build);
        } else {
            counts.insert(build, now);
        }
    }
}
