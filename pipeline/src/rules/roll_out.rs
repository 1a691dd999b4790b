//! One incident a cause over all rings of a roll-out, and one finding about load or memory.
//!
//! A build that runs beside several others is compared with each of them as a ring, so one cause is found more than once: what the
//! second ring introduced shows in the third and fourth too, against the first. People hear of it once. Of the incidents of one cause
//! and direction that stand in the comparisons of a service, the one of the earliest ring is announced; it names the ring that
//! introduced the cause and all rings that have it, and is as severe as the most severe of them. The others are kept silent, and one
//! of them goes on in its place if it ends while they stand. A change back in a later ring is a cause of its own. Functions that scale
//! worse, and leaks, are announced in the same way.
//!
//! The law: of each cause and direction that stands in some comparison, exactly one row is announced and has not ended.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use fleetdiff_schemas::fan_out::listed;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rings::LEAST_RINGS;

/// A row that says what became of a cause in one comparison, and, once over all rings, what is announced of it.
pub trait PerRing: Clone + PartialEq + Debug + Serialize + DeserializeOwned {
    /// What it is about, within a comparison.
    type About: Clone + Ord + Debug + Serialize + DeserializeOwned;
    /// What a comparison lacks that does not have the cause, in words.
    const EVIDENCE: &'static str;

    /// Base and head.
    fn builds(&self) -> (&Build, &Build);
    /// What it is about.
    fn about(&self) -> Self::About;
    /// Whether the cause costs more. A change back is a cause of its own.
    fn costs_more(&self) -> bool;
    /// Whether the cause stands after it.
    fn life(&self) -> Life;
    /// What happened, in words.
    fn summary(&self) -> &str;
    /// The same row with what is known of its cause in all rings.
    fn over(self, rings: OverRings<'_, Self>) -> Self;
    /// The end of a row whose cause goes on in another comparison.
    fn goes_on_as(self, other: &Self, at: At) -> Self;
    /// The same row as of when `other` was announced.
    fn when(self, other: &Self) -> Self;
}

/// Whether a cause stands in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Stands,
    /// It does no longer.
    Over,
    /// It goes on in the same comparison as something else, which the row names.
    Explained,
}

/// A hop and its end.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The hop.
    pub hop: Hop,
    /// When it ends.
    pub end: Nanos,
}

/// What is known of a cause in all rings.
pub struct OverRings<'a, R> {
    /// Where it stands.
    pub members: &'a [&'a R],
    /// Whether it was announced before.
    pub is_known: bool,
    /// When this is announced.
    pub at: At,
    /// The ring that introduced it, if the one before does not have it.
    pub introduced_by: Option<Build>,
    /// The rings that have it, in their order.
    pub found_in: Vec<String>,
    /// What happened, in words, with which rings have it.
    pub summary: String,
}

/// Base and head of a comparison, and what a row of it is about.
type Member<R> = (Build, Build, <R as PerRing>::About);
/// A cause, and whether it costs more.
type Cause<R> = (<R as PerRing>::About, bool);

/// What stands in all comparisons of one service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct RollOut<R: PerRing> {
    clock: HopClock,
    /// Builds that run side by side, the earliest first; as of the last hop with a plan.
    rings: Vec<Build>,
    standing: BTreeMap<Member<R>, R>,
    /// What was announced last of those that are announced and have not ended.
    announced: BTreeMap<Member<R>, R>,
}

impl<R: PerRing> RollOut<R> {
    /// Nothing announced so far.
    pub fn new(clock: HopClock) -> Self {
        Self { clock, rings: Vec::new(), standing: BTreeMap::new(), announced: BTreeMap::new() }
    }

    /// Takes the builds that run side by side from now on.
    pub fn run_beside(&mut self, rings: &[Build]) {
        self.rings = rings.to_vec();
    }

    /// Takes what changed in single comparisons and gives what is announced.
    pub fn take(&mut self, hop: Hop, changes: Vec<R>) -> Vec<R> {
        let at = At { hop, end: self.clock.end_of(hop) };
        let mut touched: BTreeSet<Cause<R>> = BTreeSet::new();
        let mut ended: BTreeMap<Member<R>, R> = BTreeMap::new();
        for row in changes {
            let member = member_of(&row);
            touched.extend(self.standing.get(&member).map(cause_of));
            if row.life() == Life::Stands {
                touched.insert(cause_of(&row));
                self.standing.insert(member, row);
            } else {
                self.standing.remove(&member);
                ended.insert(member, row);
            }
        }
        let mut rows: Vec<R> = Vec::new();
        for (member, row) in ended {
            if let Some(last) = self.announced.remove(&member) {
                let heir = self.heir(&cause_of(&last)).filter(|_| row.life() == Life::Over);
                rows.push(match heir {
                    Some(heir) => row.goes_on_as(heir, at),
                    None => row,
                });
            }
        }
        for cause in touched {
            rows.extend(self.announce(at, &cause));
        }
        rows
    }

    /// What is announced of a cause: that of the earliest ring, and there that against the earliest.
    fn heir(&self, cause: &Cause<R>) -> Option<&R> {
        let of_cause = self.standing.values().filter(|row| cause_of(*row) == *cause);
        of_cause.min_by_key(|row| {
            let (base, head) = row.builds();
            (self.place(head), self.place(base))
        })
    }

    /// The place of a build among the rings; after all of them if it is none.
    fn place(&self, build: &Build) -> usize {
        self.rings.iter().position(|ring| ring == build).unwrap_or(self.rings.len())
    }

    /// What is news of a cause.
    fn announce(&mut self, at: At, cause: &Cause<R>) -> Vec<R> {
        let Some(row) = self.heir(cause).cloned() else { return Vec::new() };
        let member = member_of(&row);
        let mut rows = Vec::new();
        let others: Vec<Member<R>> = self.announced.keys().filter(|other| **other != member).cloned().collect();
        for other in others {
            if self.announced.get(&other).is_some_and(|last| cause_of(last) == *cause) {
                let last = self.announced.remove(&other);
                rows.extend(last.map(|last| last.goes_on_as(&row, at)));
            }
        }
        let whole = self.over_rings(at, row, cause, self.announced.contains_key(&member));
        if self.announced.get(&member).is_none_or(|last| last.clone().when(&whole) != whole) {
            self.announced.insert(member, whole.clone());
            rows.push(whole);
        }
        rows
    }

    /// A row with what is known of its cause in other rings.
    fn over_rings(&self, at: At, row: R, cause: &Cause<R>, is_known: bool) -> R {
        let members: Vec<&R> = self.standing.values().filter(|other| cause_of(*other) == *cause).collect();
        let mut found_in: Vec<Build> = members.iter().map(|other| other.builds().1.clone()).collect();
        found_in.sort_by_key(|build| (self.place(build), build.clone()));
        found_in.dedup();
        let (_, head) = row.builds();
        let before = self.place(head).checked_sub(1).and_then(|before| self.rings.get(before));
        let shows = |base: &Build| members.iter().any(|other| other.builds() == (base, head));
        let introduced_by = before.filter(|before| shows(before)).map(|_| head.clone());
        let beside = self.in_words(head, introduced_by.is_some(), &found_in);
        let summary = beside.map_or_else(|| row.summary().to_owned(), |beside| format!("{} {beside}", row.summary()));
        let found_in = found_in.iter().map(ToString::to_string).collect();
        row.over(OverRings { members: &members, is_known, at, introduced_by, found_in, summary })
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
                format!(
                    "{head} or a build before it introduced it: {head} against {before} has no {} for it",
                    R::EVIDENCE
                )
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
}

fn member_of<R: PerRing>(row: &R) -> Member<R> {
    let (base, head) = row.builds();
    (base.clone(), head.clone(), row.about())
}

fn cause_of<R: PerRing>(row: &R) -> Cause<R> {
    (row.about(), row.costs_more())
}

#[cfg(test)]
mod tests;
