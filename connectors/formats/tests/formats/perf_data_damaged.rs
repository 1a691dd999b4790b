//! Recordings that perf did not write: damaged ones, those that name what nobody should open, and those that ask for much.

use std::fs;

use fleetdiff_schemas::rejected::Reason;

use super::perf_data::{Recorder, decode, stacks};
use super::perf_data_written as written;

fn reason(bytes: &[u8]) -> Option<Reason> {
    decode(bytes).err().map(|fault| fault.reason)
}

/// Any place at which a recording is cut, and any byte that is another, gives an error or a profile.
#[test]
fn regression_recordings_that_are_cut_or_damaged_anywhere() {
    let good = written::good();
    let mut refused = 0;
    for length in 0..good.len() {
        assert!(reason(&good[..length]).is_some(), "cut at {length}");
        for value in [0, 1, 0x7f, 0x80, 0xff, good[length] ^ 1, good[length].wrapping_add(8)] {
            let mut damaged = good.clone();
            damaged[length] = value;
            refused += u32::from(reason(&damaged).is_some());
        }
    }
    assert!(refused > 1_000, "{refused}");
}

/// The reader of records takes this length at its word.
#[test]
fn regression_build_ids_that_claim_a_length() {
    for length in [0, 1, 20, 21, 255] {
        let records = [
            written::mmap2_of_build(7, 1, 0x1000, length, "/x"),
            written::sample(0, 7, 7, 2, &[written::USER, 0x1010]),
        ];
        let expected = if length > 20 { "_unsymbolised" } else { "[x]" };
        let found = stacks(&decode(&written::file(&records.concat())).unwrap());
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), [format!(":7;{expected}")]);
    }
}

/// Whoever writes a recording chooses the paths in it. NB: whoever opens the pipe waits for ever, and whoever reads one of the others whole has no end.
#[test]
fn regression_paths_that_nobody_should_open() {
    let recorder = Recorder::new();
    let large = recorder.path("large");
    fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    recorder.succeed("mkfifo pipe; mkdir folder; printf '\\177ELF\\2\\1\\1' > short; ln -s loop loop");
    let own = ["pipe", "folder", "short", "loop", "large", "none"]
        .map(|name| recorder.path(name).to_str().unwrap().to_owned());
    let paths = own.iter().map(String::as_str);
    for path in paths.chain([
        "/dev/zero",
        "/dev/kmsg",
        "/proc/kcore",
        "/proc/kmsg",
        "/proc/self/mem",
        "/dev/../dev/random",
        "/",
        "\u{fffd}",
    ]) {
        let start = 0x40_0000;
        let records =
            [written::mmap2(7, 1, [start, 0x1000, 0], path), written::sample(0, 7, 7, 2, &[written::USER, start + 16])];
        let found = stacks(&decode(&written::file(&records.concat())).unwrap());
        assert!(found.len() == 1 && found.keys().all(|stack| stack.starts_with(":7;")), "{path}: {found:?}");
    }
}

/// Programs that are no programs: names are found or not.
#[test]
fn regression_damaged_programs() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let program = fs::read(recorder.path("program")).unwrap();
    let path = recorder.path("damaged");
    let chain: Vec<u64> = [written::USER].into_iter().chain((0..64).map(|place| 0x40_0000 + 0x40 * place)).collect();
    let map = written::mmap2(7, 1, [0x40_0000, 0x1000, 0x1000], path.to_str().unwrap());
    let recording = written::file(&[map, written::sample(0, 7, 7, 2, &chain)].concat());
    let named = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let found = stacks(&decode(&recording).unwrap());
        found.keys().any(|stack| stack.contains("inner"))
    };
    assert!(named(&program));
    // Headers, tables of sections and of symbols are at both ends.
    let (tables, mut random, mut lost) = (program.len().saturating_sub(8_000), 7u64, 0);
    for number in 0..1_000usize {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chosen = usize::try_from(random >> 33).unwrap();
        let place = if number % 2 == 0 { chosen % 1_024 } else { tables + chosen % (program.len() - tables) };
        let mut damaged = program.clone();
        damaged[place] = u8::try_from(random >> 24 & 0xff).unwrap();
        lost += u32::from(!named(&damaged));
    }
    for cut in (0..program.len()).step_by(397) {
        lost += u32::from(!named(&program[..cut]));
    }
    assert!(lost > 50, "{lost}");
}

/// A few KB of compressed records unfold into 200 MB; processes that were forked copy what their parents had mapped.
#[test]
fn regression_recordings_of_few_bytes_that_ask_for_much() {
    let bomb = zstd::encode_all(&vec![0; 200 << 20][..], 3).unwrap();
    let records: Vec<u8> = bomb.chunks(60_000).flat_map(|part| written::record(written::COMPRESSED, 0, part)).collect();
    assert_eq!(reason(&written::file(&records)), Some(Reason::TooLarge));
    assert_eq!(reason(&written::file(&written::processes(5_000))), Some(Reason::TooLarge));
}

/// A process that ended is forgotten in the end, and what it had mapped: a machine on which many are started can be recorded for long.
#[test]
fn processes_that_ended_take_no_room() {
    let mapped = (0..200).map(|place| written::mmap2(1, 1, [0x1000 * place, 0x1000, 0], "/x"));
    let children = (2..40_000).map(|child| {
        let place = [0x1000 * u64::from(child % 200), 0x1000, 0];
        [written::fork(child, 1, 2), written::mmap2(child, 2, place, "/y"), written::exit(child, 2)].concat()
    });
    let records: Vec<Vec<u8>> =
        mapped.chain(children).chain([written::sample(0, 1, 1, 3, &[written::USER, 0x1010])]).collect();
    assert_eq!(stacks(&decode(&written::file(&records.concat())).unwrap()), [(":1;[x]".to_owned(), 1)].into());
}

#[test]
fn an_example_is_read_as_it_says() {
    let found = stacks(&decode(&written::good()).unwrap());
    let expected = [
        ("shop;_unsymbolised", 1),
        ("shop;[shop];[[kernel.kallsyms]]_[k]", 1),
        ("shop;[shop];[shop]", 1),
        ("worker;[shop];_unsymbolised", 1),
        ("shop;[shop]", 1),
        ("child;[shop];_unsymbolised", 1),
    ];
    assert_eq!(found, expected.map(|(stack, count)| (stack.to_owned(), count)).into());
}
