//! What fleetdiff announces: CloudEvents 1.0 about flags and verdicts.
//!
//! An alert is made from a row and holds only what the row holds, so the same rows give the same alerts, whatever
//! transport carried the records. Its data are the row's columns by name ([`crate::tables::json_object`]). On a topic
//! it travels in binary mode ([`Alert::headers`], key, data), in a file in structured mode ([`Alert::line`]). A JSON
//! Schema of both forms is published ([`JSON_SCHEMA`]).
//!
//! Delivery is at least once: a receiver must drop an [`Alert::id`] that it has already seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::identity::stable_hash;
use crate::profile::CountKind;
use crate::rows::{CellKey, CellRow, ComparisonKey, ComparisonRow, FlagRow};
use crate::tables::calendar::rfc3339;
use crate::tables::{TableError, json_object};
use crate::time::{Hop, Nanos};
use crate::verdict::{BaseKind, ComparisonVerdict, FlagState};

/// The JSON Schema (2020-12) of an alert in structured mode; its `$defs` contain the data of both kinds of event.
pub const JSON_SCHEMA: &str = include_str!("../alert.schema.json");

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AlertType {
    /// A flag was raised.
    FlagRaised,
    /// The effect or the support of a flag moved.
    FlagUpdated,
    /// A flag was cleared.
    FlagCleared,
    /// The verdict of a comparison changed.
    Verdict,
}

impl AlertType {
    /// Every alert type.
    pub const ALL: [Self; 4] = [Self::FlagRaised, Self::FlagUpdated, Self::FlagCleared, Self::Verdict];

    /// The `type` attribute of the event.
    pub fn name(self) -> &'static str {
        match self {
            Self::FlagRaised => "dev.fleetdiff.flag.raised.v1",
            Self::FlagUpdated => "dev.fleetdiff.flag.updated.v1",
            Self::FlagCleared => "dev.fleetdiff.flag.cleared.v1",
            Self::Verdict => "dev.fleetdiff.verdict.v1",
        }
    }
}

impl From<FlagState> for AlertType {
    fn from(state: FlagState) -> Self {
        match state {
            FlagState::Raised => Self::FlagRaised,
            FlagState::Updated => Self::FlagUpdated,
            FlagState::Cleared => Self::FlagCleared,
        }
    }
}

/// One event, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// The record key on a topic: see [`key_of_row`]. The latest alert of a key supersedes those before it.
    pub key: String,
    /// 16 hexadecimal digits: the stable hash of key, sequence and state.
    pub id: String,
    /// What happened.
    pub alert_type: AlertType,
    /// The event's source: `/fleetdiff/` and the service.
    pub source: String,
    /// The subject in words: builds, cell and function.
    pub subject: String,
    /// Event time: the end of the hop at whose close it happened.
    pub at: Nanos,
    /// The hop at whose close it happened; increases within a key.
    pub sequence: Hop,
    /// The row as a JSON object.
    pub data: String,
}

impl Alert {
    /// The alert of one change of a flag.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: the row holds NaN.
    pub fn of_flag(flag: &FlagRow) -> Result<Self, TableError> {
        let row = &flag.row;
        let key = key_of_row(row);
        Ok(Self {
            id: id_of(&key, flag.sequence, flag.state.name()),
            key,
            alert_type: flag.state.into(),
            source: source_of(&row.comparison),
            subject: format!("{}: {}", subject_of(&row.comparison, &row.cell), row.function),
            at: row.window_end_at,
            sequence: flag.sequence,
            data: json_object(flag)?,
        })
    }

    /// The alert of a comparison whose verdict changed at the close of hop `sequence`.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: the row holds NaN.
    pub fn of_verdict(row: &ComparisonRow, sequence: Hop) -> Result<Self, TableError> {
        let key = key(&row.comparison, &row.cell, None, row.count_kind);
        Ok(Self {
            id: id_of(&key, sequence, row.verdict.name()),
            key,
            alert_type: AlertType::Verdict,
            source: source_of(&row.comparison),
            subject: subject_of(&row.comparison, &row.cell),
            at: row.window_end_at,
            sequence,
            data: json_object(row)?,
        })
    }

    /// The headers of a record in binary mode; its value is [`Self::data`], its key [`Self::key`].
    pub fn headers(&self) -> Vec<(String, String)> {
        let headers = [
            ("ce_specversion", SPEC_VERSION.to_owned()),
            ("ce_id", self.id.clone()),
            ("ce_source", self.source.clone()),
            ("ce_type", self.alert_type.name().to_owned()),
            ("ce_time", rfc3339(self.at)),
            ("ce_subject", self.subject.clone()),
            ("content-type", CONTENT_TYPE.to_owned()),
        ];
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The event in structured mode: one line of JSON without the line's end. The key is in `partitionkey`, the
    /// attribute of CloudEvents' partitioning extension.
    pub fn line(&self) -> String {
        let members = [
            ("specversion", SPEC_VERSION),
            ("id", &self.id),
            ("source", &self.source),
            ("type", self.alert_type.name()),
            ("subject", &self.subject),
            ("time", &rfc3339(self.at)),
            ("datacontenttype", CONTENT_TYPE),
            ("partitionkey", &self.key),
        ];
        let envelope = members.map(|(name, value)| format!("{}:{},", json!(name), json!(value))).concat();
        format!("{{{envelope}\"data\":{}}}", self.data)
    }
}

const SPEC_VERSION: &str = "1.0";
const CONTENT_TYPE: &str = "application/json";

/// The key of a row's flag: a JSON array of service, profile type, measure, base, head, region, cohort, function and
/// count kind.
pub(crate) fn key_of_row(row: &CellRow) -> String {
    key(&row.comparison, &row.cell, Some(&row.function), row.count_kind)
}

/// The identity of a flag raised at the close of hop `raised`: 16 hexadecimal digits, the stable hash of its key and that hop.
pub fn flag_id(row: &CellRow, raised: Hop) -> String {
    format!("{:016x}", stable_hash(format!("{}\n{}", key_of_row(row), raised.0).as_bytes()))
}

/// The key of a flag, or of a verdict, which has no function.
fn key(comparison: &ComparisonKey, cell: &CellKey, function: Option<&str>, count_kind: CountKind) -> String {
    json!([
        comparison.service.as_str(),
        comparison.profile_type.name(),
        comparison.measure.name(),
        comparison.base_build.as_str(),
        comparison.head_build.as_str(),
        cell.region.as_str(),
        cell.cohort.as_str(),
        function,
        count_kind.name(),
    ])
    .to_string()
}

fn id_of(key: &str, sequence: Hop, state: &str) -> String {
    format!("{:016x}", stable_hash(format!("{key}\n{}\n{state}", sequence.0).as_bytes()))
}

/// A URI reference: characters that RFC 3986 does not allow in a path segment are percent-encoded.
fn source_of(comparison: &ComparisonKey) -> String {
    let stands = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if stands(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let service: String = comparison.service.as_str().bytes().map(encode).collect();
    format!("/fleetdiff/{service}")
}

fn subject_of(comparison: &ComparisonKey, cell: &CellKey) -> String {
    let ComparisonKey { profile_type, base_build, head_build, .. } = comparison;
    format!("{head_build} against {base_build} ({}) in {}/{}", profile_type.name(), cell.region, cell.cohort)
}

/// The verdicts that were announced last, so that only changes are announced.
///
/// Considers only rows over all cells (region and cohort `*`). A comparison starts as `inconclusive`, so nothing is
/// announced until it has another verdict. A comparison with history is never announced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedVerdicts {
    verdicts: BTreeMap<(ComparisonKey, CountKind), ComparisonVerdict>,
}

impl AnnouncedVerdicts {
    /// Takes one evaluation of a comparison, in order of time, and returns whether it is a change that must be
    /// announced.
    pub fn is_change(&mut self, row: &ComparisonRow) -> bool {
        if !row.cell.is_over_all() || row.base_kind == BaseKind::History {
            return false;
        }
        let key = (row.comparison.clone(), row.count_kind);
        let before = self.verdicts.insert(key, row.verdict).unwrap_or(ComparisonVerdict::Inconclusive);
        before != row.verdict
    }
}
