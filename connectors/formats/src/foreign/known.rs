//! The files of other tools that are known.

use super::Foreign;

const PERF_SCRIPT: &str = "write its text: perf script -F +pid -i perf.data > run.perf_script";
const SIMPLEPERF: &str =
    "record with simpleperf, and fold that: stackcollapse.py -i perf.data > FILE.folded (a script of simpleperf)";
const PPROF: &str = "convert it: pprof -proto PROGRAM FILE > FILE.pb.gz";
const GPERFTOOLS: &str = "a CPU profile of gperftools";
const GO_CPU: &str = "record a CPU profile: runtime/pprof, or /debug/pprof/profile";
const DEEP_COPY: &str = "a deep copy of Instruments";
const FOLD_DEEP_COPY: &str = "fold it: stackcollapse-instruments.pl FILE > FILE.folded";
const PYINSTRUMENT: &str = "write speedscope: pyinstrument -r speedscope -o FILE.speedscope.json SCRIPT";
const SPEEDSCOPE: &str = "open it at www.speedscope.app, and give what that exports";
const GECKO: &str = "open it at profiler.firefox.com, and give what that saves";
const D3: &str = "give what it was made of: a profile, or folded stacks";

const fn foreign(begins: &'static [u8], holds: &'static [u8], what: &'static str, instead: &'static str) -> Foreign {
    Foreign { begins, holds, keys: &[], what, instead }
}

/// A document of JSON, by its outermost keys.
const fn document(
    keys: &'static [&'static str],
    holds: &'static [u8],
    what: &'static str,
    instead: &'static str,
) -> Foreign {
    Foreign { begins: b"", holds, keys, what, instead }
}

/// The first that fits is taken.
pub(super) static KNOWN: [Foreign; 53] = [
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
    foreign(b"go 1.", b" trace\0", "an execution trace of Go", GO_CPU),
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
    foreign(b"PERFFILE", b"", "a recording of an old perf (perf.data)", PERF_SCRIPT),
    foreign(b"SIMPLEPERF", b"", "samples of Android's simpleperf", SIMPLEPERF),
    foreign(b"*version\n", b"", "a method trace of Android: times of calls, no samples", SIMPLEPERF),
    foreign(b"SLOW", b"", "a method trace of Android: times of calls, no samples", SIMPLEPERF),
    // A CPU profile of gperftools: the words 0, 3, 0 and the period, of 64 or 32 bits.
    foreign(b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b"", GPERFTOOLS, PPROF),
    foreign(b"\0\0\0\0\x03\0\0\0\0\0\0\0", b"", GPERFTOOLS, PPROF),
    foreign(b"heap profile:", b"", "a heap profile in the old text of pprof", PPROF),
    foreign(b"--- heap", b"", "a heap profile in the old text of pprof", PPROF),
    foreign(b"--- contention", b"", "a contention profile in the old text of pprof", PPROF),
    foreign(b"--- mutex:", b"", "a contention profile in the old text of pprof", PPROF),
    foreign(b"--- thread", b"", "a list of threads in the old text of pprof, which has no samples", GO_CPU),
    foreign(b"goroutine profile:", b"", "a list of goroutines, which has no samples", GO_CPU),
    foreign(b"threadcreate profile:", b"", "a list of threads of Go, which has no samples", GO_CPU),
    foreign(b"goroutine ", b"]:\n", "a dump of goroutines, which has no samples", GO_CPU),
    foreign(b"File: ", b"-----------+--", "a text that pprof -traces wrote", PPROF),
    foreign(b"CPU", b"FUNCTION:NAME", "the output of DTrace", "fold it: inferno-collapse-dtrace FILE > FILE.folded"),
    foreign(
        b"Analysis of sampling",
        b"",
        "a report of sample of macOS",
        "fold it: inferno-collapse-sample FILE > FILE.folded",
    ),
    foreign(
        b"",
        b"Time and Allocation Profiling Report",
        "a profile of GHC (.prof)",
        "fold it: inferno-collapse-ghcprof FILE > FILE.folded",
    ),
    foreign(b"Function Stack,CPU Time", b"", "a table of VTune", "fold it: inferno-collapse-vtune FILE > FILE.folded"),
    foreign(
        b"Level,Function Name",
        b"",
        "a table of Visual Studio's profiler",
        "fold it: inferno-collapse-vsprof FILE > FILE.folded",
    ),
    foreign(b"@ ", b" samples]", "a call graph of pmcstat", "fold it: stackcollapse-pmc.pl FILE > FILE.folded"),
    foreign(b"Weight\tSelf Weight\t", b"", DEEP_COPY, FOLD_DEEP_COPY),
    foreign(b"Running Time\tSelf", b"", DEEP_COPY, FOLD_DEEP_COPY),
    foreign(b"\xff\xfe", b"", "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"),
    foreign(b"\xfe\xff", b"", "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"),
    foreign(
        b"\x14\0\0\0!FastSerialization.1",
        b"GCHeapDump",
        "a heap dump of .NET (.gcdump), which has no samples",
        "record with dotnet-trace collect --format Speedscope",
    ),
    foreign(
        b"positions: ",
        b"\nevents: ",
        "a profile of callgrind: costs by function, no samples",
        "record the program with perf",
    ),
    document(&["root_frame"], b"", "a profile of pyinstrument", PYINSTRUMENT),
    document(&["session", "frame_tree"], b"", "a profile of pyinstrument", PYINSTRUMENT),
    document(
        &["dhatFileVersion"],
        b"",
        "a profile of DHAT: sums of allocations, no samples",
        "record with a heap profiler that samples and writes pprof, as that of jemalloc or tcmalloc",
    ),
    document(
        &["resourceProfiles"],
        b"",
        "OTLP as JSON",
        "give OTLP as protobuf (encoding: proto, or otlp_proto, of the exporter)",
    ),
    document(&["sessionData"], b"", "a recording of Safari's Web Inspector", SPEEDSCOPE),
    document(&["recording"], b"", "a recording of Safari's Web Inspector", SPEEDSCOPE),
    document(&["format"], b"profileJSON", "a profile of Cleopatra, Firefox's profiler before 2016", GECKO),
    document(&["profileJSON"], b"", "a profile of Cleopatra, Firefox's profiler before 2016", GECKO),
    document(&["label", "duration", "markers"], b"", "a profile of Firefox's old developer tools", SPEEDSCOPE),
    document(&["name", "value", "children"], b"", "data of d3-flame-graph", D3),
    document(&["children"], b"\"value\"", "data of d3-flame-graph", D3),
];
