//! Incidents: what is announced of the flags and verdicts of each comparison.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rows::ComparisonKey;
use fleetdiff_schemas::time::Hop;
use timely::dataflow::StreamVec;
use timely::dataflow::operators::vec::Filter;

use super::at_close::{AtClose, Closed};
use super::by_comparison::Decision;
use super::deliver::OutputRow;
use super::route;
use crate::rules::incidents::{Announced, Incidents, News};

/// See [`Incident::incidents`].
pub trait Incident<'scope> {
    /// Sends what was decided about a comparison to one worker, and gives rows of `incidents` and of
    /// `comparisons`, and verdicts.
    fn incidents(self, config: &Config) -> StreamVec<'scope, u64, OutputRow>;
}

impl<'scope> Incident<'scope> for StreamVec<'scope, u64, Decision> {
    fn incidents(self, config: &Config) -> StreamVec<'scope, u64, OutputRow> {
        let mut comparisons = Comparisons { config: config.clone(), incidents: BTreeMap::new() };
        // A comparison with history is never announced.
        self.filter(|decision| !matches!(decision, Decision::History(_))).at_close(
            "Incidents",
            |decision| Subject::of(decision).route(),
            move |closed| comparisons.close(closed),
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

    fn route(&self) -> u64 {
        route(&[self.service.as_str(), self.base.as_str(), self.head.as_str()])
    }
}

struct Comparisons {
    config: Config,
    incidents: BTreeMap<Subject, Incidents>,
}

impl Comparisons {
    fn close(&mut self, closed: Closed<Decision>) -> Vec<OutputRow> {
        let hop = Hop(closed.hop);
        let mut news: BTreeMap<Subject, (News, bool)> = BTreeMap::new();
        for decision in closed.items {
            let (news, ended) = news.entry(Subject::of(&decision)).or_default();
            match decision {
                Decision::Cell(row) => news.report.push(*row),
                Decision::Flag(flag) => news.flags.push(*flag),
                Decision::Comparison(row) => news.comparisons.push(*row),
                Decision::Ended(_) => *ended = true,
                Decision::History(_) => {}
            }
        }
        let mut rows = Vec::new();
        for (subject, (news, ended)) in news {
            if !ended && news.flags.is_empty() && news.comparisons.is_empty() {
                // Rows against history alone.
                continue;
            }
            let announced = if ended { self.end(hop, &subject, news) } else { self.take(hop, subject, news) };
            rows.extend(announced.incidents.into_iter().map(|row| OutputRow::Incident(Box::new(row))));
            rows.extend(announced.verdict.map(|row| OutputRow::Verdict(Box::new(row))));
            rows.extend(announced.comparisons.into_iter().map(|row| OutputRow::Comparison(Box::new(row))));
        }
        rows
    }

    fn take(&mut self, hop: Hop, subject: Subject, news: News) -> Announced {
        let Subject { service, base, head } = subject.clone();
        let config = self.config.clone();
        let incidents = self.incidents.entry(subject).or_insert_with(|| Incidents::new(service, base, head, config));
        incidents.take(hop, news)
    }

    fn end(&mut self, hop: Hop, subject: &Subject, news: News) -> Announced {
        let mut ended = self.incidents.remove(subject);
        let incidents = ended.as_mut().map(|incidents| incidents.close(hop, news.flags)).unwrap_or_default();
        Announced { incidents, verdict: None, comparisons: news.comparisons }
    }
}
