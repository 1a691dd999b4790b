//! OTLP profiles as the OpenTelemetry Collector wrote them, against what a separate reader found in the pprof files they were made
//! of; the odd ones; and there and back.

use std::collections::BTreeMap;

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::otlp::proto::Request;
use fleetdiff_formats::otlp::{Decoder, encode};
use fleetdiff_formats::{Decode, Format, Labels, Options, folded, pprof};
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use proptest::prelude::*;
use prost::Message;
use serde_json::Value as Json;

use super::fixtures::{part, profiles, written_out};
use super::otlp_slow::{bytes, expected, expected_summary, lines, message, records, slow, summary};

/// Pods by the names that `expected.json` has.
fn by_pod_name() -> Options {
    let identity = IdentityMapping { pod: vec!["k8s.pod.name".into()], ..IdentityMapping::default() };
    Options { identity, ..Options::default() }
}

/// The profiles of a record, of which none is bad. A snapshot of locks that nobody has waited for holds no sample.
fn good(bytes: &[u8], options: &Options) -> Vec<Profile> {
    Decoder::new(options).profiles(bytes).into_iter().map(Result::unwrap).collect()
}

fn refused(parts: Vec<Result<Profile, Rejection>>) -> Vec<Rejection> {
    parts.into_iter().map(Result::unwrap_err).collect()
}

fn nanos(of_type: &Json, key: &str) -> i64 {
    of_type[key].as_i64().unwrap()
}

/// Each heap profile as if every allocation had been sampled, so that raw samples are the objects of `expected.json`.
fn unscaled(mut request: Request) -> Vec<u8> {
    let scopes = request.resource_profiles.iter_mut().flat_map(|resource| &mut resource.scope_profiles);
    for profile in scopes.flat_map(|scope| &mut scope.profiles).filter(|profile| profile.period == 524_288) {
        profile.period = 1;
    }
    request.encode_to_vec()
}

/// The sample types whose values are raw samples, by profile type.
const COUNTED: [(ProfileType, &str); 4] = [
    (ProfileType::Cpu, "samples/count"),
    (ProfileType::Heap, "alloc_objects/count"),
    (ProfileType::LiveHeap, "inuse_objects/count"),
    (ProfileType::Mutex, "contentions/count"),
];

/// Holds every profile of a record against the entries of the same pods and hops; gives how many there were.
fn assert_as_expected(request: Request, entries: &[Json]) -> usize {
    let profiles = good(&unscaled(request), &by_pod_name());
    let mut left: BTreeMap<(String, i64, &str), &Json> = BTreeMap::new();
    for entry in entries {
        for (kind, of_type) in entry["types"].as_object().unwrap() {
            if COUNTED.iter().any(|(_, counted)| counted == kind) {
                if of_type["total"] == 0 {
                    continue;
                }
                left.insert(
                    (entry["pod"].as_str().unwrap().to_owned(), nanos(of_type, "time_unix_nano"), kind),
                    of_type,
                );
            }
        }
    }
    for profile in &profiles {
        let identity = &profile.identity;
        let about = format!("{} at {:?}", identity.pod, profile.window);
        let entry = entries.iter().find(|entry| entry["pod"] == identity.pod.as_str()).unwrap();
        for (key, found) in [
            ("build", identity.build.as_str()),
            ("region", identity.region.as_str()),
            ("hardware", identity.hardware.as_str()),
            ("cohort", identity.cohort.as_str()),
        ] {
            assert_eq!(entry[key], found, "{about}");
        }
        let (_, kind) = COUNTED.iter().find(|(counted, _)| *counted == profile.profile_type).unwrap();
        let Some(of_type) = left.remove(&(identity.pod.to_string(), profile.window.start.0, *kind)) else { continue };
        assert_eq!(profile.window.end.since(profile.window.start), Nanos(nanos(of_type, "duration_nano")), "{about}");
        let rows: Vec<(Vec<String>, i64)> = written_out(profile)
            .into_iter()
            .map(|(frames, count, cohort)| {
                assert_eq!(cohort, None);
                (frames, i64::try_from(count).unwrap())
            })
            .collect();
        assert_eq!(rows.len(), usize::try_from(nanos(of_type, "nonzero")).unwrap(), "{about}");
        assert_eq!(summary(&rows), expected_summary(of_type), "{about}");
    }
    assert!(left.is_empty(), "not found: {:?}", left.keys());
    profiles.len()
}

/// `expected.json` was computed from the pprof files by a reader that shares nothing with this program.
#[test]
fn published_raw_samples_of_every_pod_and_hop() {
    let entries = expected();
    let of_record = |record: &Json| {
        let held =
            |entry: &&Json| entry["hop"] == record["hop"] && !record["pods"][entry["pod"].as_str().unwrap()].is_null();
        let entries: Vec<Json> = entries.iter().filter(held).cloned().collect();
        assert_eq!(entries.len(), 3);
        assert_as_expected(message(record["file"].as_str().unwrap()), &entries)
    };
    let found: usize = lines("records.jsonl").iter().map(of_record).sum();
    // 36 pods and hops of cpu, 24 of heap and as many of what is in use, 12 of mutex of which one is empty.
    assert_eq!((found, entries.len()), (96, 36));
}

/// The values of all ten sample types, by the slow reader that the decoder is held against elsewhere.
#[test]
fn published_values_of_every_pod_and_hop() {
    let entries = expected();
    let mut found = 0;
    for (hop, file) in records() {
        for profile in slow(&message(&file)) {
            let pod = profile.resource["k8s.pod.name"].as_str();
            let entry = entries.iter().find(|entry| entry["hop"] == hop && entry["pod"] == pod).unwrap();
            let of_type = &entry["types"][&profile.kind];
            let rows: Vec<_> = profile.rows.iter().map(|row| (row.frames.clone(), row.value())).collect();
            assert_eq!(summary(&rows), expected_summary(of_type), "{pod} {}", profile.kind);
            let times = [profile.time, profile.duration].map(|time| i64::try_from(time).unwrap());
            assert_eq!(times, [nanos(of_type, "time_unix_nano"), nanos(of_type, "duration_nano")]);
            found += 1;
        }
    }
    assert_eq!(found, 192);
}

#[test]
fn published_identities_of_every_pod() {
    let mut found = 0;
    for record in lines("records.jsonl") {
        let pods = record["pods"].as_object().unwrap();
        for profile in good(&bytes(record["file"].as_str().unwrap()), &Options::default()) {
            let identity = &profile.identity;
            let pod = pods.values().find(|pod| pod["uid"] == identity.pod.as_str()).unwrap();
            assert_eq!(identity.service.as_str(), "etcd");
            assert_eq!(pod["build"], identity.build.as_str());
            assert_eq!(record["node"], identity.node.as_ref().unwrap().as_str());
            let start = fleetdiff_formats::identity::instant::parse(pod["start_time"].as_str().unwrap());
            assert_eq!(identity.process_start, start);
            assert!(start.is_some());
            found += 1;
        }
    }
    assert_eq!(found, 96);
}

/// What is since the process began is told apart from what is of a window, and both are read.
#[test]
fn snapshots_of_memory_and_locks_are_cumulative() {
    for (hop, file) in records() {
        for profile in good(&bytes(&file), &Options::default()) {
            let expected = match profile.profile_type {
                ProfileType::Cpu => Temporality::Delta,
                ProfileType::LiveHeap => Temporality::Gauge,
                _ => Temporality::Cumulative,
            };
            assert_eq!(profile.temporality, expected);
        }
        // Three pods of cpu and locks, or of cpu and both sides of memory.
        let types = if hop == 2 { 6 } else { 9 };
        let mut decoder = Decoder::new(&Options::default());
        let nobody = Err(Rejection::new(Reason::MissingIdentity, "no headers"));
        let parts = decoder.decode(&bytes(&file), &nobody);
        assert_eq!((parts.len(), parts.iter().filter(|part| part.is_ok()).count()), (types, types), "{file}");
    }
}

fn odd(file: &str) -> Json {
    lines("edge/cases.jsonl").into_iter().find(|case| case["file"] == file).unwrap()
}

fn odd_bytes(file: &str) -> Vec<u8> {
    bytes(&format!("edge/{file}"))
}

#[test]
fn published_odd_records_that_are_to_be_read() {
    let mut found = BTreeMap::new();
    for file in ["headers.otlp.pb", "attributes-inline.otlp.pb", "attribute-twice.otlp.pb", "batch-merged.otlp.pb"] {
        let case = odd(file);
        assert_eq!(case["outcome"], "accept");
        let profiles = assert_as_expected(message(&format!("edge/{file}")), case["expected"].as_array().unwrap());
        found.insert(file, profiles);
    }
    assert_eq!(found.into_values().collect::<Vec<_>>(), [3, 3, 24, 3]);
    let twice = good(&odd_bytes("attribute-twice.otlp.pb"), &Options::default());
    assert!(twice.iter().all(|profile| profile.identity.service.as_str() == "etcd"));
}

/// A live program whose samples say their cohort, and whose resource names no pod.
#[test]
fn published_cohorts_of_samples() {
    let file = odd_bytes("live-go-labels.otlp.pb");
    let faults = refused(Decoder::new(&Options::default()).profiles(&file));
    let reasons: Vec<_> = faults.iter().map(|fault| (fault.reason, fault.profile_type, fault.samples)).collect();
    assert_eq!(reasons[0], (Reason::MissingIdentity, Some(ProfileType::Cpu), 591));
    assert_eq!((reasons[1].0, reasons[1].1, reasons.len()), (Reason::MissingIdentity, Some(ProfileType::Heap), 3));
    assert!(
        faults[0].detail.contains("k8s.pod.uid") && faults[0].detail.contains("resource_profiles[0]"),
        "{}",
        faults[0].detail
    );

    let identity = IdentityMapping { pod: vec!["service.name".into()], ..IdentityMapping::default() };
    let profiles = good(&file, &Options { identity, ..Options::default() });
    let mut cohorts: BTreeMap<String, u64> = BTreeMap::new();
    for (_, count, cohort) in written_out(&profiles[0]) {
        *cohorts.entry(cohort.unwrap_or_default()).or_default() += count;
    }
    let case = odd("live-go-labels.otlp.pb");
    let of_type = &case["expected"][0]["types"]["samples/count"];
    let said: BTreeMap<String, u64> = serde_json::from_value(of_type["by_label_cohort"].clone()).unwrap();
    let total = of_type["total"].as_u64().unwrap();
    let without = total - said.values().sum::<u64>();
    assert_eq!(cohorts.remove(""), Some(without));
    assert_eq!(cohorts, said);
    let rows: Vec<_> = written_out(&profiles[0])
        .into_iter()
        .map(|(frames, count, _)| (frames, i64::try_from(count).unwrap()))
        .collect();
    assert_eq!(summary(&rows), expected_summary(of_type));
}

#[test]
fn published_odd_records_that_are_to_be_refused() {
    let mut decoder = Decoder::new(&Options::default());
    let mut reasons = |file: &str, hint: &str| {
        assert_ne!(odd(file)["outcome"], "accept");
        let faults = refused(decoder.profiles(&odd_bytes(file)));
        assert!(faults[0].detail.contains(hint), "{}", faults[0].detail);
        faults.into_iter().map(|fault| (fault.reason, fault.samples)).collect::<Vec<_>>()
    };
    assert_eq!(reasons("no-dictionary.otlp.pb", "topic_from_attribute"), [(Reason::Malformed, 0)]);
    assert_eq!(reasons("otlp-json.json", "otlp_proto"), [(Reason::Malformed, 0)]);
    let nameless = reasons("attribute-keys-erased.otlp.pb", "lost their names");
    // The pods are those of another record, so their samples are known: they are lost, and counted as such.
    let case = odd("attributes-inline.otlp.pb");
    let totals = case["expected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["types"]["samples/count"]["total"].as_u64().unwrap());
    assert_eq!(nameless, totals.map(|total| (Reason::MissingIdentity, total)).collect::<Vec<_>>());
}

proptest! {
    /// The same profile gives the same, whatever it was written in.
    #[test]
    fn a_profile_is_the_same_in_every_format(profile in profiles()) {
        let record = encode(std::slice::from_ref(&profile), &IdentityMapping::default()).unwrap();
        let nobody = Err(Rejection::new(Reason::MissingIdentity, "no headers"));
        let read = part(&mut Decoder::new(&Options::default()), &record, &nobody).unwrap();
        let labels = Ok(Labels::of(&profile));
        prop_assert_eq!(&read, &profile);
        prop_assert_eq!(&part(&mut *Format::Pprof.decoder(&Options::default()), &pprof::encode(&profile).unwrap(), &labels).unwrap(), &read);
        // Folded stacks have no cohorts, and no names but those of their stacks.
        let Samples::Stacks(mut stacks) = profile.samples.clone() else { unreachable!() };
        stacks.iter_mut().for_each(|stack| stack.cohort = None);
        let plain = Profile { samples: Samples::Stacks(stacks), ..profile };
        let record = encode(std::slice::from_ref(&plain), &IdentityMapping::default()).unwrap();
        let read = part(&mut Decoder::new(&Options::default()), &record, &nobody).unwrap();
        if let Ok(text) = folded::encode(&plain) {
            let folded = part(&mut *Format::Folded.decoder(&Options::default()), &text, &labels).unwrap();
            prop_assert_eq!(written_out(&folded), written_out(&read));
            let names = |profile: &Profile| Profile { names: Default::default(), samples: Samples::Stacks(vec![]), ..profile.clone() };
            prop_assert_eq!(names(&folded), names(&read));
        }
    }

    /// Many profiles in one record are those that were written, in their order; what was read and is written is read again.
    #[test]
    fn there_and_back(written in proptest::collection::vec(profiles(), 1..5)) {
        let record = encode(&written, &IdentityMapping::default()).unwrap();
        let read: Vec<Profile> = Decoder::new(&Options::default()).profiles(&record).into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), written.len());
        for (read, written) in read.iter().zip(&written) {
            prop_assert_eq!(written_out(read), written_out(written));
            let plain = Profile { names: read.names.clone(), samples: read.samples.clone(), ..written.clone() };
            prop_assert_eq!(read, &plain);
        }
        let again = encode(&read, &IdentityMapping::default()).unwrap();
        let again: Vec<Profile> = Decoder::new(&Options::default()).profiles(&again).into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(again, read);
    }
}
