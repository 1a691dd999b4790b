//! The file as it stands.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::json::{self, List, Text};

/// The file.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) mode: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) frames: Frames<'a>,
    /// Stacks, one after the other: how many frames, the frames, how many samples.
    pub(super) raw: Option<List<u64>>,
    /// When each sample was taken, in microseconds.
    #[serde(rename = "raw_sample_timestamps")]
    pub(super) timestamps: Option<List<u64>>,
}

/// A method or a block.
#[derive(Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) file: Option<Text<'a>>,
    pub(super) line: Option<u32>,
}

/// Frames with their addresses, in the order of the file.
pub(super) struct Frames<'a>(Vec<(u64, Frame<'a>)>);

impl<'a> Deref for Frames<'a> {
    type Target = [(u64, Frame<'a>)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Frames<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ByAddress)
    }
}

struct ByAddress;

impl<'de> Visitor<'de> for ByAddress {
    type Value = Frames<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("frames by their addresses")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Frames<'de>, A::Error> {
        let mut frames = Vec::new();
        while let Some((address, frame)) = map.next_entry::<Text<'de>, _>()? {
            let address = address.0.parse().map_err(|_| A::Error::custom(format!("{:?} is no address", address.0)))?;
            json::push(&mut frames, (address, frame))?;
        }
        Ok(Frames(frames))
    }
}
