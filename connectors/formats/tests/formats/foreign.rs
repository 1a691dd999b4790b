//! Files of other tools, which are refused by their names.

use std::fs;

use fleetdiff_formats::reading::{Reading, Unread};
use fleetdiff_formats::{Options, compression, format_of};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

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
