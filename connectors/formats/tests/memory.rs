//! What small records that unfold may cost: each is read in a process of its own, at the default limits, whose largest memory
//! is then looked at.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "formats/fixtures.rs"]
#[expect(dead_code, reason = "only the labels of its profiles are needed here")]
mod fixtures;
#[path = "formats/floods.rs"]
mod floods;
#[path = "formats/jfr_written.rs"]
#[expect(dead_code, reason = "only what floods are made of is needed here")]
mod jfr_written;
#[path = "formats/perf_data_written.rs"]
#[expect(dead_code, reason = "only what floods are made of is needed here")]
mod perf_data_written;

use std::env;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use fleetdiff_formats::Options;
use fleetdiff_formats::otlp::metrics::{Decoder, REQUEST_METRICS};
use fleetdiff_formats::reading::Reading;

use fixtures::{kind_of, labels};
use floods::{Flood, floods};

/// Names the flood that a process is to read.
const FLOOD: &str = "FLEETDIFF_FLOOD";

/// What the process itself takes, with the names that a decoder remembers from record to record.
const BESIDE: usize = 96 << 20;

/// What reading a record of so many bytes may take: its bytes, in a list that grows; what is built of them, 4 times as much but
/// 128 to 512 MiB; and the process. At most 1 GiB.
fn most(unpacked: usize) -> usize {
    let built = (4 * unpacked).clamp(128 << 20, 512 << 20);
    (2 * unpacked + built + BESIDE).min(1 << 30)
}

/// The most memory that this process ever held, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Reads the flood as a stream and as a file, and says what came of it.
fn read(flood: &Flood) -> (usize, usize) {
    let options = Options::default();
    let bytes = (flood.make)();
    let Some(format) = flood.format else {
        return (Decoder::new(&options, REQUEST_METRICS).points(&bytes).len(), 0);
    };
    let options = fixtures::options(format);
    let labels = labels(kind_of(format));
    let parts = format.decoder(&options).decode(&bytes, &Ok(labels.clone()));
    let rejected = parts.iter().filter(|part| part.is_err()).count();
    let decoded = parts.len() - rejected;
    drop(parts);
    let runs = Reading::default().runs(format, &bytes, &labels, &options);
    assert!(!runs.is_empty());
    (decoded, rejected)
}

/// The other end of [`floods_cost_little`]: does nothing unless it is named.
#[test]
fn child() {
    let Ok(name) = env::var(FLOOD) else { return };
    let flood = floods().into_iter().find(|flood| flood.name == name).unwrap();
    let size = (flood.make)().len();
    let start = Instant::now();
    let (decoded, rejected) = read(&flood);
    println!("\nflood {size} {decoded} {rejected} {} {}", peak(), start.elapsed().as_millis());
}

/// Reads a flood in a process of its own; what is wrong with what that took, if something is.
fn cost((name, unpacked): (&str, usize)) -> Option<String> {
    let child = Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(FLOOD, name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("flood "));
    let Some(line) = line else { panic!("{name}: {text} {}", String::from_utf8_lossy(&child.stderr)) };
    let figures: Vec<usize> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
    let [size, decoded, rejected, peak, milliseconds] = figures[..] else { panic!("{line}") };
    eprintln!(
        "{name}: {size} bytes, {unpacked} unpacked: {decoded} parts, {rejected} rejections, {} MiB, {milliseconds} ms",
        peak >> 20
    );
    let is_much = peak > most(unpacked) || rejected > 40;
    is_much.then(|| format!("{name}: {} MiB, {rejected} rejections", peak >> 20))
}

#[test]
fn floods_cost_little() {
    let only = env::var("FLEETDIFF_FLOODS").unwrap_or_default();
    let floods = floods().into_iter().filter(|flood| flood.name.contains(&only));
    let left = Mutex::new(floods.map(|flood| (flood.name, flood.unpacked)).collect::<Vec<_>>().into_iter());
    let read = || std::iter::from_fn(|| left.lock().unwrap().next()).filter_map(cost).collect::<Vec<_>>();
    // As many at a time as most machines have processors.
    let failed = std::thread::scope(|scope| {
        let other = scope.spawn(read);
        let own = read();
        [own, other.join().unwrap()].concat()
    });
    assert!(failed.is_empty(), "{failed:#?}");
}
