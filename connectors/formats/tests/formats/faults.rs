//! Every fault of a record, in every format, by its exact reason.

use fleetdiff_formats::pprof::encode;
use fleetdiff_formats::pprof::proto::{Label, Line, Profile as Message};
use fleetdiff_formats::{Format, Labels, Options, compression, folded};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;
use prost::Message as _;

use super::fixtures::{identity, labels, part, stacks_of, window};

fn profile() -> Profile {
    let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
    Profile {
        identity: identity("pod-1"),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: window(),
        requests: None,
        names: ["main".into(), "work".into(), "wait".into()].into(),
        samples: Samples::Stacks(vec![stack(&[0, 1], 7), stack(&[0, 2], 5)]),
    }
}

fn with_cohort() -> Profile {
    let stack = Stack { frames: vec![0], count: 1, cohort: Some("ios".into()), value: 0 };
    Profile { samples: Samples::Stacks(vec![stack]), ..profile() }
}

/// The reason for which a record of a format is refused.
fn reason(format: Format, bytes: &[u8]) -> Reason {
    let mut decoder = format.decoder(&Options::default());
    let fault = part(decoder.as_mut(), bytes, &Ok(labels(ProfileType::Cpu))).unwrap_err();
    if format != Format::Delta {
        assert_eq!((fault.profile_type, fault.at), (Some(ProfileType::Cpu), Some(window().midpoint())), "{fault:?}");
    }
    assert!(!fault.detail.is_empty());
    fault.reason
}

#[test]
fn records_cut_short_or_made_of_nothing_we_know() {
    let pprof = encode(&profile()).unwrap();
    let stacks = folded::encode(&profile()).unwrap();
    let record = delta::encode(&[profile()]);
    let packed = compression::gzip(&record);
    let garbage = compression::gzip(b"\x9c\xff\x01garbage");
    let cases: [(Format, &[u8], Reason); 12] = [
        (Format::Pprof, &pprof[..pprof.len() - 9], Reason::Truncated),
        (Format::Pprof, &pprof[..12], Reason::Truncated),
        (Format::Pprof, b"this is not a profile", Reason::Malformed),
        (Format::Pprof, &garbage, Reason::Malformed),
        (Format::Pprof, b"", Reason::Empty),
        (Format::Folded, &stacks[..stacks.len() - 9], Reason::Truncated),
        (Format::Folded, &garbage, Reason::Malformed),
        (Format::Folded, b"", Reason::Empty),
        (Format::Delta, &packed[..packed.len() - 9], Reason::Truncated),
        (Format::Delta, &record[..record.len() - 1], Reason::Truncated),
        (Format::Delta, &garbage, Reason::Malformed),
        (Format::Delta, b"", Reason::Truncated),
    ];
    for (place, (format, bytes, expected)) in cases.into_iter().enumerate() {
        assert_eq!(reason(format, bytes), expected, "case {place}, {}", format.name());
    }
}

#[test]
fn every_other_version_of_the_delta_is_refused() {
    for version in (0..=u8::MAX).filter(|version| ![1, delta::VERSION].contains(version)) {
        let mut record = delta::encode(&[profile()]);
        record[4] = version;
        assert_eq!(reason(Format::Delta, &record), Reason::UnsupportedVersion);
    }
}

#[test]
fn every_cut_of_a_delta_is_truncated() {
    let record = delta::encode(&[profile(), with_cohort()]);
    for end in 0..record.len() {
        assert_eq!(delta::decode(&record[..end]).unwrap_err().reason, Reason::Truncated, "cut at {end}");
    }
}

/// The reason after one change to a good message.
fn after(change: impl FnOnce(&mut Message)) -> Reason {
    let bytes = compression::decompress(&encode(&with_cohort()).unwrap(), 1 << 20).unwrap().into_owned();
    let mut message = Message::decode(bytes.as_slice()).unwrap();
    change(&mut message);
    reason(Format::Pprof, &message.encode_to_vec())
}

#[test]
fn references_beyond_a_table_are_out_of_range() {
    let out_of_range = [
        after(|message| message.sample[0].location_id[0] = 99),
        after(|message| message.sample[0].location_id[0] = 0),
        after(|message| message.location[0].line[0].function_id = 99),
        after(|message| message.function[2].name = 99),
        after(|message| message.function[2].name = -1),
        after(|message| (message.function[2].name, message.function[2].system_name) = (0, 99)),
        after(|message| message.sample_type[0].unit = 99),
        after(|message| message.sample[0].label[0].key = 99),
        after(|message| message.sample[0].label[0].str = -5),
        after(|message| message.sample[0].label.insert(0, Label { key: i64::MIN, ..Label::default() })),
    ];
    assert_eq!(out_of_range, [Reason::IndexOutOfRange; 10]);
}

#[test]
fn tables_that_contradict_themselves_are_malformed() {
    let malformed = [
        after(|message| message.location[1].id = 1),
        after(|message| message.location[0].id = 0),
        after(|message| message.function[1].id = 1),
        after(|message| message.sample[0].value.push(1)),
        after(|message| message.sample[0].value.clear()),
        after(|message| message.string_table[0] = "main".to_owned()),
    ];
    assert_eq!(malformed, [Reason::Malformed; 6]);
}

#[test]
fn what_unfolds_without_end_is_too_large() {
    let options = Options { max_bytes: 64 << 10, max_built_bytes: 64 << 10, ..Options::default() };
    let bytes = compression::decompress(&encode(&profile()).unwrap(), 1 << 20).unwrap().into_owned();
    let bomb = |change: &dyn Fn(&mut Message)| {
        let mut message = Message::decode(bytes.as_slice()).unwrap();
        change(&mut message);
        let packed = compression::gzip(&message.encode_to_vec());
        let mut decoder = Format::Pprof.decoder(&options);
        part(decoder.as_mut(), &packed, &Ok(labels(ProfileType::Cpu))).map_err(|fault| fault.reason)
    };
    let lines = vec![Line { function_id: 1, ..Line::default() }; 200];
    // 200 functions at one location, 100 times on a stack.
    let deep = |message: &mut Message| {
        message.location[0].line.clone_from(&lines);
        message.sample[0].location_id = vec![1; 100];
    };
    let wide = |message: &mut Message| message.string_table.extend(vec![String::new(); 3_000]);
    let long = |message: &mut Message| message.string_table.push("x".repeat(64 << 10));
    assert!(bomb(&|_| ()).is_ok());
    assert_eq!(bomb(&deep), Err(Reason::TooLarge));
    assert_eq!(bomb(&wide), Err(Reason::TooLarge));
    assert_eq!(bomb(&long), Err(Reason::TooLarge));
}

#[test]
fn levels_and_snapshots_without_stacks_are_refused_with_their_moment() {
    let folded_by_function = |profile: &Profile| {
        let cohorts = fold_stacks(&profile.names, stacks_of(profile), &profile.identity.cohort);
        Profile { samples: Samples::Folded { content: 1, cohorts }, ..profile.clone() }
    };
    for (temporality, refused) in
        [(Temporality::Cumulative, [false, false, false, true]), (Temporality::Gauge, [true; 4])]
    {
        let held = Profile { temporality, ..profile() };
        let records = [
            (Format::Pprof, encode(&held).unwrap()),
            (Format::Folded, folded::encode(&held).unwrap()),
            (Format::Delta, delta::encode(std::slice::from_ref(&held))),
            (Format::Delta, delta::encode(&[folded_by_function(&held)])),
        ];
        for ((format, bytes), refused) in records.into_iter().zip(refused) {
            let labels =
                Ok(Labels { temporality, window: (format != Format::Pprof).then(window), ..labels(ProfileType::Cpu) });
            match part(format.decoder(&Options::default()).as_mut(), &bytes, &labels) {
                Ok(profile) => assert_eq!((refused, profile.temporality, profile.total()), (false, temporality, 12)),
                Err(fault) => {
                    assert_eq!((refused, fault.reason), (true, Reason::UnsupportedType));
                    assert_eq!((fault.profile_type, fault.at), (Some(ProfileType::Cpu), Some(window().end)));
                }
            }
        }
    }
}

/// As a mutex profile of Go is before anybody has waited: it says what it would count, and nothing was.
#[test]
fn a_snapshot_without_samples_is_one_and_a_delta_without_is_empty() {
    let nothing = Profile { samples: Samples::Stacks(Vec::new()), ..profile() };
    let bytes = encode(&nothing).unwrap();
    let read = |temporality| {
        let labels = Ok(Labels { temporality, ..labels(ProfileType::Cpu) });
        part(Format::Pprof.decoder(&Options::default()).as_mut(), &bytes, &labels).map(|profile| profile.total())
    };
    assert_eq!(read(Temporality::Cumulative), Ok(0));
    assert_eq!(read(Temporality::Delta).map_err(|fault| fault.reason), Err(Reason::Empty));
}

#[test]
fn a_record_without_an_owner_says_when_and_how_much_is_lost() {
    let nobody =
        Rejection { profile_type: Some(ProfileType::Cpu), ..Rejection::new(Reason::MissingIdentity, "no pod") };
    let bytes = encode(&profile()).unwrap();
    let fault = part(Format::Pprof.decoder(&Options::default()).as_mut(), &bytes, &Err(nobody.clone())).unwrap_err();
    let at = Some(window().midpoint());
    assert_eq!(fault, Rejection { samples: 12, at, ..nobody.clone() });
    let broken = part(Format::Pprof.decoder(&Options::default()).as_mut(), b"garbage", &Err(nobody.clone()));
    assert_eq!(broken.unwrap_err(), nobody);
    let stacks = part(Format::Folded.decoder(&Options::default()).as_mut(), b"a 3\nb 4", &Err(nobody.clone()));
    assert_eq!(stacks.unwrap_err().samples, 7);
}

#[test]
fn a_bad_profile_of_a_delta_spoils_no_other() {
    let nameless = fleetdiff_schemas::identity::Identity {
        pod: "".into(),
        ..fleetdiff_schemas::identity::Identity::clone(&identity("x"))
    };
    let empty = Profile { samples: Samples::Folded { content: 3, cohorts: vec![] }, ..profile() };
    let owner = Profile { identity: nameless.into(), ..profile() };
    let far = TimeRange { start: window().end, end: window().end };
    let parts =
        delta::decode(&delta::encode(&[owner, profile(), empty, Profile { window: far, ..profile() }])).unwrap();
    let reasons: Vec<Result<u64, Reason>> =
        parts.iter().map(|part| part.as_ref().map(Profile::total).map_err(|fault| fault.reason)).collect();
    assert_eq!(reasons, [Err(Reason::MissingIdentity), Ok(12), Err(Reason::Empty), Ok(12)]);
    for fault in parts.into_iter().filter_map(Result::err) {
        assert_eq!((fault.profile_type, fault.at), (Some(ProfileType::Cpu), Some(window().midpoint())));
    }
}
