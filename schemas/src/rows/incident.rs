//! What is announced: one incident per cause, and one verdict per comparison.

use serde::{Deserialize, Serialize};

use super::{FlagRow, Interval};
use crate::identity::{Build, Service};
use crate::time::{Hop, Nanos};
use crate::verdict::{ComparisonVerdict, IncidentState, Severity, Support};

/// One change of one incident: all that one cause (a function, or all functions together) does in one comparison, over
/// its cells, its types of profile, and both kinds of count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncidentRow {
    /// What is deployed.
    pub service: Service,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
    /// The function that is the cause, or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub cause: String,
    /// Stable identity of the incident: a hash of its key and the hop at which it was raised, in hexadecimal.
    pub incident_id: String,
    /// What happened.
    pub state: IncidentState,
    /// That of the most severe flags that stand.
    pub severity: Severity,
    /// The best support of these flags.
    pub support: Support,
    /// When the incident was raised.
    pub raised_at: Nanos,
    /// When this happened: the end of the hop `sequence`.
    pub changed_at: Nanos,
    /// The hop at whose close it happened.
    pub sequence: Hop,
    /// Where the cause costs more, in the fewest words.
    pub regressed_in: Vec<String>,
    /// Where it is cheaper.
    pub improved_in: Vec<String>,
    /// The change of the row that stands for the incident: after normalization, or per request.
    pub effect: Option<Interval>,
    /// The share of the cause among all samples of that row's cell, in the head.
    pub share: Option<f64>,
    /// The change of that share.
    pub share_delta: Option<Interval>,
    /// ln of the smallest always-valid p-value of the flags that stand.
    pub always_valid_ln_p: Option<f64>,
    /// Rows that changed only because the cause did.
    pub explains: Vec<String>,
    /// The build that introduced the cause, if the ring before it does not have it.
    pub introduced_by: Option<Build>,
    /// The builds in which the cause is flagged, in the order of rings.
    pub found_in: Vec<String>,
    /// For `superseded`: the cause of the incident that goes on.
    pub superseded_by: Option<String>,
    /// For `superseded`: the identity of that incident.
    pub superseded_by_id: Option<String>,
    /// If all of these flags are provisional: when the first young pods are no longer young.
    pub provisional_until_at: Option<Nanos>,
    /// For `cleared`: the reason for which the last flags were cleared.
    pub cleared_because: Option<String>,
    /// What happened, where and by how much, in a sentence.
    pub summary: String,
    /// What to do.
    pub action: String,
    /// How sure it is, and what that promises.
    pub confidence: String,
    /// What it costs.
    pub impact: String,
    /// The flags that stand, or, at the end of the incident, those that were cleared last. Announced with the incident;
    /// not a column, since the table `flags` has them.
    pub flags: Vec<FlagRow>,
}

/// What is said about a whole comparison, whenever it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictRow {
    /// What is deployed.
    pub service: Service,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
    /// The verdict.
    pub verdict: ComparisonVerdict,
    /// When it changed: the end of the hop `sequence`.
    pub changed_at: Nanos,
    /// The hop at whose close it changed.
    pub sequence: Hop,
    /// Where an incident costs more, in the fewest words.
    pub regressed_in: Vec<String>,
    /// Where all functions together are cheaper per request, and nothing costs more.
    pub improved_in: Vec<String>,
    /// The causes of the incidents that stand, ascending.
    pub causes: Vec<String>,
    /// The verdict in words.
    pub summary: String,
    /// What to do.
    pub action: String,
}
