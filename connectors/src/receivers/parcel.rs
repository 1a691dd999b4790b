//! One request, before it is sent.

use std::collections::BTreeMap;

/// A request to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    /// The body, JSON.
    pub(super) body: String,
    /// What the body is.
    pub(super) content_type: &'static str,
    /// The id of its event, by which a receiver recognizes a repetition.
    pub(super) idempotency_key: Option<String>,
    /// The events that it delivers.
    pub(super) events: Vec<String>,
    /// For Alertmanager: the labels of its alerts and their versions.
    pub(super) alerts: Vec<(BTreeMap<String, String>, u64)>,
}
