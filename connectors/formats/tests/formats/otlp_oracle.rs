//! OTLP by the decoder against OTLP read slowly: recorded messages, and any well-formed one.

use fleetdiff_formats::Options;
use fleetdiff_formats::otlp::Decoder;
use fleetdiff_formats::otlp::proto::{
    Any, AnyValue, Dictionary, Function, KeyValue, KeyValueAndUnit, Line, Location, Profile, Request, Resource,
    ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use prost::Message;

use super::fixtures::written_out;
use super::otlp_slow::{Row, Slow, bytes, message, records, slow};

type Stacks = Vec<(Vec<String>, u64, Option<String>)>;

/// Rows as stacks, by a count for each; those without one left out.
fn stacks(rows: &[Row], count: impl Fn(usize, &Row) -> u64) -> Stacks {
    let counted =
        rows.iter().enumerate().map(|(place, row)| (row.frames.clone(), count(place, row), row.cohort.clone()));
    counted.filter(|(_, count, _)| *count > 0).collect()
}

/// What Go's profiler saw before it scaled it up to this.
fn drawn(objects: i64, space: i64, period: i64) -> u64 {
    #![expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "small numbers")]
    #![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    if objects == 0 {
        return 0;
    }
    let chance = 1.0 - (-(space as f64 / objects as f64) / period as f64).exp();
    ((objects as f64 * chance).round() as u64).max(1)
}

/// The raw samples of the profiles of a message, by the first sample type of each; others are beside these.
fn truth(all: &[Slow]) -> Vec<Stacks> {
    let raw = all.iter().enumerate().filter_map(|(place, profile)| match profile.kind.as_str() {
        "samples/count" | "contentions/count" => {
            Some(stacks(&profile.rows, |_, row| u64::try_from(row.value()).unwrap()))
        }
        "alloc_objects/count" | "inuse_objects/count" => {
            let space = &all[place + 1];
            assert_eq!(space.kind, profile.kind.replace("objects/count", "space/bytes"));
            Some(stacks(&profile.rows, |place, row| drawn(row.value(), space.rows[place].value(), profile.period)))
        }
        _ => None,
    });
    raw.collect()
}

#[test]
fn oracle_every_recorded_profile() {
    let mut found = 0;
    let edge =
        ["edge/headers.otlp.pb", "edge/batch-merged.otlp.pb", "edge/attributes-inline.otlp.pb"].map(str::to_owned);
    for file in records().into_iter().map(|(_, file)| file).chain(edge) {
        let parts = Decoder::new(&Options::default()).profiles(&bytes(&file));
        let stacks = |part: &Result<_, Rejection>| match part {
            Ok(profile) => written_out(profile),
            Err(fault) => {
                assert_eq!(fault.reason, Reason::Empty, "{fault:?}");
                Stacks::new()
            }
        };
        let read: Vec<Stacks> = parts.iter().map(stacks).collect();
        assert_eq!(read, truth(&slow(&message(&file))), "{file}");
        found += read.len();
    }
    assert_eq!(found, 96 + 3 + 24 + 3);
}

/// Allocations that come in another order than their bytes are joined by stack, not by place.
#[test]
fn oracle_columns_in_any_order() {
    let (_, file) = records().remove(0);
    let mut turned = message(&file);
    for profile in turned.resource_profiles.iter_mut().flat_map(|resource| &mut resource.scope_profiles[0].profiles) {
        let kind = profile.sample_type.unwrap();
        if turned.dictionary.as_ref().unwrap().string_table[usize::try_from(kind.type_strindex).unwrap()]
            == "alloc_space"
        {
            profile.samples.reverse();
        }
    }
    let read = |bytes: &[u8]| {
        let parts = Decoder::new(&Options::default()).profiles(bytes);
        parts
            .into_iter()
            .map(|part| {
                let mut stacks = written_out(&part.unwrap());
                stacks.sort();
                stacks
            })
            .collect::<Vec<_>>()
    };
    let (straight, turned) = (read(&bytes(&file)), read(&turned.encode_to_vec()));
    assert_eq!(straight, turned);
    assert_eq!(straight.len(), 9);
}

/// Words of the string table, behind the fixed ones.
const WORDS: [&str; 8] = ["cohort", "ios", "web", "thread", "main", "main.work", "_ZN4work", "µ"];
const FIXED: [&str; 9] =
    ["", "samples", "count", "cpu", "nanoseconds", "service.name", "service.version", "k8s.pod.uid", "shop"];

fn word() -> impl Strategy<Value = i32> {
    prop_oneof![Just(0), 9..17]
}

fn index(below: usize) -> impl Strategy<Value = i32> {
    0..i32::try_from(below).unwrap()
}

fn functions() -> impl Strategy<Value = Vec<Function>> {
    let names = (word(), word());
    let function =
        names.prop_map(|(name_strindex, system_name_strindex)| Function { name_strindex, system_name_strindex });
    vec(function, 0..6).prop_map(|table| [vec![Function::default()], table].concat())
}

fn attributes() -> impl Strategy<Value = Vec<KeyValueAndUnit>> {
    let text = word().prop_map(|text| Some(Any::Reference(text)));
    let inline = select(vec!["", "tv", "ios"]).prop_map(|text| Some(Any::Text(text.to_owned())));
    let value = prop_oneof![text, inline, Just(None)].prop_map(|value| Some(AnyValue { value }));
    let entry =
        (word(), value).prop_map(|(key_strindex, value)| KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
    vec(entry, 0..5).prop_map(|table| [vec![KeyValueAndUnit::default()], table].concat())
}

/// Values alone, a timestamp for each, or timestamps alone.
fn observations() -> impl Strategy<Value = (Vec<i64>, Vec<u64>)> {
    let values = vec(0i64..4, 1..3).prop_map(|values| (values, vec![]));
    let timed = vec((0i64..4, any::<u64>()), 1..4).prop_map(|both| both.into_iter().unzip());
    prop_oneof![values, timed, vec(any::<u64>(), 1..4).prop_map(|times| (vec![], times))]
}

fn samples(stacks: usize, attributes: usize) -> impl Strategy<Value = Vec<Sample>> {
    let sample = (index(stacks), vec(index(attributes), 0..3), observations());
    let sample = sample.prop_map(|(stack_index, attribute_indices, (values, timestamps_unix_nano))| Sample {
        stack_index,
        attribute_indices,
        values,
        timestamps_unix_nano,
    });
    vec(sample, 1..10)
}

fn dictionaries() -> impl Strategy<Value = Dictionary> {
    (functions(), attributes()).prop_flat_map(|(function_table, attribute_table)| {
        let line = index(function_table.len()).prop_map(|function_index| Line { function_index, line: 9 });
        let location = vec(line, 0..4).prop_map(|lines| Location { address: 77, lines });
        let locations = vec(location, 0..5).prop_map(|table| [vec![Location::default()], table].concat());
        locations.prop_flat_map(move |location_table| {
            let stack = vec(index(location_table.len()), 0..6).prop_map(|location_indices| Stack { location_indices });
            let (function_table, attribute_table) = (function_table.clone(), attribute_table.clone());
            vec(stack, 0..5).prop_map(move |stacks| Dictionary {
                location_table: location_table.clone(),
                function_table: function_table.clone(),
                string_table: FIXED.into_iter().chain(WORDS).map(str::to_owned).collect(),
                attribute_table: attribute_table.clone(),
                stack_table: [vec![Stack::default()], stacks].concat(),
            })
        })
    })
}

fn resource(inline: bool) -> Resource {
    let attribute = |key: i32| match inline {
        true => KeyValue {
            key: FIXED[usize::try_from(key).unwrap()].to_owned(),
            value: Some(AnyValue { value: Some(Any::Text("shop".to_owned())) }),
            key_strindex: 0,
        },
        false => {
            KeyValue { key: String::new(), value: Some(AnyValue { value: Some(Any::Reference(8)) }), key_strindex: key }
        }
    };
    Resource { attributes: [5, 6, 7].map(attribute).to_vec() }
}

fn messages() -> impl Strategy<Value = Request> {
    dictionaries().prop_flat_map(|dictionary| {
        let samples = samples(dictionary.stack_table.len(), dictionary.attribute_table.len());
        vec((samples, any::<bool>(), 1u64..1 << 60), 1..4).prop_map(move |profiles| {
            let resources = profiles.into_iter().map(|(samples, inline, time_unix_nano)| ResourceProfiles {
                resource: Some(resource(inline)),
                scope_profiles: vec![ScopeProfiles { scope: None, profiles: vec![profile(samples, time_unix_nano)] }],
            });
            Request { resource_profiles: resources.collect(), dictionary: Some(dictionary.clone()) }
        })
    })
}

fn profile(samples: Vec<Sample>, time_unix_nano: u64) -> Profile {
    let sample_type = Some(ValueType { type_strindex: 1, unit_strindex: 2 });
    Profile { sample_type, samples, time_unix_nano, duration_nano: 10, ..Profile::default() }
}

/// Of a row without values each timestamp is a sample.
fn counted(row: &Row) -> u64 {
    if row.values.is_empty() { row.timestamps.try_into().unwrap() } else { row.value().try_into().unwrap() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn oracle_any_well_formed_message(request in messages()) {
        let truth = slow(&request).into_iter().map(|profile| {
            let stacks = stacks(&profile.rows, |_, row| counted(row));
            if stacks.is_empty() { Err(Reason::Empty) } else { Ok(stacks) }
        });
        let parts = Decoder::new(&Options::default()).profiles(&request.encode_to_vec());
        let read = parts.iter().map(|part| part.as_ref().map(written_out).map_err(|fault| fault.reason));
        prop_assert_eq!(read.collect::<Vec<_>>(), truth.collect::<Vec<_>>());
    }
}
