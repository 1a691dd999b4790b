//! Alerts against their published JSON Schema, and the schema against the tables.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "generated/rows.rs"]
#[expect(dead_code, reason = "other tests use the other tables")]
mod generated;

use fleetdiff_schemas::alert::{Alert, AlertType, Guidance, GuidanceRule, JSON_SCHEMA};
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::rows::{FlagRow, HeapFindingRow, IncidentRow, ScalingFindingRow, VerdictRow};
use fleetdiff_schemas::tables::{Kind, TableRow};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::IncidentState;
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

/// What a configuration adds for some of the functions.
fn guidance() -> Guidance {
    let rule = |text: &str| GuidanceRule::parse(text).unwrap();
    Guidance {
        owners: vec![rule("media:serialize* -> video"), rule("media -> shop")],
        runbooks: vec![rule("* -> https://runbooks.example/deploys")],
        link: "https://fleetdiff.example/{service}/{head}?base={base}&cause={cause}&id={incident}".to_owned(),
    }
}

/// An incident with one to three flags.
fn incident(generator: &mut Generator) -> IncidentRow {
    let flags = (0..=generator.below(3)).map(|_| generator.flag()).collect();
    IncidentRow { flags, ..generator.incident() }
}

/// 800 alerts, of all types.
fn alerts() -> Vec<Alert> {
    let mut generator = Generator(7);
    let some = [Guidance::default(), guidance()];
    let incidents: Vec<_> =
        (0..200).map(|index| Alert::of_incident(&incident(&mut generator), &some[index % 2]).unwrap()).collect();
    let verdicts = (0..200).map(|index| Alert::of_verdict(&generator.verdict(), &some[index % 2]).unwrap());
    let verdicts: Vec<_> = verdicts.collect();
    let findings = (0..200).map(|index| Alert::of_scaling(&generator.finding(), &some[index % 2]).unwrap());
    let findings: Vec<_> = findings.collect();
    let heap = (0..200).map(|index| Alert::of_heap(&generator.heap_finding(), &some[index % 2]).unwrap());
    incidents.into_iter().chain(verdicts).chain(findings).chain(heap).collect()
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
        "cause",
        "summary",
        "action",
        "confidence",
        "impact",
        "owner",
        "runbook",
        "link",
        "introduced_by",
        "superseded_by",
        "cleared_because",
    ];
    value.is_string() && free.contains(&name)
}

#[test]
fn an_alert_whose_state_contradicts_its_type_does_not_fit() {
    let validator = validator();
    let alert = alerts().into_iter().find(|alert| alert.alert_type == AlertType::IncidentRaised).unwrap();
    let mut event = parsed(&alert);
    event["data"]["state"] = json!("updated");
    assert!(!validator.is_valid(&event));
    event["type"] = json!("dev.fleetdiff.incident.updated.v1");
    assert!(validator.is_valid(&event));
    event["data"]["cleared_because"] = json!("equivalent");
    assert!(!validator.is_valid(&event));
    event["data"]["state"] = json!("superseded");
    event["type"] = json!("dev.fleetdiff.incident.superseded.v1");
    event["data"]["cleared_because"] = Value::Null;
    assert!(!validator.is_valid(&event), "it does not say by what");
    event["data"]["superseded_by"] = json!("encode");
    assert!(validator.is_valid(&event));
    event["data"]["flags"][0]["verdict"] = json!("slower");
    assert!(!validator.is_valid(&event));
}

#[test]
fn a_row_with_nan_makes_no_alert() {
    let mut row = incident(&mut Generator(1));
    row.flags[0].row.ln_e = Some(f64::NAN);
    let error = Alert::of_incident(&row, &Guidance::default()).unwrap_err();
    assert_eq!(error.code(), "not_a_number");
    assert!(error.to_string().contains("flags.ln_e"), "{error}");
    row.flags.clear();
    row.share = Some(f64::NAN);
    let error = Alert::of_incident(&row, &Guidance::default()).unwrap_err();
    assert!(error.to_string().contains("incidents.share"), "{error}");
}

/// The law: names, order, types, nulls, closed lists and descriptions of the schema are those of the table.
#[test]
fn the_schema_has_the_columns_of_the_tables() {
    let schema = schema();
    let responsible = ["owner", "runbook"];
    assert_columns::<FlagRow>(&schema["$defs"]["flag"], "\"flag\": {", &[]);
    let more = [&responsible[..], &["link", "evidence", "flags"]].concat();
    assert_columns::<IncidentRow>(&schema["$defs"]["incident"], "\"incident\": {", &more);
    assert_columns::<VerdictRow>(&schema["$defs"]["verdict"], "\"verdict\": {\n      \"description\"", &responsible);
    let heading = "\"scaling\": {\n      \"description\"";
    assert_columns::<ScalingFindingRow>(&schema["$defs"]["scaling"], heading, &responsible);
    let heading = "\"heap\": {\n      \"description\"";
    assert_columns::<HeapFindingRow>(&schema["$defs"]["heap"], heading, &responsible);
    let types: Vec<_> = AlertType::ALL.iter().map(|kind| json!(kind.name())).collect();
    assert_eq!(schema["properties"]["type"]["enum"], json!(types));
}

/// `more` are members that are no columns.
fn assert_columns<R: TableRow>(definition: &Value, heading: &str, more: &[&str]) {
    let columns = R::columns().iter().map(|column| column.name);
    let names: Vec<&str> = columns.chain(more.iter().copied()).collect();
    assert_eq!(definition["required"], json!(names));
    assert_eq!(definition["additionalProperties"], json!(false));
    assert_eq!(definition["properties"].as_object().unwrap().len(), names.len());
    let text = JSON_SCHEMA.split_once(heading).unwrap().1;
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
        Kind::Texts | Kind::Counts => "array",
        Kind::Truth => "boolean",
        Kind::Text | Kind::Name(_) | Kind::Instant => "string",
    }
}

#[test]
fn key_and_id_follow_from_the_row() {
    let mut row = incident(&mut Generator(3));
    row.service = "käse \"kiosk\"".into();
    row.head_build = "v2".into();
    row.base_build = "v1".into();
    row.cause = "f".to_owned();
    row.sequence = Hop(42);
    row.state = IncidentState::Updated;
    let alert_of = |row: &IncidentRow| Alert::of_incident(row, &Guidance::default()).unwrap();
    let alert = alert_of(&row);
    let key = r#"["käse \"kiosk\"","v2","v1","f"]"#;
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

    row.state = IncidentState::Raised;
    assert_ne!(alert_of(&row).id, alert.id);
    row.sequence = Hop(43);
    assert_eq!(alert_of(&row).key, alert.key);

    let mut verdict = Generator(3).verdict();
    verdict.service = "shop".into();
    verdict.head_build = "v2".into();
    verdict.base_build = "v1".into();
    assert_eq!(Alert::of_verdict(&verdict, &Guidance::default()).unwrap().key, r#"["shop","v2","v1",null]"#);
}

/// An event names who is responsible, where to look, and which rows of which folder it is made from.
#[test]
fn an_alert_says_whose_it_is_and_where_its_rows_are() {
    let mut generator = Generator(9);
    let mut flag = generator.flag();
    flag.row.window_end_at = Nanos::from_seconds(1_709_210_096);
    flag.sequence = Hop(7);
    let mut row = IncidentRow { flags: vec![flag.clone()], ..generator.incident() };
    row.service = "media".into();
    row.base_build = "v1".into();
    row.cause = "serialize a/b".to_owned();
    let data_of = |row: &IncidentRow| parsed(&Alert::of_incident(row, &guidance()).unwrap())["data"].clone();
    let data = data_of(&row);
    assert_eq!((&data["owner"], &data["runbook"]), (&json!("video"), &json!("https://runbooks.example/deploys")));
    let link = format!(
        "https://fleetdiff.example/media/{}?base=v1&cause=serialize%20a%2Fb&id={}",
        row.head_build, row.incident_id
    );
    assert_eq!(data["link"], json!(link));
    let evidence = json!([{
        "table": "flags", "folder": "flags/date=2024-02-29/hour=12", "flag_id": flag.flag_id, "sequence": 7,
    }]);
    assert_eq!(data["evidence"], evidence);
    assert_eq!(data["flags"][0]["flag_id"], json!(flag.flag_id));
    row.cause = "gc".to_owned();
    assert_eq!(data_of(&row)["owner"], json!("shop"));
    let verdict = VerdictRow { service: "media".into(), ..generator.verdict() };
    let event = parsed(&Alert::of_verdict(&verdict, &guidance()).unwrap());
    assert_eq!(event["data"]["owner"], json!("shop"), "the verdict is about every function");
}
