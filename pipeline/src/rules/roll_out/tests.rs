use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{HeapFindingRow, IncidentRow, ScalingFindingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::verdict::{FlagState, IncidentState, Severity, Support};

use super::*;

fn roll_out<R: PerRing>(rings: &[&str]) -> RollOut<R> {
    let mut all = RollOut::new(Config::default().clock());
    all.run_beside(&rings.iter().map(|&ring| ring.into()).collect::<Vec<_>>());
    all
}

/// A change of the incident of `f` in one comparison, which costs more or less.
fn change(base: &str, head: &str, state: IncidentState, costs_more: bool, severity: Severity) -> IncidentRow {
    let somewhere = vec!["Everywhere".to_owned()];
    let (regressed_in, improved_in) = if costs_more { (somewhere, Vec::new()) } else { (Vec::new(), somewhere) };
    let ended = matches!(state, IncidentState::Cleared | IncidentState::Superseded);
    IncidentRow {
        service: "api".into(),
        base_build: base.into(),
        head_build: head.into(),
        cause: "f".to_owned(),
        incident_id: format!("{base}>{head}"),
        state,
        severity,
        support: Support::Firm,
        regressed_in: if ended { Vec::new() } else { regressed_in },
        improved_in: if ended { Vec::new() } else { improved_in },
        summary: "f costs more.".to_owned(),
        ..IncidentRow::blank()
    }
}

fn raised(base: &str, head: &str) -> IncidentRow {
    change(base, head, IncidentState::Raised, true, Severity::Ticket)
}

fn cleared(base: &str, head: &str) -> IncidentRow {
    change(base, head, IncidentState::Cleared, true, Severity::Ticket)
}

/// What is announced, as `base>head state`.
fn announced(rows: &[IncidentRow]) -> Vec<String> {
    rows.iter().map(|row| format!("{} {}", row.incident_id, row.state.name())).collect()
}

#[test]
fn a_single_comparison_is_announced_as_it_is() {
    let mut all = roll_out(&["v1", "v2"]);
    let first = all.take(Hop(1), vec![raised("v1", "v2")]);
    assert_eq!(announced(&first), ["v1>v2 raised"]);
    assert_eq!((first[0].summary.as_str(), &first[0].found_in[..]), ("f costs more.", &["v2".to_owned()][..]));
    assert_eq!(first[0].introduced_by, Some("v2".into()));
    let more = change("v1", "v2", IncidentState::Updated, true, Severity::Page);
    assert_eq!(announced(&all.take(Hop(2), vec![more])), ["v1>v2 updated"]);
    assert_eq!(announced(&all.take(Hop(3), vec![cleared("v1", "v2")])), ["v1>v2 cleared"]);
    assert!(all.standing.is_empty() && all.announced.is_empty());
}

#[test]
fn one_incident_a_cause_names_the_ring_that_introduced_it() {
    let mut all = roll_out(&["v1", "v2", "v3", "v4"]);
    assert_eq!(
        announced(&all.take(Hop(1), vec![raised("v1", "v3")])),
        ["v1>v3 raised"],
        "v2 has too few pods to show it"
    );
    let later = all.take(Hop(2), vec![raised("v1", "v4"), raised("v1", "v2")]);
    assert_eq!(announced(&later), ["v1>v3 superseded", "v1>v2 raised"]);
    assert_eq!(later[0].superseded_by_id.as_deref(), Some("v1>v2"));
    assert_eq!(
        (later[1].introduced_by.clone(), later[1].found_in.join(",")),
        (Some("v2".into()), "v2,v3,v4".to_owned())
    );
    assert_eq!(later[1].summary, "f costs more. v2 introduced it, v3 and v4 have it too.");
    let page = change("v1", "v4", IncidentState::Updated, true, Severity::Page);
    let paged = all.take(Hop(3), vec![page]);
    assert_eq!((announced(&paged), paged[0].severity), (vec!["v1>v2 updated".to_owned()], Severity::Page));
}

#[test]
fn an_incident_goes_on_in_another_ring_when_its_own_is_rolled_back() {
    let mut all = roll_out(&["v1", "v2", "v3"]);
    all.take(Hop(1), vec![raised("v1", "v2"), raised("v1", "v3")]);
    all.run_beside(&["v1".into(), "v3".into()]);
    let over = all.take(Hop(2), vec![cleared("v1", "v2")]);
    assert_eq!(announced(&over), ["v1>v2 superseded", "v1>v3 raised"]);
    assert_eq!((over[0].superseded_by_id.as_deref(), over[0].cleared_because.as_deref()), (Some("v1>v3"), None));
    assert_eq!(announced(&all.take(Hop(3), vec![cleared("v1", "v3")])), ["v1>v3 cleared"]);
}

#[test]
fn a_ring_that_no_one_heard_of_ends_silently() {
    let mut all = roll_out(&["v1", "v2", "v3"]);
    all.take(Hop(1), vec![raised("v1", "v2"), raised("v1", "v3")]);
    let gone = all.take(Hop(2), vec![cleared("v1", "v3")]);
    assert_eq!((announced(&gone), gone[0].found_in.join(",")), (vec!["v1>v2 updated".to_owned()], "v2".to_owned()));
}

#[test]
fn a_change_back_is_a_cause_of_its_own() {
    let mut all = roll_out(&["v1", "v2", "v3"]);
    all.take(Hop(1), vec![raised("v1", "v2")]);
    let fixed = all.take(Hop(2), vec![change("v2", "v3", IncidentState::Raised, false, Severity::Info)]);
    assert_eq!(announced(&fixed), ["v2>v3 raised"]);
    assert_eq!(fixed[0].summary, "f costs more. v3 introduced it.");
}

#[test]
fn what_only_the_first_ring_shows_may_be_older() {
    let mut all = roll_out(&["v1", "v2", "v3"]);
    let found = all.take(Hop(1), vec![raised("v1", "v3")]);
    assert_eq!(found[0].introduced_by, None);
    assert_eq!(
        found[0].summary,
        "f costs more. v3 or a build before it introduced it: v3 against v2 has no flag for it."
    );
}

/// A finding of encode, or of what `cause` names, in one comparison.
fn worse(base: &str, head: &str, cause: &str, state: FlagState) -> ScalingFindingRow {
    ScalingFindingRow {
        base_build: base.into(),
        head_build: head.into(),
        cause: cause.into(),
        state,
        summary: format!("{cause} scales worse."),
        ..ScalingFindingRow::blank()
    }
}

/// What is announced of load, as `base>head cause state`.
fn of_load(rows: &[ScalingFindingRow]) -> Vec<String> {
    let name =
        |row: &ScalingFindingRow| format!("{}>{} {} {}", row.base_build, row.head_build, row.cause, row.state.name());
    rows.iter().map(name).collect()
}

#[test]
fn a_function_that_scales_worse_is_announced_once_over_all_rings() {
    let mut all = roll_out(&["v1", "v2", "v3"]);
    let first = all.take(
        Hop(1),
        vec![worse("v1", "v2", "encode", FlagState::Raised), worse("v1", "v3", "encode", FlagState::Raised)],
    );
    assert_eq!(of_load(&first), ["v1>v2 encode raised"]);
    assert_eq!(
        (&first[0].rings.introduced_by, &first[0].rings.found_in.join(",")),
        (&Some("v2".into()), &"v2,v3".to_owned())
    );
    assert_eq!(first[0].summary, "encode scales worse. v2 introduced it, v3 has it too.");
    let other = all.take(Hop(2), vec![worse("v2", "v3", "probe", FlagState::Raised)]);
    assert_eq!(of_load(&other), ["v2>v3 probe raised"], "another function is a cause of its own");
    let in_off_cpu =
        ScalingFindingRow { profile_type: ProfileType::OffCpu, ..worse("v1", "v3", "encode", FlagState::Raised) };
    assert_eq!(of_load(&all.take(Hop(3), vec![in_off_cpu])), ["v1>v3 encode raised"], "so is another type of profile");
    let over = all.take(Hop(4), vec![worse("v1", "v2", "encode", FlagState::Cleared)]);
    assert_eq!(of_load(&over), ["v1>v2 encode cleared", "v1>v3 encode raised"]);
    assert_eq!(over[0].cleared_because.as_deref(), Some("found_in_another_ring"));
    assert_eq!(over[0].summary, "encode: v2 against v1 goes on as v3 against v1, which found the same.");
    assert_eq!(
        over[1].summary,
        "encode scales worse. v3 or a build before it introduced it: v3 against v2 has no finding for it."
    );
}

#[test]
fn a_leak_is_announced_once_over_all_rings() {
    let leak = |base: &str, head: &str, state| HeapFindingRow {
        base_build: base.into(),
        head_build: head.into(),
        state,
        ..HeapFindingRow::blank()
    };
    let heads = |rows: &[HeapFindingRow]| -> Vec<String> {
        rows.iter().map(|row| format!("{} {}", row.head_build, row.state.name())).collect()
    };
    let mut all = roll_out(&["v1", "v2", "v3"]);
    assert_eq!(heads(&all.take(Hop(1), vec![leak("v1", "v3", FlagState::Raised)])), ["v3 raised"]);
    let earlier = all.take(Hop(2), vec![leak("v1", "v2", FlagState::Raised)]);
    assert_eq!(heads(&earlier), ["v3 cleared", "v2 raised"]);
    assert_eq!(earlier[0].summary, "Hidden leak: v3 against v1 goes on as v2 against v1, which found the same.");
    assert_eq!(
        (&earlier[1].rings.introduced_by, &earlier[1].rings.found_in.join(",")),
        (&Some("v2".into()), &"v2,v3".to_owned())
    );
    assert!(all.take(Hop(3), vec![leak("v1", "v2", FlagState::Updated)]).is_empty(), "no news");
    assert_eq!(heads(&all.take(Hop(4), vec![leak("v1", "v3", FlagState::Cleared)])), ["v2 updated"], "found in fewer");
    assert_eq!(heads(&all.take(Hop(5), vec![leak("v1", "v2", FlagState::Cleared)])), ["v2 cleared"]);
    assert!(all.standing.is_empty() && all.announced.is_empty());
}
