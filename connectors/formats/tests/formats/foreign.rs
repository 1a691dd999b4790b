//! Files of other tools, which are refused by their names.

use std::fs;

use fleetdiff_formats::reading::{Reading, Unread};
use fleetdiff_formats::{Format, Options, compression, format_of};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::examples::{CHROME_TRACE, GECKO};
use super::fixtures::{labels, part, testdata};

/// What a file is refused with, by decoders and by who compares files alike.
fn refused(file: &str, bytes: &[u8]) -> Rejection {
    let (format, labels) = (format_of(file, bytes), labels(ProfileType::Cpu));
    let decoded = part(&mut *format.decoder(&Options::default()), bytes, &Ok(labels.clone())).unwrap_err();
    match Reading::default().runs(format, bytes, &labels, &Options::default()).remove(0) {
        Err(Unread::Rejected(read)) => assert_eq!(read, decoded, "{file}"),
        other => panic!("{file}: {other:?}"),
    }
    decoded
}

#[test]
fn files_of_other_tools_are_refused_by_their_names_with_what_to_do() {
    let dump = fs::read(testdata("stackprof/flat.dump")).unwrap();
    let cases: [(&str, &[u8], &str); 15] = [
        ("perf.data", b"PERFILE2\x68\0\0\0\0\0\0\0", "perf script -F +pid -i"),
        ("profile.dump", &dump, "stackprof --json"),
        ("x.nettrace", b"Nettrace\x14\0\0\0!FastSerialization.1", "dotnet-trace convert"),
        ("trace.out", b"go 1.22 trace\0\0\0\x01\x02", "runtime/pprof"),
        ("gmon.out", b"gmon\x01\0\0\0\0\0\0\0", "gprof"),
        ("callgrind.out.7", b"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n", "callgrind"),
        ("callgrind.out.7", b"version: 1\ncreator: stackprof\npid: 0\n", "callgrind"),
        ("x.mojo", b"MOJ\x03\x01mode\0wall\0", "mojo2austin"),
        ("isolate-7-v8.log", b"v8-version,11,3,244,8,-node.23,0\nshared-library,/usr/bin/node\n", "--cpu-prof"),
        ("x.heapsnapshot", b"{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\"]}}}", "--heap-prof"),
        ("x.hprof", b"JAVA PROFILE 1.0.2\0\0\0\0\x08", "alloc"),
        ("x.xml", b"<?xml version=\"1.0\"?>\n<trace-query-result>\n", "inferno-collapse-xctrace"),
        ("x.json", b"{\"main()==>work\":{\"ct\":1,\"wt\":20}}", "Excimer"),
        ("x.prof", b"{\xa9\x03\xda\x08shop.py", "py-spy"),
        ("x.zip", b"PK\x03\x04\x14\0\0\0", "unpack"),
    ];
    for (file, bytes, hint) in cases {
        for bytes in [bytes, &compression::gzip(bytes)] {
            let fault = refused(file, bytes);
            assert_eq!(fault.reason, Reason::UnsupportedType, "{file}: {fault:?}");
            assert!(fault.detail.contains(hint), "{file}: {fault:?}");
        }
    }
    let fault = refused("cpu.folded", b"main;work x\n");
    assert_eq!(fault.reason, Reason::Malformed, "{fault:?}");
}

#[test]
fn regression_more_files_of_other_tools_are_known() {
    let words = |words: [u64; 5]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let words_of_32 = |words: [u32; 5]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let utf_16 =
        |text: &str| [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let text = |text: &str| text.as_bytes().to_vec();
    let cases = [
        (words([0, 3, 0, 10_000, 0]), "pprof -proto"),
        (words_of_32([0, 3, 0, 10_000, 0]), "pprof -proto"),
        (
            text("heap profile:     85: 1782 [    85: 1782] @ heapz_v2/524288\n     1: 20 [ 1: 20] @ 0x4 0x5\n"),
            "pprof -proto",
        ),
        (text("--- contentionz 1 ---\ncycles/second = 3201000000\n"), "pprof -proto"),
        (text("--- threadz 1 ---\n\n--- Thread 7f7949ef5700 (name: main/14748) stack: ---\n"), "CPU profile"),
        (text("goroutine profile: total 7\n1 @ 0x44cb3 0x45045\n"), "CPU profile"),
        (text("goroutine 1 [running]:\nmain.main()\n\t/srv/main.go:7 +0x1d\n"), "CPU profile"),
        (text("PERFFILEh\0\0\0\0\0\0\0X"), "perf script"),
        (text("SIMPLEPERF\u{1}\0X\0"), "stackcollapse.py"),
        (text("*version\n3\ndata-file-overflow=false\nclock=dual\n"), "simpleperf"),
        (text("SLOW\u{3}\0\u{20}\0"), "simpleperf"),
        (text("CPU     ID                    FUNCTION:NAME\n  0  64091     :tick-60s \n\n"), "inferno-collapse-dtrace"),
        (text("Analysis of sampling rg (pid 64751) every 1 millisecond\n"), "inferno-collapse-sample"),
        (text("\tSun Aug  6 14:50 2023 Time and Allocation Profiling Report  (Final)\n"), "inferno-collapse-ghcprof"),
        (text("Function Stack,CPU Time:Self,Module\nTotal,0.0,[Unknown]\n"), "inferno-collapse-vtune"),
        (text("\u{feff}Level,Function Name,Number of Calls,\n"), "inferno-collapse-vsprof"),
        (text("@ inst_retired.any [35705 samples]\n\n20.86%  [7447]     read @ /boot/kernel\n"), "stackcollapse-pmc"),
        (text("Weight\tSelf Weight\t\tSymbol Name\n4.93 s  100.0%\t0 s\t \tstart\n"), "stackcollapse-instruments"),
        (utf_16("main;work 3\n"), "iconv -f UTF-16"),
        (text("\u{14}\0\0\0!FastSerialization.1\u{4}\u{4}GCHeapDump"), "dotnet-trace"),
        (text(r#"{"start_time":1,"duration":2,"root_frame":{"function":"main"}}"#), "pyinstrument -r speedscope"),
        (text(r#"{"dhatFileVersion":2,"mode":"rust-heap"}"#), "jemalloc"),
        (text(r#"{"resourceProfiles":[{"resource":{}}]}"#), "protobuf"),
        (text(r#"{"version":1,"recording":{"displayName":"x"}}"#), "speedscope.app"),
        (text(r#"{"format":"profileJSONWithSymbolicationTable,1","meta":{"interval":1}}"#), "profiler.firefox.com"),
        (text(r#"{"label":"a","duration":7.4,"markers":[],"frames":[]}"#), "speedscope.app"),
        (text(r#"{"name":"root","value":0,"children":[]}"#), "folded stacks"),
    ];
    for (bytes, hint) in cases {
        let fault = refused("x", &bytes);
        assert_eq!(fault.reason, Reason::UnsupportedType, "{hint}: {fault:?}");
        assert!(fault.detail.contains(hint), "{hint}: {fault:?}");
    }
}

#[test]
fn regression_what_is_of_no_known_format_is_said_to_be() {
    let binary = refused("x", b"\0\x01\x02\xff\xfe of another tool").detail;
    assert!(binary.starts_with("no pprof profile and no other format that is known ("), "{binary}");
    let document = refused("x.json", br#"{"program": "trees", "ticks": 7, "nested": {"inner": 1}}"#).detail;
    assert_eq!(document, "JSON of no known profiler, with the keys program, ticks, nested");
    let list = refused("x.json", b"[1, 2]").detail;
    assert_eq!(list, "JSON of no known profiler");
    assert_eq!(format_of("x.txt", b"[Unknown]`Total;work 3\n"), Format::Folded);
}

#[test]
fn regression_a_byte_order_mark_before_text_is_no_part_of_it() {
    for (text, format) in
        [(GECKO, Format::Gecko), (CHROME_TRACE, Format::ChromeTrace), ("main;work 3\nmain 1\n", Format::Folded)]
    {
        let marked = format!("\u{feff}{text}");
        assert_eq!(format_of("x", marked.as_bytes()), format);
        let read = |text: &str| {
            part(&mut *format.decoder(&Options::default()), text.as_bytes(), &Ok(labels(ProfileType::Cpu)))
        };
        assert_eq!(read(&marked).unwrap(), read(text).unwrap(), "{format:?}");
    }
}
