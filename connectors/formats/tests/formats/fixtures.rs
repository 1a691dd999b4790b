//! Whose the test profiles are, and random ones.

use std::path::PathBuf;
use std::sync::Arc;

use fleetdiff_formats::names::NameRules;
use fleetdiff_formats::{Decode, Format, Labels, Options, Symbols};
use fleetdiff_schemas::identity::{Cohort, Identity};
use fleetdiff_schemas::profile::{Profile, ProfileType, Requests, Samples, Stack, Temporality};
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::{Nanos, TimeRange};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// 2023-11-14, a round number of seconds.
pub const START: i64 = 1_700_000_000_000_000_000;

pub fn testdata(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(file)
}

pub fn recorded(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fleets").join(file)
}

pub fn identity(pod: &str) -> Arc<Identity> {
    Arc::new(Identity {
        service: "shop".into(),
        build: "2.1".into(),
        region: "eu-west-1".into(),
        cohort: "web".into(),
        hardware: "m7g".into(),
        node: None,
        pod: pod.into(),
        process_start: None,
    })
}

pub fn window() -> TimeRange {
    TimeRange { start: Nanos(START), end: Nanos(START + 10_000_000_000) }
}

/// The type that good records of a format are of.
pub fn kind_of(format: Format) -> ProfileType {
    if format == Format::Heapprofile { ProfileType::Heap } else { ProfileType::Cpu }
}

/// The options by which records of a format are read at all: the default ones, but for a format whose functions are looked up elsewhere.
pub fn options(format: Format) -> Options {
    let symbols = if format == Format::PerfData { Symbols::ThisMachine } else { Symbols::Nowhere };
    Options { symbols, ..Options::default() }
}

pub fn labels(profile_type: ProfileType) -> Labels {
    Labels {
        identity: identity("pod-1"),
        profile_type,
        temporality: Temporality::Delta,
        window: Some(window()),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
        period: None,
        root_is_thread: false,
    }
}

/// The one part of a record, or that beside which the memory in use stands.
pub fn part(decoder: &mut dyn Decode, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Result<Profile, Rejection> {
    let mut parts = decoder.decode(bytes, labels);
    let counts = parts.remove(0);
    let is_level = |part: &Result<Profile, Rejection>| {
        part.as_ref().is_ok_and(|profile| profile.profile_type == ProfileType::LiveHeap)
    };
    assert!(parts.len() < 2 && parts.iter().all(is_level), "{parts:?}");
    counts
}

pub fn stacks_of(profile: &Profile) -> &[Stack] {
    match &profile.samples {
        Samples::Stacks(stacks) => stacks,
        Samples::Folded { .. } => panic!("expected stacks"),
    }
}

/// The same without what its samples stand for, which a reading keeps beside the stacks.
pub fn unweighed(profile: &Profile) -> Profile {
    let Samples::Stacks(stacks) = &profile.samples else { return profile.clone() };
    let stacks = stacks.iter().map(|stack| Stack { value: 0, ..stack.clone() });
    Profile { samples: Samples::Stacks(stacks.collect()), ..profile.clone() }
}

/// Frames as text, root first, with count and cohort.
pub fn written_out(profile: &Profile) -> Vec<(Vec<String>, u64, Option<String>)> {
    let name = |frame: &u32| profile.names[usize::try_from(*frame).unwrap()].to_string();
    let stacks = stacks_of(profile).iter();
    stacks
        .map(|stack| {
            let frames = stack.frames.iter().map(name).collect();
            (frames, stack.count, stack.cohort.as_ref().map(ToString::to_string))
        })
        .collect()
}

fn identities() -> impl Strategy<Value = Arc<Identity>> {
    let node = option::of(select(vec!["node-1", "node-2"]));
    let start = option::of(any::<i64>().prop_map(Nanos));
    (select(vec!["a", "b", "c"]), select(vec!["eu", "us"]), node, start).prop_map(
        |(pod, region, node, process_start)| {
            let node = node.map(Into::into);
            Arc::new(Identity { region: region.into(), node, process_start, ..Identity::clone(&identity(pod)) })
        },
    )
}

fn windows() -> impl Strategy<Value = TimeRange> {
    (1i64..i64::MAX / 2, 0i64..1_000_000_000_000)
        .prop_map(|(start, length)| TimeRange { start: Nanos(start), end: Nanos(start + length) })
}

fn cohorts() -> impl Strategy<Value = Option<Cohort>> {
    option::of(select(vec!["android", "ios", "web", "ünïcode"])).prop_map(|cohort| cohort.map(Into::into))
}

/// Names as programs have them: with spaces, brackets, any letter; none that changes when it is read, none with `;`.
fn names() -> impl Strategy<Value = Arc<[Arc<str>]>> {
    btree_set("[a-zA-Z_:<>()*.\\[\\] 0-9µ-ž]{1,20}", 1..30)
        .prop_map(|names| names.into_iter().rev().map(Arc::from).collect())
        .prop_filter("changed when read", |names: &Arc<[Arc<str>]>| {
            names.iter().all(|name| NameRules::default().apply(name) == **name)
        })
}

/// Stacks whose samples stand for the time that is written for them, if they stand for time and that can be.
fn timed(kind: ProfileType, mut stacks: Vec<Stack>) -> Vec<Stack> {
    let each = if matches!(kind, ProfileType::Cpu | ProfileType::Wall | ProfileType::OffCpu) { 10_000_000 } else { 0 };
    let all: u128 = stacks.iter().map(|stack| u128::from(stack.count) * each).sum();
    if all <= u128::from(fleetdiff_schemas::profile::MAX_VALUE) {
        stacks.iter_mut().for_each(|stack| stack.value = stack.count * u64::try_from(each).unwrap());
    }
    stacks
}

/// Profiles with stacks, as a decoder gives them.
pub fn profiles() -> impl Strategy<Value = Profile> {
    let types = select(ProfileType::ALL.map(|(kind, _)| kind).to_vec());
    let requests = option::of((any::<u64>(), windows()));
    (identities(), types, windows(), requests, names()).prop_flat_map(
        |(identity, profile_type, window, requests, names)| {
            let frames = vec(0..u32::try_from(names.len()).unwrap(), 0..12);
            let count = prop_oneof![1u64..20, 1u64..1 << 40];
            let stack = (frames, count, cohorts());
            let stacks =
                vec(stack.prop_map(|(frames, count, cohort)| Stack { frames, count, cohort, value: 0 }), 1..30);
            stacks.prop_map(move |stacks| timed(profile_type, stacks)).prop_map(move |stacks| Profile {
                identity: Arc::clone(&identity),
                profile_type,
                temporality: if profile_type.is_level() { Temporality::Gauge } else { Temporality::Delta },
                window,
                requests: requests
                    .filter(|_| !profile_type.is_level())
                    .map(|(count, window)| Requests { count, window }),
                names: Arc::clone(&names),
                samples: Samples::Stacks(stacks),
            })
        },
    )
}
