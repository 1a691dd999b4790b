//! Incidents equal those that follow, hop by hop, from the flags that stand, and no flag is without one.

#[path = "incidents/sentences.rs"]
mod sentences;

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{CountKind, Decoded};
use fleetdiff_schemas::rows::{FlagRow, IncidentRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, IncidentState};
use fleetdiff_simulation::fleet::{Cells, Fleet};

const START: i64 = 1_799_996_000;
/// For how many looks a flag of total counts waits.
const LOOKS: usize = 3;

/// A fleet with call stacks whose head is taken back, so that comparisons end: no profile of it after second 650.
fn records(seed: u64, factor: f64) -> Vec<Vec<Decoded>> {
    let fleet = Fleet::seeded(seed)
        .regions(["east", "north"])
        .cohorts(["tv", "web"])
        .pods_per_cell(8, 10)
        .samples_per_second(1000.0)
        .pod_cv(0.02)
        .stacks()
        .starts_at(Nanos::from_seconds(START))
        .lasts(Nanos::from_seconds(1100))
        .deploy_after(Nanos::from_seconds(100))
        .regress("serialize_video_chunk", Cells::cohort("tv"), factor)
        .partition_count(3)
        .build();
    let mut partitions = fleet.partitions(3);
    let taken_back = Nanos::from_seconds(START + 650);
    for record in partitions.iter_mut().flatten() {
        record.parts.retain(|part| {
            part.as_ref()
                .is_ok_and(|profile| profile.identity.build != *fleet.head() || profile.window.end < taken_back)
        });
    }
    partitions
}

fn config() -> Config {
    Config {
        window: Nanos::from_seconds(300),
        report_every: Nanos::from_seconds(300),
        epoch: Nanos::from_seconds(350),
        warm_up: Nanos(0),
        ..Config::default()
    }
}

/// Hop, cause, what happened, the cause that goes on, and the flags that the event holds.
type Event = (u64, String, IncidentState, Option<String>, BTreeSet<String>);

/// What happened to each cause at each hop, from the flags that stand at its close and those that changed at it.
fn plainly(tables: &Tables) -> Vec<Event> {
    let hop_of = |end: Nanos| u64::try_from(end.0 / 10_000_000_000 - 1).unwrap();
    let looks: BTreeSet<u64> = tables.comparisons.iter().map(|row| hop_of(row.window_end_at)).collect();
    let hops: BTreeSet<u64> = tables.flags.iter().map(|flag| flag.sequence.0).chain(looks.iter().copied()).collect();
    let causes: BTreeSet<&str> = tables.flags.iter().map(|flag| flag.row.function.as_str()).collect();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut events = Vec::new();
    for hop in hops {
        let changed: Vec<&FlagRow> = tables.flags.iter().filter(|flag| flag.sequence.0 == hop).collect();
        let standing = |cause: &str| standing(tables, cause, hop);
        let waited = |flag: &FlagRow| {
            let raised = hop_of(flag.raised_at);
            looks.iter().filter(|look| raised < **look && **look <= hop).count()
        };
        let due = |flag: &&FlagRow| flag.row.count_kind == CountKind::SelfCount || waited(flag) >= LOOKS;
        let ends = |cause: &str| open.contains(cause) && standing(cause).is_empty();
        let explain_ended: BTreeSet<String> =
            changed.iter().filter(|flag| ends(&flag.row.function)).filter_map(|flag| explained_by(flag)).collect();
        let begins: BTreeSet<&str> = causes
            .iter()
            .copied()
            .filter(|cause| !open.contains(cause))
            .filter(|cause| {
                let flags = standing(cause);
                flags.iter().any(due) || !flags.is_empty() && explain_ended.contains(*cause)
            })
            .collect();
        for cause in &causes {
            let own: Vec<&&FlagRow> = changed.iter().filter(|flag| flag.row.function == *cause).collect();
            let gains = changed.iter().any(|flag| explained_by(flag).as_deref() == Some(*cause));
            let flags: BTreeSet<String> = standing(cause).iter().map(|flag| flag.flag_id.clone()).collect();
            let cleared: BTreeSet<String> =
                own.iter().filter(|flag| flag.state == FlagState::Cleared).map(|flag| flag.flag_id.clone()).collect();
            let event = if begins.contains(cause) {
                Some((IncidentState::Raised, None, flags))
            } else if ends(cause) {
                let mut last = own.clone();
                last.sort_by_key(|flag| (flag.row.count_kind, flag.row.comparison.clone(), flag.row.cell.clone()));
                match last.iter().find_map(|flag| explained_by(flag)) {
                    Some(by) => Some((IncidentState::Superseded, Some(by), cleared)),
                    None => Some((IncidentState::Cleared, None, cleared)),
                }
            } else if open.contains(cause) && (gains || !own.is_empty()) {
                Some((IncidentState::Updated, None, flags))
            } else {
                None
            };
            events.extend(event.map(|(state, by, flags)| (hop, (*cause).to_owned(), state, by, flags)));
        }
        let ended: Vec<&str> = causes.iter().copied().filter(|cause| ends(cause)).collect();
        ended.iter().for_each(|cause| {
            open.remove(cause);
        });
        open.extend(begins);
    }
    events
}

/// The function that explains a flag that was cleared for that reason, if it is another one.
fn explained_by(flag: &FlagRow) -> Option<String> {
    let is_explained = flag.cleared_because.as_deref() == Some("explained");
    flag.row.cause.clone().filter(|by| is_explained && *by != flag.row.function)
}

/// The flags of a cause that stand at the close of a hop.
fn standing<'a>(tables: &'a Tables, cause: &str, hop: u64) -> Vec<&'a FlagRow> {
    let mut last: BTreeMap<&str, &FlagRow> = BTreeMap::new();
    for flag in tables.flags.iter().filter(|flag| flag.row.function == cause && flag.sequence.0 <= hop) {
        last.insert(&flag.flag_id, flag);
    }
    last.into_values().filter(|flag| flag.state != FlagState::Cleared).collect()
}

fn event(row: &IncidentRow) -> Event {
    let flags = row.flags.iter().map(|flag| flag.flag_id.clone()).collect();
    (row.sequence.0, row.cause.clone(), row.state, row.superseded_by.clone(), flags)
}

#[test]
fn oracle_incidents_follow_from_the_flags_of_each_hop() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (seed, factor) in [(1, 1.6), (2, 1.2), (3, 1.15)] {
        let tables = run_in_memory(&config(), records(seed, factor), 2).unwrap();
        // One comparison: the order of builds is that of the deploy.
        let builds: BTreeSet<_> = tables
            .flags
            .iter()
            .map(|flag| (&flag.row.comparison.base_build, &flag.row.comparison.head_build))
            .collect();
        assert_eq!(builds.len(), 1, "seed {seed}: {builds:?}");
        let got: Vec<Event> = tables.incidents.iter().map(event).collect();
        assert_eq!(got, plainly(&tables), "seed {seed}");
        for row in &tables.incidents {
            *seen.entry(row.state.name()).or_default() += 1;
            assert_eq!(row.superseded_by.is_some(), row.superseded_by_id.is_some(), "{row:?}");
            if let Some(id) = &row.superseded_by_id {
                assert!(
                    tables
                        .incidents
                        .iter()
                        .any(|other| other.incident_id == *id && other.state == IncidentState::Raised)
                );
            }
        }
    }
    assert!(seen["raised"] >= 3 && seen["updated"] > 0 && seen["cleared"] >= 3, "{seen:?}");
    println!("{seen:?}");
}

#[test]
fn order_incidents_do_not_depend_on_workers() {
    let partitions = records(7, 1.3);
    let one = run_in_memory(&config(), partitions.clone(), 1).unwrap();
    assert!(!one.incidents.is_empty() && !one.verdicts.is_empty());
    for workers in [2, 4] {
        let got = run_in_memory(&config(), partitions.clone(), workers).unwrap();
        assert_eq!((&got.incidents, &got.verdicts), (&one.incidents, &one.verdicts), "{workers} workers");
    }
}
