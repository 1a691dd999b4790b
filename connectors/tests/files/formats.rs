//! Formats of files: named by the manifest, by the file, or recognized by the bytes.

use std::fs;

use fleetdiff_connectors::files::RecordedFleet;
use fleetdiff_formats::names::Rewrites;
use fleetdiff_formats::{Options, compression};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde_json::{Value, json};

use super::reading::{good, read_all};

const FOLDED: &str = "main;work 2\n";
const PERF_SCRIPT: &str =
    "shop 7 1.5: cycles:\n\t55d0 work (/srv/shop)\n\nshop 7 1.6: cycles:\n\t55d0 work (/srv/shop)\n\n";
const SPEEDSCOPE: &str = r#"{"shared": {"frames": [{"name": "work"}]}, "profiles": [
    {"type": "sampled", "name": "t", "unit": "none", "startValue": 0, "endValue": 2, "samples": [[0]], "weights": [2]}]}"#;
const CPUPROFILE: &str = r#"{"nodes": [{"id": 1, "callFrame": {"functionName": "work", "url": ""}, "hitCount": 2}]}"#;
const CHROME_TRACE: &str = r#"[{"name": "ProfileChunk", "ph": "P", "pid": 1, "id": "0x1", "args": {"data": {"cpuProfile": {
    "nodes": [{"id": 1, "callFrame": {"functionName": "work"}}], "samples": [1, 1]}}}}]"#;
const STACKPROF: &str = r#"{"mode": "cpu", "interval": 1000, "frames": {"7": {"name": "work"}}, "raw": [1, 7, 2]}"#;
const GECKO: &str = r#"{"meta": {"interval": 1, "preprocessedProfileVersion": 55}, "threads": [{"samples": {"stack": [0, 0]},
    "stackTable": {"frame": [0], "prefix": [null]}, "frameTable": {"func": [0]}, "funcTable": {"name": [0]}, "stringArray": ["work"]}]}"#;
const PYROSCOPE: &str = r#"{"flamebearer": {"names": ["total", "work"], "levels": [[0, 2, 0, 0], [0, 2, 2, 1]], "numTicks": 2},
    "metadata": {"format": "single", "units": "samples", "sampleRate": 100}}"#;

/// Reads a fleet of one file that a manifest with these keys names; gives its samples and the name of the leaf, or the
/// error.
fn read(file: &str, text: &str, format: Option<&str>) -> Result<(u64, String), Rejection> {
    let folder = tempfile::tempdir().unwrap();
    let bytes = if file.ends_with(".gz") { compression::gzip(text.as_bytes()) } else { text.as_bytes().to_vec() };
    fs::write(folder.path().join(file), bytes).unwrap();
    let mut line = json!({
        "file": file, "profile_type": "cpu", "service": "shop", "build": "2", "region": "eu", "cohort": "web", "hardware": "m7g",
        "pod": "pod-1", "start_unix_nano": 1_700_000_000_000_000_000i64, "end_unix_nano": 1_700_000_010_000_000_000i64,
    });
    line["format"] = format.map_or(Value::Null, Value::from);
    fs::write(folder.path().join("manifest.jsonl"), format!("{line}\n")).unwrap();
    let rewrites = Rewrites::parse(&["^work => rework"]).unwrap();
    let fleet = RecordedFleet::open(folder.path()).unwrap().with_options(Options { rewrites, ..Options::default() });
    let records = read_all(fleet);
    assert_eq!((records.len(), records[0].parts.len()), (1, 1));
    if let Err(fault) = &records[0].parts[0] {
        return Err(fault.clone());
    }
    let profile = good(&records).next().unwrap();
    Ok((profile.total(), profile.names.last().unwrap().to_string()))
}

#[test]
fn each_format_is_known_by_the_manifest_and_by_the_name_of_the_file() {
    let cases = [
        ("folded", FOLDED, "cpu.folded"),
        ("perf_script", PERF_SCRIPT, "cpu-17.perf_script"),
        ("perf_script", PERF_SCRIPT, "cpu-17.perf-script.txt"),
        ("speedscope", SPEEDSCOPE, "cpu.speedscope.json"),
        ("cpuprofile", CPUPROFILE, "CPU.20261119.1.0.cpuprofile"),
        ("pyroscope", PYROSCOPE, "cpu.pyroscope.json"),
        ("chrome_trace", CHROME_TRACE, "by-its-bytes.json"),
        ("stackprof", STACKPROF, "by-its-bytes.json"),
        ("gecko", GECKO, "by-its-bytes.json"),
    ];
    for (format, text, file) in cases {
        let expected = Ok((2, "rework".to_owned()));
        assert_eq!(read("profile", text, Some(format)), expected, "{format} by the manifest");
        assert_eq!(read(file, text, None), expected, "{file} by its name");
        assert_eq!(read(&format!("{file}.gz"), text, None), expected, "{file}.gz by its name");
    }
    assert_eq!(read("profile", FOLDED, None).unwrap().0, 2, "text is folded");
}

#[test]
fn a_format_that_files_do_not_have_is_refused() {
    for (format, hint) in [("delta", "from topics"), ("nettrace", "perf_script")] {
        let fault = read("profile", FOLDED, Some(format)).unwrap_err();
        assert_eq!(fault.reason, Reason::UnsupportedType);
        assert!(fault.detail.contains(hint), "{fault:?}");
    }
}
