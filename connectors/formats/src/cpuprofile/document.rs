//! The file as it stands.

use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::budget::Budget;
use crate::json::{self, List};
use crate::v8::CallFrame;

/// Nanoseconds in a microsecond, the unit of the format.
const MICROSECOND: i64 = 1_000;

/// The file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) nodes: Option<List<Node<'a>>>,
    pub(super) samples: Option<List<u32>>,
    /// The tree of the form before 2016.
    pub(super) head: Option<IgnoredAny>,
    #[serde(borrow)]
    start_time: Option<&'a RawValue>,
    #[serde(borrow)]
    end_time: Option<&'a RawValue>,
    #[serde(borrow)]
    time_deltas: Option<&'a RawValue>,
}

/// A function where it was called from.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node<'a> {
    pub(super) id: u32,
    #[serde(borrow)]
    pub(super) call_frame: CallFrame<'a>,
    #[serde(default)]
    pub(super) hit_count: u64,
    #[serde(default)]
    pub(super) children: List<u32>,
    /// In files made from traces, instead of `children`.
    pub(super) parent: Option<u32>,
}

impl Document<'_> {
    /// Of each tick, when it was and how long it was until the next, in nanoseconds; nothing if that is not known of each.
    ///
    /// # Errors
    /// `too_large` if there is no room for them.
    pub(super) fn times(&self, budget: &Budget) -> Result<Option<Vec<[i64; 2]>>, Rejection> {
        let ticks = self.samples.as_ref().map_or(0, |samples| samples.len());
        let deltas = self.time_deltas.map(|raw| json::read::<List<i64>>("list of times", raw.get().as_bytes(), budget));
        let deltas = match deltas {
            Some(Err(fault)) if fault.reason == Reason::TooLarge => return Err(fault),
            Some(Ok(deltas)) if ticks > 0 && deltas.len() == ticks => deltas,
            _ => return Ok(None),
        };
        let (Some(mut at), Some(end)) = (moment(self.start_time), moment(self.end_time)) else { return Ok(None) };
        let mut times: Vec<[i64; 2]> = budget.list(ticks)?;
        for delta in deltas.iter() {
            at = at.saturating_add(*delta);
            times.push([at, end]);
        }
        let mut next = end;
        for [at, length] in times.iter_mut().rev() {
            // NB: V8 writes deltas below zero where ticks of several threads were put in order.
            *length = next.saturating_sub(*at).max(0).saturating_mul(MICROSECOND);
            next = *at;
            *at = at.saturating_mul(MICROSECOND);
        }
        Ok(Some(times))
    }
}

/// A moment of the machine's clock in microseconds, 0 where the file does not say it; nothing if it is no number.
fn moment(raw: Option<&RawValue>) -> Option<i64> {
    raw.map_or(Some(0), |raw| serde_json::from_str(raw.get()).ok())
}
