//! The file as it stands.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::{List, Text};

/// The file. Threads are read one after the other.
#[derive(Deserialize)]
pub(super) struct File<'a> {
    #[serde(borrow)]
    pub(super) meta: Meta<'a>,
    #[serde(borrow, default)]
    pub(super) libs: List<Library<'a>>,
    #[serde(borrow, default)]
    pub(super) shared: Tables<'a>,
    #[serde(borrow)]
    pub(super) threads: List<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    /// Of the processed form.
    pub(super) preprocessed_profile_version: Option<u32>,
    /// What Firefox was asked to record; others do not write it.
    pub(super) configuration: Option<IgnoredAny>,
    /// The program that was recorded.
    #[serde(borrow)]
    pub(super) product: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) sample_units: Option<SampleUnits<'a>>,
}

#[derive(Deserialize)]
pub(super) struct SampleUnits<'a> {
    /// Of times of samples: `ms`, or `bytes` where what is "sampled" is a file.
    #[serde(borrow)]
    pub(super) time: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Library<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) path: Option<Text<'a>>,
}

/// What a thread is and what was met of it; its tables are read apart.
#[derive(Deserialize)]
pub(super) struct Thread<'a> {
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    /// A number or a text, which may be one with a part behind: `17.1`.
    #[serde(borrow)]
    pub(super) pid: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tid: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) samples: Samples<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Samples<'a> {
    pub(super) stack: List<Option<u32>>,
    pub(super) weight: Option<List<Option<f64>>>,
    #[serde(borrow)]
    pub(super) weight_type: Option<Text<'a>>,
    /// How long the thread ran since the sample before.
    #[serde(rename = "threadCPUDelta")]
    pub(super) ran: Option<List<Option<f64>>>,
    /// When each was taken, in milliseconds.
    pub(super) time: Option<List<f64>>,
    /// Since the sample before, the first since the start.
    pub(super) time_deltas: Option<List<f64>>,
}

/// Tables, of the file or of a thread.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tables<'a> {
    #[serde(borrow)]
    pub(super) string_array: Option<List<Text<'a>>>,
    pub(super) stack_table: Option<StackTable>,
    pub(super) frame_table: Option<FrameTable>,
    pub(super) func_table: Option<FuncTable>,
    pub(super) resource_table: Option<ResourceTable>,
    pub(super) sources: Option<Sources>,
}

impl Tables<'_> {
    /// Whether they have a part in what the frames of a thread are called, so that these are not those of other threads.
    pub(super) fn names_frames(&self) -> bool {
        self.string_array.is_some()
            || self.frame_table.is_some()
            || self.func_table.is_some()
            || self.resource_table.is_some()
            || self.sources.is_some()
    }
}

/// A tree: callers stand before whom they call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StackTable {
    pub(super) frame: List<u32>,
    pub(super) prefix: Option<List<Option<u32>>>,
    /// Since version 66: how far before it its caller stands; 0 for none.
    pub(super) prefix_offset: Option<List<u32>>,
}

/// Where no line, library or depth is known, these may be missing, `null` or -1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    pub(super) func: List<u32>,
    pub(super) line: Option<List<Option<i64>>>,
    /// Since version 70.
    pub(super) lib: Option<List<Option<i64>>>,
    pub(super) inline_depth: Option<List<Option<u32>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FuncTable {
    pub(super) name: List<u32>,
    #[serde(rename = "isJS")]
    pub(super) is_js: Option<List<bool>>,
    pub(super) resource: Option<List<Option<i64>>>,
    /// A text; since version 58 `source` stands for it.
    pub(super) file_name: Option<List<Option<u32>>>,
    pub(super) source: Option<List<Option<u32>>>,
}

#[derive(Deserialize)]
pub(super) struct ResourceTable {
    pub(super) name: List<Option<u32>>,
    #[serde(rename = "type")]
    pub(super) kind: Option<List<Option<i64>>>,
    /// Until version 69.
    pub(super) lib: Option<List<Option<i64>>>,
}

#[derive(Deserialize)]
pub(super) struct Sources {
    pub(super) filename: List<u32>,
}
