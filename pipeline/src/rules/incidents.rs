//! One incident a cause: what people hear of.
//!
//! A cause (a function, self and total together, or all functions per request) that changes in three cells raises three
//! flags or more; people hear of it once. This state machine, one per comparison, takes the changes of
//! [flags](super::lifecycle) and the verdicts of cells, look by look, and gives what changed in incidents. The law: each
//! flag that stands belongs to one incident, or waits for its cause.
//!
//! A caller's total count may be flagged some looks before the function that it calls. So a flag of total counts waits up
//! to [`LOOKS`] looks before it raises an incident. If another row explains it later, its incident is superseded by that of
//! the cause; it is not cleared, since nothing has recovered.

mod cells;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::alert::incident_id;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{
    ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, ComparisonRow, FlagRow, IncidentRow, VerdictRow,
};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{ComparisonVerdict, FlagState, IncidentState, Severity, Support};
use serde::{Deserialize, Serialize};

use self::cells::{Cells, decisive_kind};
use self::words::{Account, Direction, places};
use super::advice::{PodsNow, Standing, advice, warned};
use super::lifecycle::EXPLAINED;

/// For how many looks a flag of total counts waits for the flag of its cause. 3: *guess* (a cause is flagged within a look
/// or two of its callers, and half a minute delays nobody).
const LOOKS: u32 = 3;

/// What happened in one comparison at the close of one hop.
#[derive(Debug, Default)]
pub struct News {
    /// Changes of flags.
    pub flags: Vec<FlagRow>,
    /// Verdicts of cells; empty if the hop is no look.
    pub comparisons: Vec<ComparisonRow>,
    /// Rows of a report, if there is one.
    pub report: Vec<Arc<CellRow>>,
}

/// What is announced at the close of a hop.
#[derive(Debug, Default, PartialEq)]
pub struct Announced {
    /// Changes of incidents, by cause.
    pub incidents: Vec<IncidentRow>,
    /// The verdict over all cells, if it or the cells that it names changed.
    pub verdict: Option<VerdictRow>,
    /// The verdicts of cells as they came, with advice in the rows over all cells.
    pub comparisons: Vec<ComparisonRow>,
}

/// The incidents of one comparison.
#[derive(Debug, Serialize, Deserialize)]
pub struct Incidents {
    service: Service,
    base: Build,
    head: Build,
    /// Flags of total counts without an incident, by identity.
    waiting: BTreeMap<String, Waiting>,
    /// By cause.
    standing: BTreeMap<String, Incident>,
    /// Rows of other functions that a cause turned out to explain after they were flagged.
    callers: BTreeMap<String, BTreeSet<String>>,
    cells: Cells,
    verdict: Verdict,
}

#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    flag: FlagRow,
    /// Looks since it was flagged.
    looks: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Incident {
    raised: Hop,
    is_announced: bool,
    /// Flags that stand, by identity.
    flags: BTreeMap<String, FlagRow>,
    /// Flags that were cleared at this hop.
    ended: Vec<FlagRow>,
    /// As announced last.
    urgency: (Severity, Support),
}

/// The verdict over all cells, and the cells that it names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Verdict {
    verdict: ComparisonVerdict,
    regressed: BTreeSet<CellKey>,
    improved: BTreeSet<CellKey>,
    /// Where that may be the warm-up of young pods.
    provisional: BTreeSet<CellKey>,
}

impl Incidents {
    /// A comparison without incidents, about which nothing has been said.
    pub fn new(service: Service, base: Build, head: Build) -> Self {
        Self {
            service,
            base,
            head,
            waiting: BTreeMap::new(),
            standing: BTreeMap::new(),
            callers: BTreeMap::new(),
            cells: Cells::default(),
            verdict: Verdict::default(),
        }
    }

    /// Takes what happened at the close of a hop.
    pub fn take(&mut self, hop: Hop, news: News, config: &Config) -> Announced {
        let News { mut flags, mut comparisons, report } = news;
        let is_look = !comparisons.is_empty();
        self.cells.learn(&comparisons, &report, config);
        if is_look {
            self.waiting.values_mut().for_each(|waiting| waiting.looks += 1);
        }
        // Self counts come first, so that a total row finds the incident of its own function.
        flags.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut touched = BTreeSet::new();
        let (cleared, standing): (Vec<_>, Vec<_>) =
            flags.into_iter().partition(|flag| flag.state == FlagState::Cleared);
        for flag in standing {
            self.stands(hop, flag, config, &mut touched);
        }
        for flag in cleared {
            self.clear(flag, &mut touched);
        }
        let is_over = |waiting: &&Waiting| waiting.looks >= LOOKS;
        let over: BTreeSet<String> = self.waiting.values().filter(is_over).map(Waiting::cause).collect();
        for cause in over.into_iter().chain(self.promoted()) {
            self.raise(hop, &cause);
            touched.insert(cause);
        }
        let incidents = self.announce(hop, touched, config);
        let standings = self.standings(None);
        let action = self.advice(&standings);
        let verdict = if is_look || !incidents.is_empty() {
            self.verdict(config.clock().end_of(hop), hop, &standings, &action)
        } else {
            None
        };
        if config.method.is_calibrated() {
            for row in comparisons.iter_mut().filter(|row| row.cell.is_over_all()) {
                row.action = Some(action.clone());
            }
        }
        Announced { incidents, verdict, comparisons }
    }

    /// Takes the end of the comparison: flags that were waiting are forgotten, the others are cleared by their rows.
    pub fn close(&mut self, hop: Hop, flags: Vec<FlagRow>, config: &Config) -> Vec<IncidentRow> {
        let mut touched = BTreeSet::new();
        for flag in flags.into_iter().filter(|flag| flag.state == FlagState::Cleared) {
            self.clear(flag, &mut touched);
        }
        self.announce(hop, touched, config)
    }

    /// Takes a flag that was raised or updated.
    fn stands(&mut self, hop: Hop, flag: FlagRow, config: &Config, touched: &mut BTreeSet<String>) {
        let cause = flag.row.function.clone();
        let id = flag.flag_id.clone();
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.flag = flag;
            return;
        }
        let waits = flag.row.count_kind == CountKind::Total && decisive_kind(config) == CountKind::SelfCount;
        if waits && !self.standing.contains_key(&cause) {
            self.waiting.insert(id, Waiting { flag, looks: 0 });
            return;
        }
        self.raise(hop, &cause).flags.insert(id, flag);
        touched.insert(cause);
    }

    /// Takes a flag that was cleared.
    fn clear(&mut self, flag: FlagRow, touched: &mut BTreeSet<String>) {
        let cause = flag.row.function.clone();
        if let Some(by) = explained_by(&flag) {
            self.callers.entry(by.clone()).or_default().insert(named(&flag));
            if self.standing.contains_key(&by) {
                touched.insert(by);
            }
        }
        if self.waiting.remove(&flag.flag_id).is_none()
            && let Some(incident) = self.standing.get_mut(&cause)
            && incident.flags.remove(&flag.flag_id).is_some()
        {
            incident.ended.push(flag);
            touched.insert(cause);
        }
    }

    /// The incident of a cause, made if there is none, with the flags of the cause that were waiting.
    fn raise(&mut self, hop: Hop, cause: &str) -> &mut Incident {
        let waiting = self.waiting.extract_if(.., |_, waiting| waiting.flag.row.function == cause);
        let flags: Vec<(String, FlagRow)> = waiting.map(|(id, waiting)| (id, waiting.flag)).collect();
        let incident = self.standing.entry(cause.to_owned()).or_insert_with(|| Incident::new(hop));
        incident.flags.extend(flags);
        incident
    }

    /// Causes that were waiting and explain an incident that people know: they wait no longer.
    fn promoted(&self) -> BTreeSet<String> {
        let ended = self.standing.values().filter(|incident| incident.flags.is_empty() && incident.is_announced);
        let by = ended.flat_map(|incident| incident.ended.iter().filter_map(explained_by));
        by.filter(|by| self.waiting.values().any(|waiting| waiting.flag.row.function == *by)).collect()
    }

    /// What changed in these incidents; those that ended are forgotten.
    fn announce(&mut self, hop: Hop, touched: BTreeSet<String>, config: &Config) -> Vec<IncidentRow> {
        let rows: Vec<IncidentRow> = touched.iter().filter_map(|cause| self.row(hop, cause, config)).collect();
        for cause in touched {
            let Some(incident) = self.standing.get_mut(&cause) else { continue };
            incident.urgency = incident.urgency();
            incident.is_announced = true;
            incident.ended.clear();
            if incident.flags.is_empty() {
                self.standing.remove(&cause);
                self.callers.remove(&cause);
            }
        }
        rows
    }

    /// What happened to an incident at this hop; nothing if it ended before it was announced.
    fn row(&self, hop: Hop, cause: &str, config: &Config) -> Option<IncidentRow> {
        let incident = self.standing.get(cause)?;
        let by = incident.ended.iter().find_map(explained_by);
        let state = match (incident.is_announced, incident.flags.is_empty()) {
            (false, true) => return None,
            (false, false) => IncidentState::Raised,
            (true, false) => IncidentState::Updated,
            (true, true) if by.is_some() => IncidentState::Superseded,
            (true, true) => IncidentState::Cleared,
        };
        let flags = incident.rows();
        let explains = self.explained(cause, &flags);
        let account = Account {
            cause,
            state,
            flags: &flags,
            explains: &explains,
            superseded_by: by.as_deref(),
            because: incident.ended.iter().find_map(|flag| flag.cleared_because.as_deref()),
            service: &self.service,
            head: &self.head,
            base: &self.base,
            cells: &self.cells,
            config,
        };
        let lead = account.lead();
        let (severity, support) = incident.urgency();
        let id = |cause: &str, raised| incident_id(&self.service, &self.head, &self.base, cause, raised);
        let clock = config.clock();
        let link = by.clone().filter(|_| state == IncidentState::Superseded);
        Some(IncidentRow {
            service: self.service.clone(),
            base_build: self.base.clone(),
            head_build: self.head.clone(),
            cause: cause.to_owned(),
            incident_id: id(cause, incident.raised),
            state,
            severity,
            support,
            raised_at: clock.end_of(incident.raised),
            changed_at: clock.end_of(hop),
            sequence: hop,
            regressed_in: account.places(Direction::More),
            improved_in: account.places(Direction::Less),
            effect: lead.and_then(CellRow::effect),
            share: lead.and_then(|row| row.head.share),
            share_delta: lead.filter(|row| row.function != ALL_FUNCTIONS).and_then(|row| row.share_delta),
            always_valid_ln_p: account.always_valid_ln_p(),
            introduced_by: None,
            found_in: Vec::new(),
            superseded_by_id: link.as_ref().and_then(|by| Some(id(by, self.standing.get(by)?.raised))),
            superseded_by: link,
            provisional_until_at: account.provisional_until_at(),
            cleared_because: account.because.filter(|_| state == IncidentState::Cleared).map(str::to_owned),
            summary: account.summary(),
            action: account.action(self.advice(&self.standings(Some(cause)))),
            confidence: account.confidence(),
            impact: account.impact(),
            explains,
            flags: flags.into_iter().cloned().collect(),
        })
    }

    /// Rows of other functions that a cause explains.
    fn explained(&self, cause: &str, flags: &[&FlagRow]) -> Vec<String> {
        let own: Vec<String> =
            CountKind::ALL.map(CountKind::name).iter().map(|kind| format!("{cause} ({kind})")).collect();
        let listed = flags.iter().flat_map(|flag| &flag.explains).chain(self.callers.get(cause).into_iter().flatten());
        let names: BTreeSet<&String> = listed.filter(|name| !own.contains(name)).collect();
        names.into_iter().cloned().collect()
    }

    /// What to do in each cell, and what to bear in mind.
    fn advice(&self, standings: &BTreeMap<CellKey, Standing>) -> String {
        let warned = warned(&self.cells.warnings(), &standings.keys().collect());
        [Some(advice(&self.head, standings)), warned].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// What is known of the head in each cell: as the cause decides, or all causes together if none is given.
    fn standings(&self, of: Option<&str>) -> BTreeMap<CellKey, Standing> {
        let mut standings = self.cells.standings();
        let mut more_expensive: BTreeMap<&CellKey, Vec<(&str, &FlagRow)>> = BTreeMap::new();
        for (cause, incident) in &self.standing {
            for flag in incident.flags.values().filter(|flag| Direction::of(flag) == Direction::More) {
                more_expensive.entry(&flag.row.cell).or_default().push((cause.as_str(), flag));
            }
        }
        let all = self.standing.values().flat_map(|incident| incident.flags.values());
        let young_until = all.filter_map(|flag| flag.row.provisional_until_at).max().unwrap_or(Nanos(0));
        for (cell, flags) in more_expensive {
            let own: Vec<&FlagRow> =
                flags.iter().filter(|(cause, _)| of.is_none_or(|of| of == *cause)).map(|(_, flag)| *flag).collect();
            // NB: what is not provisional comes first, and of that a page, then what has firm support.
            let best = own.iter().min_by_key(|flag| (flag.row.provisional_until_at, flag.severity, flag.row.support));
            let standing = match best {
                Some(flag) if flag.row.provisional_until_at.is_some() => Standing::Provisional(young_until),
                Some(flag) if flag.severity == Severity::Page => Standing::RollBack,
                Some(flag) if words::is_doubtful(flag) => Standing::Doubtful,
                Some(flag) => {
                    // NB: the flag has the pods of the look at which it changed last.
                    let now = self.cells.pods(&flag.row.comparison, cell);
                    Standing::Repeat(now.unwrap_or_else(|| PodsNow::of_flag(&flag.row)))
                }
                None => {
                    let causes: BTreeSet<&str> = flags.iter().map(|(cause, _)| *cause).collect();
                    Standing::OtherCauses(causes.into_iter().map(str::to_owned).collect())
                }
            };
            standings.insert(cell.clone(), standing);
        }
        standings
    }

    /// The verdict over all cells, if it or the cells that it names differ from what was announced last.
    fn verdict(
        &mut self,
        at: Nanos,
        hop: Hop,
        standings: &BTreeMap<CellKey, Standing>,
        action: &str,
    ) -> Option<VerdictRow> {
        let now = self.verdict_of(standings);
        if now == self.verdict {
            return None;
        }
        self.verdict = now;
        let Verdict { verdict, regressed, improved, .. } = &self.verdict;
        let cells: BTreeSet<&CellKey> = standings.keys().collect();
        Some(VerdictRow {
            service: self.service.clone(),
            base_build: self.base.clone(),
            head_build: self.head.clone(),
            verdict: *verdict,
            changed_at: at,
            sequence: hop,
            regressed_in: places(regressed, &cells),
            improved_in: places(improved, &cells),
            causes: self.standing.keys().cloned().collect(),
            summary: words::of_verdict(&self.service, &self.head, &self.base, standings, improved),
            action: action.to_owned(),
        })
    }

    fn verdict_of(&self, standings: &BTreeMap<CellKey, Standing>) -> Verdict {
        let with = |is: fn(&Standing) -> bool| -> BTreeSet<CellKey> {
            standings.iter().filter(|(_, standing)| is(standing)).map(|(cell, _)| cell.clone()).collect()
        };
        let regressed = with(Standing::costs_more);
        let all = self.standing.get(ALL_FUNCTIONS).into_iter().flat_map(|incident| incident.flags.values());
        let cheaper = all.filter(|flag| Direction::of(flag) == Direction::Less).map(|flag| flag.row.cell.clone());
        let improved: BTreeSet<CellKey> = cheaper.filter(|cell| !regressed.contains(cell)).collect();
        let not_comparable = with(|standing| *standing == Standing::NotComparable);
        let clean = with(|standing| matches!(standing, Standing::Keep | Standing::SomePods(_)));
        let all = standings.len();
        let verdict = if all > 0 && not_comparable.len() == all {
            ComparisonVerdict::NotComparable
        } else if !regressed.is_empty() {
            ComparisonVerdict::Regressed
        } else if !improved.is_empty() {
            ComparisonVerdict::Improved
        } else if all > 0 && clean.len() == all {
            ComparisonVerdict::Clean
        } else {
            ComparisonVerdict::Inconclusive
        };
        let provisional = with(|standing| matches!(standing, Standing::Provisional(_)));
        Verdict { verdict, regressed, improved, provisional }
    }
}

impl Default for Verdict {
    fn default() -> Self {
        let nowhere = BTreeSet::new;
        Self {
            verdict: ComparisonVerdict::Inconclusive,
            regressed: nowhere(),
            improved: nowhere(),
            provisional: nowhere(),
        }
    }
}

impl Waiting {
    fn cause(&self) -> String {
        self.flag.row.function.clone()
    }
}

impl Incident {
    fn new(raised: Hop) -> Self {
        Self {
            raised,
            is_announced: false,
            flags: BTreeMap::new(),
            ended: Vec::new(),
            urgency: (Severity::Info, Support::Untestable),
        }
    }

    /// The flags that stand, or those that ended last, in the order of tables.
    fn rows(&self) -> Vec<&FlagRow> {
        let mut rows: Vec<&FlagRow> =
            if self.flags.is_empty() { self.ended.iter().collect() } else { self.flags.values().collect() };
        rows.sort_by(|a, b| order(a).cmp(&order(b)));
        rows
    }

    /// The severity of the most severe flags that stand, and the best support of these; or what was announced last.
    fn urgency(&self) -> (Severity, Support) {
        // NB: severities and supports are in the order in which they matter.
        self.flags.values().map(|flag| (flag.severity, flag.row.support)).min().unwrap_or(self.urgency)
    }
}

/// The function that explains a flag that was cleared for that reason, if it is another one.
fn explained_by(flag: &FlagRow) -> Option<String> {
    let is_explained = flag.cleared_because.as_deref() == Some(EXPLAINED);
    flag.row.cause.clone().filter(|by| is_explained && *by != flag.row.function)
}

/// A row as an incident lists it.
fn named(flag: &FlagRow) -> String {
    format!("{} ({})", flag.row.function, flag.row.count_kind.name())
}

fn order(flag: &FlagRow) -> (CountKind, &ComparisonKey, &CellKey, &str) {
    (flag.row.count_kind, &flag.row.comparison, &flag.row.cell, &flag.row.function)
}

#[cfg(test)]
mod tests;
