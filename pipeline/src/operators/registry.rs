//! The registry of pods and builds, and the plans that follow from it.
//!
//! The set of recently counted pods changes rarely, so it is kept as a differential collection: a pod enters a horizon
//! with its first counted profile and leaves it when that much time has passed since its last. The pods of each build
//! are counted incrementally. Once per hop, a state machine per service turns the counts into a plan.

mod held_pods;
mod hops;
mod plan;

use differential_dataflow::AsCollection;
use differential_dataflow::operators::CountTotal;
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::vec::Map;

use self::held_pods::HeldPods;
use self::plan::{Fact, PlanHops};
use super::by_pod::Activity;
use super::common::Common;
use crate::rules::comparisons::{ComparisonRules, Plan};

/// See [`Register::register`].
pub trait Register<'scope> {
    /// Keeps the registry and gives one plan per service and hop if there is anything to do, on the worker that keeps
    /// the plans.
    fn register(self, rules: ComparisonRules, window_hops: u64, common: &Common) -> StreamVec<'scope, u64, Plan>;
}

impl<'scope> Register<'scope> for StreamVec<'scope, u64, Activity> {
    fn register(self, rules: ComparisonRules, window_hops: u64, common: &Common) -> StreamVec<'scope, u64, Plan> {
        let pods = self.clone().held_pods(window_hops, common).as_collection();
        let counts = pods.map(|(service, build, horizon, _)| (service, build, horizon)).count_total();
        let counted = counts.inner.map(|((held, pods), hop, change)| Fact::Pods { held, pods, change, hop });
        let activity = self.map(Fact::Activity);
        activity.scope().concatenate([activity, counted]).plan(rules, common)
    }
}
