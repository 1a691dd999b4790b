//! Folds what the client library says again and again: each of its clients reports each failed attempt to connect.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the same message is not said again (guess: often enough to see that it lasts).
const QUIET: Duration = Duration::from_secs(60);

/// Messages that are remembered at most.
const REMEMBERED: usize = 256;

/// NB: of the process, as its log is: every worker has a client that says the same.
static SAID: Mutex<Repeats> = Mutex::new(Repeats { said: BTreeMap::new() });

/// What was said, without its numbers, when, and how often it came since.
#[derive(Debug)]
struct Repeats {
    said: BTreeMap<String, (Instant, u64)>,
}

/// The message as it is to be logged, or nothing if it was logged a moment ago.
pub(super) fn fold(message: &str) -> Option<String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).fold(message, Instant::now())
}

impl Repeats {
    fn fold(&mut self, message: &str, now: Instant) -> Option<String> {
        let kind: String = message.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let kind = kind.split('0').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0");
        if let Some((at, times)) = self.said.get_mut(&kind) {
            if now.saturating_duration_since(*at) < QUIET {
                *times += 1;
                return None;
            }
            let folded = std::mem::take(times);
            *at = now;
            return Some(match folded {
                0 => message.to_owned(),
                _ => format!("{message} ({folded} more like it since the last)"),
            });
        }
        if self.said.len() >= REMEMBERED {
            self.said.clear();
        }
        self.said.insert(kind, (now, 0));
        Some(message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_differs_in_numbers_only_is_said_once_a_minute_with_how_often_it_came() {
        let (start, mut repeats) = (Instant::now(), Repeats { said: BTreeMap::new() });
        let said: Vec<String> = (0..=130)
            .filter_map(|second| {
                let message = format!("127.0.0.1:9092: connection refused (after {second}ms in state CONNECT)");
                repeats.fold(&message, start + Duration::from_secs(second))
            })
            .collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].ends_with("(after 0ms in state CONNECT)"), "{said:?}");
        assert!(said[1].ends_with("(59 more like it since the last)"), "{said:?}");
        assert_eq!(repeats.fold("something else", start), Some("something else".to_owned()));
    }

    #[test]
    fn not_everything_is_remembered() {
        let mut repeats = Repeats { said: BTreeMap::new() };
        for number in 0..1_000_u32 {
            let letters: String = number.to_string().bytes().map(|digit| char::from(digit + b'a' - b'0')).collect();
            assert!(repeats.fold(&letters, Instant::now()).is_some());
        }
        assert!(repeats.said.len() <= REMEMBERED);
    }
}
