//! What a profiler saw, after decoding and before any decision about it.

pub(crate) mod kinds;
mod numbered;

pub use self::kinds::{CountKind, Measure, ProfileType, Temporality};
pub use self::numbered::Numbered;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::identity::{Cohort, Identity};
use crate::rejected::{Reason, Rejection};
use crate::time::{Nanos, TimeRange};

/// The name under which frames without symbols are counted; never tested across builds.
pub const UNSYMBOLISED: &str = "_unsymbolised";

/// The name under which all is counted that finds no place within the limits of its service: functions, call paths, cells, builds
/// and pods. Never tested.
pub const OVERFLOW: &str = "_overflow";

/// Whether a name stands for several functions that nobody can tell apart: it is counted and never tested.
pub fn is_of_several(name: &str) -> bool {
    name == UNSYMBOLISED || name == OVERFLOW
}

/// What stands between a function and its thread, where functions are counted by thread.
pub const AT_THREAD: &str = " @ ";

/// A function and its thread, of a name that may hold both.
///
/// ```
/// use fleetdiff_schemas::profile::function_and_thread;
/// assert_eq!(function_and_thread("poll @ worker-*"), ("poll", Some("worker-*")));
/// assert_eq!(function_and_thread("poll"), ("poll", None));
/// ```
pub fn function_and_thread(name: &str) -> (&str, Option<&str>) {
    name.rsplit_once(AT_THREAD).map_or((name, None), |(function, thread)| (function, Some(thread)))
}

/// How names of the kernel's functions end.
pub const KERNEL: &str = "_[k]";

/// Whether a function is one of the kernel, in whatever thread.
///
/// ```
/// use fleetdiff_schemas::profile::is_of_kernel;
/// assert!(is_of_kernel("do_fsync_[k]") && is_of_kernel("__schedule_[k] @ redis-server"));
/// assert!(!is_of_kernel("fdatasync"));
/// ```
pub fn is_of_kernel(name: &str) -> bool {
    function_and_thread(name).0.ends_with(KERNEL)
}

/// The most raw samples that one profile may hold: 2^48. A profile that claims more is refused as `too_large`, so that
/// sums over profiles stay within 64 bits.
pub const MAX_SAMPLES: u64 = 1 << 48;

/// The largest value of all stacks of one profile together: 2^56. A profile that claims more is refused as `too_large`.
pub const MAX_VALUE: u64 = 1 << 56;

/// Operations that a pod served; needed for the cost of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// When.
    pub window: TimeRange,
}

/// One data point of a metric: the operations that a pod served, as one series counts them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPoint {
    /// Who served them.
    pub identity: Arc<Identity>,
    /// The stable hash of what distinguishes this series from others of the same pod.
    pub series: u64,
    /// Whether the count is for the window ([`Temporality::Delta`]) or since the start ([`Temporality::Cumulative`]).
    pub temporality: Temporality,
    /// From the start of the count (that of the process, if it is cumulative; 0 if unknown) to the moment of the point.
    pub window: TimeRange,
    /// How many.
    pub count: u64,
}

impl RequestPoint {
    /// The midpoint of its window; for a count since the start, the moment of the point.
    pub fn event_time(&self) -> Nanos {
        self.temporality.window(self.window).midpoint()
    }
}

/// One stack and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stack {
    /// Indexes into the profile's names, root first; may be empty (a sample may have no location).
    pub frames: Vec<u32>,
    /// Raw samples, at least 1.
    pub count: u64,
    /// The cohort of these samples, if they name one themselves.
    pub cohort: Option<Cohort>,
    /// What these samples stand for, in the unit of [`ProfileType::value_unit`]; 0 if the profile does not say.
    pub value: u64,
}

/// What each sample of these stacks stands for, if that is the same for all; `None` without samples.
///
/// ```
/// use fleetdiff_schemas::profile::{Stack, value_of_each};
/// let stack = |count, value| Stack { frames: vec![], count, cohort: None, value };
/// assert_eq!(value_of_each(&[stack(2, 20), stack(1, 10)]), Some(10));
/// assert_eq!(value_of_each(&[stack(2, 20), stack(1, 11)]), None);
/// ```
pub fn value_of_each(stacks: &[Stack]) -> Option<u64> {
    let first = stacks.iter().find(|stack| stack.count > 0)?;
    let each = first.value / first.count;
    stacks.iter().all(|stack| stack.count.checked_mul(each) == Some(stack.value)).then_some(each)
}

/// Counts of one cohort that were folded before they were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    /// Whose samples.
    pub cohort: Cohort,
    /// Number of samples; at least as large as every single `total` and as the sum of `own`.
    pub samples: u64,
    /// One entry per function, strictly ascending by name index.
    pub functions: Vec<FoldedFunction>,
}

/// One function of a folded profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoldedFunction {
    /// Index into the profile's names.
    pub name: u32,
    /// Samples in which it is the leaf; at most `total`.
    pub own: u64,
    /// Samples in which it is on the stack; at least 1.
    pub total: u64,
}

/// The samples of a profile in the form in which they came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Samples {
    /// Whole stacks.
    Stacks(Vec<Stack>),
    /// Counts by function; `content` is the hash of the stacks from which they were folded.
    Folded {
        /// See [`content_hash`].
        content: u128,
        /// One entry per cohort, ascending.
        cohorts: Vec<Folded>,
    },
}

/// One decoded profile of one pod and one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Whose it is.
    pub identity: Arc<Identity>,
    /// What was observed.
    pub profile_type: ProfileType,
    /// Whether values are for the window or since the process began.
    pub temporality: Temporality,
    /// When.
    pub window: TimeRange,
    /// Operations served meanwhile, if known.
    pub requests: Option<Requests>,
    /// Function names, without duplicates; shared by the profiles of one record.
    pub names: Arc<[Arc<str>]>,
    /// What was seen.
    pub samples: Samples,
}

impl Profile {
    /// The midpoint of its window; for a snapshot, its moment.
    pub fn event_time(&self) -> Nanos {
        self.temporality.window(self.window).midpoint()
    }

    /// Why its values cannot be counted, if they cannot. Only memory in use can be a level, and it must be one. Counts
    /// since the process began need stacks, since their difference is taken stack by stack.
    pub fn uncountable(&self) -> Option<Rejection> {
        let level = self.profile_type.is_level();
        let held = match (self.temporality, &self.samples) {
            (Temporality::Gauge, _) if level => return None,
            _ if level => "counts (delta or cumulative), expected levels at one moment (gauge)",
            (Temporality::Delta, _) | (Temporality::Cumulative, Samples::Stacks(_)) => return None,
            (Temporality::Cumulative, Samples::Folded { .. }) => {
                "counts since the process began (cumulative) that are folded by function, expected whole stacks"
            }
            (Temporality::Gauge, _) => "levels at one moment (gauge), expected counts (delta or cumulative)",
        };
        let detail = format!("{} profile with {held}", self.profile_type.name());
        Some(Rejection {
            profile_type: Some(self.profile_type),
            at: Some(self.event_time()),
            ..Rejection::new(Reason::UnsupportedType, detail)
        })
    }

    /// The sum of the values of its stacks; 0 if it says nothing of them.
    pub fn value(&self) -> u64 {
        match &self.samples {
            Samples::Stacks(stacks) => stacks.iter().fold(0, |sum, stack| sum.saturating_add(stack.value)),
            Samples::Folded { .. } => 0,
        }
    }

    /// About how much memory its samples take, without the names, which profiles share.
    pub fn bytes(&self) -> usize {
        match &self.samples {
            Samples::Stacks(stacks) => {
                let of_stack = |stack: &Stack| size_of::<Stack>() + size_of_val(&*stack.frames);
                stacks.iter().map(of_stack).sum()
            }
            Samples::Folded { cohorts, .. } => cohorts.iter().map(|part| size_of_val(&*part.functions)).sum(),
        }
    }

    /// Number of raw samples.
    pub fn total(&self) -> u64 {
        match &self.samples {
            Samples::Stacks(stacks) => stacks.iter().fold(0, |sum, stack| sum.saturating_add(stack.count)),
            Samples::Folded { cohorts, .. } => cohorts.iter().fold(0, |sum, part| sum.saturating_add(part.samples)),
        }
    }
}

/// Where a record came from: enough to find it again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// A topic, or the folder of a recorded fleet.
    pub source: Arc<str>,
    /// Partition of a topic; 0 in a folder.
    pub partition: i32,
    /// Offset in the partition; line of the manifest, counted from 1.
    pub offset: i64,
    /// The file, where there is one.
    pub file: Option<Arc<str>>,
}

/// The timestamp of a record, by whose clock it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamped {
    /// There is none: records of a folder or in memory.
    #[default]
    No,
    /// By the sender (CreateTime), if it sent a timestamp: proves nothing about the sender's clock.
    BySender(Option<Nanos>),
    /// By the broker that received it (LogAppendTime).
    ByBroker(Nanos),
}

impl Stamped {
    /// The timestamp.
    pub fn time(self) -> Option<Nanos> {
        match self {
            Self::No => None,
            Self::BySender(at) => at,
            Self::ByBroker(at) => Some(at),
        }
    }
}

/// One record after decoding: each part is a profile or a rejection, and a bad part does not affect the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Where the record came from.
    pub position: Position,
    /// When it was sent or received, and by whose clock.
    pub stamped: Stamped,
    /// What it held.
    pub parts: Vec<Result<Profile, Rejection>>,
    /// The requests that it reports, if it is a record of metrics.
    pub points: Vec<RequestPoint>,
}

/// The 128-bit hash of a multiset of stacks: equal for equal samples whatever their order and however they were
/// split into lines. Sums the xxh3-128 of each distinct (cohort, frame names) weighted by its count, so that
/// adding up equal stacks does not change it.
pub fn content_hash(names: &[Arc<str>], stacks: &[Stack]) -> u128 {
    // The text of a stack, and where it ends after the cohort and after each frame: what a stack begins with as the one before it
    // is not written again.
    let (mut text, mut ends): (Vec<u8>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut before: Option<&Stack> = None;
    stacks.iter().fold(0u128, |sum, stack| {
        let shared = match before.replace(stack) {
            Some(before) if before.cohort == stack.cohort => shared_frames(&before.frames, &stack.frames),
            _ => {
                text.clear();
                text.extend_from_slice(stack.cohort.as_ref().map_or("", Cohort::as_str).as_bytes());
                ends.clear();
                ends.push(text.len());
                0
            }
        };
        ends.truncate(shared + 1);
        text.truncate(ends[shared]);
        for &frame in stack.frames.iter().skip(shared) {
            text.push(0);
            if let Some(name) = usize::try_from(frame).ok().and_then(|index| names.get(index)) {
                text.extend_from_slice(name.as_bytes());
            }
            ends.push(text.len());
        }
        let hash = twox_hash::XxHash3_128::oneshot(&text);
        sum.wrapping_add(hash.wrapping_mul(u128::from(stack.count)))
    })
}

/// How many frames, from the root on, two stacks share.
///
/// ```
/// use fleetdiff_schemas::profile::shared_frames;
/// assert_eq!(shared_frames(&[0, 1, 2], &[0, 1, 3, 2]), 2);
/// ```
#[inline]
pub fn shared_frames(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word by word.
    fn plain(names: &[Arc<str>], stacks: &[Stack]) -> u128 {
        let of_stack = |stack: &Stack| {
            let mut text = stack.cohort.as_ref().map_or("", Cohort::as_str).to_owned();
            for &frame in &stack.frames {
                text += "\0";
                text += names.get(usize::try_from(frame).unwrap()).map_or("", |name| name);
            }
            twox_hash::XxHash3_128::oneshot(text.as_bytes()).wrapping_mul(u128::from(stack.count))
        };
        stacks.iter().map(of_stack).fold(0, u128::wrapping_add)
    }

    proptest! {
        #[test]
        fn oracle_content_is_the_sum_over_stacks_whatever_they_share(
            raw in prop::collection::vec((prop::collection::vec(0u32..4, 0..6), 1u64..5, 0usize..3), 0..30),
        ) {
            let names: Vec<Arc<str>> = ["main", "a", "ab"].map(Arc::from).to_vec();
            let cohorts = [None, Some("x".into()), Some("".into())];
            let stacks: Vec<Stack> = raw
                .into_iter()
                .map(|(frames, count, cohort)| Stack { frames, count, cohort: cohorts[cohort].clone(), value: 0 })
                .collect();
            prop_assert_eq!(content_hash(&names, &stacks), plain(&names, &stacks));
        }
    }
}
