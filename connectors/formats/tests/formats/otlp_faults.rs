//! Faults of OTLP by their reasons: each is one of its part, and what is not of this version is never read as something else.

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::otlp::proto::{Any, AnyValue, Function, KeyValue, Line, Location, Profile, Stack};
use fleetdiff_formats::otlp::{Decoder, encode};
use fleetdiff_formats::{Format, Options, compression};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use prost::Message;

use super::otlp_rules::{Draft, POD};
use super::otlp_slow::bytes;

/// Three pods of a cpu profile each, whose stack is `main`.
fn three_pods() -> Draft {
    let mut draft = Draft::new();
    for pod in ["pod-1", "pod-2", "pod-3"] {
        draft.resource(&[POD[0], POD[1], ("k8s.pod.uid", pod)]);
        draft.profile(("samples", "count", &[4], &[]), ("cpu", 10), 10);
    }
    let dictionary = draft.dictionary();
    dictionary.string_table.push("main".to_owned());
    let name_strindex = i32::try_from(dictionary.string_table.len() - 1).unwrap();
    let line = |function_index| Line { function_index, line: 1 };
    dictionary.function_table = vec![Function::default(), Function { name_strindex, system_name_strindex: 0 }];
    dictionary.location_table = vec![Location::default(), Location { address: 1, lines: vec![line(1)] }];
    dictionary.stack_table.push(Stack { location_indices: vec![1] });
    draft
}

fn outcomes(bytes: &[u8]) -> Vec<Result<String, Reason>> {
    let parts = Decoder::new(&Options::default()).profiles(bytes);
    parts
        .into_iter()
        .map(|part| part.map(|profile| profile.identity.pod.to_string()).map_err(|fault| fault.reason))
        .collect()
}

/// The reason for which the second pod is refused after a change; the others stay.
fn after(change: impl FnOnce(&mut Draft)) -> Reason {
    let mut draft = three_pods();
    change(&mut draft);
    let outcomes = outcomes(&draft.request.encode_to_vec());
    let [first, Err(reason), third] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!([first, third], [&Ok("pod-1".to_owned()), &Ok("pod-3".to_owned())]);
    *reason
}

fn second(draft: &mut Draft) -> &mut Profile {
    &mut draft.request.resource_profiles[1].scope_profiles[0].profiles[0]
}

/// Lets the second profile have a stack of its own with this location.
fn with_location(draft: &mut Draft, location: Location) {
    let dictionary = draft.dictionary();
    dictionary.location_table.push(location);
    dictionary.stack_table.push(Stack { location_indices: vec![2] });
    second(draft).samples[0].stack_index = 2;
}

#[test]
fn a_bad_part_spoils_no_other() {
    let reference = |index| Some(AnyValue { value: Some(Any::Reference(index)) });
    let out_of_range = [
        after(|draft| second(draft).samples[0].stack_index = 9),
        after(|draft| second(draft).samples[0].stack_index = -1),
        after(|draft| second(draft).samples[0].attribute_indices = vec![9]),
        after(|draft| second(draft).attribute_indices = vec![9]),
        after(|draft| second(draft).sample_type.as_mut().unwrap().type_strindex = 999),
        after(|draft| with_location(draft, Location { address: 1, lines: vec![Line { function_index: 9, line: 1 }] })),
        after(|draft| {
            draft.dictionary().function_table.push(Function { name_strindex: 999, system_name_strindex: 0 });
            with_location(draft, Location { address: 1, lines: vec![Line { function_index: 2, line: 1 }] });
        }),
        after(|draft| {
            draft.dictionary().stack_table.push(Stack { location_indices: vec![1, 77] });
            second(draft).samples[0].stack_index = 2;
        }),
        after(|draft| {
            let attributes = &mut draft.request.resource_profiles[1].resource.as_mut().unwrap().attributes;
            attributes.push(KeyValue { key: String::new(), value: reference(999), key_strindex: 1 });
        }),
    ];
    assert_eq!(out_of_range, [Reason::IndexOutOfRange; 9]);
    let missing =
        |draft: &mut Draft| drop(draft.request.resource_profiles[1].resource.as_mut().unwrap().attributes.pop());
    assert_eq!(after(missing), Reason::MissingIdentity);
    assert_eq!(after(|draft| second(draft).samples[0].values = vec![-1]), Reason::NegativeValue);
    assert_eq!(after(|draft| second(draft).samples.clear()), Reason::Empty);
    assert_eq!(after(|draft| second(draft).sample_type = None), Reason::UnsupportedType);
}

#[test]
fn a_fault_says_where_it_is() {
    let mut draft = three_pods();
    second(&mut draft).samples[0].stack_index = 9;
    let parts = Decoder::new(&Options::default()).profiles(&draft.request.encode_to_vec());
    let fault = parts[1].as_ref().unwrap_err();
    assert_eq!(fault.detail, "resource_profiles[1].scope_profiles[0].profiles[0]: stack_table[9] in a table of 2");
    assert!(fault.at.is_some() && fault.profile_type.is_some());
}

/// A name that is no text is one of the profiles that use it.
#[test]
fn a_name_that_is_not_utf8_spoils_who_uses_it() {
    let mut draft = three_pods();
    draft.dictionary().string_table.push("WRONG".to_owned());
    let name_strindex = i32::try_from(draft.dictionary().string_table.len() - 1).unwrap();
    draft.dictionary().function_table.push(Function { name_strindex, system_name_strindex: 0 });
    with_location(&mut draft, Location { address: 1, lines: vec![Line { function_index: 2, line: 1 }] });
    let mut message = draft.request.encode_to_vec();
    let at = message.windows(5).position(|window| window == b"WRONG").unwrap();
    message[at] = 0xff;
    assert_eq!(outcomes(&message), [Ok("pod-1".to_owned()), Err(Reason::Malformed), Ok("pod-3".to_owned())]);
}

/// Frames without a symbol and locations of inlined functions.
#[test]
fn frames_without_a_symbol_are_told_apart_from_none() {
    let mut draft = three_pods();
    let native = Location { address: 0xdead, lines: vec![] };
    with_location(&mut draft, native);
    draft.dictionary().stack_table.push(Stack { location_indices: vec![2, 0, 1] });
    draft.dictionary().location_table[1].lines.push(Line { function_index: 0, line: 0 });
    second(&mut draft).samples[0].stack_index = 3;
    let parts = Decoder::new(&Options::default()).profiles(&draft.request.encode_to_vec());
    let stacks = super::fixtures::written_out(parts[1].as_ref().unwrap());
    // Root first; within a location the caller stands behind what was inlined into it.
    assert_eq!(stacks[0].0, ["_unsymbolised", "main", "_unsymbolised", "_unsymbolised"]);
}

/// Samples as they were before 1.10: values where attributes stand now.
mod before {
    use fleetdiff_formats::otlp::proto::{Dictionary, Resource, ValueType};

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Request {
        #[prost(message, repeated, tag = "1")]
        pub resource_profiles: Vec<ResourceProfiles>,
        #[prost(message, optional, tag = "2")]
        pub dictionary: Option<Dictionary>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ResourceProfiles {
        #[prost(message, optional, tag = "1")]
        pub resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub scope_profiles: Vec<ScopeProfiles>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ScopeProfiles {
        #[prost(message, repeated, tag = "2")]
        pub profiles: Vec<Profile>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, optional, tag = "1")]
        pub sample_type: Option<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub samples: Vec<Sample>,
        #[prost(fixed64, tag = "3")]
        pub time_unix_nano: u64,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(int32, tag = "1")]
        pub stack_index: i32,
        #[prost(int64, repeated, tag = "2")]
        pub values: Vec<i64>,
        #[prost(int32, repeated, tag = "3")]
        pub attribute_indices: Vec<i32>,
        #[prost(int32, tag = "4")]
        pub link_index: i32,
        #[prost(fixed64, repeated, tag = "5")]
        pub timestamps_unix_nano: Vec<u64>,
    }
}

#[test]
fn a_message_of_an_older_version_is_refused() {
    let mut draft = three_pods();
    draft.attribute("cohort", Any::Text("tv".to_owned()));
    let sample_type = draft.request.resource_profiles[0].scope_profiles[0].profiles[0].sample_type;
    let reason = |sample: before::Sample| {
        let profile = before::Profile { sample_type, samples: vec![sample], time_unix_nano: 1 };
        let scope_profiles = vec![before::ScopeProfiles { profiles: vec![profile] }];
        let resource = draft.request.resource_profiles[0].resource.clone();
        let resource_profiles = vec![before::ResourceProfiles { resource, scope_profiles }];
        let dictionary = draft.request.dictionary.clone();
        outcomes(&before::Request { resource_profiles, dictionary }.encode_to_vec())
    };
    let plain = before::Sample { stack_index: 1, values: vec![1], ..before::Sample::default() };
    let other_version = [Err(Reason::UnsupportedVersion)];
    assert_eq!(reason(plain.clone()), other_version);
    assert_eq!(reason(before::Sample { attribute_indices: vec![1], ..plain.clone() }), other_version);
    assert_eq!(reason(before::Sample { link_index: 5, ..plain.clone() }), other_version);
    let timed = before::Sample { values: vec![70_000], timestamps_unix_nano: vec![1], ..plain };
    assert_eq!(reason(timed), [Err(Reason::IndexOutOfRange)]);
}

#[test]
fn a_message_without_a_dictionary_is_refused() {
    let mut draft = three_pods();
    draft.request.dictionary = None;
    assert_eq!(outcomes(&draft.request.encode_to_vec()), [Err(Reason::UnsupportedVersion)]);
    assert_eq!(outcomes(&[]), [Err(Reason::Empty)]);
    let mut empty = three_pods();
    empty.request.resource_profiles.iter_mut().for_each(|resource| resource.scope_profiles.clear());
    assert_eq!(outcomes(&empty.request.encode_to_vec()), [Err(Reason::Empty)]);
}

/// The dictionary comes last, so that no beginning of a message can be read.
#[test]
fn every_cut_is_refused() {
    let whole = three_pods().request.encode_to_vec();
    assert!(outcomes(&whole).iter().all(Result::is_ok));
    for end in 0..whole.len() {
        let outcomes = outcomes(&whole[..end]);
        assert!(!outcomes.is_empty() && outcomes.iter().all(Result::is_err), "cut at {end}: {outcomes:?}");
    }
    let packed = compression::gzip(&whole);
    assert_eq!(outcomes(&packed).len(), 3);
    assert_eq!(outcomes(&packed[..packed.len() - 9]), [Err(Reason::Truncated)]);
}

#[test]
fn what_unfolds_beyond_the_limit_is_too_large() {
    // A location of many functions, a stack of many such, many samples of it.
    let mut draft = three_pods();
    let dictionary = draft.dictionary();
    dictionary.location_table[1].lines = vec![Line { function_index: 1, line: 1 }; 1_000];
    dictionary.stack_table[1].location_indices = vec![1; 1_000];
    let sample = second(&mut draft).samples[0].clone();
    second(&mut draft).samples = vec![sample; 1_000];
    second(&mut draft).samples.iter_mut().for_each(|sample| sample.stack_index = 1);
    let record = draft.request.encode_to_vec();
    let options = Options { max_built_bytes: 256 << 10, ..Options::default() };
    let parts = Decoder::new(&options).profiles(&record);
    let reasons: Vec<_> = parts.iter().map(|part| part.as_ref().map(|_| ()).map_err(|fault| fault.reason)).collect();
    assert_eq!(reasons[..2], [Ok(()), Err(Reason::TooLarge)]);
    let small = Options { max_bytes: record.len() - 1, ..Options::default() };
    assert_eq!(Decoder::new(&small).profiles(&record)[0].as_ref().unwrap_err().reason, Reason::TooLarge);
}

/// Whose a profile is says the record, whatever the transport believes.
#[test]
fn labels_are_not_looked_at() {
    let record = bytes("hop01-node-1.otlp.pb");
    let mut decoder = Format::Otlp.decoder(&Options::default());
    let nobody = Err(Rejection::new(Reason::MissingIdentity, "no headers"));
    let somebody = Ok(super::fixtures::labels(fleetdiff_schemas::profile::ProfileType::Wall));
    assert_eq!(decoder.decode(&record, &nobody), decoder.decode(&record, &somebody));
    let profile = decoder.decode(&record, &nobody).remove(0).unwrap();
    let again = encode(std::slice::from_ref(&profile), &IdentityMapping::default()).unwrap();
    assert_eq!(
        super::fixtures::written_out(&decoder.decode(&again, &nobody).remove(0).unwrap()),
        super::fixtures::written_out(&profile)
    );
}
