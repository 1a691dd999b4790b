//! One incident a cause over all rings of a roll-out.
//!
//! A build that runs beside several others is compared with each of them as a ring, so one cause is found more than once: what the
//! second ring introduced shows in the third and fourth too, against the first. People hear of it once. Of the incidents of one cause
//! and direction that stand in the comparisons of a service, the one of the earliest ring is announced; it names the ring that
//! introduced the cause and all rings that have it, and is as severe as the most severe of them. The others are kept silent, and one
//! of them goes on in its place if it ends while they stand. A change back in a later ring is a cause of its own.
//!
//! The law: of each cause and direction that stands in some comparison, exactly one incident is announced and has not ended.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::fan_out::listed;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::rows::IncidentRow;
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::IncidentState;

use super::rings::LEAST_RINGS;

/// Base and head of a comparison, and the cause of an incident in it.
type Member = (Build, Build, String);
/// A cause, and whether it costs more.
type Cause = (String, bool);

/// The incidents of all comparisons of one service.
#[derive(Debug)]
pub struct RollOut {
    clock: HopClock,
    /// Builds that run side by side, the earliest first; as of the last hop with a plan.
    rings: Vec<Build>,
    standing: BTreeMap<Member, IncidentRow>,
    /// What was announced last of those that are announced and have not ended.
    announced: BTreeMap<Member, IncidentRow>,
}

impl RollOut {
    /// Nothing announced so far.
    pub fn new(clock: HopClock) -> Self {
        Self { clock, rings: Vec::new(), standing: BTreeMap::new(), announced: BTreeMap::new() }
    }

    /// Takes the builds that run side by side from now on.
    pub fn run_beside(&mut self, rings: &[Build]) {
        self.rings = rings.to_vec();
    }

    /// Takes what changed in incidents of single comparisons and gives what is announced.
    pub fn take(&mut self, hop: Hop, changes: Vec<IncidentRow>) -> Vec<IncidentRow> {
        let mut touched: BTreeSet<Cause> = BTreeSet::new();
        let mut ended: BTreeMap<Member, IncidentRow> = BTreeMap::new();
        for row in changes {
            let member = (row.base_build.clone(), row.head_build.clone(), row.cause.clone());
            touched.extend(self.standing.get(&member).map(cause_of));
            if matches!(row.state, IncidentState::Cleared | IncidentState::Superseded) {
                self.standing.remove(&member);
                ended.insert(member, row);
            } else {
                touched.insert(cause_of(&row));
                self.standing.insert(member, row);
            }
        }
        let mut rows: Vec<IncidentRow> = Vec::new();
        for (member, row) in ended {
            if let Some(last) = self.announced.remove(&member) {
                let heir = self.heir(&cause_of(&last)).map(|(_, row)| row);
                let goes_on = heir.filter(|_| row.state == IncidentState::Cleared);
                rows.push(goes_on.map_or_else(|| row.clone(), |heir| self.superseded(hop, row.clone(), heir)));
            }
        }
        for cause in touched {
            rows.extend(self.announce(hop, &cause));
        }
        rows
    }

    /// The incident that is announced of a cause: that of the earliest ring, and there that against the earliest.
    fn heir(&self, cause: &Cause) -> Option<(&Member, &IncidentRow)> {
        let of_cause = self.standing.iter().filter(|(_, row)| cause_of(row) == *cause);
        of_cause.min_by_key(|((base, head, _), _)| (self.place(head), self.place(base)))
    }

    /// The place of a build among the rings; after all of them if it is none.
    fn place(&self, build: &Build) -> usize {
        self.rings.iter().position(|ring| ring == build).unwrap_or(self.rings.len())
    }

    /// What is news of a cause.
    fn announce(&mut self, hop: Hop, cause: &Cause) -> Vec<IncidentRow> {
        let Some((member, row)) = self.heir(cause).map(|(member, row)| (member.clone(), row.clone())) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let others: Vec<Member> = self.announced.keys().filter(|other| **other != member).cloned().collect();
        for other in others {
            if self.announced.get(&other).is_some_and(|last| cause_of(last) == *cause) {
                let last = self.announced.remove(&other);
                rows.extend(last.map(|last| self.superseded(hop, last, &row)));
            }
        }
        let whole = self.over_rings(hop, row, cause, self.announced.contains_key(&member));
        if self.announced.get(&member).is_none_or(|last| is_news(last, &whole)) {
            self.announced.insert(member, whole.clone());
            rows.push(whole);
        }
        rows
    }

    /// An incident with what is known of its cause in other rings.
    fn over_rings(&self, hop: Hop, row: IncidentRow, cause: &Cause, is_known: bool) -> IncidentRow {
        let members = || self.standing.values().filter(|other| cause_of(other) == *cause);
        let mut found_in: Vec<Build> = members().map(|other| other.head_build.clone()).collect();
        found_in.sort_by_key(|build| (self.place(build), build.clone()));
        found_in.dedup();
        let before = self.place(&row.head_build).checked_sub(1).and_then(|before| self.rings.get(before));
        let shows =
            |base: &Build| members().any(|other| other.head_build == row.head_build && other.base_build == *base);
        let introduced_by = before.filter(|before| shows(before)).map(|_| row.head_build.clone());
        let beside = self.in_words(&row.head_build, introduced_by.is_some(), &found_in);
        IncidentRow {
            state: if is_known { IncidentState::Updated } else { IncidentState::Raised },
            severity: members().map(|other| other.severity).min().unwrap_or(row.severity),
            support: members().map(|other| other.support).min().unwrap_or(row.support),
            changed_at: self.clock.end_of(hop),
            sequence: hop,
            summary: beside.map_or_else(|| row.summary.clone(), |beside| format!("{} {beside}", row.summary)),
            introduced_by,
            found_in: found_in.iter().map(ToString::to_string).collect(),
            ..row
        }
    }

    /// Which ring introduced a cause, and which have it too; nothing where there are only two.
    fn in_words(&self, head: &Build, is_introduced: bool, found_in: &[Build]) -> Option<String> {
        if self.rings.len() < LEAST_RINGS {
            return None;
        }
        let before = self.place(head).checked_sub(1).and_then(|before| self.rings.get(before));
        let origin = match before {
            _ if is_introduced => format!("{head} introduced it"),
            Some(before) if self.place(before) > 0 => {
                format!("{head} or a build before it introduced it: {head} against {before} has no flag for it")
            }
            _ => return None,
        };
        let later: Vec<String> = found_in.iter().filter(|build| *build != head).map(ToString::to_string).collect();
        Some(match later.len() {
            0 => format!("{origin}."),
            1 => format!("{origin}, {} has it too.", listed(&later)),
            _ => format!("{origin}, {} have it too.", listed(&later)),
        })
    }

    /// An incident whose cause goes on in another one.
    fn superseded(&self, hop: Hop, row: IncidentRow, by: &IncidentRow) -> IncidentRow {
        IncidentRow {
            state: IncidentState::Superseded,
            changed_at: self.clock.end_of(hop),
            sequence: hop,
            superseded_by: Some(by.cause.clone()),
            superseded_by_id: Some(by.incident_id.clone()),
            cleared_because: None,
            summary: format!(
                "{} in {} against {} goes on as the incident of {} against {}.",
                row.cause, row.head_build, row.base_build, by.head_build, by.base_build
            ),
            ..row
        }
    }
}

/// A cause costs more in an incident if it does anywhere.
fn cause_of(row: &IncidentRow) -> Cause {
    (row.cause.clone(), !row.regressed_in.is_empty())
}

/// Whether anything but the time differs from what was announced last.
fn is_news(last: &IncidentRow, now: &IncidentRow) -> bool {
    let at = |row: &IncidentRow| IncidentRow {
        state: now.state,
        changed_at: now.changed_at,
        sequence: now.sequence,
        ..row.clone()
    };
    at(last) != *now
}

#[cfg(test)]
mod tests;
