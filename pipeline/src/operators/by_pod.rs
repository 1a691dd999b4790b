//! By pod: which profiles are counted, and what they add to which cell.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fleetdiff_schemas::identity::{PodId, Service};
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;

use super::at_close::{AtClose, AtHop, Closed};
use super::common::Common;
use super::ledger::Term;
use super::route;
use super::split::{OneOfTwo, To};
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::counts::functions::FunctionTable;
use crate::rules::admission::OfPod;
use crate::rules::limits::LimitRules;
use crate::rules::limits::sights::{SeenSoFar, Sights};
use crate::rules::pods::{CellAddition, Decided, PodHistory, PodRules, Presence};

/// The results from the pods of one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PodOutput {
    /// Something to count.
    Addition(CellAddition),
    /// Something that was seen but is not counted.
    Seen(Seen),
}

impl PodOutput {
    fn addition(&self) -> Option<&CellAddition> {
        if let Self::Addition(addition) = self { Some(addition) } else { None }
    }

    fn presence(&self) -> Option<&Presence> {
        if let Self::Seen(Seen::Activity(Activity::Counted(presence))) = self { Some(presence) } else { None }
    }
}

impl OneOfTwo for PodOutput {
    type First = CellAddition;
    type Second = Seen;

    fn destination(self) -> To<CellAddition, Seen> {
        match self {
            Self::Addition(addition) => To::First(addition),
            Self::Seen(seen) => To::Second(seen),
        }
    }
}

/// What is known about pods besides their counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Seen {
    /// A message to the registry.
    Activity(Activity),
    /// What was dropped, for the ledger.
    Dropped(Term),
}

impl OneOfTwo for Seen {
    type First = Activity;
    type Second = Term;

    fn destination(self) -> To<Activity, Term> {
        match self {
            Self::Activity(activity) => To::First(activity),
            Self::Dropped(term) => To::Second(term),
        }
    }
}

/// What the registry is given about a hop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Activity {
    /// Some profile was applied, counted or not.
    Applied,
    /// A pod had a counted profile.
    Counted(Presence),
}

/// What pods contribute to a hop, and what of it a worker sees for the first time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum OfPods {
    /// A result.
    Output(PodOutput),
    /// What is new, of one service.
    Sights(Sights),
}

impl OneOfTwo for OfPods {
    type First = PodOutput;
    type Second = Sights;

    fn destination(self) -> To<PodOutput, Sights> {
        match self {
            Self::Output(output) => To::First(output),
            Self::Sights(sights) => To::Second(sights),
        }
    }
}

/// See [`DecideByPod::decide_by_pod`].
pub trait DecideByPod<'scope> {
    /// Sends all messages about a pod to one worker and decides about them at the close of their application hop, in
    /// the order of [`PodHistory::close`].
    fn decide_by_pod(self, rules: (PodRules, LimitRules), common: &Common) -> StreamVec<'scope, u64, OfPods>;
}

impl<'scope> DecideByPod<'scope> for StreamVec<'scope, u64, OfPod> {
    fn decide_by_pod(self, (rules, limits): (PodRules, LimitRules), common: &Common) -> StreamVec<'scope, u64, OfPods> {
        let (table, seen) = (Arc::clone(&common.table), SeenSoFar::default());
        let pods = Pods { rules, limits, table, histories: HashMap::new(), seen, swept: Hop(0) };
        self.keep_at_close(pods, |arrived| route_of(&arrived.identity().service, &arrived.identity().pod), common)
    }
}

fn route_of(service: &Service, pod: &PodId) -> u64 {
    route(&[service.as_str(), pod.as_str()])
}

struct Pods {
    rules: PodRules,
    limits: LimitRules,
    table: Arc<FunctionTable>,
    histories: HashMap<(Service, PodId), PodHistory>,
    seen: SeenSoFar,
    swept: Hop,
}

impl State for Pods {
    const NAME: &'static str = "by_pod";

    fn save(&self, to: &mut Saving) {
        #[expect(clippy::iter_over_hash_type, reason = "parts are sorted")]
        for pod in &self.histories {
            to.routed("pod", route_of(&pod.0.0, &pod.0.1), &pod);
        }
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.histories = from.all("pod")?.into_iter().collect();
        // What was seen is said again, which changes nothing; what is dropped when would matter no more.
        self.swept = from.hop();
        Ok(())
    }
}

impl AtHop<OfPod> for Pods {
    type Output = OfPods;

    fn close(&mut self, closed: Closed<OfPod>) -> Vec<OfPods> {
        let hop = Hop(closed.hop);
        let mut by_pod: BTreeMap<(Service, PodId), Vec<OfPod>> = BTreeMap::new();
        let mut output = Vec::new();
        for arrived in closed.items {
            if output.is_empty() && matches!(arrived, OfPod::Profile(_)) {
                output.push(PodOutput::Seen(Seen::Activity(Activity::Applied)));
            }
            by_pod
                .entry((arrived.identity().service.clone(), arrived.identity().pod.clone()))
                .or_default()
                .push(arrived);
        }
        for (pod, arrived) in by_pod {
            let decided = self.histories.entry(pod).or_default().close(hop, arrived, &self.rules, &self.table);
            output.extend(outputs(hop, decided));
        }
        // What is dropped here would matter no more, so that it does not matter either when a worker does it.
        if self.swept.plus(self.rules.window()) <= hop {
            self.histories.retain(|_, history| history.tidy(hop, &self.rules));
            self.histories.shrink_to(self.histories.len() * 2);
            self.swept = hop;
        }
        let additions = output.iter().filter_map(PodOutput::addition);
        let presences = output.iter().filter_map(PodOutput::presence);
        let sights = self.seen.close(hop, additions, presences, (&self.limits, &self.table));
        output.into_iter().map(OfPods::Output).chain(sights.into_iter().map(OfPods::Sights)).collect()
    }
}

fn outputs(hop: Hop, decided: Decided) -> impl Iterator<Item = PodOutput> {
    let additions = decided.additions.into_iter().map(PodOutput::Addition);
    let presences =
        decided.presences.into_iter().map(|presence| PodOutput::Seen(Seen::Activity(Activity::Counted(presence))));
    let terms = decided
        .dropped
        .into_iter()
        .map(move |(kind, dropped)| PodOutput::Seen(Seen::Dropped(Term::dropped(hop, kind, dropped))));
    additions.chain(presences).chain(terms)
}
