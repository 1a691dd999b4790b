//! What is written as the text of `perf script` is read back, by the decoder and by inferno.

use std::collections::BTreeMap;

use fleetdiff_formats::perf_script::encode;
use fleetdiff_formats::{Format, Labels, Options, Unencodable, compression};
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, UNSYMBOLISED};
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FolderOptions};
use proptest::prelude::*;
use proptest::sample::select;

use super::fixtures::{part, profiles, stacks_of, written_out};

/// Frames of a stack with its samples and what they stand for.
type Sums = BTreeMap<Vec<String>, (u64, u64)>;

fn sums(profile: &Profile) -> Sums {
    let mut sums = Sums::new();
    for ((frames, count, _), stack) in written_out(profile).into_iter().zip(stacks_of(profile)) {
        let sum = sums.entry(frames).or_default();
        *sum = (sum.0 + count, sum.1 + stack.value);
    }
    sums
}

fn labels_of(profile: &Profile) -> Labels {
    Labels { root_is_thread: true, ..Labels::of_counts(profile) }
}

fn read_back(profile: &Profile) -> Profile {
    let mut decoder = Format::PerfScript.decoder(&Options::default());
    part(&mut *decoder, &encode(profile).unwrap(), &Ok(labels_of(profile))).unwrap()
}

fn of(kind: ProfileType, names: &[&str], stacks: &[(&[u32], u64)]) -> Profile {
    let stack =
        |(frames, count): &(&[u32], u64)| Stack { frames: frames.to_vec(), count: *count, cohort: None, value: 0 };
    Profile {
        identity: super::fixtures::identity("pod-1"),
        profile_type: kind,
        temporality: fleetdiff_schemas::profile::Temporality::Delta,
        window: super::fixtures::window(),
        requests: None,
        names: names.iter().map(|name| (*name).into()).collect(),
        samples: Samples::Stacks(stacks.iter().map(stack).collect()),
    }
}

#[test]
fn events_are_as_perf_prints_them() {
    let profile = of(ProfileType::Cpu, &["main", "vfs_read_[k]", UNSYMBOLISED], &[(&[0, 1], 2), (&[0, 2], 1)]);
    let text = compression::decompress(&encode(&profile).unwrap(), 1 << 20).unwrap().into_owned();
    let expected = "            shop     1/1     [000] 1700000000.000000000: cpu-clock: \n\
                    \tffffffff81000010 vfs_read ([kernel.kallsyms])\n\
                    \t          400000 main ([unknown])\n\n\
                    \x20           shop     1/1     [000] 1700000003.333333333: cpu-clock: \n\
                    \tffffffff81000010 vfs_read ([kernel.kallsyms])\n\
                    \t          400000 main ([unknown])\n\n\
                    \x20           shop     1/1     [000] 1700000006.666666666: cpu-clock: \n\
                    \t               0 [unknown] ([unknown])\n\
                    \t          400000 main ([unknown])\n\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn names_of_many_languages_are_read_back() {
    let names = [
        "net/http.(*Client).Do",
        "slices.SortFunc[...]",
        "main.serve.func1.2",
        "std::vector<int, std::allocator<int> >::push_back",
        "(anonymous namespace)::run",
        "main::{lambda(int)#1}::call",
        "<shop::Basket as core::fmt::Display>::fmt",
        "java/io/PrintStream:::print_[i]",
        "[libc.so]",
        "[[kernel.kallsyms]]_[k]",
        "operator->",
        "größe",
        UNSYMBOLISED,
    ];
    let frames: Vec<u32> = (0..).take(names.len()).collect();
    for kind in [ProfileType::Cpu, ProfileType::Heap, ProfileType::Mutex, ProfileType::Block] {
        let profile = of(kind, &names, &[(&frames, 3), (&[2], 1)]);
        assert_eq!(sums(&read_back(&profile)), sums(&profile), "{}", kind.name());
    }
}

#[test]
fn the_thread_of_a_stack_is_the_command_of_its_events() {
    let names = ["poll @ worker-*", "main @ worker-*", "read_[k] @ redis-server", UNSYMBOLISED, "main @ redis-server"];
    for kind in [ProfileType::OffCpu, ProfileType::Wall] {
        let profile = of(kind, &names, &[(&[1, 0], 2), (&[4, 3, 2], 5), (&[3], 1)]);
        assert_eq!(sums(&read_back(&profile)), sums(&profile), "{}", kind.name());
    }
}

#[test]
fn what_perf_script_cannot_hold_is_not_written() {
    let text = |text: &str| Unencodable::Text { format: "perf_script", text: text.to_owned() };
    let named = |name: &str| encode(&of(ProfileType::Cpu, &["main", name], &[(&[0, 1], 1)])).map(|_| ());
    for bad in ["run (pool.py)", "read(int)", "a;b", "a\nb", " a", "a ", "f 7 1.5: x"] {
        assert_eq!(named(bad), Err(text(bad)), "{bad:?}");
    }
    assert_eq!(named("a b"), Ok(()));
    let waiting = |name: &str| encode(&of(ProfileType::OffCpu, &["main @ t", name], &[(&[0, 1], 1)])).map(|_| ());
    assert_eq!(waiting("poll"), Err(Unencodable::Threadless { function: "poll".to_owned() }));
    assert_eq!(waiting("poll @ u"), Err(text("poll @ u")));
    for thread in ["GC Thread", "#1", "worker-1"] {
        let profile = of(ProfileType::Wall, &[&format!("poll @ {thread}")], &[(&[0], 1)]);
        assert!(matches!(encode(&profile), Err(Unencodable::Text { .. })), "{thread}");
    }
    let stackless = of(ProfileType::Cpu, &["main"], &[(&[], 1)]);
    assert_eq!(encode(&stackless), Err(Unencodable::Stackless));
    let many = of(ProfileType::Cpu, &["main"], &[(&[0], 1), (&[0], 1 << 40)]);
    assert_eq!(encode(&many), Err(Unencodable::TooLong { samples: (1 << 40) + 1, most: 128 }));
    let mut labelled = of(ProfileType::Cpu, &["main"], &[(&[0], 1)]);
    let Samples::Stacks(stacks) = &mut labelled.samples else { panic!() };
    stacks[0].cohort = Some("tv".into());
    assert_eq!(encode(&labelled), Err(Unencodable::Cohort { format: "perf_script", cohort: "tv".to_owned() }));
    let beyond = of(ProfileType::Cpu, &["main"], &[(&[1], 1)]);
    assert_eq!(encode(&beyond), Err(Unencodable::OutOfRange));
    let folded = Profile { samples: Samples::Folded { content: 0, cohorts: vec![] }, ..stackless };
    assert_eq!(encode(&folded), Err(Unencodable::Folded));
}

/// A process that has allocated nothing yet.
#[test]
fn a_snapshot_without_samples_is_one() {
    let snapshot = Profile {
        temporality: fleetdiff_schemas::profile::Temporality::Cumulative,
        ..of(ProfileType::Mutex, &[], &[])
    };
    assert_eq!(read_back(&snapshot).total(), 0);
}

/// Profiles that the text can hold: few samples, no cohorts, names without brackets of their own, and functions of one thread where
/// that is part of their name.
fn writable() -> impl Strategy<Value = Profile> {
    let threads = select(vec!["worker-*", "redis-server", "_unsymbolised"]);
    (profiles(), threads, select(vec![0, 10_000_000, 52_631_578])).prop_map(|(mut profile, thread, each)| {
        let by_thread = matches!(profile.profile_type, ProfileType::OffCpu | ProfileType::Wall);
        let is_clock = by_thread || profile.profile_type == ProfileType::Cpu;
        let plain = |name: &str| name.replace(['(', ')'], "_").trim().to_owned();
        let name = |(place, name): (usize, &std::sync::Arc<str>)| match (place, by_thread) {
            (0, _) => UNSYMBOLISED.into(),
            (_, false) => format!("{}_{place}", plain(name)).into(),
            (_, true) => format!("{}_{place} @ {thread}", plain(name)).into(),
        };
        profile.names = profile.names.iter().enumerate().map(name).collect();
        let Samples::Stacks(stacks) = &mut profile.samples else { panic!() };
        stacks.retain(|stack| !stack.frames.is_empty());
        for stack in stacks.iter_mut() {
            stack.count = stack.count % 40 + 1;
            stack.value = if is_clock { stack.count * each } else { 0 };
            stack.cohort = None;
        }
        profile
    })
}

proptest! {
    /// What is written is read back: the same samples, and what each stands for.
    #[test]
    fn there_and_back(profile in writable()) {
        prop_assume!(profile.total() > 0);
        // Names that look like the first line of an event.
        prop_assume!(!matches!(encode(&profile), Err(Unencodable::Text { .. })));
        let read = read_back(&profile);
        prop_assert_eq!(sums(&read), sums(&profile));
        prop_assert_eq!((read.window, read.requests, read.identity), (profile.window, profile.requests, profile.identity));
        prop_assert_eq!((read.profile_type, read.temporality), (profile.profile_type, profile.temporality));
    }

    /// inferno finds the same stacks, below the command, in what is written.
    #[test]
    fn oracle_inferno_reads_the_same_stacks(counts in proptest::collection::vec((proptest::collection::vec(0u32..8, 1..9), 1u64..9), 1..20)) {
        let names = ["main", "a::b", "read_[k]", "x.part.run", "net/http.(*Client).Do", "serve", "_start", "do work"];
        let stacks: Vec<(&[u32], u64)> = counts.iter().map(|(frames, count)| (frames.as_slice(), *count)).collect();
        let profile = of(ProfileType::Cpu, &names, &stacks);
        let text = compression::decompress(&encode(&profile).unwrap(), 1 << 26).unwrap().into_owned();
        let mut options = FolderOptions::default();
        options.annotate_kernel = true;
        options.nthreads = 1;
        let mut folded = Vec::new();
        Folder::from(options).collapse(text.as_slice(), &mut folded).unwrap();
        let expected: BTreeMap<String, u64> =
            sums(&profile).into_iter().map(|(frames, (count, _))| (format!("shop;{}", frames.join(";")), count)).collect();
        let found: BTreeMap<String, u64> = String::from_utf8(folded).unwrap().lines().map(|line| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), count.parse().unwrap())
        }).collect();
        prop_assert_eq!(found, expected);
    }
}
