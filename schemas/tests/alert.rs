//! Alerts against their published JSON Schema, and the schema against the tables.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "generated/rows.rs"]
#[expect(dead_code, reason = "other tests use the other tables")]
mod generated;

use fleetdiff_schemas::alert::{Alert, AlertType, AnnouncedVerdicts, JSON_SCHEMA};
use fleetdiff_schemas::identity::{MERGED, stable_hash};
use fleetdiff_schemas::rows::{CellKey, ComparisonRow, FlagRow};
use fleetdiff_schemas::tables::{Kind, TableRow};
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, FlagState};
use generated::Generator;
use jsonschema::Validator;
use serde_json::{Value, json};

fn schema() -> Value {
    serde_json::from_str(JSON_SCHEMA).unwrap()
}

fn validator() -> Validator {
    jsonschema::options().should_validate_formats(true).build(&schema()).unwrap()
}

fn parsed(alert: &Alert) -> Value {
    serde_json::from_str(&alert.line()).unwrap()
}

fn problems(validator: &Validator, event: &Value) -> Vec<String> {
    validator.iter_errors(event).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// 400 alerts, of all four types.
fn alerts() -> Vec<Alert> {
    let mut generator = Generator(7);
    let flags: Vec<_> = (0..200).map(|_| Alert::of_flag(&generator.flag()).unwrap()).collect();
    let verdicts = (0..200).map(|hop| Alert::of_verdict(&generator.comparison_row(), Hop(hop)).unwrap());
    flags.into_iter().chain(verdicts).collect()
}

#[test]
fn alerts_fit_their_schema() {
    let validator = validator();
    jsonschema::meta::validate(&schema()).unwrap();
    let alerts = alerts();
    for alert in &alerts {
        assert_eq!(problems(&validator, &parsed(alert)), Vec::<String>::new(), "{}", alert.line());
    }
    for kind in AlertType::ALL {
        assert!(alerts.iter().any(|alert| alert.alert_type == kind), "no alert of {}", kind.name());
    }
}

/// The law: the schema rejects an alert from which anything is removed, to which anything is added, or in which a type
/// is changed.
#[test]
fn no_mutation_of_an_alert_fits_the_schema() {
    let validator = validator();
    let alerts = alerts();
    let mut mutations = 0;
    for kind in AlertType::ALL {
        let alert = alerts.iter().find(|alert| alert.alert_type == kind).unwrap();
        let event = parsed(alert);
        for mutated in mutations_of(&event) {
            assert!(!validator.is_valid(&mutated), "{mutated}");
            mutations += 1;
        }
    }
    assert!(mutations > 500, "{mutations}");
}

fn mutations_of(event: &Value) -> Vec<Value> {
    let mut mutations = Vec::new();
    let members: Vec<String> = event.as_object().unwrap().keys().map(|name| format!("/{name}")).collect();
    let columns = event["data"].as_object().unwrap().keys().map(|name| format!("/data/{name}"));
    for path in members.into_iter().chain(columns) {
        let (parent, name) = path.rsplit_once('/').unwrap();
        let mut without = event.clone();
        without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        mutations.push(without);
        for other in [json!("NaN"), json!({}), json!(true)] {
            let mut changed = event.clone();
            let value = changed.pointer_mut(&path).unwrap();
            if !(is_free_text(name, &other) || value.is_boolean() && other.is_boolean()) {
                *value = other;
                mutations.push(changed);
            }
        }
    }
    for parent in ["", "/data"] {
        let mut more = event.clone();
        more.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert("surplus".into(), json!(1));
        mutations.push(more);
    }
    mutations
}

/// Where any text is allowed, `NaN` is too.
fn is_free_text(name: &str, value: &Value) -> bool {
    let free = [
        "subject",
        "service",
        "base_build",
        "head_build",
        "region",
        "cohort",
        "function",
        "cause",
        "detail",
        "sentence",
    ];
    value.is_string() && free.contains(&name)
}

#[test]
fn an_alert_whose_state_contradicts_its_type_does_not_fit() {
    let validator = validator();
    let alert = alerts().into_iter().find(|alert| alert.alert_type == AlertType::FlagRaised).unwrap();
    let mut event = parsed(&alert);
    event["data"]["state"] = json!("updated");
    assert!(!validator.is_valid(&event));
    event["type"] = json!("dev.fleetdiff.flag.updated.v1");
    assert!(validator.is_valid(&event));
    event["data"]["cleared_because"] = json!("equivalent");
    assert!(!validator.is_valid(&event));
    event["data"]["verdict"] = json!("slower");
    assert!(!validator.is_valid(&event));
}

#[test]
fn a_row_with_nan_makes_no_alert() {
    let mut flag = Generator(1).flag();
    flag.row.ln_e = Some(f64::NAN);
    let error = Alert::of_flag(&flag).unwrap_err();
    assert_eq!(error.code(), "not_a_number");
    assert!(error.to_string().contains("flags.ln_e"), "{error}");
}

/// The law: names, order, types, nulls, closed lists and descriptions of the schema are those of the table.
#[test]
fn the_schema_has_the_columns_of_the_tables() {
    let schema = schema();
    assert_columns::<FlagRow>(&schema["$defs"]["flag"], "\"flag\": {");
    assert_columns::<ComparisonRow>(&schema["$defs"]["comparison"], "\"comparison\": {");
    let types: Vec<_> = AlertType::ALL.iter().map(|kind| json!(kind.name())).collect();
    assert_eq!(schema["properties"]["type"]["enum"], json!(types));
}

fn assert_columns<R: TableRow>(definition: &Value, heading: &str) {
    let names: Vec<&str> = R::columns().iter().map(|column| column.name).collect();
    assert_eq!(definition["required"], json!(names));
    assert_eq!(definition["additionalProperties"], json!(false));
    assert_eq!(definition["properties"].as_object().unwrap().len(), names.len());
    let text = &JSON_SCHEMA[JSON_SCHEMA.find(heading).unwrap()..];
    let places: Vec<_> = names.iter().map(|name| text.find(&format!("\"{name}\": {{"))).collect();
    assert!(places.is_sorted() && places[0].is_some(), "the order of columns");
    for column in R::columns() {
        let property = &definition["properties"][column.name];
        assert_eq!(property["description"], column.description, "{}", column.name);
        // NB: the table takes any text as the reason for clearing, the alert one of a closed list.
        if column.name == "cleared_because" {
            continue;
        }
        match column.kind {
            Kind::Name(list) => {
                let null = column.nullable.then_some(Value::Null);
                let expected: Vec<Value> = list.iter().map(|name| json!(name)).chain(null).collect();
                assert_eq!(property["enum"], json!(expected), "{}", column.name);
            }
            Kind::Instant => {
                let instant = json!({"$ref": "#/$defs/instant"});
                let (got, expected) = if column.nullable {
                    (&property["anyOf"], json!([instant, {"type": "null"}]))
                } else {
                    (&property["$ref"], instant["$ref"].clone())
                };
                assert_eq!(*got, expected, "{}", column.name);
            }
            kind => {
                // NB: JSON has no infinity, so a number may be null there even if it is known.
                let name = type_of(kind);
                let expected = if column.nullable { json!([name, "null"]) } else { json!(name) };
                assert_eq!(property["type"], expected, "{}", column.name);
            }
        }
    }
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "integer",
        Kind::Number => "number",
        Kind::Texts => "array",
        Kind::Truth => "boolean",
        Kind::Text | Kind::Name(_) | Kind::Instant => "string",
    }
}

#[test]
fn key_and_id_follow_from_the_row() {
    let mut flag = Generator(3).flag();
    flag.row.comparison.service = "käse \"kiosk\"".into();
    flag.row.cell = CellKey { region: "eu".into(), cohort: "tv".into() };
    flag.row.function = "f".to_owned();
    flag.sequence = Hop(42);
    flag.state = FlagState::Updated;
    flag.cleared_because = None;
    let alert = Alert::of_flag(&flag).unwrap();
    let row = &flag.row;
    let (profile_type, measure) = (row.comparison.profile_type.name(), row.comparison.measure.name());
    let (base, head) = (row.comparison.base_build.as_str(), row.comparison.head_build.as_str());
    let kind = row.count_kind.name();
    let key = format!(r#"["käse \"kiosk\"","{profile_type}","{measure}","{base}","{head}","eu","tv","f","{kind}"]"#);
    assert_eq!(alert.key, key);
    assert_eq!(alert.id, format!("{:016x}", stable_hash(format!("{key}\n42\nupdated").as_bytes())));
    assert_eq!(alert.source, "/fleetdiff/k%C3%A4se%20%22kiosk%22");

    let headers = alert.headers();
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "ce_subject", "content-type"];
    assert_eq!(names, expected);
    let event = parsed(&alert);
    for (name, value) in &headers[..6] {
        assert_eq!(event[name.trim_start_matches("ce_")], json!(value), "{name}");
    }
    assert_eq!(event["data"], serde_json::from_str::<Value>(&alert.data).unwrap());
    assert_eq!(event["partitionkey"], json!(alert.key));

    flag.state = FlagState::Raised;
    assert_ne!(Alert::of_flag(&flag).unwrap().id, alert.id);
    flag.sequence = Hop(43);
    assert_eq!(Alert::of_flag(&flag).unwrap().key, alert.key);
}

#[test]
fn only_changes_of_the_verdict_over_all_cells_are_announced() {
    let mut announced = AnnouncedVerdicts::default();
    let mut row = Generator(5).comparison_row();
    row.cell = CellKey { region: MERGED.into(), cohort: MERGED.into() };
    let mut look = |verdict, region: &str| {
        let mut row = ComparisonRow { verdict, ..row.clone() };
        row.cell.region = region.into();
        row.base_kind = BaseKind::History;
        assert!(!announced.is_change(&row), "history is not announced and changes no verdict");
        row.base_kind = BaseKind::Concurrent;
        announced.is_change(&row)
    };
    assert!(!look(ComparisonVerdict::Inconclusive, MERGED), "an inconclusive comparison is not announced");
    assert!(look(ComparisonVerdict::Regressed, MERGED));
    assert!(!look(ComparisonVerdict::Regressed, MERGED));
    assert!(!look(ComparisonVerdict::Clean, "eu-west-1"), "a cell's verdict is not the comparison's");
    assert!(look(ComparisonVerdict::Inconclusive, MERGED));
    assert!(look(ComparisonVerdict::Clean, MERGED));
}
