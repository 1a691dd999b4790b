//! By pod: which profiles are counted, and what they add to which cell.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fleetdiff_schemas::identity::{PodId, Service};
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;

use super::at_close::{AtClose, Closed};
use super::ledger::Term;
use super::route;
use super::split::{OneOfTwo, To};
use crate::counts::functions::FunctionTable;
use crate::rules::admission::OfPod;
use crate::rules::pods::{CellAddition, Decided, PodHistory, PodRules, Presence};

/// The results from the pods of one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PodOutput {
    /// Something to count.
    Addition(CellAddition),
    /// Something that was seen but is not counted.
    Seen(Seen),
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

/// See [`DecideByPod::decide_by_pod`].
pub trait DecideByPod<'scope> {
    /// Sends all messages about a pod to one worker and decides about them at the close of their application hop, in
    /// the order of [`PodHistory::close`].
    fn decide_by_pod(self, rules: PodRules, table: Arc<FunctionTable>) -> StreamVec<'scope, u64, PodOutput>;
}

impl<'scope> DecideByPod<'scope> for StreamVec<'scope, u64, OfPod> {
    fn decide_by_pod(self, rules: PodRules, table: Arc<FunctionTable>) -> StreamVec<'scope, u64, PodOutput> {
        let mut pods = Pods { rules, table, histories: HashMap::new(), swept: Hop(0) };
        self.at_close(
            "ByPod",
            |arrived| route(&[arrived.identity().service.as_str(), arrived.identity().pod.as_str()]),
            move |closed| pods.close(closed),
        )
    }
}

/// Hops between two walks over all pods, to give back the memory of those that are forgotten.
const SWEEP_EVERY: u64 = 360;

struct Pods {
    rules: PodRules,
    table: Arc<FunctionTable>,
    histories: HashMap<(Service, PodId), PodHistory>,
    swept: Hop,
}

impl Pods {
    fn close(&mut self, closed: Closed<OfPod>) -> Vec<PodOutput> {
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
        if self.swept.plus(SWEEP_EVERY) <= hop {
            self.histories.retain(|_, history| history.last_seen().plus(self.rules.forgets_after()) > hop);
            self.swept = hop;
        }
        output
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
