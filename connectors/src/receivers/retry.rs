//! When a request is repeated: exponential backoff with jitter, and what the receiver asks for.

use std::time::Duration;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::time::Nanos;

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The receiver has it.
    Accepted,
    /// There was no answer: no connection, or none in time. In words.
    Silence(String),
    /// Another status than 2xx.
    Refused {
        /// The status.
        status: u16,
        /// The beginning of the body.
        excerpt: String,
        /// For how long the receiver wants to be left alone.
        retry_after: Option<Duration>,
    },
}

/// What to do after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is delivered.
    Delivered,
    /// It is worth repeating.
    Repeat,
    /// Repeating would not help.
    Hopeless,
}

impl Answer {
    /// What to do.
    pub(super) fn fate(&self) -> Fate {
        match self {
            Self::Accepted => Fate::Delivered,
            Self::Silence(_) | Self::Refused { status: 408 | 429 | 500.., .. } => Fate::Repeat,
            Self::Refused { .. } => Fate::Hopeless,
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Silence(why) => f.write_str(why),
            Self::Refused { status, excerpt, .. } if excerpt.is_empty() => write!(f, "status {status}"),
            Self::Refused { status, excerpt, .. } => write!(f, "status {status}: {excerpt}"),
        }
    }
}

/// Longest wait that a receiver may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// The waits between the attempts at one receiver.
#[derive(Debug)]
pub(super) struct Retry {
    first: Duration,
    longest: Duration,
    salt: String,
    failures: u32,
    not_before: Option<Nanos>,
    /// Since when the receiver answers, and refuses.
    refused_since: Option<Nanos>,
}

impl Retry {
    /// Waits from `first` to `longest`; `salt` differs between receivers, so that they do not come back at the same moment.
    pub(super) fn new(first: Duration, longest: Duration, salt: &str) -> Self {
        let salt = salt.to_owned();
        Self { first, longest: longest.max(first), salt, failures: 0, not_before: None, refused_since: None }
    }

    /// Until when to wait.
    pub(super) fn not_before(&self, now: Nanos) -> Option<Nanos> {
        // A wall clock that was set back must not make it wait for ever.
        self.not_before.filter(|at| *at > now && at.since(now) <= nanos(LONGEST_ASKED))
    }

    /// How many attempts have failed in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// For how long the receiver has answered and refused.
    pub(super) fn refused_for(&self, now: Nanos) -> Duration {
        self.refused_since
            .map_or(Duration::ZERO, |since| Duration::from_nanos(u64::try_from(now.since(since).0).unwrap_or(0)))
    }

    /// Notes a failure that is worth repeating.
    pub(super) fn failed(&mut self, answer: &Answer, now: Nanos) {
        let asked = match answer {
            Answer::Refused { retry_after, .. } => {
                self.refused_since.get_or_insert(now);
                retry_after.unwrap_or_default()
            }
            _ => {
                self.refused_since = None;
                Duration::ZERO
            }
        };
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(self.failures)).min(self.longest);
        // Between half of it and all of it.
        let chance = stable_hash(format!("{}\n{}\n{}", self.salt, self.failures, now.0).as_bytes()) % 1024;
        let jittered = doubled / 2 + doubled / 2 * u32::try_from(chance).unwrap_or(0) / 1024;
        self.not_before = Some(now.plus(nanos(jittered.max(asked.min(LONGEST_ASKED)))));
        self.failures = self.failures.saturating_add(1);
    }

    /// The receiver took a request, or refused it for good: the next one starts anew.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
        self.not_before = None;
        self.refused_since = None;
    }
}

/// A duration on the scale of instants.
pub(super) fn nanos(length: Duration) -> Nanos {
    Nanos(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_with_jitter() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut retry = Retry::new(first, longest, "a");
        let mut waits = Vec::new();
        for _ in 0..10 {
            retry.failed(&Answer::Silence("no".to_owned()), Nanos(7));
            waits.push(retry.not_before(Nanos(7)).unwrap().since(Nanos(7)));
        }
        for (number, wait) in waits.iter().enumerate() {
            let full = nanos(first * 2_u32.pow(u32::try_from(number).unwrap())).min(nanos(longest));
            assert!(wait.0 * 2 >= full.0 && *wait <= full, "{number}: {wait:?} of {full:?}");
        }
        let mut other = Retry::new(first, longest, "b");
        other.failed(&Answer::Silence("no".to_owned()), Nanos(7));
        assert_ne!(other.not_before(Nanos(7)).unwrap().since(Nanos(7)), waits[0]);
        retry.reset();
        assert_eq!((retry.not_before(Nanos(7)), retry.failures()), (None, 0));
    }

    #[test]
    fn what_the_receiver_asks_for_is_respected_within_an_hour() {
        let mut retry = Retry::new(Duration::from_secs(1), Duration::from_secs(60), "a");
        let asked = |seconds| Answer::Refused {
            status: 429,
            excerpt: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        retry.failed(&asked(120), Nanos(0));
        assert_eq!(retry.not_before(Nanos(0)), Some(Nanos::from_seconds(120)));
        retry.failed(&asked(1_000_000), Nanos(0));
        assert_eq!(retry.not_before(Nanos(0)), Some(Nanos::from_seconds(3600)));
        assert_eq!(retry.refused_for(Nanos::from_seconds(90)), Duration::from_secs(90));
    }

    #[test]
    fn only_what_may_pass_is_repeated() {
        let refused = |status| Answer::Refused { status, excerpt: String::new(), retry_after: None }.fate();
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(refused(status), Fate::Repeat, "{status}");
        }
        for status in [301, 400, 401, 403, 404, 410] {
            assert_eq!(refused(status), Fate::Hopeless, "{status}");
        }
    }
}
