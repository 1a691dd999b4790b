//! Keeps each service within its limits, before anything is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::rows::LimitRow;
use fleetdiff_schemas::time::{Hop, HopClock};
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::vec::Map;

use super::at_close::{AtClose, AtHop, Closed};
use super::by_pod::{Activity, OfPods, PodOutput, Seen};
use super::common::Common;
use super::route;
use super::split::{OneOfTwo, Split, To};
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::counts::functions::FunctionTable;
use crate::counts::held::{Figures, Held};
use crate::rules::limits::overflow::Overflow;
use crate::rules::limits::sights::Sights;
use crate::rules::limits::{LimitRules, Ruled, ServicePlaces};

/// What is counted, and what was counted together for a limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Within {
    Counted(PodOutput),
    Together(LimitRow),
}

impl OneOfTwo for Within {
    type First = PodOutput;
    type Second = LimitRow;

    fn destination(self) -> To<PodOutput, LimitRow> {
        match self {
            Self::Counted(output) => To::First(output),
            Self::Together(row) => To::Second(row),
        }
    }
}

/// What a worker is given about a hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Given {
    Output { worker: u64, output: PodOutput },
    Ruled { worker: u64, ruled: Ruled },
}

/// See [`KeepWithin::keep_within`].
pub trait KeepWithin<'scope> {
    /// Decides at the close of a hop which functions, call paths, cells, builds and pods of a service have a place, and counts
    /// the others together. Also gives what was: one row a worker, service, limit and hop. Says how much is held.
    fn keep_within(
        self,
        rules: LimitRules,
        clock: HopClock,
        common: &Common,
    ) -> (StreamVec<'scope, u64, PodOutput>, StreamVec<'scope, u64, LimitRow>);
}

impl<'scope> KeepWithin<'scope> for StreamVec<'scope, u64, OfPods> {
    fn keep_within(
        self,
        rules: LimitRules,
        clock: HopClock,
        common: &Common,
    ) -> (StreamVec<'scope, u64, PodOutput>, StreamVec<'scope, u64, LimitRow>) {
        let worker = u64::try_from(self.scope().index()).unwrap_or(0);
        let workers = u64::try_from(self.scope().peers()).unwrap_or(1);
        let (outputs, sights) = self.split();
        let held = (Arc::clone(&common.held), Figures::default());
        let places = OfServices { rules: rules.clone(), places: BTreeMap::new(), held };
        let ruled = sights.keep_at_close(places, |sights| route(&[sights.service.as_str()]), common);
        let ruled =
            ruled.flat_map(move |ruled| (0..workers).map(move |worker| Given::Ruled { worker, ruled: ruled.clone() }));
        let together = Together { rules, clock, table: Arc::clone(&common.table), overflow: Overflow::default() };
        let given = outputs.map(move |output| Given::Output { worker, output }).concat(ruled);
        let to_worker = |given: &Given| match given {
            Given::Output { worker, .. } | Given::Ruled { worker, .. } => *worker,
        };
        given.keep_at_close(together, to_worker, common).split()
    }
}

/// Which places there are, by service.
struct OfServices {
    rules: LimitRules,
    places: BTreeMap<Service, ServicePlaces>,
    /// Where it says how much is held, and what it said last.
    held: (Arc<Held>, Figures),
}

impl State for OfServices {
    const NAME: &'static str = "limits";

    fn save(&self, to: &mut Saving) {
        self.places.iter().for_each(|places| to.routed("places", route(&[places.0.as_str()]), &places));
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.places = from.all("places")?.into_iter().collect();
        Ok(())
    }
}

impl AtHop<Sights> for OfServices {
    type Output = Ruled;

    fn close(&mut self, closed: Closed<Sights>) -> Vec<Ruled> {
        let Self { rules, places, held: (held, said) } = self;
        let mut services: BTreeMap<Service, Vec<_>> = BTreeMap::new();
        for sights in closed.items {
            services.entry(sights.service.clone()).or_default().push(sights);
        }
        let hop = Hop(closed.hop);
        let limits = rules.at(hop);
        let decide = |(service, sights)| places.entry(service).or_default().close(hop, sights, rules, &limits);
        let mut ruled: Vec<Ruled> = services.into_iter().filter_map(decide).collect();
        let gone = places.extract_if(.., |_, of_service| of_service.are_forgotten(hop, rules));
        ruled.extend(gone.filter_map(|(service, of_service)| of_service.forget(service)));
        held.replace(said, places.values().map(|of_service| of_service.figures(hop, rules)).sum());
        ruled
    }
}

/// Counts together what has no place.
struct Together {
    rules: LimitRules,
    clock: HopClock,
    table: Arc<FunctionTable>,
    overflow: Overflow,
}

impl State for Together {
    const NAME: &'static str = "overflow";

    fn save(&self, to: &mut Saving) {
        to.everywhere("services", &self.overflow.services());
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.overflow = Overflow::of(from.all::<BTreeMap<_, _>>("services")?.into_iter().flatten());
        Ok(())
    }
}

impl AtHop<Given> for Together {
    type Output = Within;

    fn close(&mut self, closed: Closed<Given>) -> Vec<Within> {
        let Self { rules, clock, table, overflow } = self;
        let (mut outputs, mut ruled) = (Vec::with_capacity(closed.items.len()), Vec::new());
        for given in closed.items {
            match given {
                Given::Output { output, .. } => outputs.push(output),
                Given::Ruled { ruled: one, .. } => ruled.push(one),
            }
        }
        overflow.rule(ruled);
        let kept = outputs.into_iter().map(|output| within(output, overflow, table));
        let mut kept: Vec<Within> = kept.map(Within::Counted).collect();
        let hop = Hop(closed.hop);
        let limits = rules.at(hop);
        let rows = overflow.take_together().into_iter().map(|((service, what), (profiles, samples))| LimitRow {
            hop_at: clock.start_of(hop),
            service,
            what,
            limit: table_count(limits.of(what)),
            profiles: table_count(profiles),
            samples: table_count(samples),
        });
        kept.extend(rows.map(Within::Together));
        kept
    }
}

fn within(output: PodOutput, overflow: &mut Overflow, table: &FunctionTable) -> PodOutput {
    match output {
        PodOutput::Addition(addition) => PodOutput::Addition(overflow.addition(addition, table)),
        PodOutput::Seen(Seen::Activity(Activity::Counted(presence))) => {
            PodOutput::Seen(Seen::Activity(Activity::Counted(overflow.presence(presence))))
        }
        other => other,
    }
}
