//! A full roll-out, replayed: what is reported once no base build runs any more, and that no alert is sent.

use fleetdiff_connectors::files::{FileFormat, write_fleet};
use fleetdiff_schemas::profile::{CountKind, Profile};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, FlagState, Scope};
use fleetdiff_simulation::fleet::{Cells, Fleet};
use tempfile::TempDir;

use super::program::{Done, done, is_cell};

/// A full hour.
const STARTS_AT: Nanos = Nanos::from_seconds(1_772_528_400);
const SETTINGS: [&str; 8] =
    ["--window", "5m", "--evaluate-every", "1m", "--report-every", "5m", "--history-every", "20s"];

/// One function costs twice as much in one of two cells; all pods are replaced within seven minutes.
fn replayed(more: &[&str]) -> Done {
    let one = Fleet::seeded(7)
        .regions(["east"])
        .cohorts(["tv", "web"])
        .pods_per_cell(0, 8)
        .samples_per_second(60.0)
        .starts_at(STARTS_AT);
    let rolled = one.rollout(Nanos::from_seconds(240), Nanos::from_seconds(420)).lasts(Nanos::from_seconds(1500));
    let fleet = rolled.regress(Fleet::DEMO_FUNCTION, Cells::cohort("tv"), 2.0).stacks().build();
    let folder = TempDir::new().unwrap();
    let profiles: Vec<Profile> = fleet.partition(0, 1).flat_map(|record| record.parts).map(Result::unwrap).collect();
    write_fleet(folder.path(), FileFormat::Folded, &profiles).unwrap();
    done(&[&["replay", folder.path().to_str().unwrap()], &SETTINGS[..], more].concat())
}

#[test]
fn a_full_roll_out_is_compared_with_history_and_wakes_nobody() {
    let done = replayed(&[]);
    let verdicts = done.verdicts(CountKind::SelfCount);
    assert!(verdicts.len() == 3 && verdicts.iter().all(|row| row.base_kind == BaseKind::History), "{verdicts:?}");
    let over_all = verdicts.iter().find(|row| row.cell.is_over_all()).unwrap();
    assert_eq!(over_all.verdict, ComparisonVerdict::Regressed);
    assert_eq!(over_all.warnings, ["base is the history of v41: hour 9 UTC on 1 day"]);
    let rows = done.rows(Scope::Window, CountKind::SelfCount);
    let significant: Vec<_> = rows.iter().filter(|row| is_cell(row) && row.verdict.is_significant()).collect();
    assert!(
        rows.len() > 100
            && rows.iter().all(|row| row.detail.as_deref() == Some("base is the history of v41: hour 9 UTC on 1 day"))
    );
    assert_eq!(
        significant.iter().map(|row| (row.function.as_str(), row.cell.cohort.as_str())).collect::<Vec<_>>(),
        [(Fleet::DEMO_FUNCTION, "tv")]
    );
    assert!(done.rows(Scope::Epoch, CountKind::SelfCount).is_empty());

    let first = done
        .tables
        .comparisons
        .iter()
        .filter(|row| row.base_kind == BaseKind::History)
        .map(|row| row.window_end_at)
        .min()
        .unwrap();
    assert!(done.tables.flags.iter().all(|flag| flag.row.window_end_at < first));
    assert!(
        done.tables.flags.iter().any(
            |flag| flag.state == FlagState::Cleared && flag.cleared_because.as_deref() == Some("comparison_closed")
        )
    );
    let alerts = std::fs::read_to_string(done.folder.path().join("alerts.jsonl")).unwrap();
    assert!(!alerts.is_empty() && !alerts.contains("\"base_kind\":\"history\""), "{alerts}");

    let said = &done.run.stdout;
    assert!(said.contains("More expensive in all of tv: serialize_video_chunk x 1.95 ("), "{said}");
    assert!(
        said.contains(
            "No build of v41 runs any more, so the base is the history of v41: hour 9 UTC on 1 day. A comparison with history never raises an alert"
        ),
        "{said}"
    );
    assert!(!said.contains("oll back"), "{said}");
}

#[test]
fn without_a_baseline_a_closed_comparison_is_over() {
    let done = replayed(&["--history", "0s"]);
    assert!(done.tables.comparisons.iter().all(|row| row.base_kind == BaseKind::Concurrent));
    assert!(done.tables.cells.iter().all(|row| row.detail.as_ref().is_none_or(|detail| !detail.contains("past"))));
    assert!(!done.run.stdout.contains("past"), "{}", done.run.stdout);
}
