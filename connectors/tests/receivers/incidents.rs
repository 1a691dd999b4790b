//! Incidents of a service that does not exist.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetdiff_schemas::alert::{Alert, Guidance, GuidanceRule};
use fleetdiff_schemas::rows::IncidentRow;
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{IncidentState, Severity, Support};

/// The wall clock, some seconds ago.
pub fn ago(seconds: u64) -> Nanos {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(seconds);
    Nanos(i64::try_from(now.as_nanos()).unwrap())
}

/// An alert of an incident; `sequence` orders those of one incident.
pub fn alert(cause: &str, state: IncidentState, severity: Severity, sequence: u64) -> Alert {
    let superseded = state == IncidentState::Superseded;
    let row = IncidentRow {
        service: "checkout".into(),
        base_build: "v1".into(),
        head_build: "v2".into(),
        cause: cause.to_owned(),
        incident_id: format!("id of {cause}"),
        state,
        severity,
        support: Support::Firm,
        raised_at: ago(20),
        changed_at: ago(10),
        sequence: Hop(sequence),
        superseded_by: superseded.then(|| "g".to_owned()),
        superseded_by_id: superseded.then(|| "id of g".to_owned()),
        cleared_because: (state == IncidentState::Cleared).then(|| "equivalent".to_owned()),
        summary: format!("{cause} costs 10 % more, {sequence}."),
        action: "Roll back v2.".to_owned(),
        confidence: "p = 1e-9.".to_owned(),
        impact: "+1.4 % of all samples.".to_owned(),
        ..IncidentRow::blank()
    };
    Alert::of_incident(&row, &guidance()).unwrap()
}

/// What the configuration adds.
pub fn guidance() -> Guidance {
    Guidance {
        owners: vec![GuidanceRule::parse("* -> team-shop").unwrap()],
        runbooks: vec![GuidanceRule::parse("* -> https://runbooks.example/canary").unwrap()],
        link: "https://d.example/{cause}".to_owned(),
    }
}
