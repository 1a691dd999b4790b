//! An alert as a receiver sees it, and which alerts it gets to see.

use std::collections::BTreeSet;

use fleetdiff_schemas::alert::{Alert, AlertType};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Severity;
use serde::Deserialize;

use super::settings::Filter;

/// The members of an alert's data that receivers use; the text itself goes out unchanged.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) service: String,
    pub(super) head_build: String,
    pub(super) base_build: String,
    pub(super) cause: Option<String>,
    pub(super) incident_id: Option<String>,
    pub(super) severity: Option<Severity>,
    pub(super) raised_at: Option<String>,
    pub(super) summary: String,
    pub(super) action: String,
    pub(super) confidence: Option<String>,
    pub(super) impact: Option<String>,
    pub(super) provisional_until_at: Option<String>,
    pub(super) superseded_by: Option<String>,
    pub(super) superseded_by_id: Option<String>,
    pub(super) cleared_because: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) runbook: Option<String>,
    pub(super) link: Option<String>,
    #[serde(default)]
    pub(super) evidence: Vec<serde_json::Value>,
}

/// An alert with its data read.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) alert: Alert,
    pub(super) data: Data,
}

impl Event {
    /// Reads an alert.
    ///
    /// # Errors
    /// Its data are not those of an incident, a finding or a verdict.
    pub(super) fn of(alert: &Alert) -> Result<Self, serde_json::Error> {
        Ok(Self { alert: alert.clone(), data: serde_json::from_str(&alert.data)? })
    }

    /// Whether it is the last one of its incident or finding.
    pub(super) fn ends(&self) -> bool {
        match self.alert.alert_type {
            AlertType::IncidentSuperseded | AlertType::IncidentCleared => true,
            AlertType::Scaling | AlertType::Heap => self.data.cleared_because.is_some(),
            AlertType::IncidentRaised | AlertType::IncidentUpdated | AlertType::Verdict => false,
        }
    }

    /// What Alertmanager is to call it.
    pub(super) fn alert_name(&self) -> &'static str {
        match self.alert.alert_type {
            AlertType::Scaling => "FleetdiffScaling",
            AlertType::Heap => "FleetdiffHeap",
            _ => "FleetdiffIncident",
        }
    }

    /// When the incident or finding was raised; for a verdict, when it changed.
    pub(super) fn since(&self) -> Nanos {
        let raised = self.data.raised_at.as_deref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
        let raised = raised.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        raised.map_or(self.alert.at, Nanos)
    }
}

/// Which events a receiver gets. It sees every event in order.
#[derive(Debug)]
pub(super) struct Admission {
    filter: Filter,
    /// Keys of incidents and findings that were severe enough and stand.
    followed: BTreeSet<String>,
}

impl Admission {
    pub(super) fn new(filter: Filter) -> Self {
        Self { filter, followed: BTreeSet::new() }
    }

    /// From now on, it gets these. Incidents that it has got are followed to their end.
    pub(super) fn change(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// Whether the receiver gets it.
    pub(super) fn admits(&mut self, event: &Event) -> bool {
        if !self.filter.has_service(&event.data.service) {
            return false;
        }
        self.is_followed(event) && self.filter.events.contains(&event.alert.alert_type)
    }

    fn is_followed(&mut self, event: &Event) -> bool {
        let Some(severity) = event.data.severity else { return true };
        let key = event.data.incident_id.as_ref().unwrap_or(&event.alert.key);
        // NB: severities are ordered from the most severe on.
        if severity <= self.filter.minimum_severity {
            self.followed.insert(key.clone());
        }
        if event.ends() { self.followed.remove(key) } else { self.followed.contains(key) }
    }
}
