//! Why nothing closes, in words. Pure: the same state at the same time gives the same answer, to the log, to monitoring and to
//! whoever asks.

use std::time::{Duration, Instant};

use fleetdiff_schemas::source::Trouble;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use super::{Closed, Frontier, PartitionVitals, Vitals, Writing};
use crate::rules::watermarks::PartitionState;

/// How long the sink may take before it counts as blocked (guess: files and acknowledgements take well under a second).
const BLOCKED_AFTER: Duration = Duration::from_secs(5);

/// How long after a hop was closed the run counts as closing hops (guess: one default hop, and a slow one).
const CLOSING_FOR: Duration = Duration::from_secs(15);

/// How much of a detail is shown. It may hold bytes of a bad record.
const DETAIL: usize = 200;

/// How a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// A hop was closed a moment ago.
    Closing,
    /// Everything there is was read; later records will close the next hop.
    CaughtUp,
    /// Records are being read that were sent some time ago.
    CatchingUp,
    /// Closed hops are being evaluated.
    Evaluating,
    /// Every partition has been silent for so long that none is waited for.
    AllIdle,
    /// Event time waits for a partition of which all that has come waits for the time on which its pods agree.
    PodsDisagree,
    /// Event time waits for a partition that has given nothing good.
    PartitionSilent,
    /// Event time waits for a partition that is behind others and gives nothing new.
    PartitionBehind,
    /// Every record was refused.
    AllRefused,
    /// No record has come.
    NoRecords,
    /// The brokers do not answer.
    BrokerUnreachable,
    /// The output does not take rows.
    SinkBlocked,
    /// The transports are being opened.
    Starting,
}

impl Condition {
    /// Every condition.
    pub const ALL: [Self; 13] = [
        Self::Closing,
        Self::CaughtUp,
        Self::CatchingUp,
        Self::Evaluating,
        Self::AllIdle,
        Self::PodsDisagree,
        Self::PartitionSilent,
        Self::PartitionBehind,
        Self::AllRefused,
        Self::NoRecords,
        Self::BrokerUnreachable,
        Self::SinkBlocked,
        Self::Starting,
    ];

    /// Its name in metrics and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closing => "closing",
            Self::CaughtUp => "caught_up",
            Self::CatchingUp => "catching_up",
            Self::Evaluating => "evaluating",
            Self::AllIdle => "all_idle",
            Self::PodsDisagree => "pods_disagree",
            Self::PartitionSilent => "partition_silent",
            Self::PartitionBehind => "partition_behind",
            Self::AllRefused => "all_refused",
            Self::NoRecords => "no_records",
            Self::BrokerUnreachable => "broker_unreachable",
            Self::SinkBlocked => "sink_blocked",
            Self::Starting => "starting",
        }
    }

    /// Whether somebody should look at it if it lasts.
    pub fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::PartitionSilent
                | Self::PartitionBehind
                | Self::AllRefused
                | Self::NoRecords
                | Self::BrokerUnreachable
                | Self::SinkBlocked
        )
    }
}

/// How a run is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The kind.
    pub condition: Condition,
    /// The reason in words, with numbers.
    pub reason: String,
}

/// The moment of a diagnosis, and what it needs to know of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// On the clock of intervals.
    pub instant: Instant,
    /// The same moment since 1970.
    pub wall: Nanos,
    /// The hops.
    pub clock: HopClock,
    /// How long a silent partition is waited for; `None` for ever.
    pub idle_after: Option<Duration>,
}

impl Now {
    /// How long ago something was.
    pub fn age(&self, at: Instant) -> Duration {
        self.instant.saturating_duration_since(at)
    }

    /// When something was, since 1970.
    pub fn wall_of(&self, at: Instant) -> Nanos {
        let ago = i64::try_from(self.age(at).as_nanos()).unwrap_or(i64::MAX);
        Nanos(self.wall.0.saturating_sub(ago))
    }

    fn since(&self, at: Instant) -> String {
        let second = Nanos(self.wall_of(at).0 / 1_000_000_000 * 1_000_000_000);
        format!("since {} ({} s)", rfc3339(second), self.age(at).as_secs())
    }

    fn through(&self, hop: Hop) -> String {
        rfc3339(self.clock.start_of(hop))
    }
}

/// Why nothing closes, or that hops are being closed. The first cause that applies is named: the output before the brokers,
/// both before what partitions give.
pub fn diagnose(vitals: &Vitals, now: &Now) -> Diagnosis {
    let (condition, reason) =
        outside(vitals, now).or_else(|| input(vitals, now)).unwrap_or_else(|| progress(vitals, now));
    Diagnosis { condition, reason }
}

/// What keeps the run from the outside.
fn outside(vitals: &Vitals, now: &Now) -> Option<(Condition, String)> {
    if let Some((what, Trouble { since, detail })) = vitals.output.waiting.iter().min_by_key(|(_, waits)| waits.since) {
        let reason = format!(
            "{what} cannot be written {}, and nothing is closed until they are: {}",
            now.since(*since),
            shown(detail)
        );
        return Some((Condition::SinkBlocked, reason));
    }
    if let Some(Writing { hop, since, .. }) = vitals.output.writing
        && now.age(since) >= BLOCKED_AFTER
    {
        let hop = rfc3339(now.clock.end_of(hop));
        return Some((
            Condition::SinkBlocked,
            format!("the output has been taking the rows of the interval that ends at {hop} {}", now.since(since)),
        ));
    }
    let troubles =
        vitals.transports.iter().filter_map(|((source, _), health)| Some((source, health.trouble.as_ref()?)));
    if let Some((source, Trouble { since, detail })) = troubles.min_by_key(|(_, trouble)| trouble.since) {
        let detail = shown(detail);
        return Some((
            Condition::BrokerUnreachable,
            format!("no broker has answered for topic {source} {}: {detail}", now.since(*since)),
        ));
    }
    if vitals.partitions.is_empty() {
        return Some((Condition::Starting, format!("the topics are being opened {}", now.since(vitals.started_at))));
    }
    None
}

/// What is wrong with what partitions give.
fn input(vitals: &Vitals, now: &Now) -> Option<(Condition, String)> {
    let (records, waiting) = (vitals.records(), vitals.lag());
    if records == 0 {
        let also = if waiting > 0 { format!("; {waiting} are waiting") } else { String::new() };
        return Some((
            Condition::NoRecords,
            format!("no record has come {} from {}{also}", now.since(vitals.started_at), names(vitals)),
        ));
    }
    if vitals.taken() == 0 && vitals.partitions.values().all(|partition| partition.early == 0) {
        return Some((Condition::AllRefused, format!("all {records} records were refused: {}", refusals(vitals))));
    }
    if vitals.output.closed.is_some_and(|Closed { at, .. }| now.age(at) < CLOSING_FOR) {
        return None;
    }
    let Frontier { name: (source, number), partition, from } = vitals.frontier()?;
    if partition.state == PartitionState::Silent && partition.early > 0 {
        return Some((
            Condition::PodsDisagree,
            format!(
                "event time waits for partition {number} of {source}: {} profiles wait until several of its pods agree on the time, or one has shown that it is alone (dataflow.agreement)",
                partition.early
            ),
        ));
    }
    if partition.state == PartitionState::Silent && partition.lag().unwrap_or(0) == 0 {
        let given = match (partition.given.records, partition.end) {
            (0, None) => "which has given no record and whose end the broker has not told".to_owned(),
            (0, Some(_)) => "which has given no record".to_owned(),
            (records, _) => format!("all of whose {records} records were refused"),
        };
        let until = patience(now, now.age(partition.given.last_at.unwrap_or(vitals.started_at)));
        return Some((
            Condition::PartitionSilent,
            format!("event time waits for partition {number} of {source}, {given}{until}"),
        ));
    }
    let ahead = vitals.partitions.values().filter_map(watermark).max().unwrap_or(from);
    if partition.lag() == Some(0) && ahead > from.plus(1) {
        let quiet = now.age(partition.given.last_at.unwrap_or(vitals.started_at));
        return Some((
            Condition::PartitionBehind,
            format!(
                "event time waits for partition {number} of {source}, which is at {} and has given nothing for {} s, while others are at {}{}",
                now.through(from),
                quiet.as_secs(),
                now.through(ahead),
                patience(now, quiet)
            ),
        ));
    }
    None
}

/// How far a run is that nothing keeps.
fn progress(vitals: &Vitals, now: &Now) -> (Condition, String) {
    if let Some(Closed { hop, at }) = vitals.output.closed
        && now.age(at) < CLOSING_FOR
    {
        return (Condition::Closing, format!("closed through {}", rfc3339(now.clock.end_of(hop))));
    }
    if vitals.evaluated_before < vitals.open_from {
        return (Condition::Evaluating, format!("evaluating intervals up to {}", now.through(vitals.open_from)));
    }
    let Some(Frontier { name: (source, number), from, .. }) = vitals.frontier() else {
        return (
            Condition::AllIdle,
            format!("no partition of {} gives anything, and none is waited for", names(vitals)),
        );
    };
    match vitals.lag() {
        0 if from == Hop(0) => (Condition::CaughtUp, "waiting for a partition's first good record".to_owned()),
        0 => (
            Condition::CaughtUp,
            format!(
                "all records are read; the interval that begins at {} closes once later ones come",
                now.through(from)
            ),
        ),
        waiting => (
            Condition::CatchingUp,
            format!("{waiting} records are still to be read; event time waits for partition {number} of {source}"),
        ),
    }
}

fn watermark(partition: &PartitionVitals) -> Option<Hop> {
    match partition.state {
        PartitionState::Watermark(hop) => Some(hop),
        PartitionState::Silent | PartitionState::Idle | PartitionState::Ended => None,
    }
}

/// Until when a silent partition is waited for.
fn patience(now: &Now, quiet: Duration) -> String {
    match now.idle_after {
        None => "; it is waited for without limit (kafka.idle_after)".to_owned(),
        Some(after) if quiet < after => {
            let left = after.saturating_sub(quiet).as_secs();
            format!("; without it from about {left} s on (kafka.idle_after)")
        }
        Some(_) => String::new(),
    }
}

/// Counts of refused parts and the last of them, in words.
pub fn refusals(vitals: &Vitals) -> String {
    let counts =
        vitals.refused().iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect::<Vec<_>>();
    let counts = counts.join(", ");
    let Some(((source, partition), refusal)) = vitals.last_refusal() else { return counts };
    let (offset, reason, detail) = (refusal.offset, refusal.reason.name(), shown(&refusal.detail));
    format!("{counts}; the last was offset {offset} of partition {partition} of {source}: {reason}: {detail}")
}

/// The topics, with their number of partitions.
fn names(vitals: &Vitals) -> String {
    let mut topics = std::collections::BTreeMap::<&str, u64>::new();
    vitals.partitions.keys().for_each(|(source, _)| *topics.entry(source).or_default() += 1);
    let topics = topics.iter().map(|(topic, count)| {
        let plural = if *count == 1 { "" } else { "s" };
        format!("{topic} ({count} partition{plural})")
    });
    topics.collect::<Vec<_>>().join(", ")
}

/// One line of limited length: what comes from a record must not make lines of its own.
fn shown(detail: &str) -> String {
    let line = detail.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept: String = line.take(DETAIL).collect();
    if detail.chars().count() > DETAIL {
        kept.push_str(" ...");
    }
    kept
}

#[cfg(test)]
mod tests;
