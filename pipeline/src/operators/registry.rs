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
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Concat, Concatenate};

use self::held_pods::HeldPods;
use self::plan::{Fact, PlanHops};
use super::arrive::AppliedElsewhere;
use super::at_close::AtClose;
use super::by_pod::Activity;
use super::common::Common;
use crate::rules::comparisons::{ComparisonRules, Plan};

/// See [`Register::register`].
pub trait Register<'scope> {
    /// Keeps the registry and gives one plan per service and hop if there is anything to do, on the worker that keeps
    /// the plans. Hops at which only other shards count something are hops all the same: the last one is the last look of all services.
    fn register(
        self,
        elsewhere: StreamVec<'scope, u64, AppliedElsewhere>,
        rules: ComparisonRules,
        window_hops: u64,
        common: &Common,
    ) -> StreamVec<'scope, u64, Plan>;
}

impl<'scope> Register<'scope> for StreamVec<'scope, u64, Activity> {
    fn register(
        self,
        elsewhere: StreamVec<'scope, u64, AppliedElsewhere>,
        rules: ComparisonRules,
        window_hops: u64,
        common: &Common,
    ) -> StreamVec<'scope, u64, Plan> {
        let elsewhere = elsewhere.at_close("Elsewhere", |_| 0, |_| vec![Activity::Applied]);
        let activity = self.concat(elsewhere);
        let pods = activity.clone().held_pods(window_hops, common).as_collection();
        let counts = pods.map(|(service, build, horizon, _)| (service, build, horizon)).count_total();
        let counted = counts.inner.map(|((held, pods), hop, change)| Fact::Pods { held, pods, change, hop });
        let activity = activity.map(Fact::Activity);
        activity.scope().concatenate([activity, counted]).plan(rules, common)
    }
}
