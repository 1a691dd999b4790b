//! The file as it stands.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Nanoseconds in a microsecond, the unit of the format.
const MICROSECOND: i64 = 1_000;

/// The file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) nodes: Option<Vec<Node<'a>>>,
    pub(super) samples: Option<Vec<u32>>,
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
    pub(super) children: Vec<u32>,
    /// In files made from traces, instead of `children`.
    pub(super) parent: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFrame<'a> {
    #[serde(borrow)]
    pub(super) function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) url: Cow<'a, str>,
}

impl Node<'_> {
    pub(super) fn is_root(&self) -> bool {
        self.call_frame.function_name == "(root)"
    }

    /// Whether the engine was waiting.
    pub(super) fn is_idle(&self) -> bool {
        self.call_frame.function_name == "(idle)"
    }

    pub(super) fn name(&self) -> &str {
        let name = &self.call_frame.function_name;
        if name.is_empty() { "(anonymous)" } else { name }
    }

    /// The name with the file.
    pub(super) fn full_name(&self) -> Cow<'_, str> {
        let CallFrame { url, .. } = &self.call_frame;
        match url.strip_prefix("file://").unwrap_or(url) {
            "" => Cow::Borrowed(self.name()),
            file => format!("{} ({file})", self.name()).into(),
        }
    }
}

impl Document<'_> {
    /// Of each tick, when it was and how long it was until the next, in nanoseconds; nothing if that is not known of each.
    pub(super) fn times(&self) -> Option<Vec<[i64; 2]>> {
        let ticks = self.samples.as_ref().map_or(0, Vec::len);
        let deltas: Vec<i64> = self.time_deltas.and_then(|raw| serde_json::from_str(raw.get()).ok())?;
        if ticks == 0 || deltas.len() != ticks {
            return None;
        }
        let mut at = moment(self.start_time)?;
        let ats: Vec<i64> = deltas
            .iter()
            .map(|delta| {
                at = at.saturating_add(*delta);
                at
            })
            .collect();
        let next = ats.iter().skip(1).copied().chain([moment(self.end_time)?]);
        // NB: V8 writes deltas below zero where ticks of several threads were put in order.
        let time = |(at, next): (&i64, i64)| {
            [at.saturating_mul(MICROSECOND), next.saturating_sub(*at).max(0).saturating_mul(MICROSECOND)]
        };
        Some(ats.iter().zip(next).map(time).collect())
    }
}

/// A moment of the machine's clock in microseconds, 0 where the file does not say it; nothing if it is no number.
fn moment(raw: Option<&RawValue>) -> Option<i64> {
    raw.map_or(Some(0), |raw| serde_json::from_str(raw.get()).ok())
}
