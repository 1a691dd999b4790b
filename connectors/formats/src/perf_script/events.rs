//! The events of a recording, of which one is counted.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::header::plain_event;
use crate::budget::Budget;
use crate::sink::SampleSink;

/// What the name of an event is counted as.
const EVENT: usize = 64;

/// Which events there are, and of which each stack is.
#[derive(Debug, Default)]
pub(crate) struct Events<'a> {
    /// The plain names of the events with their number.
    numbers: BTreeMap<&'a str, usize>,
    /// The event of each stack that was given to the sink.
    of_stacks: Vec<usize>,
}

impl<'a> Events<'a> {
    /// The number of an event by its name as perf prints it.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    pub(crate) fn number(&mut self, printed: &'a str, budget: &Budget) -> Result<usize, Rejection> {
        let name = plain_event(printed);
        if let Some(known) = self.numbers.get(name) {
            return Ok(*known);
        }
        let next = self.numbers.len();
        budget.take(EVENT)?;
        self.numbers.insert(name, next);
        Ok(next)
    }

    /// Says of which event the next stack is.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    pub(crate) fn add_stack(&mut self, event: usize, budget: &Budget) -> Result<(), Rejection> {
        budget.push(&mut self.of_stacks, event)
    }

    /// Keeps the samples of the event that fits a profile type, and says what they weigh; all were given to the sink.
    ///
    /// # Errors
    /// `unit_mismatch` if none of several fits, or if the event is no event a sample.
    pub(crate) fn keep_those_of<S: SampleSink>(self, kind: ProfileType, sink: &mut S) -> Result<(), Rejection> {
        let Some((name, wanted)) = self.chosen(kind)? else { return Ok(()) };
        sink.keep(|place| self.of_stacks.get(place) == Some(&wanted));
        // A text without events does not say what its periods are of.
        sink.weighed_in(if name.is_empty() { "period" } else { name });
        Ok(())
    }

    /// The event that a profile of this type is made of; nothing if there is no event at all.
    ///
    /// A single event is taken at the labels' word. Of several the first that measures the type is taken, in the order below.
    fn chosen(&self, kind: ProfileType) -> Result<Option<(&'a str, usize)>, Rejection> {
        let measures: &[&str] = match kind {
            ProfileType::Cpu => &["cycles", "cpu-clock", "task-clock"],
            ProfileType::OffCpu => &["sched:sched_switch"],
            _ => &[],
        };
        let of_type = || measures.iter().find_map(|measure| self.numbers.get_key_value(measure));
        let only = self.numbers.iter().next().filter(|_| self.numbers.len() == 1);
        match only.or_else(of_type) {
            None if self.numbers.is_empty() => Ok(None),
            Some((&"offcpu-time", _)) => {
                Err(unit_mismatch("offcpu-time holds time that was added up, expected an event a sample"))
            }
            Some((name, number)) => Ok(Some((name, *number))),
            None => Err(self.several(kind, measures)),
        }
    }

    fn several(&self, kind: ProfileType, measures: &[&str]) -> Rejection {
        let found: Vec<&str> = self.numbers.keys().copied().take(8).collect();
        let or = if measures.is_empty() { String::new() } else { format!(" or among them {}", measures.join(", ")) };
        unit_mismatch(&format!(
            "{} profile with the events {}, expected a single one{or}",
            kind.name(),
            found.join(", ")
        ))
    }
}

fn unit_mismatch(detail: &str) -> Rejection {
    Rejection::new(Reason::UnitMismatch, detail)
}
