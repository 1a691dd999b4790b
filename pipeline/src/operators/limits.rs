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

use super::at_close::AtClose;
use super::by_pod::{Activity, OfPods, PodOutput, Seen};
use super::route;
use super::split::{OneOfTwo, Split, To};
use crate::counts::functions::FunctionTable;
use crate::counts::held::{Figures, Held};
use crate::rules::limits::overflow::Overflow;
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
        shared: (Arc<FunctionTable>, Arc<Held>),
    ) -> (StreamVec<'scope, u64, PodOutput>, StreamVec<'scope, u64, LimitRow>);
}

impl<'scope> KeepWithin<'scope> for StreamVec<'scope, u64, OfPods> {
    fn keep_within(
        self,
        rules: LimitRules,
        clock: HopClock,
        (table, held): (Arc<FunctionTable>, Arc<Held>),
    ) -> (StreamVec<'scope, u64, PodOutput>, StreamVec<'scope, u64, LimitRow>) {
        let worker = u64::try_from(self.scope().index()).unwrap_or(0);
        let workers = u64::try_from(self.scope().peers()).unwrap_or(1);
        let (outputs, sights) = self.split();
        let (of_rows, mut places) = (rules.clone(), BTreeMap::<Service, ServicePlaces>::new());
        let mut said = Figures::default();
        let ruled = sights.at_close(
            "Limits",
            |sights| route(&[sights.service.as_str()]),
            move |closed| {
                let mut services: BTreeMap<Service, Vec<_>> = BTreeMap::new();
                for sights in closed.items {
                    services.entry(sights.service.clone()).or_default().push(sights);
                }
                let hop = Hop(closed.hop);
                let limits = rules.at(hop);
                let decide = |(service, sights)| places.entry(service).or_default().close(hop, sights, &rules, &limits);
                let mut ruled: Vec<Ruled> = services.into_iter().filter_map(decide).collect();
                let gone = places.extract_if(.., |_, of_service| of_service.are_forgotten(hop, &rules));
                ruled.extend(gone.filter_map(|(service, of_service)| of_service.forget(service)));
                held.replace(&mut said, places.values().map(|of_service| of_service.figures(hop, &rules)).sum());
                ruled
            },
        );
        let ruled =
            ruled.flat_map(move |ruled| (0..workers).map(move |worker| Given::Ruled { worker, ruled: ruled.clone() }));
        let mut overflow = Overflow::default();
        let within = outputs.map(move |output| Given::Output { worker, output }).concat(ruled).at_close(
            "Overflow",
            |given| match given {
                Given::Output { worker, .. } | Given::Ruled { worker, .. } => *worker,
            },
            move |closed| {
                let (mut outputs, mut ruled) = (Vec::with_capacity(closed.items.len()), Vec::new());
                for given in closed.items {
                    match given {
                        Given::Output { output, .. } => outputs.push(output),
                        Given::Ruled { ruled: one, .. } => ruled.push(one),
                    }
                }
                overflow.rule(ruled);
                let kept = outputs.into_iter().map(|output| within(output, &mut overflow, &table));
                let mut kept: Vec<Within> = kept.map(Within::Counted).collect();
                let limits = of_rows.at(Hop(closed.hop));
                let rows =
                    overflow.take_together().into_iter().map(|((service, what), (profiles, samples))| LimitRow {
                        hop_at: clock.start_of(Hop(closed.hop)),
                        service,
                        what,
                        limit: table_count(limits.of(what)),
                        profiles: table_count(profiles),
                        samples: table_count(samples),
                    });
                kept.extend(rows.map(Within::Together));
                kept
            },
        );
        within.split()
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
