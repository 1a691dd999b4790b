//! What is announced of the flags, verdicts and findings of each comparison, once over all comparisons of a roll-out.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rows::{ComparisonKey, HeapFindingRow, IncidentRow, ScalingFindingRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::vec::{Filter, Map};

use super::at_close::{AtClose, AtHop, Closed};
use super::by_comparison::Decision;
use super::common::Common;
use super::deliver::OutputRow;
use super::route;
use crate::checkpoint::{Loading, Saving, State, Unreadable};
use crate::rules::comparisons::Plan;
use crate::rules::incidents::{Announced, Incidents, News};
use crate::rules::rings::paths;
use crate::rules::roll_out::RollOut;

/// See [`Incident::incidents`].
pub trait Incident<'scope> {
    /// Sends what was decided about a service to one worker, and gives rows of `incidents`, of `comparisons` and of
    /// `rings`, verdicts, and findings about load and memory.
    fn incidents(
        self,
        plans: StreamVec<'scope, u64, Plan>,
        config: &Config,
        common: &Common,
    ) -> StreamVec<'scope, u64, OutputRow>;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum IncidentInput {
    Decision(Box<Decision>),
    Plan(Plan),
}

impl<'scope> Incident<'scope> for StreamVec<'scope, u64, Decision> {
    fn incidents(
        self,
        plans: StreamVec<'scope, u64, Plan>,
        config: &Config,
        common: &Common,
    ) -> StreamVec<'scope, u64, OutputRow> {
        let services = Services { config: config.clone(), services: BTreeMap::new() };
        // A comparison with history is never announced.
        let announced = self.filter(|decision| !matches!(decision, Decision::History(_)));
        let decided = announced.map(|decision| IncidentInput::Decision(Box::new(decision)));
        let to_worker = |input: &IncidentInput| match input {
            IncidentInput::Decision(decision) => route(&[Subject::of_decision(decision).service.as_str()]),
            IncidentInput::Plan(plan) => route(&[plan.service.as_str()]),
        };
        decided.concat(plans.map(IncidentInput::Plan)).keep_at_close(services, to_worker, common)
    }
}

/// Builds of a service that are compared, in every type of profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Subject {
    service: Service,
    base: Build,
    head: Build,
}

impl Subject {
    fn of_decision(decision: &Decision) -> Self {
        match decision {
            Decision::Cell(row) => Self::of_key(&row.comparison),
            Decision::Flag(flag) => Self::of_key(&flag.row.comparison),
            Decision::Scaling(row) => Self::of(&row.service, &row.base_build, &row.head_build),
            Decision::Heap(row) => Self::of(&row.service, &row.base_build, &row.head_build),
            Decision::Comparison(row) | Decision::History(row) => Self::of_key(&row.comparison),
            Decision::Ended(id) => Self::of_id(id),
        }
    }

    fn of_key(key: &ComparisonKey) -> Self {
        Self::of(&key.service, &key.base_build, &key.head_build)
    }

    fn of_id(id: &ComparisonId) -> Self {
        Self::of(&id.service, &id.base_name(), &id.head)
    }

    fn of(service: &Service, base: &Build, head: &Build) -> Self {
        Self { service: service.clone(), base: base.clone(), head: head.clone() }
    }
}

struct Services {
    config: Config,
    services: BTreeMap<Service, Comparisons>,
}

/// What is announced of the comparisons of one service.
#[derive(Serialize, Deserialize)]
struct Comparisons {
    incidents: BTreeMap<Subject, Incidents>,
    over_rings: OverRings,
}

/// What is announced once over all rings.
#[derive(Serialize, Deserialize)]
struct OverRings {
    incidents: RollOut<IncidentRow>,
    scaling: RollOut<ScalingFindingRow>,
    heap: RollOut<HeapFindingRow>,
}

/// What was decided about one service at one hop.
#[derive(Default)]
struct ServiceNews {
    rings: Option<Vec<Build>>,
    news: BTreeMap<Subject, (News, bool)>,
    scaling: Vec<ScalingFindingRow>,
    heap: Vec<HeapFindingRow>,
}

impl State for Services {
    const NAME: &'static str = "incidents";

    fn save(&self, to: &mut Saving) {
        self.services.iter().for_each(|service| to.routed("service", route(&[service.0.as_str()]), &service));
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.services = from.all("service")?.into_iter().collect();
        Ok(())
    }
}

impl AtHop<IncidentInput> for Services {
    type Output = OutputRow;

    fn close(&mut self, closed: Closed<IncidentInput>) -> Vec<OutputRow> {
        let hop = Hop(closed.hop);
        let mut services: BTreeMap<Service, ServiceNews> = BTreeMap::new();
        for input in closed.items {
            match input {
                IncidentInput::Plan(plan) => services.entry(plan.service).or_default().rings = Some(plan.rings),
                IncidentInput::Decision(decision) => {
                    let subject = Subject::of_decision(&decision);
                    services.entry(subject.service.clone()).or_default().take(subject, *decision);
                }
            }
        }
        let mut rows = Vec::new();
        for (service, news) in services {
            let new = || Comparisons { incidents: BTreeMap::new(), over_rings: OverRings::new(self.config.clock()) };
            self.services.entry(service).or_insert_with(new).take(hop, news, &self.config, &mut rows);
        }
        rows
    }
}

impl OverRings {
    fn new(clock: HopClock) -> Self {
        Self { incidents: RollOut::new(clock), scaling: RollOut::new(clock), heap: RollOut::new(clock) }
    }

    /// Takes the builds that run side by side from now on.
    fn run_beside(&mut self, rings: &[Build]) {
        self.incidents.run_beside(rings);
        self.scaling.run_beside(rings);
        self.heap.run_beside(rings);
    }
}

impl ServiceNews {
    fn take(&mut self, subject: Subject, decision: Decision) {
        let (news, ended) = self.news.entry(subject).or_default();
        match decision {
            Decision::Cell(row) => news.report.push(row),
            Decision::Flag(flag) => news.flags.push(*flag),
            Decision::Comparison(row) => news.comparisons.push(*row),
            Decision::Scaling(row) => self.scaling.push(*row),
            Decision::Heap(row) => self.heap.push(*row),
            Decision::Ended(_) => *ended = true,
            Decision::History(_) => {}
        }
    }
}

impl Comparisons {
    fn take(&mut self, hop: Hop, news: ServiceNews, config: &Config, rows: &mut Vec<OutputRow>) {
        let ServiceNews { rings, news, scaling, heap } = news;
        if let Some(rings) = rings {
            let report = news.values().flat_map(|(news, _)| &news.report).map(Arc::as_ref);
            rows.extend(paths(&rings, report).into_iter().map(|row| OutputRow::Ring(Box::new(row))));
            self.over_rings.run_beside(&rings);
        }
        let mut incidents = Vec::new();
        for (subject, (news, ended)) in news {
            if !ended && news.flags.is_empty() && news.comparisons.is_empty() {
                // Rows against history alone, or findings alone.
                continue;
            }
            let announced =
                if ended { self.end(hop, &subject, news, config) } else { self.go_on(hop, subject, news, config) };
            incidents.extend(announced.incidents);
            rows.extend(announced.verdict.map(|row| OutputRow::Verdict(Box::new(row))));
            rows.extend(announced.comparisons.into_iter().map(|row| OutputRow::Comparison(Box::new(row))));
        }
        let OverRings { incidents: of_incidents, scaling: of_scaling, heap: of_heap } = &mut self.over_rings;
        rows.extend(of_incidents.take(hop, incidents).into_iter().map(|row| OutputRow::Incident(Box::new(row))));
        rows.extend(of_scaling.take(hop, scaling).into_iter().map(|row| OutputRow::ScalingFinding(Box::new(row))));
        rows.extend(of_heap.take(hop, heap).into_iter().map(|row| OutputRow::HeapFinding(Box::new(row))));
    }

    fn go_on(&mut self, hop: Hop, subject: Subject, news: News, config: &Config) -> Announced {
        let Subject { service, base, head } = subject.clone();
        let new = || Incidents::new(service, base, head);
        self.incidents.entry(subject).or_insert_with(new).take(hop, news, config)
    }

    fn end(&mut self, hop: Hop, subject: &Subject, news: News, config: &Config) -> Announced {
        let mut ended = self.incidents.remove(subject);
        let incidents = ended.as_mut().map(|incidents| incidents.close(hop, news.flags, config)).unwrap_or_default();
        Announced { incidents, verdict: None, comparisons: news.comparisons }
    }
}
