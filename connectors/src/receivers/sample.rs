//! Test events: for templates before the first event, and for whoever wants to see whether a receiver answers.

use fleetdiff_schemas::alert::{Alert, Guidance};
use fleetdiff_schemas::rows::{IncidentRow, VerdictRow};
use fleetdiff_schemas::tables::{TableError, TableRow};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{ComparisonVerdict, IncidentState, Severity, Support};

use super::event::Event;

/// A service that nobody has.
const SERVICE: &str = "fleetdiff-test";

/// A test incident in a state.
///
/// # Errors
/// [`TableError::NotANumber`]: never, since the row holds no number.
pub(super) fn incident(state: IncidentState, at: Nanos) -> Result<Alert, TableError> {
    let row = IncidentRow {
        service: SERVICE.into(),
        base_build: "v1".into(),
        head_build: "v2".into(),
        cause: "test message".to_owned(),
        incident_id: "0000000000000000".to_owned(),
        state,
        severity: Severity::Info,
        support: Support::Firm,
        raised_at: at,
        changed_at: at,
        // NB: each test is an event of its own.
        sequence: Hop(u64::try_from(at.0).unwrap_or_default()),
        cleared_because: (state == IncidentState::Cleared).then(|| "test".to_owned()),
        summary: "This is a test message from fleetdiff: no service has changed.".to_owned(),
        action: "Nothing: fleetdiff can reach this receiver.".to_owned(),
        confidence: "None: this is a test.".to_owned(),
        impact: "None: this is a test.".to_owned(),
        ..IncidentRow::blank()
    };
    Alert::of_incident(&row, &Guidance::default())
}

/// One test event of each kind that has data of its own.
///
/// # Errors
/// Never: the events are constant.
pub(super) fn events() -> Result<Vec<Event>, Box<dyn std::error::Error + Send + Sync>> {
    let verdict = VerdictRow {
        service: SERVICE.into(),
        base_build: "v1".into(),
        head_build: "v2".into(),
        verdict: ComparisonVerdict::Clean,
        summary: "This is a test.".to_owned(),
        action: "Nothing.".to_owned(),
        ..VerdictRow::blank()
    };
    let states = [IncidentState::Raised, IncidentState::Updated, IncidentState::Superseded, IncidentState::Cleared];
    let mut alerts = vec![Alert::of_verdict(&verdict, &Guidance::default())?];
    for state in states {
        alerts.push(incident(state, Nanos::default())?);
    }
    alerts.iter().map(|alert| Ok(Event::of(alert)?)).collect()
}
