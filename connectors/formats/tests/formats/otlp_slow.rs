//! OTLP read slowly: by the structs of `proto`, one profile of the message after the other, values as they are. Shares no pass
//! with the decoder.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::otlp::proto::{Any, AnyValue, Dictionary, KeyValue, Request, Sample};
use prost::Message;
use serde_json::Value as Json;

use super::fixtures::testdata;

/// A profile of the message.
pub struct Slow {
    /// Attributes of its resource.
    pub resource: BTreeMap<String, String>,
    /// Name and unit, as `name/unit`.
    pub kind: String,
    pub time: u64,
    pub duration: u64,
    pub period: i64,
    pub rows: Vec<Row>,
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Row {
    /// Root first.
    pub frames: Vec<String>,
    pub cohort: Option<String>,
    pub values: Vec<i64>,
    pub timestamps: usize,
}

impl Row {
    pub fn value(&self) -> i64 {
        self.values.iter().sum()
    }
}

fn text(dictionary: &Dictionary, index: i32) -> &str {
    &dictionary.string_table[usize::try_from(index).unwrap()]
}

fn value(dictionary: &Dictionary, value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        None => String::new(),
        Some(Any::Text(found)) => found.clone(),
        Some(Any::Reference(index)) => text(dictionary, *index).to_owned(),
        Some(other) => format!("{other:?}"),
    }
}

fn key(dictionary: &Dictionary, attribute: &KeyValue) -> String {
    if attribute.key.is_empty() { text(dictionary, attribute.key_strindex).to_owned() } else { attribute.key.clone() }
}

fn name(dictionary: &Dictionary, function: i32) -> String {
    let function = dictionary.function_table[usize::try_from(function).unwrap()];
    let names = [function.name_strindex, function.system_name_strindex].map(|index| text(dictionary, index));
    names.into_iter().find(|name| !name.is_empty()).unwrap_or("_unsymbolised").to_owned()
}

fn frames(dictionary: &Dictionary, stack: i32) -> Vec<String> {
    let mut leaf_first = Vec::new();
    for location in &dictionary.stack_table[usize::try_from(stack).unwrap()].location_indices {
        let lines = &dictionary.location_table[usize::try_from(*location).unwrap()].lines;
        leaf_first.extend(lines.iter().map(|line| name(dictionary, line.function_index)));
        if lines.is_empty() {
            leaf_first.push("_unsymbolised".to_owned());
        }
    }
    leaf_first.reverse();
    leaf_first
}

fn row(dictionary: &Dictionary, sample: &Sample) -> Row {
    let attributes =
        sample.attribute_indices.iter().map(|index| &dictionary.attribute_table[usize::try_from(*index).unwrap()]);
    let mut cohorts = attributes.filter(|attribute| text(dictionary, attribute.key_strindex) == "cohort");
    let cohort =
        cohorts.find_map(|attribute| Some(value(dictionary, attribute.value.as_ref())).filter(|name| !name.is_empty()));
    Row {
        frames: frames(dictionary, sample.stack_index),
        cohort,
        values: sample.values.clone(),
        timestamps: sample.timestamps_unix_nano.len(),
    }
}

/// Every profile of a well-formed message.
pub fn slow(request: &Request) -> Vec<Slow> {
    let dictionary = request.dictionary.as_ref().unwrap();
    let mut all = Vec::new();
    for resource_profiles in &request.resource_profiles {
        let mut resource = BTreeMap::new();
        for attribute in resource_profiles.resource.iter().flat_map(|resource| &resource.attributes) {
            resource.entry(key(dictionary, attribute)).or_insert_with(|| value(dictionary, attribute.value.as_ref()));
        }
        for profile in resource_profiles.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
            let kind = profile.sample_type.unwrap();
            let names = [kind.type_strindex, kind.unit_strindex].map(|index| text(dictionary, index));
            all.push(Slow {
                resource: resource.clone(),
                kind: names.join("/"),
                time: profile.time_unix_nano,
                duration: profile.duration_nano,
                period: profile.period,
                rows: profile.samples.iter().map(|sample| row(dictionary, sample)).collect(),
            });
        }
    }
    all
}

/// A recorded file.
pub fn bytes(file: &str) -> Vec<u8> {
    fs::read(testdata("otlp-kafka").join(file)).unwrap()
}

/// A recorded message.
pub fn message(file: &str) -> Request {
    Request::decode(bytes(file).as_slice()).unwrap()
}

/// The lines of a file of JSON.
pub fn lines(file: &str) -> Vec<Json> {
    let text = fs::read_to_string(testdata("otlp-kafka").join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The twelve records of the recorded fleet.
pub fn records() -> Vec<(u64, String)> {
    let records = lines("records.jsonl");
    records
        .iter()
        .map(|record| (record["hop"].as_u64().unwrap(), record["file"].as_str().unwrap().to_owned()))
        .collect()
}

/// What the separate reader found of the recorded fleet, an entry a pod and hop.
pub fn expected() -> Vec<Json> {
    let text = fs::read_to_string(testdata("otlp-kafka/expected.json")).unwrap();
    serde_json::from_str::<Vec<Json>>(&text).unwrap()
}

/// Total and top three functions by own and by inclusive value, as `expected.json` has them: larger first, then by name.
pub fn summary(rows: &[(Vec<String>, i64)]) -> Json {
    let (mut own, mut inclusive) = (BTreeMap::new(), BTreeMap::new());
    for (frames, value) in rows {
        if let Some(leaf) = frames.last() {
            *own.entry(leaf.as_str()).or_insert(0) += value;
        }
        let mut once: Vec<&str> = frames.iter().map(String::as_str).collect();
        once.sort_unstable();
        once.dedup();
        for frame in once {
            *inclusive.entry(frame).or_insert(0) += value;
        }
    }
    let total: i64 = rows.iter().map(|(_, value)| value).sum();
    serde_json::json!({ "total": total, "top_self": top(own), "top_inclusive": top(inclusive) })
}

fn top(values: BTreeMap<&str, i64>) -> Json {
    let mut values: Vec<(&str, i64)> = values.into_iter().collect();
    values.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    values.truncate(3);
    serde_json::json!(values)
}

/// The same of what was expected.
pub fn expected_summary(of_type: &Json) -> Json {
    serde_json::json!({
        "total": of_type["total"], "top_self": of_type["top_self"], "top_inclusive": of_type["top_inclusive"],
    })
}
