//! The events of a trace that are looked at.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json;

/// What an event that is looked at says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// That samples of a thread are taken.
    Profile,
    /// Some of these samples.
    Chunk,
    /// All samples of a thread at once, as Chrome before 67 writes them.
    Whole,
    /// What a thread is called.
    ThreadName,
}

/// An event that is looked at.
pub(super) struct Event<'a> {
    pub(super) kind: Kind,
    /// Process, thread and number of the profile, as they are written.
    pub(super) process: &'a str,
    pub(super) thread: &'a str,
    pub(super) number: &'a str,
    /// When it was written.
    pub(super) at: f64,
    pub(super) args: Option<&'a RawValue>,
}

/// Any event. What tools write into those that are passed over spoils nothing.
#[derive(Deserialize)]
struct AnyEvent<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    pid: Option<&'a RawValue>,
    #[serde(borrow)]
    tid: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    id2: Option<&'a RawValue>,
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl<'a> AnyEvent<'a> {
    fn looked_at(self) -> Option<Event<'a>> {
        let kind = match self.name?.get() {
            "\"Profile\"" => Kind::Profile,
            "\"ProfileChunk\"" => Kind::Chunk,
            "\"CpuProfile\"" => Kind::Whole,
            "\"thread_name\"" => Kind::ThreadName,
            _ => return None,
        };
        let text = |raw: Option<&'a RawValue>| raw.map_or("", RawValue::get);
        let at = self.ts.and_then(|at| serde_json::from_str(at.get()).ok()).unwrap_or(0.0);
        let (process, thread, number) = (text(self.pid), text(self.tid), text(self.id.or(self.id2)));
        Some(Event { kind, process, thread, number, at, args: self.args })
    }
}

/// The events of a trace that are looked at, in its order.
pub(super) struct Events<'a>(pub(super) Vec<Event<'a>>);

impl<'de> Deserialize<'de> for Events<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(List).map(Self)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = Vec<Event<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Event<'de>>, A::Error> {
        let mut events = Vec::new();
        while let Some(event) = list.next_element::<AnyEvent<'de>>()? {
            if let Some(event) = event.looked_at() {
                json::push(&mut events, event)?;
            }
        }
        Ok(events)
    }
}

/// Reads the whole file: events, bare or by their key.
pub(super) struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Events<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events, bare or as \"traceEvents\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Events<'de>, A::Error> {
        List.visit_seq(list).map(Events)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Events<'de>, A::Error> {
        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "camelCase")]
        enum Key {
            TraceEvents,
            #[serde(other)]
            Other,
        }
        let mut events = None;
        while let Some(key) = map.next_key()? {
            match key {
                Key::TraceEvents => events = Some(map.next_value()?),
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        events.ok_or_else(|| serde::de::Error::missing_field("traceEvents"))
    }
}
