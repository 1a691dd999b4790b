//! The file as it stands.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{List, Lists, Text};
use crate::labels::Unit;

/// The file.
#[derive(Deserialize)]
pub(super) struct File<'a> {
    #[serde(borrow)]
    pub(super) shared: Shared<'a>,
    #[serde(borrow)]
    pub(super) profiles: List<Part<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Shared<'a> {
    #[serde(borrow)]
    pub(super) frames: List<Frame<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) file: Option<Text<'a>>,
    /// Of the file; a number, if it is to be looked at.
    #[serde(borrow)]
    pub(super) line: Option<&'a RawValue>,
}

/// One of its profiles, of either kind.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    pub(super) unit: ValueUnit,
    /// When it begins, in its unit; a number, if it is to be looked at.
    #[serde(borrow, rename = "startValue")]
    pub(super) start: Option<&'a RawValue>,
    /// Of a sampled one: frames, the root first.
    pub(super) samples: Option<Lists<u32>>,
    pub(super) weights: Option<List<f64>>,
    /// Of an evented one.
    pub(super) events: Option<List<Event>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Sampled,
    Evented,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ValueUnit {
    None,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Bytes,
}

#[derive(Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: EventKind,
    pub(super) frame: u32,
    pub(super) at: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

impl Frame<'_> {
    fn file(&self) -> Option<&str> {
        self.file.as_ref().map(|file| &*file.0)
    }

    /// The name with the source file, unless it holds that itself.
    pub(super) fn full_name(&self) -> Cow<'_, str> {
        match self.file() {
            None | Some("") => Cow::Borrowed(&self.name),
            Some(file) if self.name.contains(file) || self.name.is_empty() => Cow::Borrowed(&self.name),
            Some(file) => format!("{} ({file})", self.name).into(),
        }
    }

    /// `file:line`, where the file says both.
    pub(super) fn source_line(&self) -> Option<String> {
        let file = self.file().filter(|file| !file.is_empty())?;
        let line: u32 = number(self.line)?;
        Some(format!("{file}:{line}"))
    }
}

impl Part<'_> {
    /// When it begins, in its unit; 0 where it does not say so.
    pub(super) fn begins_at(&self) -> f64 {
        number(self.start).unwrap_or(0.0)
    }
}

/// A number that decoders pass over, so that it spoils nothing if it is none.
fn number<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

impl ValueUnit {
    /// Nanoseconds in one of it, if it is a unit of time.
    pub(super) fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Nanoseconds => Unit::Nanoseconds.nanoseconds(),
            Self::Microseconds => Unit::Microseconds.nanoseconds(),
            Self::Milliseconds => Unit::Milliseconds.nanoseconds(),
            Self::Seconds => Unit::Seconds.nanoseconds(),
            Self::None | Self::Bytes => None,
        }
    }
}
