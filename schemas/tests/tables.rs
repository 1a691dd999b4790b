//! Columns against the fields that they hold.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "generated/rows.rs"]
#[expect(dead_code, reason = "other tests take whole tables")]
mod generated;

use fleetdiff_schemas::rows::*;
use fleetdiff_schemas::tables::{Kind, TableRow, Value, arrow_schema_of, json_object, sort_rows};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Verdict;
use generated::Generator;

/// The law: a row's columns written into a blank row are the row.
fn assert_columns_hold_everything<R: TableRow + std::fmt::Debug>(seed: u64, row: &R) {
    let mut copy = R::blank();
    for column in R::columns() {
        column.set(&mut copy, column.checked(row).unwrap()).unwrap();
    }
    assert_eq!(&copy, row, "seed {seed}");
}

#[test]
fn columns_hold_every_field() {
    for seed in 0..200 {
        let mut generator = Generator(seed);
        assert_columns_hold_everything(seed, &generator.cell());
        assert_columns_hold_everything(seed, &generator.evidence());
        assert_columns_hold_everything(seed, &generator.flag());
        assert_columns_hold_everything(seed, &generator.comparison_row());
        assert_columns_hold_everything(seed, &generator.incident());
        assert_columns_hold_everything(seed, &generator.verdict());
        assert_columns_hold_everything(seed, &generator.ledger());
        assert_columns_hold_everything(seed, &generator.rejected());
        assert_columns_hold_everything(seed, &generator.clock());
        assert_columns_hold_everything(seed, &generator.limit());
    }
}

fn interval(value: f64) -> Option<Interval> {
    Some(Interval { value, low: value + 0.25, high: value + 0.5 })
}

/// Each field has a different value, so that a column that reads the wrong field is found.
#[test]
fn each_column_of_a_flag_holds_its_own_field() {
    let arm = |first: i64| ArmFigures {
        count: first,
        total: first + 1,
        share: Some(0.5),
        pods: first + 2,
        buckets: first + 3,
        requests: Some(first + 4),
    };
    let mut flag = Generator(11).flag();
    let expected_names = json_object(&flag).unwrap();
    flag.row = CellRow {
        functions: Some(5),
        window_start_at: Nanos(0),
        window_end_at: Nanos::from_seconds(60),
        head: arm(10),
        base: ArmFigures { share: Some(0.75), ..arm(20) },
        share_delta: interval(30.0),
        strata: 31,
        g: Some(32.0),
        ln_p_iid: Some(33.0),
        head_dispersion: Some(34.0),
        base_dispersion: Some(34.5),
        df: Some(35.0),
        statistic: Some(36.0),
        ln_p: Some(37.0),
        ln_p_min_effect: Some(38.0),
        q_value: Some(39.0),
        ratio: interval(40.0),
        adjusted_ratio: interval(50.0),
        adjusted_ln_p: Some(41.0),
        per_request_ratio: interval(60.0),
        per_request_ln_p: Some(42.0),
        ln_e: Some(43.0),
        minimum_detectable_ratio: Some(44.0),
        seconds_to_significance: Some(f64::INFINITY),
        verdict: Verdict::NotComparable,
        ..CellRow::blank()
    };
    flag.raised_at = Nanos(1_500_000);
    flag.sequence = Hop(45);
    let text = json_object(&flag).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = r#"{
        "functions": 5, "window_start_at": "1970-01-01T00:00:00Z", "window_end_at": "1970-01-01T00:01:00Z",
        "head_count": 10, "head_total": 11, "head_share": 0.5, "head_pods": 12, "head_buckets": 13, "head_requests": 14,
        "base_count": 20, "base_total": 21, "base_share": 0.75, "base_pods": 22, "base_buckets": 23, "base_requests": 24,
        "share_delta": 30.0, "share_delta_low": 30.25, "share_delta_high": 30.5, "strata": 31, "g": 32.0, "ln_p_iid": 33.0,
        "head_dispersion": 34.0, "base_dispersion": 34.5, "df": 35.0, "statistic": 36.0, "ln_p": 37.0, "ln_p_min_effect": 38.0, "q_value": 39.0,
        "ratio": 40.0, "ratio_low": 40.25, "ratio_high": 40.5,
        "adjusted_ratio": 50.0, "adjusted_ratio_low": 50.25, "adjusted_ratio_high": 50.5, "adjusted_ln_p": 41.0,
        "per_request_ratio": 60.0, "per_request_ratio_low": 60.25, "per_request_ratio_high": 60.5,
        "per_request_ln_p": 42.0, "ln_e": 43.0, "minimum_detectable_ratio": 44.0, "seconds_to_significance": null,
        "verdict": "not_comparable", "support": "untestable", "reason": null, "cause": null,
        "raised_at": "1970-01-01T00:00:00.001500Z", "sequence": 45
    }"#;
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{name}");
    }
    assert_eq!(names_of(&text), names_of(&expected_names));
}

fn names_of(object: &str) -> Vec<String> {
    let parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_str(object).unwrap();
    parsed.keys().cloned().collect()
}

fn assert_names_are_sound<R: TableRow>() {
    let mut names: Vec<_> = R::columns().iter().map(|column| column.name).collect();
    for key in R::SORTED_BY {
        assert!(names.contains(key), "{}.{key}", R::TABLE);
    }
    for column in R::columns() {
        assert_eq!(column.kind == Kind::Instant, column.name.ends_with("_at"), "{}", column.name);
        let partition = ["date", "hour"].contains(&column.name);
        assert!(!partition, "{} is in the path", column.name);
        let never_null = column.value(&R::blank()) != Value::Null;
        assert!(never_null || column.nullable, "{}.{}", R::TABLE, column.name);
    }
    let schema = arrow_schema_of::<R>();
    assert_eq!(schema.fields().len(), names.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(schema.fields().len(), names.len(), "names are distinct in {}", R::TABLE);
}

#[test]
fn names_are_distinct_and_instants_end_in_at() {
    assert_names_are_sound::<CellRow>();
    assert_names_are_sound::<EvidenceRow>();
    assert_names_are_sound::<FlagRow>();
    assert_names_are_sound::<ComparisonRow>();
    assert_names_are_sound::<IncidentRow>();
    assert_names_are_sound::<VerdictRow>();
    assert_names_are_sound::<ScalingRow>();
    assert_names_are_sound::<RingRow>();
    assert_names_are_sound::<ScalingFindingRow>();
    assert_names_are_sound::<LedgerRow>();
    assert_names_are_sound::<RejectedRow>();
}

/// The law: the order does not depend on the previous order of the rows, even for rows with equal keys.
#[test]
fn sorting_does_not_depend_on_the_previous_order() {
    let mut generator = Generator(2);
    let mut rows: Vec<CellRow> = (0..60).map(|_| generator.cell()).collect();
    for index in 0..30 {
        let twin = CellRow { strata: rows[index].strata + 1, ..rows[index].clone() };
        rows.push(twin);
    }
    let mut forwards: Vec<_> = rows.iter().collect();
    let mut backwards: Vec<_> = rows.iter().rev().collect();
    assert_ne!(forwards, backwards);
    sort_rows(&mut forwards);
    sort_rows(&mut backwards);
    assert_eq!(forwards, backwards);
    assert!(forwards.is_sorted_by_key(|row| (row.scope.name(), row.comparison.service.as_str())));
}
