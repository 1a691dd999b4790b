//! Incidents: what is announced of the flags and verdicts of each comparison, and of all comparisons of a roll-out together.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rows::ComparisonKey;
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::vec::{Filter, Map};

use super::at_close::{AtClose, Closed};
use super::by_comparison::Decision;
use super::deliver::OutputRow;
use super::route;
use crate::rules::comparisons::Plan;
use crate::rules::incidents::{Announced, Incidents, News};
use crate::rules::rings::paths;
use crate::rules::roll_out::RollOut;

/// See [`Incident::incidents`].
pub trait Incident<'scope> {
    /// Sends what was decided about a service to one worker, and gives rows of `incidents`, of `comparisons` and of
    /// `rings`, and verdicts.
    fn incidents(self, plans: StreamVec<'scope, u64, Plan>, config: &Config) -> StreamVec<'scope, u64, OutputRow>;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum IncidentInput {
    Decision(Box<Decision>),
    Plan(Plan),
}

impl<'scope> Incident<'scope> for StreamVec<'scope, u64, Decision> {
    fn incidents(self, plans: StreamVec<'scope, u64, Plan>, config: &Config) -> StreamVec<'scope, u64, OutputRow> {
        let mut services = Services { config: config.clone(), services: BTreeMap::new() };
        // A comparison with history is never announced.
        let announced = self.filter(|decision| !matches!(decision, Decision::History(_)));
        let decided = announced.map(|decision| IncidentInput::Decision(Box::new(decision)));
        decided.concat(plans.map(IncidentInput::Plan)).at_close(
            "Incidents",
            |input| match input {
                IncidentInput::Decision(decision) => route(&[Subject::of(decision).service.as_str()]),
                IncidentInput::Plan(plan) => route(&[plan.service.as_str()]),
            },
            move |closed| services.close(closed),
        )
    }
}

/// Builds of a service that are compared, in every type of profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    service: Service,
    base: Build,
    head: Build,
}

impl Subject {
    fn of(decision: &Decision) -> Self {
        match decision {
            Decision::Cell(row) => Self::of_key(&row.comparison),
            Decision::Flag(flag) => Self::of_key(&flag.row.comparison),
            Decision::Comparison(row) | Decision::History(row) => Self::of_key(&row.comparison),
            Decision::Ended(id) => Self::of_id(id),
        }
    }

    fn of_key(key: &ComparisonKey) -> Self {
        Self { service: key.service.clone(), base: key.base_build.clone(), head: key.head_build.clone() }
    }

    fn of_id(id: &ComparisonId) -> Self {
        Self { service: id.service.clone(), base: id.base_name(), head: id.head.clone() }
    }
}

struct Services {
    config: Config,
    services: BTreeMap<Service, Comparisons>,
}

/// What is announced of the comparisons of one service.
struct Comparisons {
    incidents: BTreeMap<Subject, Incidents>,
    roll_out: RollOut,
}

/// What was decided about one service at one hop.
#[derive(Default)]
struct ServiceNews {
    rings: Option<Vec<Build>>,
    news: BTreeMap<Subject, (News, bool)>,
}

impl Services {
    fn close(&mut self, closed: Closed<IncidentInput>) -> Vec<OutputRow> {
        let hop = Hop(closed.hop);
        let mut services: BTreeMap<Service, ServiceNews> = BTreeMap::new();
        for input in closed.items {
            match input {
                IncidentInput::Plan(plan) => services.entry(plan.service).or_default().rings = Some(plan.rings),
                IncidentInput::Decision(decision) => {
                    let subject = Subject::of(&decision);
                    services.entry(subject.service.clone()).or_default().take(subject, *decision);
                }
            }
        }
        let mut rows = Vec::new();
        for (service, news) in services {
            let clock = self.config.clock();
            let new = || Comparisons { incidents: BTreeMap::new(), roll_out: RollOut::new(clock) };
            self.services.entry(service).or_insert_with(new).take(hop, news, &self.config, &mut rows);
        }
        rows
    }
}

impl ServiceNews {
    fn take(&mut self, subject: Subject, decision: Decision) {
        let (news, ended) = self.news.entry(subject).or_default();
        match decision {
            Decision::Cell(row) => news.report.push(*row),
            Decision::Flag(flag) => news.flags.push(*flag),
            Decision::Comparison(row) => news.comparisons.push(*row),
            Decision::Ended(_) => *ended = true,
            Decision::History(_) => {}
        }
    }
}

impl Comparisons {
    fn take(&mut self, hop: Hop, news: ServiceNews, config: &Config, rows: &mut Vec<OutputRow>) {
        let ServiceNews { rings, news } = news;
        if let Some(rings) = rings {
            let report = news.values().flat_map(|(news, _)| &news.report);
            rows.extend(paths(&rings, report).into_iter().map(|row| OutputRow::Ring(Box::new(row))));
            self.roll_out.run_beside(&rings);
        }
        let mut incidents = Vec::new();
        for (subject, (news, ended)) in news {
            if !ended && news.flags.is_empty() && news.comparisons.is_empty() {
                // Rows against history alone.
                continue;
            }
            let announced = if ended { self.end(hop, &subject, news) } else { self.go_on(hop, subject, news, config) };
            incidents.extend(announced.incidents);
            rows.extend(announced.verdict.map(|row| OutputRow::Verdict(Box::new(row))));
            rows.extend(announced.comparisons.into_iter().map(|row| OutputRow::Comparison(Box::new(row))));
        }
        let announced = self.roll_out.take(hop, incidents).into_iter();
        rows.extend(announced.map(|row| OutputRow::Incident(Box::new(row))));
    }

    fn go_on(&mut self, hop: Hop, subject: Subject, news: News, config: &Config) -> Announced {
        let Subject { service, base, head } = subject.clone();
        let new = || Incidents::new(service, base, head, config.clone());
        self.incidents.entry(subject).or_insert_with(new).take(hop, news)
    }

    fn end(&mut self, hop: Hop, subject: &Subject, news: News) -> Announced {
        let mut ended = self.incidents.remove(subject);
        let incidents = ended.as_mut().map(|incidents| incidents.close(hop, news.flags)).unwrap_or_default();
        Announced { incidents, verdict: None, comparisons: news.comparisons }
    }
}
