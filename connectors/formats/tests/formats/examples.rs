//! A good record of every format, small enough to read.

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::{Format, folded, otlp, pprof};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};

use super::fixtures::{identity, window};
use super::{jfr_written, perf_data_written};

/// Three events of one thread and one of another, as `perf script` prints them.
pub const PERF_SCRIPT: &str = "\
# ========
# captured on    : Thu Nov 19 10:00:00 2026
# ========
#
shop-worker 2911/2913 [001] 77310.101010:     250000 cpu-clock:pppH: 
\tffffffff81e63129 __dev_queue_xmit+0x9 ([kernel.kallsyms])
\tffffffff816b8e18 vfs_write+0x108 ([kernel.kallsyms])
\t    7f2c000f838f __GI___libc_write+0x4f (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    55d0a1c04410 shop::Basket::flush(std::ostream&)+0x30 (/srv/shop)
\t    55d0a1c04100 main+0x20 (/srv/shop)
\ta6cc072d64644400 [unknown] ([unknown])

shop-worker 2911/2913 [001] 77310.105010:     250000 cpu-clock:pppH: 
\t    55d0a1c04510 core::fmt::write::h0123456789abcdef+0x10 (/srv/shop)
\t    7f2c00011112 [unknown] (/usr/lib/x86_64-linux-gnu/libjemalloc.so.2)
\t    55d0a1c04100 main+0x20 (/srv/shop)

GC Thread 7 2911/2920 [000] 77310.109010:     250000 cpu-clock:pppH: 
\t    7f1b88000040 Lshop/Basket;::total->Lshop/Price;::add+0x40 (/tmp/perf-2911.map)
\t    7f1b88000010 Interpreter+0x10 (/tmp/perf-2911.map)

shop-worker 2911/2913 [001] 77310.113010:     250000 cpu-clock:pppH: 

";

/// Two threads of a Python program at 100 samples a second.
pub const SPEEDSCOPE: &str = r#"{
  "$schema": "https://www.speedscope.app/file-format-schema.json",
  "shared": {"frames": [
    {"name": "<module>", "file": "shop.py", "line": 3}, {"name": "serve", "file": "shop.py", "line": 40},
    {"name": "encode", "file": "json/encoder.py", "line": 199}, {"name": "[libc.so.6]"}
  ]},
  "profiles": [
    {"type": "sampled", "name": "Thread 1", "unit": "seconds", "startValue": 0, "endValue": 0.05,
     "samples": [[0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 3], []], "weights": [0.01, 0.01, 0.01, 0.01, 0.01]},
    {"type": "sampled", "name": "Thread 2", "unit": "seconds", "startValue": 0, "endValue": 0.02,
     "samples": [[0], [0, 1]], "weights": [0.01, 0.01]}
  ],
  "activeProfileIndex": 0, "exporter": "shop", "name": "shop"
}"#;

/// Counts between events.
pub const EVENTED: &str = r#"{
  "shared": {"frames": [{"name": "main"}, {"name": "work"}]},
  "profiles": [{"type": "evented", "name": "all", "unit": "none", "startValue": 0, "endValue": 12, "events": [
    {"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 2}, {"type": "C", "frame": 1, "at": 9},
    {"type": "C", "frame": 0, "at": 12}
  ]}]
}"#;

/// A tree of five nodes and six ticks.
pub const CPUPROFILE: &str = r#"{
  "nodes": [
    {"id": 1, "callFrame": {"functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1}, "hitCount": 0, "children": [2, 5, 6]},
    {"id": 2, "callFrame": {"functionName": "serve", "scriptId": "9", "url": "file:///srv/shop/server.js", "lineNumber": 11, "columnNumber": 4}, "hitCount": 1, "children": [3]},
    {"id": 3, "callFrame": {"functionName": "", "scriptId": "9", "url": "file:///srv/shop/server.js", "lineNumber": 30, "columnNumber": 8}, "hitCount": 2, "children": [4], "positionTicks": [{"line": 31, "ticks": 2}]},
    {"id": 4, "callFrame": {"functionName": "parse", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1}, "hitCount": 1},
    {"id": 5, "callFrame": {"functionName": "(idle)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1}, "hitCount": 1},
    {"id": 6, "callFrame": {"functionName": "(program)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1}, "hitCount": 1}
  ],
  "startTime": 77310101010, "endTime": 77310107310,
  "samples": [2, 3, 3, 4, 5, 6],
  "timeDeltas": [0, 1050, 990, 1010, 1200, 1000]
}"#;

/// Two threads of one process, the first in two chunks that are not in order, and events of other kinds.
pub const CHROME_TRACE: &str = r#"{"traceEvents": [
  {"args": {"name": "CrRendererMain"}, "cat": "__metadata", "name": "thread_name", "ph": "M", "pid": 7, "tid": 7, "ts": 0},
  {"args": {"data": {"cpuProfile": {"nodes": [
      {"callFrame": {"codeType": "JS", "functionName": "parse", "scriptId": 3}, "id": 4, "parent": 3}], "samples": [4, 3, 5]},
    "timeDeltas": [1000, 1000, 1500], "endTime": 77310107500}}, "cat": "disabled-by-default-v8.cpu_profiler", "id": "0x1", "name": "ProfileChunk", "ph": "P", "pid": 7, "tid": 9, "ts": 77310108000},
  {"args": {"data": {"startTime": 77310101000}}, "cat": "disabled-by-default-v8.cpu_profiler", "id": "0x1", "name": "Profile", "ph": "P", "pid": 7, "tid": 7, "ts": 77310101001},
  {"args": {"data": {"cpuProfile": {"nodes": [
      {"callFrame": {"codeType": "other", "functionName": "(root)", "scriptId": 0}, "id": 1},
      {"callFrame": {"codeType": "other", "functionName": "(idle)", "scriptId": 0}, "id": 5, "parent": 1},
      {"callFrame": {"codeType": "JS", "functionName": "serve", "lineNumber": 11, "scriptId": 3, "url": "file:///srv/shop/server.js"}, "id": 3, "parent": 1}], "samples": [3, 3]},
    "lines": [12, 12], "timeDeltas": [0, 1000]}}, "cat": "disabled-by-default-v8.cpu_profiler", "id": "0x1", "name": "ProfileChunk", "ph": "P", "pid": 7, "tid": 9, "ts": 77310104000},
  {"args": {"data": {"startTime": 77310103000}}, "cat": "disabled-by-default-v8.cpu_profiler", "id": "0x2", "name": "Profile", "ph": "P", "pid": 7, "tid": 8, "ts": 77310103001},
  {"args": {"data": {"cpuProfile": {"nodes": [
      {"callFrame": {"codeType": "other", "functionName": "(root)", "scriptId": 0}, "id": 1},
      {"callFrame": {"codeType": "JS", "functionName": "", "scriptId": 5, "url": "blob:null/145d4f65"}, "id": 2, "parent": 1}], "samples": [2, 2]},
    "timeDeltas": [500, 1000], "endTime": 77310105500}}, "cat": "disabled-by-default-v8.cpu_profiler", "id": "0x2", "name": "ProfileChunk", "ph": "P", "pid": 7, "tid": 10, "ts": 77310106000},
  {"args": {"beginData": {"callFrame": {}}}, "cat": "devtools.timeline", "name": "FunctionCall", "ph": "X", "pid": "browser", "tid": null, "ts": 77310101500.25, "dur": 3},
  {"args": {"name": "DedicatedWorker thread"}, "cat": "__metadata", "name": "thread_name", "ph": "M", "pid": 7, "tid": 8, "ts": 0}
], "metadata": {"source": "DevTools"}}"#;

/// A tree of four nodes and five allocations that were drawn.
pub const HEAPPROFILE: &str = r#"{
  "head": {"callFrame": {"functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1}, "selfSize": 0, "id": 1, "children": [
    {"callFrame": {"functionName": "serve", "scriptId": "9", "url": "file:///srv/shop/server.js", "lineNumber": 11, "columnNumber": 4}, "selfSize": 36000, "id": 2, "children": [
      {"callFrame": {"functionName": "", "scriptId": "9", "url": "file:///srv/shop/server.js", "lineNumber": 30, "columnNumber": 8}, "selfSize": 50544, "id": 4, "children": []}
    ]},
    {"callFrame": {"functionName": "(V8 API)", "scriptId": "0", "url": "", "lineNumber": 0, "columnNumber": 0}, "selfSize": 16416, "id": 3, "children": []}
  ]},
  "samples": [{"size": 18000, "nodeId": 2, "ordinal": 3}, {"size": 18000, "nodeId": 2, "ordinal": 1}, {"size": 16848, "nodeId": 4, "ordinal": 2},
    {"size": 33696, "nodeId": 4, "ordinal": 5}, {"size": 16416, "nodeId": 3, "ordinal": 4}]
}"#;

/// Two threads as samply writes them: the first has a sample that weighs 3, one without a stack, one of a time in which it did not
/// run, and one that weighs nothing.
pub const GECKO: &str = r#"{
  "meta": {"interval": 1.0, "preprocessedProfileVersion": 55, "product": "shop", "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}, "startTime": 1795879808277.4, "symbolicated": false, "version": 24},
  "libs": [{"name": "shop", "path": "/srv/shop", "debugName": "shop"}, {"name": "libc.so.6", "path": "/usr/lib/libc.so.6"}],
  "threads": [
    {"frameTable": {"length": 5, "address": [4096, 8192, -1, 64, 12288], "inlineDepth": [0, 0, 0, 0, 1], "func": [0, 1, 2, 3, 4], "line": [null, 12, 30, null, 7], "column": [null, null, null, null, null]},
     "funcTable": {"length": 5, "name": [0, 1, 2, 3, 4], "isJS": [false, false, true, false, false], "resource": [0, 0, -1, 1, 0], "fileName": [null, 7, 8, null, null]},
     "markers": {"length": 0, "data": []}, "name": "shop", "isMainThread": true, "pid": "2911", "tid": "2911.1", "processName": "shop",
     "resourceTable": {"length": 2, "lib": [0, 1], "name": [5, 6], "host": [null, null], "type": [1, 1]},
     "samples": {"length": 6, "weightType": "samples", "stack": [1, 4, 2, null, 1, 3], "timeDeltas": [77310.1, 1.0, 1.0, 20.5, 1.0, 1.0], "weight": [1, 3, 1, 1, 1, 0], "threadCPUDelta": [0, 998, 1001, 990, 0, 1000]},
     "stackTable": {"length": 5, "prefix": [null, 0, 1, 0, 1], "frame": [0, 1, 2, 3, 4]},
     "stringArray": ["main", "Basket::total", "price", "0x40", "Price::add", "shop", "libc.so.6", "/srv/shop/basket.cc", "file:///srv/shop/price.js"]},
    {"frameTable": {"length": 2, "address": [0, 64], "func": [0, 1]}, "funcTable": {"length": 2, "name": [0, 1], "resource": [-1, 0]},
     "name": "worker", "pid": 2911, "tid": 2913, "resourceTable": {"length": 1, "lib": [1], "name": [2], "type": [1]},
     "samples": {"length": 3, "stack": [1, 1, 0], "time": [77311.0, 77312.0, 77313.0], "weight": null},
     "stackTable": {"length": 2, "prefix": [null, 0], "frame": [0, 1]}, "stringArray": ["0x7f2c000f838f", "0x40", "libc.so.6"]}
  ],
  "pages": [], "counters": []
}"#;

/// The same form since version 70: every table is shared, callers are offsets, frames know their libraries, functions their sources.
pub const GECKO_SHARED: &str = r#"{
  "meta": {"interval": 1, "preprocessedProfileVersion": 70, "product": "shop", "version": 32},
  "libs": [{"name": "shop", "path": "/srv/shop"}],
  "shared": {
    "stackTable": {"length": 3, "prefixOffset": [0, 1, 2], "frame": [0, 1, 2]},
    "frameTable": {"length": 3, "func": [0, 1, 2], "lib": [0, -1, 0], "line": [null, 3, null], "address": [1, -1, 64]},
    "funcTable": {"length": 3, "name": [0, 1, 2], "isJS": [false, true, false], "resource": [-1, -1, -1], "source": [null, 0, null]},
    "resourceTable": {"length": 0, "name": [], "host": [], "type": []},
    "sources": {"length": 1, "filename": [3], "id": [null]},
    "stringArray": ["main", "price", "0x40", "https://shop.test/price.js"]
  },
  "threads": [
    {"name": "shop", "pid": "7", "tid": 7, "samples": {"length": 3, "weightType": "samples", "weight": null, "stack": [0, 1, 2], "time": [1, 2, 3]}},
    {"name": "idle", "pid": "7", "tid": 8, "samples": {"length": 0, "weightType": "samples", "weight": null, "stack": []}},
    {"name": "worker", "pid": "7", "tid": 9, "samples": {"length": 1, "weightType": "samples", "weight": null, "stack": [1], "time": [2]}}
  ]
}"#;

/// Four stacks of six samples, two of them of the garbage collector.
pub const STACKPROF: &str = r#"{
  "version": 1.2, "mode": "cpu", "interval": 1000, "samples": 6, "gc_samples": 2, "missed_samples": 0, "metadata": {},
  "frames": {
    "139978160170600": {"name": "Basket#total", "file": "/srv/shop/basket.rb", "line": 8, "total_samples": 3, "samples": 1, "edges": {"139978160170680": 2}, "lines": {"8": [3, 1]}},
    "139978160170680": {"name": "Array#sum", "file": "<cfunc>", "line": null, "total_samples": 2, "samples": 2},
    "139978160170760": {"name": "block in <main>", "file": "/srv/shop/shop.rb", "line": 3, "total_samples": 4, "samples": 1},
    "1": {"name": "(garbage collection)", "file": "", "total_samples": 2, "samples": 0},
    "2": {"name": "(marking)", "file": "", "total_samples": 2, "samples": 2}
  },
  "raw": [2, 139978160170760, 139978160170600, 1, 3, 139978160170760, 139978160170600, 139978160170680, 2, 1, 139978160170760, 1, 2, 1, 2, 2],
  "raw_sample_timestamps": [22268268050, 22268276049, 22268288036, 22268296093, 22268304000, 22268312000],
  "raw_timestamp_deltas": [14518, 7999, 11987, 8057, 7907, 8000]
}"#;

/// Three rows: 10 samples, of which `other` stands for one.
pub const PYROSCOPE: &str = r#"{
  "version": 1,
  "flamebearer": {
    "names": ["total", "main", "serve", "wait", "encode", "other"],
    "levels": [[0, 10, 0, 0], [0, 7, 1, 1, 0, 3, 0, 2], [1, 4, 4, 4, 0, 2, 2, 3, 0, 2, 2, 4, 0, 1, 1, 5]],
    "numTicks": 10, "maxSelf": 4
  },
  "metadata": {"format": "single", "spyName": "gospy", "sampleRate": 100, "units": "samples", "name": "shop.cpu"},
  "timeline": {"startTime": 1700000000, "samples": [4, 6], "durationDelta": 10, "watermarks": {}},
  "groups": null, "heatmap": null
}"#;

/// A small profile for the formats that we write.
fn profile() -> Profile {
    let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
    Profile {
        identity: identity("pod-1"),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: window(),
        requests: None,
        names: ["main".into(), "work".into(), "wait".into()].into(),
        samples: Samples::Stacks(vec![stack(&[0, 1], 7), stack(&[0, 2], 5), stack(&[], 2)]),
    }
}

/// Good records of a format, uncompressed or not, with the samples that each holds.
pub fn good(format: Format) -> Vec<(Vec<u8>, u64)> {
    match format {
        Format::Pprof => vec![(pprof::encode(&profile()).unwrap(), 14)],
        Format::Folded => vec![
            (b"main;serve;read 12\nmain;serve;[unknown];write 3\n# note\nmain;wait 700\n".to_vec(), 715),
            (folded::encode(&profile()).unwrap(), 14),
        ],
        Format::PerfScript => vec![(PERF_SCRIPT.into(), 4)],
        Format::PerfData => vec![(perf_data_written::good(), 6)],
        Format::Speedscope => vec![(SPEEDSCOPE.into(), 7), (EVENTED.into(), 12)],
        Format::Cpuprofile => vec![(CPUPROFILE.into(), 5)],
        Format::ChromeTrace => vec![(CHROME_TRACE.into(), 6)],
        Format::Heapprofile => vec![(HEAPPROFILE.into(), 5)],
        Format::Stackprof => vec![(STACKPROF.into(), 6)],
        Format::Gecko => vec![(GECKO.into(), 9), (GECKO_SHARED.into(), 4)],
        Format::Pyroscope => vec![(PYROSCOPE.into(), 10)],
        Format::Delta => vec![(delta::encode(&[profile()]), 14)],
        Format::Jfr => vec![(jfr_written::good(), 5)],
        Format::Otlp => vec![(otlp::encode(&[profile()], &IdentityMapping::default()).unwrap(), 14)],
    }
}
