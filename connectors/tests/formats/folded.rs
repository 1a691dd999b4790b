//! Folded stacks.

use fleetdiff_connectors::formats::folded::{Decoder, encode};
use fleetdiff_connectors::formats::{Labels, Options, Unencodable, Unit};
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, content_hash};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use proptest::prelude::*;

use super::fixtures::{labels, part, profiles, stacks_of, written_out};

fn decode(text: &[u8]) -> Result<Profile, Rejection> {
    part(&mut Decoder::new(&Options::default()), text, &Ok(labels(ProfileType::Cpu)))
}

#[test]
fn frames_stand_as_they_are() {
    let text = b"# a comment\n\nmain;do work(int, char const*);read_[k] 12\r\n   \nmain;[libjemalloc.so.2] 1";
    let expected = vec![
        (vec!["main".to_owned(), "do work(int, char const*)".to_owned(), "read_[k]".to_owned()], 12, None),
        (vec!["main".to_owned(), "[libjemalloc.so.2]".to_owned()], 1, None),
    ];
    assert_eq!(written_out(&decode(text).unwrap()), expected);
}

#[test]
fn frames_without_a_symbol_are_one_name() {
    let profile = decode(b"main;[unknown];;work;[unknown] 4\n 3\n").unwrap();
    let names: Vec<&str> = profile.names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["main", "_unsymbolised", "work"]);
    assert_eq!(stacks_of(&profile)[0].frames, [0, 1, 1, 2, 1]);
    assert_eq!((stacks_of(&profile)[1].frames.len(), stacks_of(&profile)[1].count), (0, 3));
}

#[test]
fn zero_counts_leave_no_stack_and_equal_stacks_may_repeat() {
    let profile = decode(b"main;a 0\nmain;b 2\nmain;b 3\n").unwrap();
    assert_eq!(stacks_of(&profile).iter().map(|stack| stack.count).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn each_fault_has_its_reason_and_its_line() {
    let cases: [(&[u8], Reason, &str); 9] = [
        (b"main 1\nmain;work -4\n", Reason::NegativeValue, "line 2: a count of -4"),
        (b"main -99999999999999999999\n", Reason::NegativeValue, "line 1"),
        (b"main 1\nmain;work\n", Reason::Malformed, "line 2: no count"),
        (b"main;do work\n", Reason::Malformed, "line 1: \"work\" is not a count"),
        (b"main 1.5\n", Reason::Malformed, "line 1: \"1.5\" is not a count"),
        (b"main 1\n\n\xff\xfe 3\n", Reason::Malformed, "line 3: not UTF-8"),
        (b"main 99999999999999999999\n", Reason::TooLarge, "line 1"),
        (b"main 9000000000000000000\n", Reason::TooLarge, "9000000000000000000 samples"),
        (b"# nothing\nmain 0\n", Reason::Empty, "no sample"),
    ];
    for (text, reason, detail) in cases {
        let fault = decode(text).unwrap_err();
        assert_eq!(fault.reason, reason, "{fault:?}");
        assert!(fault.detail.contains(detail), "{fault:?}");
        assert_eq!(fault.profile_type, Some(ProfileType::Cpu));
        assert!(fault.at.is_some());
    }
}

#[test]
fn values_that_are_no_counts_are_refused() {
    let mut decoder = Decoder::new(&Options::default());
    for unit in Unit::ALL {
        let unit_label = Ok(Labels { unit: Some(unit), ..labels(ProfileType::Cpu) });
        let found = part(&mut decoder, b"main 8", &unit_label).map(|profile| profile.total()).map_err(|fault| fault.reason);
        assert_eq!(found, if unit == Unit::Count { Ok(8) } else { Err(Reason::UnitMismatch) });
    }
}

#[test]
fn more_stacks_than_the_limit_allows_are_too_large() {
    let mut decoder = Decoder::new(&Options { max_bytes: 3_200, ..Options::default() });
    let lines = |number: usize| "a 1\n".repeat(number).into_bytes();
    assert_eq!(part(&mut decoder, &lines(100), &Ok(labels(ProfileType::Cpu))).unwrap().total(), 100);
    let fault = part(&mut decoder, &lines(102), &Ok(labels(ProfileType::Cpu))).unwrap_err();
    assert_eq!(fault.reason, Reason::TooLarge);
}

#[test]
fn what_folded_stacks_cannot_hold_is_not_written() {
    let profile = decode(b"main;work 1\n").unwrap();
    let named = |name: &str| Profile { names: [name.into(), "work".into()].into(), ..profile.clone() };
    for bad in ["a;b", "a\nb", "#a", ""] {
        assert_eq!(encode(&named(bad)), Err(Unencodable::Text(bad.to_owned())));
    }
    assert!(encode(&named("a b")).is_ok());
    let folded = Profile { samples: Samples::Folded { content: 0, cohorts: vec![] }, ..profile };
    assert_eq!(encode(&folded), Err(Unencodable::Folded));
}

proptest! {
    /// What is written is read back: the same stacks in the same order.
    #[test]
    fn there_and_back(profile in profiles()) {
        let mut profile = profile;
        if let Samples::Stacks(stacks) = &mut profile.samples {
            stacks.iter_mut().for_each(|stack| stack.cohort = None);
        }
        let mut decoder = Decoder::new(&Options::default());
        let read = part(&mut decoder, &encode(&profile).unwrap(), &Ok(Labels::of(&profile))).unwrap();
        prop_assert_eq!(written_out(&read), written_out(&profile));
        prop_assert_eq!(
            content_hash(&read.names, stacks_of(&read)),
            content_hash(&profile.names, stacks_of(&profile))
        );
        prop_assert_eq!((read.window, read.requests, read.identity), (profile.window, profile.requests, profile.identity));
    }

    /// The hash of the content does not depend on the order of lines nor on how counts are split into lines.
    #[test]
    fn order_and_splitting_leave_the_content_hash(lines in proptest::collection::vec(("[a-d](;[a-d]){0,3}", 2u64..9), 1..12)) {
        let text = |lines: &[(String, u64)]| -> String {
            lines.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
        };
        let mut split: Vec<(String, u64)> = lines.iter().rev().map(|(stack, count)| (stack.clone(), count - 1)).collect();
        split.extend(lines.iter().map(|(stack, _)| (stack.clone(), 1)));
        let hash = |text: String| {
            let profile = decode(text.as_bytes()).unwrap();
            content_hash(&profile.names, stacks_of(&profile))
        };
        prop_assert_eq!(hash(text(&lines)), hash(text(&split)));
        split[0].1 += 1;
        prop_assert_ne!(hash(text(&lines)), hash(text(&split)));
    }
}
