//! What fleetdiff announces: CloudEvents 1.0 about incidents, load scaling and verdicts.
//!
//! An alert is made from a row and holds only what the row and the configuration hold, so the same rows give the same
//! alerts, whatever transport carried the records. Its data are the row's columns by name
//! ([`crate::tables::json_object`]), then what the configuration adds for the reader ([`Guidance`]), then for an incident
//! its flags. On a topic it travels in binary mode ([`Alert::headers`], key, data), in a file in structured mode
//! ([`Alert::line`]). A JSON Schema of both forms is published ([`JSON_SCHEMA`]).
//!
//! A topic has each alert once for readers of committed transactions; receivers get it at least once and must drop an
//! [`Alert::id`] that they have already seen.

mod guidance;

pub use self::guidance::{Guidance, GuidanceRule, fits_pattern};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::identity::{Build, Service, stable_hash};
use crate::rows::{CellRow, FlagRow, HeapFindingRow, IncidentRow, ScalingFindingRow, VerdictRow};
use crate::tables::calendar::{date, hour, rfc3339};
use crate::tables::{TableError, TableRow, json_object};
use crate::time::{Hop, Nanos};
use crate::verdict::IncidentState;

/// The JSON Schema (2020-12) of an alert in structured mode; its `$defs` contain the data of both kinds of event.
pub const JSON_SCHEMA: &str = include_str!("../alert.schema.json");

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AlertType {
    /// A cause has its first flag.
    IncidentRaised,
    /// An incident grew, shrank or moved.
    IncidentUpdated,
    /// Another incident is the cause.
    IncidentSuperseded,
    /// None of the incident's flags stands any more.
    IncidentCleared,
    /// A head scales worse than its base in a function: found, found in another cell, or over.
    Scaling,
    /// A head leaks without allocating more: found, found in another cell, or over.
    Heap,
    /// The verdict of a comparison changed.
    Verdict,
}

impl AlertType {
    /// Every alert type.
    pub const ALL: [Self; 7] = [
        Self::IncidentRaised,
        Self::IncidentUpdated,
        Self::IncidentSuperseded,
        Self::IncidentCleared,
        Self::Scaling,
        Self::Heap,
        Self::Verdict,
    ];

    /// The `type` attribute of the event.
    pub fn name(self) -> &'static str {
        match self {
            Self::IncidentRaised => "dev.fleetdiff.incident.raised.v1",
            Self::IncidentUpdated => "dev.fleetdiff.incident.updated.v1",
            Self::IncidentSuperseded => "dev.fleetdiff.incident.superseded.v1",
            Self::IncidentCleared => "dev.fleetdiff.incident.cleared.v1",
            Self::Scaling => "dev.fleetdiff.scaling.v1",
            Self::Heap => "dev.fleetdiff.heap.v1",
            Self::Verdict => "dev.fleetdiff.verdict.v1",
        }
    }
}

impl From<IncidentState> for AlertType {
    fn from(state: IncidentState) -> Self {
        match state {
            IncidentState::Raised => Self::IncidentRaised,
            IncidentState::Updated => Self::IncidentUpdated,
            IncidentState::Superseded => Self::IncidentSuperseded,
            IncidentState::Cleared => Self::IncidentCleared,
        }
    }
}

/// One event, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// The record key on a topic: a JSON array of service, head, base and cause, which is null for a verdict; for scaling also of
    /// `"scaling"` and the type of profile, for memory, which has no cause, of `"heap"`. The latest alert of a key replaces those before it.
    pub key: String,
    /// 16 hexadecimal digits: the stable hash of key, sequence and state.
    pub id: String,
    /// What happened.
    pub alert_type: AlertType,
    /// The event's source: `/fleetdiff/` and the service.
    pub source: String,
    /// The subject in words: builds and cause.
    pub subject: String,
    /// Event time: the end of the hop at whose close it happened.
    pub at: Nanos,
    /// The hop at whose close it happened; increases within a key.
    pub sequence: Hop,
    /// The row, and what the reader needs besides, as a JSON object.
    pub data: String,
}

impl Alert {
    /// The alert of one change of an incident.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: the row, or one of its flags, holds NaN.
    pub fn of_incident(row: &IncidentRow, guidance: &Guidance) -> Result<Self, TableError> {
        let IncidentRow { service, base_build, head_build, cause, .. } = row;
        let key = incident_key(service, head_build, base_build, Some(cause));
        let flags: Vec<String> = row.flags.iter().map(json_object).collect::<Result<_, _>>()?;
        let mut members = guidance.members(row);
        members.push(("evidence", Value::from(row.flags.iter().map(evidence_of).collect::<Vec<_>>()).to_string()));
        members.push(("flags", format!("[{}]", flags.join(","))));
        Ok(Self {
            id: id_of(&key, row.sequence, row.state.name()),
            key,
            alert_type: row.state.into(),
            source: source_of(service),
            subject: format!("{head_build} against {base_build}: {cause}"),
            at: row.changed_at,
            sequence: row.sequence,
            data: with_members(json_object(row)?, &members),
        })
    }

    /// The alert of a comparison of which something else is said than before.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: never, since the row holds no number.
    pub fn of_verdict(row: &VerdictRow, guidance: &Guidance) -> Result<Self, TableError> {
        let VerdictRow { service, base_build, head_build, .. } = row;
        let key = incident_key(service, head_build, base_build, None);
        Ok(Self {
            id: id_of(&key, row.sequence, row.verdict.name()),
            key,
            alert_type: AlertType::Verdict,
            source: source_of(service),
            subject: format!("{head_build} against {base_build}"),
            at: row.changed_at,
            sequence: row.sequence,
            data: with_members(json_object(row)?, &guidance.responsible(service, None)),
        })
    }

    /// The alert of a function of which a head scales worse than its base.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: the row holds NaN.
    pub fn of_scaling(row: &ScalingFindingRow, guidance: &Guidance) -> Result<Self, TableError> {
        let ScalingFindingRow { service, base_build, head_build, cause, profile_type, .. } = row;
        let kind = profile_type.name();
        let key = json!([service.as_str(), head_build.as_str(), base_build.as_str(), &**cause, "scaling", kind]);
        let key = key.to_string();
        Ok(Self {
            id: id_of(&key, row.sequence, row.state.name()),
            key,
            alert_type: AlertType::Scaling,
            source: source_of(service),
            subject: format!("{head_build} against {base_build}: {cause} under load"),
            at: row.changed_at,
            sequence: row.sequence,
            data: with_members(json_object(row)?, &guidance.responsible(service, Some(cause))),
        })
    }

    /// The alert of a head that leaks without allocating more.
    ///
    /// # Errors
    /// [`TableError::NotANumber`]: the row holds NaN.
    pub fn of_heap(row: &HeapFindingRow, guidance: &Guidance) -> Result<Self, TableError> {
        let HeapFindingRow { service, base_build, head_build, .. } = row;
        let key = json!([service.as_str(), head_build.as_str(), base_build.as_str(), null, "heap"]).to_string();
        Ok(Self {
            id: id_of(&key, row.sequence, row.state.name()),
            key,
            alert_type: AlertType::Heap,
            source: source_of(service),
            subject: format!("{head_build} against {base_build}: memory"),
            at: row.changed_at,
            sequence: row.sequence,
            data: with_members(json_object(row)?, &guidance.responsible(service, None)),
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

/// The object with more members; each value is JSON.
fn with_members(object: String, members: &[(&'static str, String)]) -> String {
    let more: String = members.iter().map(|(name, value)| format!(",{}:{value}", json!(name))).collect();
    let open = object.strip_suffix('}').unwrap_or(&object);
    format!("{open}{more}}}")
}

/// Where the row of a flag is: the folder of its files, and the values that find it there.
fn evidence_of(flag: &FlagRow) -> Value {
    let at = flag.row.window_end_at;
    json!({
        "table": FlagRow::TABLE,
        "folder": format!("{}/date={}/hour={}", FlagRow::TABLE, date(at), hour(at)),
        "flag_id": flag.flag_id,
        "sequence": flag.sequence.0,
    })
}

/// The key of an incident, or of a verdict, which has no cause.
fn incident_key(service: &Service, head: &Build, base: &Build, cause: Option<&str>) -> String {
    json!([service.as_str(), head.as_str(), base.as_str(), cause]).to_string()
}

/// The identity of an incident raised at the close of hop `raised`: 16 hexadecimal digits, the stable hash of its key and
/// that hop.
pub fn incident_id(service: &Service, head: &Build, base: &Build, cause: &str, raised: Hop) -> String {
    let key = incident_key(service, head, base, Some(cause));
    format!("{:016x}", stable_hash(format!("{key}\n{}", raised.0).as_bytes()))
}

/// The identity of a flag raised at the close of hop `raised`: 16 hexadecimal digits, the stable hash of its key and that
/// hop. The key is a JSON array of service, profile type, measure, base, head, region, cohort, function and count kind.
pub fn flag_id(row: &CellRow, raised: Hop) -> String {
    let comparison = &row.comparison;
    let key = json!([
        comparison.service.as_str(),
        comparison.profile_type.name(),
        comparison.measure.name(),
        comparison.base_build.as_str(),
        comparison.head_build.as_str(),
        row.cell.region.as_str(),
        row.cell.cohort.as_str(),
        &row.function,
        row.count_kind.name(),
    ]);
    format!("{:016x}", stable_hash(format!("{key}\n{}", raised.0).as_bytes()))
}

fn id_of(key: &str, sequence: Hop, state: &str) -> String {
    format!("{:016x}", stable_hash(format!("{key}\n{}\n{state}", sequence.0).as_bytes()))
}

/// A URI reference: characters that RFC 3986 does not allow in a path segment are percent-encoded.
fn source_of(service: &Service) -> String {
    format!("/fleetdiff/{}", percent_encoded(service.as_str()))
}

/// A text as one segment of a URI's path.
fn percent_encoded(text: &str) -> String {
    let stands = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if stands(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}
