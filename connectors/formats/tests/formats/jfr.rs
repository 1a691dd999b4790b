//! Recordings of Flight Recorder: of the JDK and of async-profiler, held against `jfr print`, and written ones.

use std::collections::BTreeMap;
use std::fs;

use fleetdiff_formats::reading::{Filters, Reading};
use fleetdiff_formats::{Format, Options, Period, Values, compression};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::fixtures::{START, labels, part, stacks_of, testdata, written_out};
use super::jfr_written::{
    chunk, chunk_of_async_profiler, chunk_of_old_async_profiler, event, good, list, lists, number, plain, sample,
    setting,
};
use super::reading::{leaves, listed, read_as};

fn decode(kind: ProfileType, bytes: &[u8]) -> Result<Profile, Rejection> {
    part(&mut *Format::Jfr.decoder(&Options::default()), bytes, &Ok(labels(kind)))
}

fn recorded(file: &str) -> Vec<u8> {
    fs::read(testdata(&format!("java/{file}.jfr.gz"))).unwrap()
}

fn value(profile: &Profile) -> u64 {
    stacks_of(profile).iter().map(|stack| stack.value).sum()
}

/// Samples by the functions that they lie within.
fn totals(profile: &Profile) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for (mut frames, count, _) in written_out(profile) {
        frames.sort();
        frames.dedup();
        frames.into_iter().for_each(|frame| *totals.entry(frame).or_default() += count);
    }
    totals
}

/// What `jfr print --json` of JDK 17 prints of the recordings, counted by another program: events, and how many have a function as
/// their top frame or among all.
#[test]
fn oracle_jfr_print_counts_the_same() {
    type Expected<'a> = (&'a str, ProfileType, u64, &'a [(&'a str, u64)], &'a [(&'a str, u64)]);
    let expected: [Expected<'_>; 7] = [
        (
            "jdk17",
            ProfileType::Cpu,
            110,
            &[("Shop.price", 82), ("Shop.tax", 25), ("Shop.serve", 2), ("java.lang.String.isLatin1", 1)],
            &[("Shop.serve", 109), ("java.lang.Thread.run", 109)],
        ),
        (
            "jdk17",
            ProfileType::Heap,
            78,
            &[("Shop.cart", 71), ("java.util.HashMap.resize", 3)],
            &[("Shop.cart", 76), ("Shop.lambda$main$2", 41)],
        ),
        ("jdk17", ProfileType::Block, 2, &[("Shop.pay", 2)], &[("Shop$$Lambda.run", 2)]),
        (
            "ap",
            ProfileType::Cpu,
            145,
            &[("Shop.price", 99), ("Shop.tax", 36), ("PhaseLive::compute", 2), ("__memcg_slab_post_alloc_hook_[k]", 1)],
            &[("Shop.serve", 138)],
        ),
        ("ap", ProfileType::Heap, 60, &[("Shop.cart", 58)], &[("Shop.lambda$main$2", 34)]),
        ("ap", ProfileType::Mutex, 2, &[("Shop.pay", 2)], &[("java.lang.Thread.run", 2)]),
        ("ap-live", ProfileType::LiveHeap, 53, &[("Shop.cart", 53)], &[("Shop.serve", 53)]),
    ];
    for (file, kind, samples, own, total) in expected {
        let profile = decode(kind, &recorded(file)).unwrap();
        assert_eq!(profile.total(), samples, "{file} {}", kind.name());
        let (found, all) = (leaves(&profile), totals(&profile));
        own.iter().for_each(|(name, count)| assert_eq!(found.get(*name), Some(count), "{file} {name} {found:?}"));
        total.iter().for_each(|(name, count)| assert_eq!(all.get(*name), Some(count), "{file} {name} {all:?}"));
    }
}

#[test]
fn samples_by_the_clock_on_the_wall_are_those_of_their_threads() {
    let wall = decode(ProfileType::Wall, &recorded("ap")).unwrap();
    assert_eq!(wall.total(), 1_666);
    let leaves = leaves(&wall);
    let of = |function: &str| -> u64 {
        leaves.iter().filter(|(name, _)| name.starts_with(&format!("{function} @ "))).map(|(_, count)| count).sum()
    };
    assert_eq!((of("__futex_abstimed_wait_common"), of("Shop.price"), of("Shop.tax")), (1_504, 93, 32));
    assert!(leaves.contains_key("Shop.price @ till-*"), "{leaves:?}");
}

/// Bytes and times as `jfr print` adds them up, and the intervals that the recordings were made with.
#[test]
fn samples_stand_for_bytes_and_for_their_period() {
    let value_of = |file: &str, kind| value(&decode(kind, &recorded(file)).unwrap());
    assert_eq!(value_of("jdk17", ProfileType::Heap), 21_547_784);
    assert_eq!(value_of("ap", ProfileType::Heap), 15_728_640);
    assert_eq!(value_of("ap-live", ProfileType::LiveHeap), 53_848);
    assert_eq!(value_of("jdk17", ProfileType::Cpu), 110 * 10_000_000);
    assert_eq!(value_of("ap", ProfileType::Cpu), 145 * 5_000_000);
    assert_eq!(value_of("ap", ProfileType::Wall), 1_666 * 20_000_000);
}

#[test]
fn recordings_follow_each_other() {
    let plain = |file| compression::decompress(&recorded(file), 1 << 20).unwrap().into_owned();
    let both = decode(ProfileType::Cpu, &[plain("jdk17"), plain("ap")].concat()).unwrap();
    assert_eq!((both.total(), leaves(&both).get("Shop.price")), (110 + 145, Some(&(82 + 99))));
}

#[test]
fn samples_of_the_processor_are_told_from_those_of_the_wall() {
    let cpu = decode(ProfileType::Cpu, &good()).unwrap();
    let lines: Vec<(String, u64)> =
        written_out(&cpu).into_iter().map(|(frames, count, _)| (frames.join(";"), count)).collect();
    let line = |text: &str, count| (text.to_owned(), count);
    assert_eq!(
        lines,
        [
            line("shop.Cart.main;shop.Cart.work", 2),
            line("shop.Cart.main;shop.Cart.wait", 1),
            line("shop.Cart.main;vfs_read_[k]", 1),
            line("shop.Cart.main;shop.Cart.work", 1),
        ]
    );
    let wall = decode(ProfileType::Wall, &good()).unwrap();
    assert_eq!(listed(&leaves(&wall)), [("shop.Cart.wait @ till-*", 1)]);
}

/// async-profiler before 3.0 calls threads runnable by any clock, unless it samples by two of them.
#[test]
fn regression_old_recordings_of_async_profiler_are_told_apart_by_what_it_was_asked_for() {
    let samples = [sample(20, 6_000, 1, 1, 1), sample(20, 7_000, 1, 1, 2), sample(20, 8_000, 2, 2, 3)];
    let chunk_asked = |settings: &[Vec<u8>]| chunk_of_old_async_profiler(&[settings, &samples[..]].concat());
    let counts = |bytes: &[u8]| {
        [ProfileType::Cpu, ProfileType::Wall].map(|kind| decode(kind, bytes).map_or(0, |profile| profile.total()))
    };
    let wall = chunk_asked(&[setting(27, "event", "wall"), setting(20, "interval", "0")]);
    let cpu = chunk_asked(&[setting(27, "event", "cpu"), setting(20, "interval", "0")]);
    let both = chunk_asked(&[setting(27, "event", "cpu"), setting(20, "wall", "200000000")]);
    assert_eq!(counts(&wall), [0, 3]);
    assert_eq!(counts(&cpu), [3, 0]);
    assert_eq!(counts(&both), [1, 2]);
    let of_recording = chunk_asked(&[setting(27, "event", "cpu"), setting(27, "wall", "200ms")]);
    assert_eq!(counts(&of_recording), [1, 2], "a setting of the recording, with its unit");
    assert_eq!(counts(&chunk_asked(&[])), [3, 0], "nothing says that it is the clock on the wall");
    // Chunks that say nothing are as those before them; those that do say it for themselves.
    assert_eq!(counts(&[wall.clone(), chunk_asked(&[])].concat()), [0, 6]);
    assert_eq!(counts(&[both, wall, cpu].concat()), [4, 5]);
}

/// What a recording says of each sample, for who compares files.
#[test]
fn threads_lines_and_times_are_read() {
    let read = |reading: &Reading| read_as(reading, Format::Jfr, &good(), ProfileType::Cpu).unwrap();
    let by = |keys: &str| leaves(&read(&Reading { keys: Some(keys.parse().unwrap()), ..Reading::default() }).profile);
    assert_eq!(listed(&by("comm")), [("till-1", 3), ("till-2", 2)]);
    assert_eq!(listed(&by("tid")), [("11:till-1", 3), ("12:till-2", 2)]);
    assert_eq!(by("srcline").get("shop.Cart:42"), Some(&3));
    let plain = read(&Reading::default());
    let weights = plain.weights.unwrap();
    assert_eq!((&*weights.unit, weights.profile.total()), ("cpu/nanoseconds", 50_000_000));
    assert_eq!(plain.window, Some(TimeRange { start: Nanos(START), end: Nanos(START + 10_000_000_000) }));
    // Ticks of a microsecond, of which the chunks begin at 5,000.
    let early = read(&Reading { crop: Some(Nanos(15_000_000)), ..Reading::default() });
    assert_eq!((early.timed, early.profile.total()), (true, 3));
    let filters = Filters { symbols: Some(["vfs_read".into()].into()), ..Filters::default() };
    let kernel = read(&Reading { filters, ..Reading::default() });
    assert_eq!(leaves(&kernel.profile).get("vfs_read_[k]"), Some(&1));
    let times = read(&Reading { values: Values::Times, ..Reading::default() });
    assert_eq!(times.profile.total(), 50_000_000);
}

#[test]
fn periods_come_from_settings_unless_they_are_declared() {
    let of = |settings: &[Vec<u8>], samples: &[Vec<u8>]| {
        let bytes = chunk_of_async_profiler(&[settings, samples].concat());
        value(&decode(ProfileType::Cpu, &bytes).unwrap())
    };
    let samples = [sample(20, 6_000, 1, 1, 2), sample(20, 7_000, 1, 1, 2)];
    assert_eq!(of(&[], &samples), 0);
    assert_eq!(of(&[setting(20, "period", "20 ms")], &samples), 40_000_000);
    assert_eq!(of(&[setting(25, "period", "20 ms")], &samples), 0, "that of another event");
    assert_eq!(of(&[setting(27, "event", "itimer"), setting(20, "interval", "5000000")], &samples), 10_000_000);
    assert_eq!(of(&[setting(27, "event", "cpu"), setting(20, "interval", "0")], &samples), 20_000_000);
    assert_eq!(of(&[setting(27, "event", "cache-misses"), setting(20, "interval", "5000000")], &samples), 0);
    // The period of each sample, in ticks of a microsecond.
    let of_cpu_time = chunk(&[plain(21, &[6_000, 1, 1, 0, 9_500]), plain(21, &[7_000, 2, 1, 0, 9_500])], &lists());
    assert_eq!(value(&decode(ProfileType::Cpu, &of_cpu_time).unwrap()), 19_000_000);
    let declared =
        Ok(fleetdiff_formats::Labels { period: Period::of_nanoseconds(10_000_000), ..labels(ProfileType::Cpu) });
    let profile = part(&mut *Format::Jfr.decoder(&Options::default()), &of_cpu_time, &declared).unwrap();
    assert_eq!(value(&profile), 20_000_000);
}

#[test]
fn waits_for_work_are_no_waits_for_locks() {
    let park = |stack, class| plain(22, &[6_000, 25_000, 1, stack, class]);
    let profile = decode(ProfileType::Block, &chunk(&[park(2, 2), park(2, 3), park(1, 3)], &lists())).unwrap();
    assert_eq!((listed(&leaves(&profile)), value(&profile)), (vec![("shop.Cart.wait", 1)], 25_000_000));
    let fault = decode(ProfileType::Mutex, &chunk(&[park(1, 3)], &lists())).unwrap_err();
    assert_eq!(fault.reason, Reason::UnitMismatch);
    assert!(fault.detail.contains("wait for no lock"), "{fault:?}");
    let malloc = chunk(&[plain(23, &[6_000, 1, 1, 0xff00, 4_096])], &lists());
    assert_eq!(value(&decode(ProfileType::Heap, &malloc).unwrap()), 4_096);
}

#[test]
fn what_is_not_there_is_said() {
    let fault = |kind, bytes: &[u8]| decode(kind, bytes).unwrap_err();
    let native = chunk(&[sample(25, 6_000, 1, 1, 1)], &lists());
    let found = fault(ProfileType::Cpu, &native);
    assert_eq!(
        (found.reason, found.detail.as_str()),
        (
            Reason::UnitMismatch,
            "cpu profile with events jdk.NativeMethodSample, expected jdk.CPUTimeSample, jdk.ExecutionSample"
        )
    );
    assert!(fault(ProfileType::OffCpu, &native).detail.contains("Flight Recorder does not sample it"));
    assert_eq!(fault(ProfileType::Cpu, &chunk(&[], &lists())).reason, Reason::Empty);
    let slept = chunk_of_async_profiler(&[sample(20, 6_000, 1, 1, 3)]);
    assert!(fault(ProfileType::Cpu, &slept).detail.contains("seen by the clock on the wall"));
    // A stack, a method and a thread that the recording does not have.
    let unknown = decode(ProfileType::Cpu, &chunk(&[sample(20, 6_000, 9, 9, 1)], &lists())).unwrap();
    assert_eq!(listed(&leaves(&unknown)), [("_unsymbolised", 1)]);
}

/// Where the numbers of the header stand: size, constants, metadata, start, duration, ticks, ticks a second, flags.
const SIZE: usize = 8;
const CONSTANTS: usize = 16;
const METADATA: usize = 24;
const TICKS_A_SECOND: usize = 56;
const FLAGS: usize = 64;

#[test]
fn chunks_that_are_none_are_refused() {
    let whole = chunk(&[sample(20, 6_000, 1, 1, 1)], &lists());
    let with = |place: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        let fault = decode(ProfileType::Cpu, &changed).unwrap_err();
        (fault.reason, fault.detail)
    };
    let refused = |place, bytes: &[u8], reason, detail: &str| {
        let (found, said) = with(place, bytes);
        assert!(found == reason && said.contains(detail), "{found:?} {said}");
    };
    refused(0, b"GIF8", Reason::Malformed, "begins with FLR");
    refused(4, &[0, 1], Reason::UnsupportedVersion, "version 1.1, expected 2.0 or 2.1");
    refused(SIZE, &[0; 8], Reason::Truncated, "never finished");
    refused(CONSTANTS, &[0; 8], Reason::Truncated, "never finished");
    refused(SIZE, &[0, 0, 0, 0, 0, 0, 0, 9], Reason::Malformed, "a size of 9 bytes");
    refused(SIZE, &[0x7f; 8], Reason::Truncated, "are there");
    refused(CONSTANTS, &[0x7f; 8], Reason::Malformed, "constants at byte");
    refused(METADATA, &[0, 0, 0, 0, 0, 0, 0, 68], Reason::Malformed, "at byte 68 are not the metadata");
    refused(TICKS_A_SECOND, &[0; 8], Reason::Malformed, "a clock without ticks");
    refused(FLAGS, &[0; 4], Reason::UnsupportedVersion, "not compressed");
    refused(68, &[0x80, 0x80, 0x80, 0], Reason::Malformed, "event at byte 68: a size of 0 bytes");
    refused(68, &[0xff, 0xff, 0xff, 0x7f], Reason::Malformed, "event at byte 68: a size of 268435455 bytes");
    for end in 1..whole.len() {
        assert_eq!(decode(ProfileType::Cpu, &whole[..end]).unwrap_err().reason, Reason::Truncated, "cut at {end}");
    }
}

#[test]
fn constants_that_lead_nowhere_are_refused() {
    let events = [sample(20, 6_000, 1, 1, 1)];
    let detail = |lists: &[Vec<u8>]| decode(ProfileType::Cpu, &chunk(&events, lists)).unwrap_err().detail;
    assert!(detail(&[list(77, &[number(1)])]).contains("constants of the type 77"));
    assert!(detail(&[list(13, &[number(1)])]).contains("lies within itself"));
    assert!(detail(&[[number(8), number(1_000)].concat()]).contains("a list of 1000 entries"));
    // One byte behind the sizes of their event is how far before it the constants before stand: at itself, or behind.
    let mut circle = chunk(&events, &lists());
    let place = usize::try_from(u64::from_be_bytes(circle[CONSTANTS..METADATA].try_into().unwrap())).unwrap();
    assert_eq!(circle[place..][4..9], [1, 0, 0, 0, 0]);
    circle[place + 7] = 5;
    let fault = decode(ProfileType::Cpu, &circle).unwrap_err();
    assert!(fault.detail.contains("no earlier ones"), "{fault:?}");
}

/// An event may be cut short by its size.
#[test]
fn a_sample_without_all_of_its_fields_is_malformed() {
    let fault = decode(ProfileType::Cpu, &chunk(&[event(20, &number(6_000))], &lists())).unwrap_err();
    assert_eq!(fault.reason, Reason::Malformed);
    assert!(fault.detail.contains("1 bytes expected, 0 are left"), "{fault:?}");
}
