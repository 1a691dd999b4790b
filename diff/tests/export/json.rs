//! The document against its published JSON Schema, and the schema against the columns.

use fleetdiff_diff::compare::{Method, Settings};
use fleetdiff_diff::export::NotExported;
use fleetdiff_diff::export::columns::COLUMNS;
use fleetdiff_diff::export::json::{FORMAT_VERSION, JSON_SCHEMA, json};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::tables::Kind;
use jsonschema::Validator;
use serde_json::{Value, json as value};

use super::examples::{HEADLINE, export, found, sides, single, weighed_sides};

fn schema() -> Value {
    serde_json::from_str(JSON_SCHEMA).unwrap()
}

fn validator() -> Validator {
    jsonschema::options().build(&schema()).unwrap()
}

fn problems(document: &Value) -> Vec<String> {
    validator().iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn written(
    settings: &Settings,
    sides: &fleetdiff_diff::flame::Sides<Vec<fleetdiff_diff::compare::Recording>>,
) -> Value {
    serde_json::from_str(&json(&export(&found(sides, settings), settings)).unwrap()).unwrap()
}

#[test]
fn documents_fit_their_schema() {
    jsonschema::meta::validate(&schema()).unwrap();
    let honest = Settings::default();
    let article = Settings { method: Method::Article, ..honest };
    let documents = [
        written(&honest, &sides()),
        written(&honest, &single()),
        written(&article, &single()),
        written(&honest, &weighed_sides()),
    ];
    for document in &documents {
        assert_eq!(problems(document), Vec::<String>::new());
        assert!(document["findings"].as_array().unwrap().len() > 8, "{document}");
    }
    let [several, one, article, weighed] = documents;
    assert_eq!([&several["spread"]["known"], &one["spread"]["known"]], ["tentative", "unknown"]);
    assert_eq!([&several["spread"]["background"], &article["spread"]["background"]], [&Value::Null, &Value::Null]);
    assert!(
        one["spread"]["background"].as_f64().unwrap() > 0.001,
        "what is expected, and what the functions show: {one}"
    );
    assert_eq!([&one["settings"]["method"], &article["settings"]["method"]], ["honest", "article"]);
    assert_eq!([&several["weights_unit"], &several["base"]["weight"]], [&Value::Null, &Value::Null]);
    assert_eq!(
        [&weighed["weights_unit"], &weighed["head"]["weight"]],
        [&value!("cpu/nanoseconds"), &value!(3 * 9_040 * 500_250u64)]
    );
}

/// Figures computed by hand.
#[test]
fn the_document_says_what_was_found() {
    let document = written(&Settings::default(), &weighed_sides());
    assert_eq!(document["headline"], HEADLINE);
    assert_eq!(
        document["base"],
        value!({"labels": ["v1.folded", "v1.folded", "v1.folded"], "runs": 3, "samples": 25_620, "weight": 25_620 * 500_250u64})
    );
    assert_eq!(
        document["settings"],
        value!({"method": "honest", "q": 0.05, "min_effect": 0.01, "min_count": 30, "min_share": null})
    );
    let findings = document["findings"].as_array().unwrap();
    let encode = findings.iter().find(|row| row["function"] == "encode" && row["count_kind"] == "total").unwrap();
    assert_eq!(
        [&encode["base_count"], &encode["head_count"], &encode["base_weight"]],
        [&value!(3_000), &value!(6_000), &value!(3_000 * 500_250u64)]
    );
    assert_eq!(encode["base_share"], value!(3_000.0 / 25_620.0));
    assert_eq!(encode["verdict"], "regressed");
    let [low, ratio, high] =
        ["adjusted_ratio_low", "adjusted_ratio", "adjusted_ratio_high"].map(|name| encode[name].as_f64().unwrap());
    assert!(low < ratio && ratio < high && ratio > 1.5 && ratio < 2.5, "{encode}");
    let legacy = findings.iter().find(|row| row["function"] == "legacy" && row["count_kind"] == "self").unwrap();
    assert_eq!(
        [&legacy["reason"], &legacy["adjusted_ratio"], &legacy["head_count"]],
        [&value!("only_in_base"), &Value::Null, &value!(0)]
    );
}

/// The law: the schema rejects a document from which anything is removed, to which anything is added, or in which a
/// type is changed.
#[test]
fn no_mutation_of_a_document_fits_the_schema() {
    let validator = validator();
    let document = written(&Settings::default(), &weighed_sides());
    let mut mutations = 0;
    for parent in ["", "/tool", "/base", "/head", "/spread", "/settings", "/findings/0"] {
        let names: Vec<String> = document.pointer(parent).unwrap().as_object().unwrap().keys().cloned().collect();
        for name in names {
            let mut without = document.clone();
            without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(&name);
            assert!(!validator.is_valid(&without), "without {parent}/{name}");
            for other in [value!({}), value!(true), value!([1]), value!(-0.5)] {
                // A logarithm of a p-value may be infinite, and so may settings that are not checked.
                if other == value!(-0.5) && ["ln_p_row", "q", "min_effect"].contains(&name.as_str()) {
                    continue;
                }
                let mut changed = document.clone();
                changed.pointer_mut(parent).unwrap()[&name] = other;
                assert!(!validator.is_valid(&changed), "{parent}/{name}: {}", changed.pointer(parent).unwrap());
                mutations += 1;
            }
        }
        let mut more = document.clone();
        more.pointer_mut(parent).unwrap()["surplus"] = value!(1);
        assert!(!validator.is_valid(&more), "a member more in {parent}");
    }
    assert!(mutations > 150, "{mutations}");
    for (path, wrong) in [
        ("/findings/0/verdict", "slower"),
        ("/findings/0/reason", "because"),
        ("/spread/known", "firm"),
        ("/profile_type", "gpu"),
    ] {
        let mut changed = document.clone();
        *changed.pointer_mut(path).unwrap() = value!(wrong);
        assert!(!validator.is_valid(&changed), "{path}: {wrong}");
    }
}

/// The law: names, order, types, nulls, closed lists and descriptions of the schema are those of the columns.
#[test]
fn the_schema_has_the_columns_of_findings() {
    let schema = schema();
    let finding = &schema["$defs"]["finding"];
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(finding["required"], value!(names));
    assert_eq!(finding["properties"].as_object().unwrap().len(), names.len());
    let text = &JSON_SCHEMA[JSON_SCHEMA.rfind("\"properties\"").unwrap()..];
    let places: Vec<_> = names.iter().map(|name| text.find(&format!("\"{name}\": {{"))).collect();
    assert!(places.is_sorted() && places[0].is_some(), "the order of columns: {places:?}");
    for column in &COLUMNS {
        let property = &finding["properties"][column.name];
        assert!(property["description"].as_str().unwrap().starts_with(column.description), "{}", column.name);
        let null = column.nullable.then_some(Value::Null);
        if let Kind::Name(list) = column.kind {
            assert_eq!(
                property["enum"],
                value!(list.iter().map(|name| value!(name)).chain(null).collect::<Vec<_>>()),
                "{}",
                column.name
            );
            continue;
        }
        let name = match column.kind {
            Kind::Count => "integer",
            Kind::Number => "number",
            _ => "string",
        };
        assert_eq!(
            property["type"],
            if column.nullable { value!([name, "null"]) } else { value!(name) },
            "{}",
            column.name
        );
    }
    assert_eq!(schema["properties"]["format_version"]["const"], FORMAT_VERSION);
    let types: Vec<&str> = schema["properties"]["profile_type"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut known = ProfileType::ALL.map(|(_, name)| name);
    known.sort_by_key(|name| types.iter().position(|listed| listed == name));
    assert_eq!(types, known);
}

#[test]
fn an_infinite_number_is_null_and_nan_is_an_error() {
    let settings = Settings::default();
    let mut compared = found(&sides(), &settings);
    let place = compared.findings.iter().position(|finding| finding.ratio.is_some()).unwrap();
    let function = compared.findings[place].function.to_string();
    compared.findings[place].ratio.as_mut().unwrap().high = f64::INFINITY;
    let document: Value = serde_json::from_str(&json(&export(&compared, &settings)).unwrap()).unwrap();
    assert_eq!(document["findings"][place]["adjusted_ratio_high"], Value::Null);
    assert!(document["findings"][place]["adjusted_ratio"].is_number());
    assert_eq!(problems(&document), Vec::<String>::new());
    compared.findings[place].ratio.as_mut().unwrap().high = f64::NAN;
    let fault = json(&export(&compared, &settings)).unwrap_err();
    assert!(matches!(&fault, NotExported::NotANumber { column: "adjusted_ratio_high", .. }), "{fault}");
    assert!(fault.code() == "not_a_number" && fault.to_string().contains(&function), "{fault}");
}
