//! The delta of two cumulative profiles, compared with fastdelta of dd-trace-go: time and peak memory.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench delta -- [--quick]`; see README.md of this folder.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use fleetdiff_benches::peer::{Clock, Fastdelta, run};
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_formats::compression::gzip;
use fleetdiff_formats::pprof::delta;
use fleetdiff_formats::pprof::proto::Profile;
use prost::Message;

/// Passes of each; `--quick` has fewer.
const WHOLE: usize = 101;
const QUICK: usize = 21;
/// Processes whose peak memory is measured.
const PROCESSES: usize = 9;
const COLUMNS: [&str; 2] = ["alloc_objects/count", "alloc_space/bytes"];

/// Two files of fastdelta's testdata. Its own benchmark uses the first file twice.
struct Pair {
    name: &'static str,
    before: PathBuf,
    after: PathBuf,
}

fn main() -> ExitCode {
    let options: Vec<String> = std::env::args().skip(1).filter(|option| option != "--bench").collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let passes = match options.as_slice() {
        [] => WHOLE,
        ["--quick"] => QUICK,
        ["--once", way, before, after] => return once(way, Path::new(before), Path::new(after)),
        unknown => {
            let _ = writeln!(std::io::stderr(), "unknown options {unknown:?}; there is --quick");
            return ExitCode::from(2);
        }
    };
    let peer = match Fastdelta::build(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(peer) => peer,
        Err(missing) => {
            say(&format!(
                "nothing was measured: both the peer and the profiles are of a Go module, and it could not be built\n{missing}"
            ));
            return ExitCode::FAILURE;
        }
    };
    say(&format!(
        "one thread, {passes} passes in turn; median [quartiles]; fastdelta of dd-trace-go {}; both from nothing to the delta of two \
         files that lie uncompressed in memory",
        peer.version,
    ));
    for pair in pairs(&peer.testdata) {
        measure(&peer, &pair, passes);
    }
    ExitCode::SUCCESS
}

fn pairs(testdata: &Path) -> Vec<Pair> {
    let pair =
        |name, before: &str, after: &str| Pair { name, before: testdata.join(before), after: testdata.join(after) };
    vec![
        pair("big-heap, with itself", "big-heap.pprof", "big-heap.pprof"),
        pair("stress-failure.2, before and after", "stress-failure.2.before.pprof", "stress-failure.2.after.pprof"),
    ]
}

fn measure(peer: &Fastdelta, pair: &Pair, passes: usize) {
    let (before, after) = (read(&pair.before), read(&pair.after));
    agree(peer, pair, &before, &after);
    let clock = Clock::start(peer.command(&pair.before, &pair.after, &COLUMNS).arg("clock"));
    let mut clock = clock.unwrap_or_else(|failure| panic!("fastdelta: {failure}"));
    let mut beside =
        |way: &str| clock.milliseconds(way).unwrap_or_else(|failure| panic!("fastdelta, {way}: {failure}"));
    let mut times: [Vec<f64>; 5] = std::array::from_fn(|_| Vec::with_capacity(passes));
    // In turn, so that a disturbance of the machine affects both equally; the first pass of each warms it up.
    for pass in 0..=passes {
        let spent = [
            ours("plain", &before, &after),
            beside("plain"),
            beside("onward"),
            ours("gzip", &before, &after),
            beside("gzip"),
        ];
        if pass > 0 {
            times.iter_mut().zip(spent).for_each(|(times, spent)| times.push(spent));
        }
    }
    let [plain, peer_plain, onward, packed, peer_packed] = times.map(Spread::of);
    let mut text = format!("\n{}: {} and {} bytes", pair.name, before.len(), after.len());
    let mut line = |what: &str, ours: Spread, theirs: Spread| {
        let _ = write!(
            text,
            "\n  {what:32} {} us, fastdelta {} us: x {:.1}",
            ours.map(|ms| ms * 1e3),
            theirs.map(|ms| ms * 1e3),
            theirs.median / ours.median
        );
    };
    line("uncompressed", plain, peer_plain);
    line("  fastdelta knows the earlier one", plain, onward);
    line("gzipped, level 6", packed, peer_packed);
    let memory = |way: &str| (0..PROCESSES).map(|_| peak(peer, pair, way)).unzip::<f64, f64, Vec<_>, Vec<_>>();
    for (way, what) in
        [("read", "peak KiB, files read only"), ("plain", "peak KiB, uncompressed"), ("gzip", "peak KiB, gzipped")]
    {
        let (ours, theirs) = memory(way);
        let (ours, theirs) = (Spread::of(ours), Spread::of(theirs));
        let _ = write!(text, "\n  {what:32} {ours}, fastdelta {theirs}");
    }
    say(&text);
}

/// Panics unless both find the same sums: otherwise the comparison would be meaningless.
fn agree(peer: &Fastdelta, pair: &Pair, before: &[u8], after: &[u8]) {
    let theirs = peer.command(&pair.before, &pair.after, &COLUMNS).arg("write").output();
    let theirs = theirs.unwrap_or_else(|failure| panic!("fastdelta: {failure}")).stdout;
    let ours = delta::message(before, after, usize::MAX).unwrap_or_else(|fault| panic!("{}: {fault}", pair.name));
    let sums = |bytes: &[u8]| {
        let profile = Profile::decode(bytes).unwrap_or_else(|failure| panic!("{}: {failure}", pair.name));
        assert!(profile.sample.len() > 10, "{}: {} samples", pair.name, profile.sample.len());
        let mut sums = vec![0i64; profile.sample_type.len()];
        profile
            .sample
            .iter()
            .for_each(|sample| sums.iter_mut().zip(&sample.value).for_each(|(sum, value)| *sum += value));
        sums
    };
    assert_eq!(sums(&ours), sums(&theirs), "{}", pair.name);
}

/// Milliseconds of one pass. They include dropping the output, as the peer's time includes its garbage collection.
fn ours(way: &str, before: &[u8], after: &[u8]) -> f64 {
    let start = Instant::now();
    drop(black_box(pass(way, before, after)));
    milliseconds(start)
}

fn pass(way: &str, before: &[u8], after: &[u8]) -> Vec<u8> {
    let message = delta::message(before, after, usize::MAX).unwrap_or_else(|fault| panic!("{fault}"));
    if way == "gzip" { gzip(&message) } else { message }
}

/// The child whose peak is measured: reads the files, makes one delta, prints its peak in KiB.
fn once(way: &str, before: &Path, after: &Path) -> ExitCode {
    let (before, after) = (read(before), read(after));
    if way != "read" {
        black_box(pass(way, &before, &after));
    }
    let status = String::from_utf8(read(Path::new("/proc/self/status"))).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
    say(peak.map_or("0", str::trim));
    ExitCode::SUCCESS
}

/// Peak KiB of a process that makes one delta: ours, and fastdelta's.
fn peak(peer: &Fastdelta, pair: &Pair, way: &str) -> (f64, f64) {
    let number = |command: &mut Command| {
        let output = run(command).unwrap_or_else(|failure| panic!("{failure}"));
        let peak: f64 = output.trim().parse().unwrap_or_else(|_| panic!("no peak but {output:?}"));
        assert!(peak > 0.0, "{command:?} gives no peak");
        peak
    };
    let program = std::env::current_exe().unwrap_or_else(|failure| panic!("{failure}"));
    let ours = number(Command::new(program).args(["--once", way]).args([&pair.before, &pair.after]));
    (ours, number(peer.command(&pair.before, &pair.after, &COLUMNS).args(["once", way])))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()))
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
