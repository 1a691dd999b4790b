//! What stands beside the stacks of a profile: what they weigh, and when each of their samples was taken. Decoding passes it over.

use super::heads::ProfileHead;
use super::rows::{Rule, SampleRow};
use crate::ticks::FoundPeriod;

/// What stands beside one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackDetails {
    /// What its samples weigh, if that is known.
    pub(crate) weight: Option<u64>,
    /// When each was taken, in nanoseconds of the Unix epoch, with its count and weight; nothing if it is not known of each.
    pub(crate) events: Vec<SampleEvent>,
}

/// Samples of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleEvent {
    pub(crate) at: i64,
    pub(crate) count: u64,
    pub(crate) weight: Option<u64>,
}

/// What stands beside the stacks of a part, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartDetails {
    /// What weights are, as `cpu/nanoseconds`.
    pub(crate) unit: Option<String>,
    pub(crate) stacks: Vec<StackDetails>,
    /// The tick of its values, if nobody said it.
    pub(crate) found: Option<FoundPeriod>,
}

impl PartDetails {
    /// Begins with a part whose weights are of a column, if there are any.
    pub(super) fn begin(&mut self, weights: Option<&ProfileHead<'_>>) {
        self.unit = weights.map(|column| format!("{}/{}", column.kind.0, column.kind.1));
        self.stacks.clear();
    }

    /// Adds a row that became a stack with this weight.
    pub(super) fn add(&mut self, row: &SampleRow, rule: &Rule, weight: Option<u64>) {
        self.stacks.push(StackDetails { weight, events: events(row, rule).unwrap_or_default() });
    }
}

/// The moments of a row, if it has one for each of its samples.
fn events(row: &SampleRow, rule: &Rule) -> Option<Vec<SampleEvent>> {
    let values = row.each_value();
    let event = |(place, at): (usize, &u64)| {
        let value = values.get(place).copied();
        let (count, weight) = match rule {
            Rule::Count => (value.unwrap_or(1), None),
            Rule::Time(_) | Rule::Events => (1, value),
        };
        Some(SampleEvent { at: i64::try_from(*at).ok()?, count, weight })
    };
    row.times().iter().enumerate().map(event).collect()
}
