//! Folded stacks.

use fleetdiff_formats::folded::encode;
use fleetdiff_formats::{Format, Labels, Options, Unencodable, Unit};
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, content_hash};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use inferno::collapse::Collapse;
use proptest::prelude::*;

use super::fixtures::{labels, part, profiles, stacks_of, written_out};

fn decode(text: &[u8]) -> Result<Profile, Rejection> {
    part(&mut *Format::Folded.decoder(&Options::default()), text, &Ok(labels(ProfileType::Cpu)))
}

#[test]
fn frames_stand_as_they_are() {
    let text = b"# a comment\n\nmain;do work(int, char const*);read_[k] 12\r\n   \nmain;[libjemalloc.so] 1";
    let expected = vec![
        (vec!["main".to_owned(), "do work(int, char const*)".to_owned(), "read_[k]".to_owned()], 12, None),
        (vec!["main".to_owned(), "[libjemalloc.so]".to_owned()], 1, None),
    ];
    assert_eq!(written_out(&decode(text).unwrap()), expected);
}

#[test]
fn white_space_at_the_end_of_a_line_is_no_part_of_it() {
    for text in [
        &b"main;do work 12\nmain 3"[..],
        b"main;do work 12\r\nmain 3\r\n",
        b"main;do work\t12\nmain\t3\n",
        b"main;do work 12 \nmain 3\t\n",
    ] {
        let expected =
            vec![(vec!["main".to_owned(), "do work".to_owned()], 12, None), (vec!["main".to_owned()], 3, None)];
        assert_eq!(written_out(&decode(text).unwrap()), expected);
    }
}

/// A line is a frame that ends in a number as long as another line is not.
#[test]
fn a_frame_may_end_in_a_number() {
    let names: Vec<Vec<String>> =
        written_out(&decode(b"worker 7 12\nmain 1\n").unwrap()).into_iter().map(|(frames, ..)| frames).collect();
    assert_eq!(names, [["worker 7"], ["main"]]);
}

proptest! {
    /// Law: a stack is what its line says, whatever the lines before begin with.
    #[test]
    fn frames_are_those_of_the_line(
        lines in prop::collection::vec((prop::collection::vec(prop::sample::select(&["a", "ab", "ac", "\u{e9}", "\u{e8}", "main"][..]), 1..7), 0u64..4), 1..40),
    ) {
        let lines = lines.into_iter().chain([(vec!["main"], 1)]).collect::<Vec<_>>();
        let text: String = lines.iter().map(|(frames, count)| format!("{} {count}\n", frames.join(";"))).collect();
        let expected: Vec<_> = lines
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(frames, count)| (frames.iter().map(ToString::to_string).collect::<Vec<_>>(), *count, None))
            .collect();
        prop_assert_eq!(written_out(&decode(text.as_bytes()).unwrap()), expected);
    }
}

/// What `inferno-diff-folded` writes, two counts a line, is no profile.
#[test]
fn oracle_a_difference_of_two_profiles_is_refused() {
    let (before, after) = ("main;a 3\nmain;b 2\n", "main;a 7\nmain;c 1\n");
    let mut difference = Vec::new();
    let options = inferno::differential::Options::default();
    inferno::differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut difference).unwrap();
    let fault = decode(&difference).unwrap_err();
    assert_eq!(fault.reason, Reason::UnsupportedType, "{fault:?}");
    assert!(fault.detail.contains("difference of two profiles"));
    assert_eq!(decode(before.as_bytes()).unwrap().total(), 5);
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
    let cases: [(&[u8], Reason, &str); 12] = [
        (b"main 1\nmain;work -4\n", Reason::NegativeValue, "line 2: a count of -4"),
        (b"main -99999999999999999999\n", Reason::NegativeValue, "line 1"),
        (b"main 1\nmain;work\n", Reason::Malformed, "line 2: no count"),
        (b"main;do work\n", Reason::Malformed, "line 1: \"work\" is not a count"),
        (b"main 1.5\n", Reason::UnitMismatch, "line 1: 1.5 is no whole number"),
        (b"main 3e2\n", Reason::UnitMismatch, "line 1: 3e2 is no whole number"),
        (b"main inf\n", Reason::Malformed, "line 1: \"inf\" is not a count"),
        (b"main;a 3 7\nmain;b 0 0\n", Reason::UnsupportedType, "\"main;a 3\""),
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

/// inferno adds up the periods that `perf script` prints: what it writes then are no samples.
#[test]
fn oracle_periods_that_inferno_added_up_are_refused() {
    let text: String = ["a", "b", "a", "c"]
        .map(|leaf| format!("shop 7 1.5: 250000 cpu-clock:\n\t55d0 {leaf} (/srv/shop)\n\n"))
        .concat();
    let mut folded = Vec::new();
    inferno::collapse::perf::Folder::default().collapse(text.as_bytes(), &mut folded).unwrap();
    let fault = decode(&folded).unwrap_err();
    assert_eq!(fault.reason, Reason::UnitMismatch, "{fault:?}");
    assert!(fault.detail.contains("a multiple of 250000"));
    let meant = Ok(Labels { unit: Some(Unit::Count), ..labels(ProfileType::Cpu) });
    assert_eq!(part(&mut *Format::Folded.decoder(&Options::default()), &folded, &meant).unwrap().total(), 1_000_000);
    assert_eq!(decode(b"a 250000\nb 500000\nc 3\n").unwrap().total(), 750_003);
    assert_eq!(decode(b"a 250000\nb 500000\n").unwrap().total(), 750_000, "two lines may be an accident");
}

#[test]
fn values_that_are_no_counts_are_refused() {
    let mut decoder = Format::Folded.decoder(&Options::default());
    for unit in Unit::ALL {
        let unit_label = Ok(Labels { unit: Some(unit), ..labels(ProfileType::Cpu) });
        let found =
            part(&mut *decoder, b"main 8", &unit_label).map(|profile| profile.total()).map_err(|fault| fault.reason);
        let expected = match unit {
            Unit::Count => Ok(8),
            Unit::Bytes => Err(Reason::UnitMismatch),
            _ => Err(Reason::UnknownPeriod),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn more_stacks_than_the_limit_allows_are_too_large() {
    // A stack of one frame: an entry of 48 bytes, 16 of its own, and 16 for a frame, of which four have room.
    let of = |max_built_bytes| Format::Folded.decoder(&Options { max_built_bytes, ..Options::default() });
    let mut decoder = of(128 * size_of::<fleetdiff_schemas::profile::Stack>() + 100 * 32 + 500);
    let lines = |number: usize| "a 1\n".repeat(number).into_bytes();
    assert_eq!(part(&mut *decoder, &lines(100), &Ok(labels(ProfileType::Cpu))).unwrap().total(), 100);
    let fault = part(&mut *decoder, &lines(140), &Ok(labels(ProfileType::Cpu))).unwrap_err();
    assert_eq!(fault.reason, Reason::TooLarge);
}

#[test]
fn what_folded_stacks_cannot_hold_is_not_written() {
    let profile = decode(b"main;work 1\n").unwrap();
    let refused = |text: &str| Unencodable::Text { format: "folded", text: text.to_owned() };
    let named = |name: &str| Profile { names: [name.into(), "work".into()].into(), ..profile.clone() };
    for bad in ["a;b", "a\nb", "#a", ""] {
        assert_eq!(encode(&named(bad)), Err(refused(bad)));
    }
    let two_counts = Profile { names: ["main".into(), "work 7".into()].into(), ..profile.clone() };
    assert_eq!(encode(&two_counts), Err(refused("main;work 7")));
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
        // All lines ending in two numbers would be read as something else.
        let written = encode(&profile);
        prop_assume!(!matches!(&written, Err(Unencodable::Text { .. })));
        let mut decoder = Format::Folded.decoder(&Options::default());
        let labels = Labels::of_counts(&profile);
        let read = part(&mut *decoder, &written.unwrap(), &Ok(labels)).unwrap();
        prop_assert_eq!(written_out(&read), written_out(&profile));
        prop_assert_eq!(
            content_hash(&read.names, stacks_of(&read)),
            content_hash(&profile.names, stacks_of(&profile))
        );
        prop_assert_eq!(read.value(), profile.value(), "each sample stands for the declared period");
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

#[test]
fn regression_stacks_of_austin_are_times_by_its_clock() {
    let text = |mode: &str| {
        format!(
            "# austin: 4.0.0\n# interval: 1000\n# mode: {mode}\n\nP7;T7;pool.py:run:4 1012\nP7;T7;pool.py:run:5 2950\n# gc: 0\n"
        )
    };
    let read =
        |text: &str, kind| part(&mut *Format::Folded.decoder(&Options::default()), text.as_bytes(), &Ok(labels(kind)));
    let decode = |mode: &str, kind| read(&text(mode), kind);
    let wall = decode("wall", ProfileType::Wall).unwrap();
    assert_eq!(wall.total(), 4, "3,962 us at one sample a millisecond");
    assert_eq!(decode("cpu", ProfileType::Cpu).unwrap().total(), 4);
    let fault = decode("wall", ProfileType::Cpu).unwrap_err();
    assert_eq!(
        (fault.reason, fault.detail.contains("is a wall profile, not cpu")),
        (Reason::UnitMismatch, true),
        "{fault:?}"
    );
    for mode in ["memory", "full"] {
        let fault = decode(mode, ProfileType::Cpu).unwrap_err();
        assert_eq!(fault.reason, Reason::UnsupportedType, "{fault:?}");
        assert!(fault.detail.contains(mode) && fault.detail.contains("record with austin"), "{fault:?}");
    }
    let other = read(&text("wall").replace("# austin", "# other"), ProfileType::Cpu).unwrap();
    assert_eq!(other.total(), 3_962, "of others a comment says nothing");
}
