//! Fourth pass: which profiles of the message are columns of one profile, of which type it is, and whether its counts are of its
//! window. Nothing in the message says the latter two, hence the rules here; attributes of ours overrule them.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::time::TimeRange;

use super::heads::{Family, ProfileHead, clock};

/// How many groups of a type and window may still get a column. Senders list the columns of a profile one after the other.
const LATEST: usize = 8;

/// The columns of one profile.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) profile_type: ProfileType,
    pub(super) window: Option<TimeRange>,
    /// At least one, no kind twice.
    pub(super) columns: Vec<ProfileHead<'a>>,
}

impl Group<'_> {
    /// Whether its values are of its window, where no attribute says it: levels are never; memory and contention at a moment
    /// (of no duration) are since the process began, as Go's endpoints give them; all else is.
    pub(super) fn temporality(&self) -> Temporality {
        let moment = self.window.is_none_or(|window| window.start == window.end);
        match self.profile_type {
            ProfileType::LiveHeap => Temporality::Gauge,
            ProfileType::Heap | ProfileType::Mutex | ProfileType::Block if moment => Temporality::Cumulative,
            _ => Temporality::Delta,
        }
    }
}

/// What is known of profile types beside their names.
pub(super) struct Types {
    /// What an attribute of the resource or scope says.
    pub(super) stated: Option<ProfileType>,
    /// What contention is taken for.
    pub(super) contention: ProfileType,
}

impl Types {
    /// Puts profiles of one scope together: those of one type and window, each kind once, in the order of their first.
    pub(super) fn group<'a>(&self, heads: Vec<(ProfileHead<'a>, Option<ProfileType>)>) -> Vec<Group<'a>> {
        let mut clocks: BTreeMap<Option<TimeRange>, ProfileType> = BTreeMap::new();
        for (head, _) in &heads {
            if let Family::Sampled(Some(clock)) = head.family {
                clocks.entry(head.window).or_insert(clock);
            }
        }
        let mut groups: Vec<Group<'a>> = Vec::new();
        let mut places: BTreeMap<(ProfileType, Option<TimeRange>), Vec<usize>> = BTreeMap::new();
        for (head, stated) in heads {
            let profile_type = self.type_of(&head, stated, &clocks);
            let places = places.entry((profile_type, head.window)).or_default();
            let lacks = |group: &Group<'a>| group.columns.iter().all(|column| column.kind != head.kind);
            // The latest first: a repeated kind has begun a new group, and what follows belongs to that.
            let latest = places.iter().rev().take(LATEST).copied();
            let found = latest.into_iter().find(|place| groups.get(*place).is_some_and(lacks));
            match found.and_then(|place| groups.get_mut(place)) {
                Some(group) => group.columns.push(head),
                None => {
                    places.push(groups.len());
                    groups.push(Group { profile_type, window: head.window, columns: vec![head] });
                }
            }
        }
        groups
    }

    /// The type: as an attribute says, where the sample type leaves it open; else by the names of sample type and period, for
    /// `samples` without either by what else there is of the same window, else `cpu`.
    fn type_of(
        &self,
        head: &ProfileHead<'_>,
        stated: Option<ProfileType>,
        clocks: &BTreeMap<Option<TimeRange>, ProfileType>,
    ) -> ProfileType {
        use ProfileType::{Block, Cpu, Heap, LiveHeap, Mutex, OffCpu, Wall};
        let stated = |open: &[ProfileType]| stated.or(self.stated).filter(|stated| open.contains(stated));
        match head.family {
            Family::Allocated => Heap,
            Family::Live => LiveHeap,
            Family::Contended => stated(&[Mutex, Block]).unwrap_or(self.contention),
            Family::Sampled(named) => stated(&[Cpu, Wall, OffCpu])
                .or(named)
                .or_else(|| clock(head.period_type.0))
                .or_else(|| clocks.get(&head.window).copied())
                .unwrap_or(Cpu),
        }
    }
}
