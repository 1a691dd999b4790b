//! Files of other tools that are not read, known by how they begin: what they are, and what to do instead.
//!
//! Asked only of records that cannot be read: else a recording of perf would be called a broken pprof.

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::compression;
use crate::decode::Decode;
use crate::labels::Labels;

/// How much of a record is looked at.
const BEGINNING: usize = 16 << 10;

/// A kind of file that is not read.
#[derive(Debug)]
pub struct Foreign {
    /// What it begins with.
    begins: &'static [u8],
    /// What else its beginning holds; nothing if that tells nothing more.
    holds: &'static [u8],
    /// What it is.
    pub what: &'static str,
    /// What to do, as a command where there is one.
    pub instead: &'static str,
}

impl Foreign {
    /// The kind of such a file, if it is a known one.
    pub fn of(bytes: &[u8]) -> Option<&'static Self> {
        let beginning = compression::prefix(bytes, BEGINNING);
        let holds = |what: &[u8]| what.is_empty() || beginning.windows(what.len()).any(|window| window == what);
        KNOWN.iter().find(|known| beginning.starts_with(known.begins) && holds(known.holds))
    }
}

const fn foreign(begins: &'static [u8], holds: &'static [u8], what: &'static str, instead: &'static str) -> Foreign {
    Foreign { begins, holds, what, instead }
}

static KNOWN: [Foreign; 16] = [
    foreign(
        b"PERFILE2",
        b"",
        "a recording of perf (perf.data)",
        "write its text: perf script -F +pid -i perf.data > run.perf_script",
    ),
    foreign(
        b"\x04\x08{",
        b"",
        "a dump of Ruby, as stackprof writes it",
        "convert it: stackprof --json FILE > FILE.json",
    ),
    foreign(
        b"Nettrace",
        b"",
        "a trace of .NET (.nettrace)",
        "convert it: dotnet-trace convert --format Speedscope FILE",
    ),
    foreign(
        b"go 1.",
        b" trace\0",
        "an execution trace of Go",
        "record a CPU profile: runtime/pprof, or /debug/pprof/profile",
    ),
    foreign(b"gmon", b"", "a profile of gprof (gmon.out), which has no stacks", "record the program with perf"),
    foreign(
        b"# callgrind format",
        b"",
        "a profile of callgrind: costs by function, no samples",
        "record the program with perf",
    ),
    foreign(
        b"version: 1\ncreator: ",
        b"",
        "a profile of callgrind: costs by function, no samples",
        "record the program with perf",
    ),
    foreign(b"MOJ", b"", "a recording of Austin in MOJO", "convert it: mojo2austin FILE FILE.folded"),
    foreign(b"v8-version,", b"", "a log of V8 (isolate-*.log)", "record with node --cpu-prof"),
    foreign(
        b"{\"snapshot\":",
        b"\"node_fields\"",
        "a heap snapshot of V8, which has no samples",
        "record with node --heap-prof",
    ),
    foreign(
        b"JAVA PROFILE ",
        b"",
        "a heap dump of the JVM, which has no samples",
        "record allocations with async-profiler -e alloc",
    ),
    foreign(
        b"<?xml",
        b"<trace-query-result",
        "a trace of Instruments as XML",
        "fold it: inferno-collapse-xctrace FILE > FILE.folded",
    ),
    foreign(
        b"{\"",
        b"==>",
        "a profile of XHProf: times of pairs of functions, no stacks",
        "record with Excimer, and write folded stacks",
    ),
    foreign(
        b"{\xa9\x03",
        b"",
        "a profile of Python's cProfile: times by function, no stacks",
        "record with py-spy record -f raw -o FILE.folded",
    ),
    foreign(b"PK\x03\x04", b"", "a zip archive", "unpack it"),
    foreign(b"\x7fELF", b"", "a program or library", "give a profile of it"),
];

/// The fault of a record that cannot be read: that it is a file of another tool, if it is one.
pub(crate) fn named(bytes: &[u8], fault: Rejection) -> Rejection {
    if ![Reason::Malformed, Reason::Truncated].contains(&fault.reason) {
        return fault;
    }
    match Foreign::of(bytes) {
        Some(Foreign { what, instead, .. }) => {
            Rejection { reason: Reason::UnsupportedType, detail: format!("{what}; {instead}"), ..fault }
        }
        None => fault,
    }
}

/// A decoder that names files of other tools.
pub(crate) struct Naming(pub(crate) Box<dyn Decode>);

impl Decode for Naming {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let mut parts = self.0.decode(bytes, labels);
        if let [part] = &mut parts[..]
            && let Err(fault) = part
        {
            *fault = named(bytes, fault.clone());
        }
        parts
    }
}
