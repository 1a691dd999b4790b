//! Counts since a process began: section 2.3 of `docs/semantics.md`.
//!
//! The largest count of each stack since the first snapshot is kept; the new samples of a snapshot are those beyond it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::{Build, Cohort, PodId, Service};
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use fleetdiff_schemas::config::Config;

use super::admission::at_frames;

/// Samples of each stack of a cohort, and their value.
type ByStack = BTreeMap<StackOf, [u64; 2]>;
/// A cohort, and the names of a stack's functions.
type StackOf = (Cohort, Vec<Arc<str>>);
/// One process, as far as its sender distinguishes it from others.
type ProcessKey = (Service, Build, PodId, ProfileType, Option<Nanos>);

/// The snapshots used, by process.
#[derive(Default)]
pub(super) struct Snapshots(BTreeMap<ProcessKey, Used>);

/// The snapshots of a process that were used.
#[derive(Default)]
struct Used {
    /// When the last was taken, and how many samples it holds.
    last: Option<(Nanos, u64)>,
    /// The largest count of each stack, and its largest value, in any of them since the last first snapshot.
    largest: ByStack,
}

/// What a snapshot is.
pub(super) enum Found {
    Superseded,
    First,
    /// The samples that are new in it, and since when.
    New(Arc<Profile>, TimeRange),
}

impl Snapshots {
    pub(super) fn find(&mut self, config: &Config, snapshot: &Profile) -> Found {
        let (id, at) = (&snapshot.identity, snapshot.window.end);
        let key = (id.service.clone(), id.build.clone(), id.pod.clone(), snapshot.profile_type, id.process_start);
        let used = self.0.entry(key).or_default();
        let before = used.last;
        if before.is_some_and(|(last, _)| at <= last) {
            return Found::Superseded;
        }
        let now = by_stack(snapshot);
        let total: u64 = now.values().map(|[count, _]| count).sum();
        let began = id.process_start.filter(|start| *start <= at && before.is_none_or(|(last, _)| last < *start));
        let goes_on = before.is_some_and(|(_, counted)| counted <= total);
        let since = began.or_else(|| before.filter(|_| goes_on).map(|(last, _)| last));
        let since = since.filter(|since| at.since(*since) <= config.clock().length_of(config.window_hops()));
        if began.is_some() || since.is_none() {
            used.largest.clear();
        }
        let most = |stack: &StackOf| used.largest.get(stack).copied().unwrap_or_default();
        let found = match since {
            None => Found::First,
            Some(since) => {
                let new = now.iter().map(|(stack, [count, value])| {
                    let [most_of_count, most_of_value] = most(stack);
                    (stack, [count.saturating_sub(most_of_count), value.saturating_sub(most_of_value)])
                });
                let new = new.filter(|(_, more)| *more != [0, 0]);
                Found::New(Arc::new(of_stacks(snapshot, new.collect())), TimeRange { start: since, end: at })
            }
        };
        used.last = Some((at, total));
        for (stack, now) in now {
            let largest = used.largest.entry(stack).or_default();
            largest.iter_mut().zip(now).for_each(|(largest, now)| *largest = now.max(*largest));
        }
        found
    }
}

fn by_stack(profile: &Profile) -> ByStack {
    let mut counts = ByStack::new();
    let Samples::Stacks(stacks) = &profile.samples else { return counts };
    for stack in stacks {
        let cohort = stack.cohort.clone().unwrap_or_else(|| profile.identity.cohort.clone());
        let sums = counts.entry((cohort, at_frames(&profile.names, &stack.frames).cloned().collect())).or_default();
        *sums = [sums[0] + stack.count, sums[1] + stack.value];
    }
    counts
}

/// The same profile with other stacks that use the same names.
fn of_stacks(profile: &Profile, counts: Vec<(&StackOf, [u64; 2])>) -> Profile {
    let numbers: BTreeMap<&Arc<str>, u32> = profile.names.iter().zip(0..).collect();
    let stack = |((cohort, names), [count, value]): (&StackOf, [u64; 2])| Stack {
        frames: names.iter().filter_map(|name| numbers.get(name).copied()).collect(),
        count,
        cohort: Some(cohort.clone()),
        value,
    };
    Profile { samples: Samples::Stacks(counts.into_iter().map(stack).collect()), ..profile.clone() }
}
