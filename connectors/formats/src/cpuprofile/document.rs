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
    nodes: Option<List<Node<'a>>>,
    pub(super) samples: Option<List<u32>>,
    /// The tree of the form before 2016.
    head: Option<IgnoredAny>,
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
pub(crate) struct Node<'a> {
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

impl<'a> Document<'a> {
    /// Its call tree.
    ///
    /// # Errors
    /// `unsupported_version` if it is in the form of before 2016, `malformed` if there is none.
    pub(super) fn nodes(&self) -> Result<&[Node<'a>], Rejection> {
        match (&self.nodes, &self.head) {
            (Some(nodes), _) => Ok(nodes),
            (None, Some(_)) => {
                let detail = "a tree below \"head\", the form of V8 before 2016, expected \"nodes\"";
                Err(Rejection::new(Reason::UnsupportedVersion, detail))
            }
            (None, None) => Err(Rejection::new(Reason::Malformed, "no \"nodes\"")),
        }
    }

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
        let (Some(start), Some(end)) = (moment(self.start_time), moment(self.end_time)) else { return Ok(None) };
        times(start, &deltas, Some(end), budget).map(Some)
    }
}

/// Of each tick, when it was and how long it was until the next, or the end, in nanoseconds. `deltas` say how long before each the one
/// before was, the first how long after the start it was; all in microseconds. Where the end is not known the last tick has no length.
///
/// # Errors
/// `too_large` if there is no room for them.
pub(crate) fn times(start: i64, deltas: &[i64], end: Option<i64>, budget: &Budget) -> Result<Vec<[i64; 2]>, Rejection> {
    let mut at = start;
    let mut times: Vec<[i64; 2]> = budget.list(deltas.len())?;
    for delta in deltas {
        at = at.saturating_add(*delta);
        times.push([at, 0]);
    }
    let mut next = end.unwrap_or(at);
    for [at, length] in times.iter_mut().rev() {
        // NB: V8 writes deltas below zero where ticks of several threads were put in order.
        *length = next.saturating_sub(*at).max(0).saturating_mul(MICROSECOND);
        next = *at;
        *at = at.saturating_mul(MICROSECOND);
    }
    Ok(times)
}

/// A moment of the machine's clock in microseconds, 0 where the file does not say it; nothing if it is no number.
fn moment(raw: Option<&RawValue>) -> Option<i64> {
    raw.map_or(Some(0), |raw| serde_json::from_str(raw.get()).ok())
}
