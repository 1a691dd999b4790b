//! The file, and what its events say.

use std::borrow::Cow;

use fleetdiff_schemas::rejected::Rejection;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::events::{Event, Events, Kind, Whole};
use crate::budget::Budget;
use crate::cpuprofile::Node;
use crate::json::{self, List};

/// The file.
pub(super) struct Trace<'a>(Events<'a>);

impl<'de> Deserialize<'de> for Trace<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Whole).map(Self)
    }
}

impl<'a> Trace<'a> {
    pub(super) fn events(&self) -> &[Event<'a>] {
        &self.0.0
    }
}

/// What a thread is called, by an event that says it.
pub(super) fn thread_name<'a>(event: &Event<'a>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Args<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let args: Args<'a> = serde_json::from_str(event.args?.get()).ok()?;
    Some(args.name).filter(|name| !name.is_empty())
}

/// What `Profile` says.
#[derive(Default, Deserialize)]
pub(super) struct Opening {
    /// When it began, in microseconds.
    #[serde(rename = "startTime")]
    pub(super) start: Option<i64>,
}

#[derive(Deserialize)]
struct OpeningArgs {
    data: Option<Opening>,
}

impl Opening {
    pub(super) fn of(event: &Event<'_>, budget: &Budget) -> Result<Self, Rejection> {
        let Some(args) = event.args else { return Ok(Self::default()) };
        let args: OpeningArgs = json::read("event Profile", args.get().as_bytes(), budget)?;
        Ok(args.data.unwrap_or_default())
    }
}

/// What `ProfileChunk` says, or `CpuProfile`.
#[derive(Default)]
pub(super) struct Chunk<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) met: List<u32>,
    /// How long before each tick the one before was, in microseconds.
    pub(super) deltas: List<i64>,
    /// When the profile began and ended, in microseconds.
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

#[derive(Deserialize)]
struct ChunkArgs<'a> {
    #[serde(borrow)]
    data: Option<ChunkData<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkData<'a> {
    #[serde(borrow)]
    cpu_profile: Option<Part<'a>>,
    #[serde(default)]
    time_deltas: List<i64>,
    end_time: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    nodes: List<Node<'a>>,
    #[serde(default)]
    samples: List<u32>,
    /// Of a whole profile, of which these stand within it.
    #[serde(borrow)]
    time_deltas: Option<&'a RawValue>,
    #[serde(borrow)]
    start_time: Option<&'a RawValue>,
    #[serde(borrow)]
    end_time: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    pub(super) fn of(event: &Event<'a>, budget: &Budget) -> Result<Self, Rejection> {
        let Some(args) = event.args else { return Ok(Self::default()) };
        let args: ChunkArgs<'a> = json::read("event ProfileChunk", args.get().as_bytes(), budget)?;
        let Some(ChunkData { cpu_profile, time_deltas, end_time }) = args.data else { return Ok(Self::default()) };
        let Some(part) = cpu_profile else { return Ok(Self { deltas: time_deltas, end: end_time, ..Self::default() }) };
        let is_whole = event.kind == Kind::Whole;
        let moment =
            |raw: Option<&RawValue>| raw.filter(|_| is_whole).and_then(|raw| serde_json::from_str(raw.get()).ok());
        let deltas = match part.time_deltas {
            Some(raw) if is_whole => json::read("list of times", raw.get().as_bytes(), budget)?,
            _ => time_deltas,
        };
        let (start, end) = (moment(part.start_time), moment(part.end_time).or(end_time));
        Ok(Self { nodes: part.nodes.into_vec(), met: part.samples, deltas, start, end })
    }
}
