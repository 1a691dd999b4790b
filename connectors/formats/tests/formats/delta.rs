//! The columnar delta: there and back, and the files of both versions that stay.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use fleetdiff_schemas::delta::{SeenNames, decode, decode_after, encode};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{
    Folded, FoldedFunction, Profile, ProfileType, Requests, Samples, Stack, Temporality, content_hash,
};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::{Nanos, TimeRange};
use proptest::collection::vec;
use proptest::prelude::*;

use super::fixtures::{identity, profiles, stacks_of, testdata, window};

/// A cohort with its functions by name.
type Named = (String, u64, Vec<(String, u64, u64)>);

fn named(profile: &Profile, cohorts: &[Folded]) -> Vec<Named> {
    let name = |function: &FoldedFunction| profile.names[usize::try_from(function.name).unwrap()].to_string();
    let functions = |part: &Folded| {
        let mut functions: Vec<_> = part.functions.iter().map(|f| (name(f), f.own, f.total)).collect();
        functions.sort();
        functions
    };
    cohorts.iter().map(|part| (part.cohort.to_string(), part.samples, functions(part))).collect()
}

fn folded_of(profile: &Profile) -> (u128, &[Folded]) {
    match &profile.samples {
        Samples::Folded { content, cohorts } => (*content, cohorts),
        Samples::Stacks(_) => panic!("expected counts by function"),
    }
}

/// Samples and values by cohort and frames.
fn by_frames(profile: &Profile) -> BTreeMap<(Option<String>, Vec<String>), [u64; 2]> {
    let mut stacks: BTreeMap<_, [u64; 2]> = BTreeMap::new();
    for stack in stacks_of(profile).iter().filter(|stack| stack.count > 0 || stack.value > 0) {
        let name = |frame: &u32| profile.names[usize::try_from(*frame).unwrap()].to_string();
        let frames = stack.frames.iter().map(name).collect();
        let [count, value] = stacks.entry((stack.cohort.as_ref().map(ToString::to_string), frames)).or_default();
        (*count, *value) = (*count + stack.count, *value + stack.value);
    }
    stacks
}

proptest! {
    /// Stacks arrive as they were, equal ones together; everything else as it was. All share one table of names.
    #[test]
    fn there_and_back(profiles in vec(profiles(), 1..6)) {
        let read: Vec<Profile> = decode(&encode(&profiles)).unwrap().into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), profiles.len());
        for (read, sent) in read.iter().zip(&profiles) {
            prop_assert_eq!(by_frames(read), by_frames(sent));
            let hash = |profile: &Profile| content_hash(&profile.names, stacks_of(profile));
            prop_assert_eq!(hash(read), hash(sent));
            prop_assert!(stacks_of(read).len() <= stacks_of(sent).len());
            prop_assert_eq!((&read.identity, read.window, read.requests), (&sent.identity, sent.window, sent.requests));
            prop_assert_eq!((read.profile_type, read.temporality), (sent.profile_type, sent.temporality));
        }
        let names = &read[0].names;
        prop_assert!(read.iter().all(|profile| Arc::ptr_eq(&profile.names, names)));
        prop_assert!(names.is_sorted_by(|a, b| a < b));
    }

    /// What has passed once stays as it is, to the byte.
    #[test]
    fn a_second_passage_changes_nothing(profiles in vec(profiles(), 1..6)) {
        let once = encode(&profiles);
        let read: Vec<Profile> = decode(&once).unwrap().into_iter().map(Result::unwrap).collect();
        let twice = encode(&read);
        let again: Vec<Profile> = decode(&twice).unwrap().into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(read, again);
        prop_assert_eq!(once, twice);
    }

    /// The record does not depend on the order of stacks nor on how equal ones are split.
    #[test]
    fn order_and_splitting_leave_the_record(profile in profiles()) {
        let mut split = Vec::new();
        for stack in stacks_of(&profile).iter().rev() {
            split.insert(0, stack.clone());
            if stack.count > 1 {
                split[0].count -= 1;
                split.push(Stack { count: 1, value: 0, ..stack.clone() });
            }
        }
        let other = Profile { samples: Samples::Stacks(split), ..profile.clone() };
        prop_assert_eq!(encode(&[profile]), encode(&[other]));
    }
}

/// The profiles that the files in `testdata/delta` were written from.
fn first_written() -> Vec<Profile> {
    let stack = |frames: &[u32], count: u64, cohort: Option<&str>| Stack {
        frames: frames.to_vec(),
        count,
        cohort: cohort.map(Into::into),
        value: 0,
    };
    let stacks = vec![
        stack(&[0, 1], 7, None),
        stack(&[0, 1, 1, 2], 300, None),
        stack(&[], 2, None),
        stack(&[0, 3], 70_000, Some("Android-TV")),
    ];
    let on_node = Identity {
        node: Some("node-7".into()),
        process_start: Some(Nanos(window().start.0 - 86_400_000_000_000)),
        ..Identity::clone(&identity("pod-1"))
    };
    let first = Profile {
        identity: on_node.into(),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: window(),
        requests: Some(Requests { count: 12_345, window: TimeRange { start: Nanos(-5), end: Nanos(1_000) } }),
        names: ["main".into(), "serve".into(), "naïve λ".into(), "serialize_video_chunk".into()].into(),
        samples: Samples::Stacks(stacks),
    };
    let functions = vec![FoldedFunction { name: 1, own: 0, total: 4 }, FoldedFunction { name: 3, own: 4, total: 4 }];
    let cohorts = vec![Folded { cohort: "web".into(), samples: 5, functions }];
    let second = Profile {
        identity: identity("pod-2"),
        profile_type: ProfileType::Mutex,
        requests: None,
        samples: Samples::Folded { content: u128::MAX - 1, cohorts },
        ..first.clone()
    };
    vec![first, second]
}

#[test]
fn version_1_is_read_for_ever() {
    let kept = fs::read(testdata("delta/v1.fldd")).unwrap();
    let read: Vec<Profile> = decode(&kept).unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(read.iter().map(Profile::total).collect::<Vec<_>>(), [70_309, 5]);
    let (content, cohorts) = folded_of(&read[0]);
    assert_eq!(content, 0x6f6a_8a29_f3af_8859_75c4_a6b9_0057_3273);
    type Function = (&'static str, u64, u64);
    let expected: [(&str, u64, &[Function]); 2] = [
        ("Android-TV", 70_000, &[("main", 0, 70_000), ("serialize_video_chunk", 70_000, 70_000)]),
        ("web", 309, &[("main", 0, 307), ("naïve λ", 300, 300), ("serve", 7, 307)]),
    ];
    let expected: Vec<Named> = expected
        .iter()
        .map(|(cohort, samples, functions)| {
            let functions = functions.iter().map(|(name, own, total)| ((*name).to_owned(), *own, *total)).collect();
            ((*cohort).to_owned(), *samples, functions)
        })
        .collect();
    assert_eq!(named(&read[0], cohorts), expected);
    for (read, sent) in read.iter().zip(first_written()) {
        assert_eq!((&read.identity, read.window, read.requests), (&sent.identity, sent.window, sent.requests));
        assert_eq!((read.profile_type, read.temporality), (sent.profile_type, sent.temporality));
    }
    assert_eq!(folded_of(&read[1]).0, u128::MAX - 1);
}

/// The profiles of `v2.fldd`: those of version 1, with values, and a snapshot of memory that has none yet.
fn second_written() -> Vec<Profile> {
    let mut written = first_written();
    if let Samples::Stacks(stacks) = &mut written[0].samples {
        stacks.iter_mut().for_each(|stack| stack.value = stack.count * 10_000_000);
        stacks[3].value += 1;
    }
    written.push(Profile {
        profile_type: ProfileType::Heap,
        temporality: Temporality::Cumulative,
        samples: Samples::Stacks(Vec::new()),
        ..written[0].clone()
    });
    written
}

#[test]
fn version_2_is_read_and_written_for_ever() {
    let kept = fs::read(testdata("delta/v2.fldd")).unwrap();
    let read: Vec<Profile> = decode(&kept).unwrap().into_iter().map(Result::unwrap).collect();
    let sent = second_written();
    assert_eq!(by_frames(&read[0]), by_frames(&sent[0]));
    assert_eq!(read[0].value(), 703_090_000_001);
    assert_eq!(named(&read[1], folded_of(&read[1]).1), named(&sent[1], folded_of(&sent[1]).1));
    assert_eq!((stacks_of(&read[2]).len(), read[2].temporality), (0, Temporality::Cumulative));
    assert_eq!(encode(&sent), kept);
}

/// A record of one profile, of which a byte of the call tree is another one.
#[test]
fn call_trees_that_cannot_be_are_refused() {
    let record = encode(&second_written()[..1]);
    // main has the children serialize_video_chunk and serve, and serve has serve, which has naïve λ.
    let tree = [5, 0, 0, 1, 0, 0, 0, 2, 3, 3, 1];
    let place = record.windows(tree.len()).position(|bytes| bytes == tree).unwrap();
    let with = |offset: usize, byte: u8| {
        let mut other = record.clone();
        other[place + offset] = byte;
        decode(&other).err().map(|fault| fault.reason)
    };
    assert_eq!(with(1, 0), None);
    assert_eq!(with(1, 1), Some(Reason::Malformed), "the first node has nothing above it but the root");
    assert_eq!(with(3, 3), Some(Reason::Malformed), "three levels up from the second level");
    assert_eq!(with(6, 4), Some(Reason::IndexOutOfRange), "there are four names");
    assert_eq!(with(8, 2), Some(Reason::Malformed), "main has two callees of one name");
}

/// A record of one profile with these cohorts, written as they are.
fn reason_of(cohorts: Vec<Folded>) -> Option<Reason> {
    let profile = Profile { samples: Samples::Folded { content: 0, cohorts }, ..first_written().remove(1) };
    let part = decode(&encode(&[profile])).map(|mut parts| parts.remove(0));
    part.and_then(|part| part).err().map(|fault| fault.reason)
}

#[test]
fn counts_that_cannot_be_are_malformed() {
    let function = |name, own, total| FoldedFunction { name, own, total };
    let cohort = |cohort: &str, samples, functions| Folded { cohort: cohort.into(), samples, functions };
    let good = cohort("a", 5, vec![function(0, 2, 5), function(1, 3, 3)]);
    let over = cohort("a", 5, vec![function(0, 3, 5), function(1, 3, 3)]);
    let wide = cohort("a", 5, vec![function(0, 2, 6)]);
    let none = cohort("a", 5, vec![function(0, 0, 0)]);
    assert_eq!(reason_of(vec![good.clone()]), None);
    assert_eq!(reason_of(vec![over]), Some(Reason::Malformed));
    assert_eq!(reason_of(vec![wide]), Some(Reason::Malformed));
    assert_eq!(reason_of(vec![none]), Some(Reason::Malformed));
    assert_eq!(reason_of(vec![cohort("a", 0, vec![])]), Some(Reason::Malformed));
    assert_eq!(reason_of(vec![good.clone(), good.clone()]), Some(Reason::Malformed));
    assert_eq!(reason_of(vec![cohort("b", 1, vec![]), good.clone()]), Some(Reason::Malformed));
    assert_eq!(reason_of(vec![cohort("a", 1 << 48, vec![])]), None);
    assert_eq!(reason_of(vec![cohort("a", 1 << 48, vec![]), cohort("b", 1, vec![])]), Some(Reason::TooLarge));
    assert_eq!(reason_of(vec![cohort("a", u64::MAX, vec![function(0, u64::MAX, u64::MAX)])]), Some(Reason::TooLarge));
}

#[test]
fn records_with_the_same_functions_share_their_names() {
    let mut seen = SeenNames::default();
    let mut names_of = |profiles: &[Profile]| {
        let part = decode_after(&encode(profiles), &mut seen, &mut |_| Ok(())).unwrap().remove(0);
        part.unwrap().names
    };
    let [first, second] = [first_written().remove(0), first_written().remove(1)];
    let (a, b) = (names_of(std::slice::from_ref(&first)), names_of(std::slice::from_ref(&second)));
    let again = Profile { identity: identity("pod-9"), window: TimeRange { start: Nanos(1), end: Nanos(2) }, ..first };
    assert!(Arc::ptr_eq(&a, &names_of(&[again])));
    assert!(!Arc::ptr_eq(&a, &b));
    assert_eq!((a.len(), b.len()), (4, 2));
}
