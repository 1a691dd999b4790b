//! Records of few bytes that ask for much.

use fleetdiff_formats::Format;
use fleetdiff_formats::compression::gzip;

use super::{jfr_written, perf_data_written};

/// One of them.
pub struct Flood {
    pub name: &'static str,
    /// `None`: OTLP metrics.
    pub format: Option<Format>,
    /// Bytes after decompression, about.
    pub unpacked: usize,
    pub make: Box<dyn Fn() -> Vec<u8>>,
}

/// Large ones are so large after decompression, in MiB, unless `FLEETDIFF_FLOOD_MIB` says it.
const MIB: usize = 48;

fn large() -> usize {
    std::env::var("FLEETDIFF_FLOOD_MIB").map_or(MIB, |mib| mib.parse().unwrap()) << 20
}

/// A field of bytes.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&head(tag, bytes.len())[..], bytes].concat()
}

/// The beginning of a field of so many bytes.
fn head(tag: u8, mut length: usize) -> Vec<u8> {
    let mut head = vec![tag << 3 | 2];
    while length > 127 {
        head.push(u8::try_from(length & 127).unwrap() | 128);
        length >>= 7;
    }
    head.push(u8::try_from(length).unwrap());
    head
}

/// Gzip of a beginning, a piece again and again, and an end; never whole in memory.
fn packed(start: &[u8], piece: &[u8], times: usize, end: &[u8]) -> Vec<u8> {
    let many = (1 << 20) / piece.len().max(1) + 1;
    let (block, rest) = (gzip(&piece.repeat(many)), gzip(&piece.repeat(times % many)));
    [gzip(start), block.repeat(times / many), rest, gzip(end)].concat()
}

fn flood(name: &'static str, format: Format, start: &[u8], piece: &[u8], unpacked: usize, end: &[u8]) -> Flood {
    let (start, piece, end) = (start.to_vec(), piece.to_vec(), end.to_vec());
    let times = unpacked / piece.len();
    Flood { name, format: Some(format), unpacked, make: Box::new(move || packed(&start, &piece, times, &end)) }
}

/// An OTLP record of one resource and scope with so many pieces in it.
fn otlp(name: &'static str, piece: &[u8], times: usize) -> Flood {
    let attribute =
        |key: &str, value: &str| field(1, &[field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat());
    let pod = ["service.name", "service.version", "k8s.pod.uid"].map(|key| attribute(key, "x")).concat();
    let resource = field(1, &pod);
    let scope = head(2, piece.len() * times);
    let start =
        [field(2, &field(5, b"")), head(1, resource.len() + scope.len() + piece.len() * times), resource, scope]
            .concat();
    flood(name, Format::Otlp, &start, piece, piece.len() * times, b"")
}

fn json(name: &'static str, format: Format, start: &str, piece: &str, unpacked: usize, end: &str) -> Flood {
    flood(name, format, start.as_bytes(), piece.as_bytes(), unpacked, end.as_bytes())
}

/// A pprof of one column and this table of pieces.
fn pprof(name: &'static str, piece: &[u8], unpacked: usize, end: &[u8]) -> Flood {
    let start = [field(1, &[8, 1, 16, 2]), field(6, b""), field(6, b"samples"), field(6, b"count")].concat();
    flood(name, Format::Pprof, &start, piece, unpacked, end)
}

/// A columnar delta of so many identities, each of six labels, and so many empty blocks.
fn delta(name: &'static str, number: usize) -> Flood {
    let varint = |number: usize| head(0, number)[1..].to_vec();
    // One label, which is "x"; a table of one name, "f".
    let start = [&b"FLDD\x01\x01\x01x"[..], &varint(number)].concat();
    let blocks = [&b"\x03\x01\x01f"[..], &varint(number), &vec![0; number]].concat();
    flood(name, Format::Delta, &start, &[0; 7], 7 * number, &blocks)
}

/// A columnar delta whose call tree is one chain, and whose only profile has a stack that ends in each node.
fn chain(name: &'static str, nodes: usize) -> Flood {
    let varint = |number: usize| head(0, number)[1..].to_vec();
    // One label, "x"; one identity of it; a table of one name, "f".
    let start = [&b"FLDD\x02\x01\x01x\x01"[..], &[0; 7], b"\x03\x01\x01f", &varint(nodes)].concat();
    // A cohort of as many stacks, the first of them of node 1, with one sample each and no value.
    let stacks =
        [&[0, 0, 0, 0, 0, 2, 1, 0][..], &varint(nodes), &[1], &vec![0; nodes - 1], &vec![1; nodes], &[0]].concat();
    let block = [&[1][..], &varint(stacks.len()), &stacks].concat();
    flood(name, Format::Delta, &start, &[0; 2], 2 * nodes, &block)
}

/// Every flood.
pub fn floods() -> Vec<Flood> {
    let mut floods = binary();
    floods.extend(recordings());
    floods.extend(texts());
    floods.push(Flood {
        name: "metrics of empty resources",
        format: None,
        unpacked: large(),
        make: Box::new(|| packed(b"", &[10, 0], large() / 2, b"")),
    });
    floods
}

fn recordings() -> Vec<Flood> {
    let perf = |name, piece: &[u8]| {
        let records = large() / piece.len();
        let (start, end) = perf_data_written::around(&[perf_data_written::CPU_CLOCK], 0, records * piece.len());
        flood(name, Format::PerfData, &start, piece, records * piece.len(), &end)
    };
    vec![
        perf("perf data of the shortest records", &perf_data_written::record(5, 0, &[])),
        perf("perf data of samples", &perf_data_written::sample(0, 7, 7, 1, &[])),
        perf("perf data of one long stack", &perf_data_written::sample(0, 7, 7, 1, &[1; 8_000])),
        perf("perf data of processes", &perf_data_written::processes(1_000)),
    ]
}

fn binary() -> Vec<Flood> {
    // A profile of one attribute list, and a sample of one.
    let attributes = field(11, &vec![0; 1 << 20]);
    let profile = field(2, &attributes);
    let sample = field(2, &field(2, &field(2, &vec![0; 1 << 20])));
    let lines = field(4, &[&[8, 1][..], &[34, 0].repeat(60_000)].concat());
    let location = field(2, &[field(1, &[1; 100]), field(2, &[1])].concat());
    let jfr = |name, piece: &[u8]| {
        let events = large() / piece.len();
        let (start, end) = jfr_written::around(events * piece.len());
        flood(name, Format::Jfr, &start, piece, events * piece.len(), &end)
    };
    vec![
        jfr("jfr of samples of one stack", &jfr_written::sample(20, 6_000, 1, 1, 1)),
        jfr("jfr of events of no use", &[2, 99]),
        jfr("jfr of settings", &jfr_written::setting(20, "period", "10 ms")),
        otlp("otlp of 300,000 empty profiles", &[18, 0], 300_000),
        otlp("otlp of 1,500,000 empty profiles", &[18, 0], 1_500_000),
        otlp("otlp of millions of empty profiles", &[18, 0], large() / 2),
        otlp("otlp of profiles of nothing but attributes", &profile, 150),
        otlp("otlp of samples of nothing but attributes", &sample, 150),
        flood("otlp of 130,000 empty resources", Format::Otlp, &field(2, &field(5, b"")), &[10, 0], 260_000, b""),
        flood("otlp of millions of empty resources", Format::Otlp, &field(2, &field(5, b"")), &[10, 0], large(), b""),
        flood(
            "otlp of empty scopes",
            Format::Otlp,
            &[field(2, &field(5, b"")), head(1, large())].concat(),
            &[18, 0],
            large(),
            b"",
        ),
        flood(
            "otlp of empty strings",
            Format::Otlp,
            &[field(1, b""), head(2, large())].concat(),
            &[42, 0],
            large(),
            b"",
        ),
        pprof("pprof of empty samples", &[18, 0], large(), b""),
        pprof("pprof of samples of nothing", &[18, 3, 18, 1, 1], large(), b""),
        pprof("pprof of empty strings", &[50, 0], large(), b""),
        pprof("pprof of empty functions", &[42, 0], large(), b""),
        pprof("pprof of empty locations", &[34, 0], large(), b""),
        pprof("pprof of sample types", &[10, 0], large(), b""),
        flood(
            "pprof of one sample of millions of frames",
            Format::Pprof,
            &[field(1, &[8, 1, 16, 2]), lines.clone(), head(2, large() + head(1, large()).len()), head(1, large())]
                .concat(),
            &[1],
            large(),
            b"",
        ),
        pprof("pprof of frames that unfold", &location, 1 << 20, &lines),
        delta("delta of a million identities and profiles", 1 << 20),
        chain("delta of a million stacks of up to a million frames", 1 << 20),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table of floods")]
fn texts() -> Vec<Flood> {
    use Format::{ChromeTrace, Cpuprofile, Folded, Gecko, Heapprofile, PerfScript, Pyroscope, Speedscope, Stackprof};
    let gecko = r#"{"meta":{"interval":1,"preprocessedProfileVersion":70},"threads":["#;
    let one = r#""stringArray":["x"],"funcTable":{"name":[0]},"frameTable":{"func":[0]},"stackTable":{"frame":[0],"prefix":[null]}"#;
    let thread = r#"{"type":"sampled","unit":"none","samples":[],"weights":[]},"#;
    let broken = r#"{"type":"sampled","unit":"none"},"#;
    let frames = r#"{"shared":{"frames":[{"name":"main"}]},"profiles":["#;
    let weights = r#"{"shared":{"frames":[{"name":"main"}]},"profiles":[{"type":"sampled","unit":"none","samples":[],"weights":["#;
    let samples = r#"{"shared":{"frames":[{"name":"main"}]},"profiles":[{"type":"sampled","unit":"none","weights":[],"samples":["#;
    let node = r#"{"id":1,"callFrame":{"functionName":""}},"#;
    let last = r#"{"type":"sampled","unit":"none","samples":[],"weights":[]}]}"#;
    vec![
        json("speedscope of empty threads, 31 MB", Speedscope, frames, thread, 31_000_000, last),
        json("speedscope of broken threads", Speedscope, frames, broken, 31_000_000, last),
        json("speedscope of weights", Speedscope, weights, "1,", large(), "1]}]}"),
        json("speedscope of empty samples", Speedscope, samples, "[],", large(), "[]]}]}"),
        json(
            "speedscope of frames",
            Speedscope,
            r#"{"profiles":[],"shared":{"frames":["#,
            r#"{"name":"\n"},"#,
            large(),
            r#"{"name":""}]}}"#,
        ),
        json("speedscope of nests", Speedscope, "", "[", large(), ""),
        json("speedscope of passed over nests", Speedscope, r#"{"x":"#, "[", large(), ""),
        json(
            "cpuprofile of nodes",
            Cpuprofile,
            r#"{"nodes":["#,
            node,
            large(),
            r#"{"id":2,"callFrame":{"functionName":""}}]}"#,
        ),
        json(
            "cpuprofile of ticks",
            Cpuprofile,
            r#"{"nodes":[{"id":1,"callFrame":{"functionName":"x"}}],"samples":["#,
            "1,",
            large(),
            "1]}",
        ),
        json(
            "gecko of empty threads",
            Gecko,
            gecko,
            r#"{"samples":{"stack":[]}},"#,
            large(),
            r#"{"samples":{"stack":[]}}]}"#,
        ),
        json("gecko of samples", Gecko, &format!("{gecko}{{{one},\"samples\":{{\"stack\":["), "0,", large(), "0]}}]}"),
        json(
            "gecko of texts",
            Gecko,
            &format!(r#"{gecko}{{{one},"samples":{{"stack":[0]}}}}],"shared":{{"stringArray":["#),
            r#""\n","#,
            large(),
            r#""x"]}}"#,
        ),
        json(
            "gecko of ever deeper stacks",
            Gecko,
            &format!(
                r#"{gecko}{{{one},"samples":{{"stack":[999999,999998,999997]}}}}],"shared":{{"stackTable":{{"frame":["#
            ),
            "0,",
            2_000_000,
            &format!(r#"0],"prefixOffset":[0,{}1]}}}}}}"#, "1,".repeat(999_999)),
        ),
        json("trace of profiles", ChromeTrace, "[", r#"{"name":"Profile"},"#, large(), "{}]"),
        json("trace of chunks", ChromeTrace, "[", r#"{"name":"ProfileChunk"},"#, large(), "{}]"),
        json("trace of names of threads", ChromeTrace, "[", r#"{"name":"thread_name"},"#, large(), "{}]"),
        json("trace of empty events", ChromeTrace, "[", "{},", large(), "{}]"),
        json(
            "trace of nodes",
            ChromeTrace,
            r#"[{"name":"ProfileChunk","args":{"data":{"cpuProfile":{"nodes":["#,
            r#"{"id":1,"callFrame":{"functionName":""}},"#,
            large(),
            r#"{"id":1,"callFrame":{"functionName":""}}]}}}}]"#,
        ),
        json(
            "trace of ticks",
            ChromeTrace,
            r#"[{"name":"ProfileChunk","args":{"data":{"cpuProfile":{"nodes":[{"id":1,"callFrame":{"functionName":"x"}}],"samples":["#,
            "1,",
            large(),
            "1]}}}}]",
        ),
        json("trace of nests", ChromeTrace, r#"{"traceEvents":[{"args":"#, "[", large(), ""),
        json(
            "heapprofile of nodes",
            Heapprofile,
            r#"{"samples":[],"head":{"id":1,"selfSize":0,"callFrame":{"functionName":""},"children":["#,
            r#"{"id":1,"selfSize":0,"callFrame":{"functionName":"\n"}},"#,
            large(),
            r#"{"id":2,"selfSize":0,"callFrame":{"functionName":""}}]}}"#,
        ),
        json(
            "heapprofile of samples",
            Heapprofile,
            r#"{"head":{"id":1,"selfSize":0,"callFrame":{"functionName":""}},"samples":["#,
            r#"{"nodeId":1},"#,
            large(),
            r#"{"nodeId":1}]}"#,
        ),
        json("heapprofile of nests", Heapprofile, "", r#"{"head":{"children":["#, large(), ""),
        json("heapprofile of callers", Heapprofile, r#"{"head":"#, r#"{"children":["#, large(), ""),
        json("heapprofile of passed over nests", Heapprofile, r#"{"x":"#, "[", large(), ""),
        json(
            "stackprof of frames",
            Stackprof,
            r#"{"mode":"cpu","frames":{"#,
            r#""1":{"name":"\n"},"#,
            large(),
            r#""2":{"name":""}}}"#,
        ),
        json("stackprof of empty stacks", Stackprof, r#"{"mode":"cpu","frames":{},"raw":["#, "0,1,", large(), "0,1]}"),
        json(
            "stackprof of one stack of millions of frames",
            Stackprof,
            r#"{"mode":"cpu","frames":{"1":{"name":"x"}},"raw":[16777216,"#,
            "1,",
            2 << 24,
            "1]}",
        ),
        json(
            "stackprof of samples without end",
            Stackprof,
            r#"{"mode":"cpu","frames":{"1":{"name":"x"}},"raw":["#,
            "1,1,18446744073709551615,",
            1 << 20,
            "1,1,1]}",
        ),
        json(
            "pyroscope of rows",
            Pyroscope,
            r#"{"metadata":{"format":"single","units":"samples"},"flamebearer":{"numTicks":0,"names":["x"],"levels":["#,
            "[],",
            large(),
            "[]]}}",
        ),
        json(
            "pyroscope of names",
            Pyroscope,
            r#"{"metadata":{"format":"single","units":"samples"},"flamebearer":{"numTicks":0,"levels":[],"names":["#,
            "\"\",",
            large(),
            "\"\"]}}",
        ),
        json("folded of the shortest lines", Folded, "", "a 1\n", large(), ""),
        json("folded of one line of millions of frames", Folded, "", ";", large(), " 1\n"),
        json("folded of empty lines", Folded, "", "\n", large(), "a 1\n"),
        json("perf script of the shortest events", PerfScript, "", "a 1 1.0: x:\n\n", large(), ""),
        json("perf script of one stack", PerfScript, "a 1 1.0: x:\n", "\t1 f (l)\n", large(), "\n"),
    ]
}
