//! Load that rises and falls: what scales worse is found and announced, and nothing else is.

use std::collections::BTreeSet;

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, ScalingRow};
use fleetdiff_schemas::verdict::{ScalingReason, ScalingVerdict};
use fleetdiff_simulation::fleet::Fleet;

use super::outputs::DOCUMENTED;
use super::program::{Done, done};

/// Cells in which the head scales worse.
const HIT: [(&str, &str); 2] = [("ap-south-1", "Android-TV"), ("ap-southeast-1", "Android-TV")];

/// What was announced about load.
fn events(done: &Done) -> Vec<serde_json::Value> {
    let alerts = std::fs::read_to_string(done.folder.path().join("alerts.jsonl")).unwrap();
    let events = alerts.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events.filter(|event| event["type"] == "dev.fleetdiff.scaling.v1").collect()
}

#[test]
fn load_finds_what_scales_worse_and_nothing_else() {
    let done = done(&["demo", "--load"]);
    let rows = &done.tables.scaling;
    let last = rows.iter().map(|row| row.window_end_at).max().unwrap();
    let own: Vec<&ScalingRow> =
        rows.iter().filter(|row| row.window_end_at == last && row.count_kind == CountKind::SelfCount).collect();
    let with = |verdict| -> BTreeSet<(&str, &str, &str, &str)> {
        let found = own.iter().filter(|row| row.verdict == verdict && &*row.function != ALL_FUNCTIONS);
        found
            .map(|row| (row.build.as_str(), row.cell.region.as_str(), row.cell.cohort.as_str(), &*row.function))
            .collect()
    };
    let expected: BTreeSet<_> = HIT.map(|(region, cohort)| ("v42", region, cohort, Fleet::DEMO_FUNCTION)).into();
    assert_eq!(with(ScalingVerdict::ScalesWorse), expected);
    assert_eq!(with(ScalingVerdict::MoreExpensive), expected);
    // The three canary pods of one cell are too few to tell.
    let cheaper = with(ScalingVerdict::Cheaper);
    assert!(
        cheaper.len() >= 17 && cheaper.iter().all(|(_, _, _, function)| *function == Fleet::FIXED_COST),
        "{cheaper:?}"
    );
    let tested = own.iter().filter(|row| row.ln_p.is_some()).count();
    // The plain test of shares, at the same level, also finds functions whose cost follows requests.
    let level = (0.05 / 5_544.0_f64).ln();
    let known = [Fleet::DEMO_FUNCTION, Fleet::FIXED_COST];
    let moved = own.iter().filter(|row| row.base_build.is_none() && row.ln_p_iid.is_some_and(|ln_p| ln_p < level));
    let innocent = moved.filter(|row| !known.contains(&&*row.function)).count();
    println!("{tested} rows tested at the last report; the plain test of shares finds {innocent} innocent ones");
    assert!(tested > 8_000 && innocent > 2, "{tested} tested, {innocent} innocent rows by shares");
    let slope =
        |row: &&&ScalingRow| &*row.function == Fleet::DEMO_FUNCTION && row.verdict == ScalingVerdict::ScalesWorse;
    for row in own.iter().filter(slope) {
        let difference = row.elasticity_difference.unwrap();
        assert!(difference.low < Fleet::DEMO_ELASTICITY && Fleet::DEMO_ELASTICITY < difference.high, "{difference:?}");
    }
    let flagged: BTreeSet<&str> = done.tables.flags.iter().map(|flag| &*flag.row.function).collect();
    assert!(flagged.iter().all(|function| [Fleet::DEMO_FUNCTION, ALL_FUNCTIONS].contains(function)), "{flagged:?}");

    let events = events(&done);
    let causes: BTreeSet<&str> = events.iter().map(|event| event["data"]["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, BTreeSet::from([Fleet::DEMO_FUNCTION]));
    let last = events.last().unwrap();
    let places = &last["data"]["scales_worse_in"];
    assert_eq!(*places, serde_json::json!(["Android-TV in ap-south-1 and ap-southeast-1"]));
    assert!(
        done.run.stdout.contains("v42 against v41: 1 function costs more at higher load than in v41"),
        "{}",
        done.run.stdout
    );
    assert!(done.run.stdout.contains("v41: no function costs more at higher load ("), "{}", done.run.stdout);
    // The figure is that of one of two cells, which is named.
    let line =
        done.run.stdout.lines().find(|line| line.contains("; found in Android-TV in ap-south-1 and ap-southeast-1"));
    let line = line.unwrap_or_else(|| panic!("{}", done.run.stdout));
    assert!(line.starts_with("  serialize_video_chunk: in Android-TV in ap-south"), "{line}");
}

#[test]
fn load_that_does_not_move_says_what_is_missing() {
    let done = &*DOCUMENTED;
    let rows = &done.tables.scaling;
    assert!(
        rows.len() > 10_000
            && rows
                .iter()
                .all(|row| row.verdict == ScalingVerdict::Withheld || row.reason == Some(ScalingReason::CountNeeded))
    );
    assert!(rows.iter().any(|row| row.reason == Some(ScalingReason::LoadSpanTooSmall)
        && row.elasticity.is_some()
        && row.high.per_request.is_some()));
    assert!(done.run.stdout.contains("video-delivery cpu (self samples) under load: nothing can be said; needed: load of v41 that differs by a factor of 1.5 within the window; it differed by 1.0"), "{}", done.run.stdout);
}
