//! The article's job at every hop: ours beside numpy, polars, DuckDB and Flink, over one file.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench peers -- [--quick]`; see README.md of this folder.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fleetdiff_benches::article::programs::{self, Program};
use fleetdiff_benches::article::reference::Reference;
use fleetdiff_benches::article::{Found, Pass, Recorded};
use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::drive::{Standing, drive};
use fleetdiff_benches::spread::Spread;
use fleetdiff_benches::workload::{MEDIUM, Mix, Workload};
use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::number::{float, length_float};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Hops in the window and hops that are measured, as in `window`; `--quick` has fewer.
const WHOLE: (u64, u64) = (180, 60);
const QUICK: (u64, u64) = (18, 12);
/// Passes of each; one more comes first, and is shown apart.
const PASSES: usize = 5;
/// No p may be nearer to its threshold, relatively: there, rounding could decide.
const NEAREST: f64 = 1e-8;

/// One line of the table.
struct Line {
    name: String,
    threads: String,
    first: f64,
    passes: Vec<f64>,
    /// Tests a hop; empty where they are not counted.
    tests: String,
    flags: String,
}

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick"]) else {
        return ExitCode::from(2);
    };
    let (window, measured) = if asked.has("--quick") { QUICK } else { WHOLE };
    let mut workload = Workload::new(MEDIUM, Mix::CanaryInEveryCell, window, measured);
    workload.look_every = 1;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("peers.bin");
    let recorded = Recorded::of(&workload, 2);
    recorded.write(&file).unwrap_or_else(|failure| panic!("{}: {failure}", file.display()));
    let samples = float(recorded.samples());
    say(&format!(
        "window of {window} hops, {measured} hops measured, {PASSES} passes in turn; {} records, {} samples a hop; load {}",
        recorded.records(),
        recorded.samples() / measured,
        load()
    ));
    let (mut programs, missing) = programs::all(folder, &file);
    missing.iter().for_each(|reason| say(reason));
    let (lines, found) = plain(&recorded, &mut programs);
    drop((recorded, programs));
    say(&format!(
        "{:<26}{:>8}{:>24}{:>24}{:>12}{:>10}  {}",
        "", "threads", "M samples/s", "ms a hop", "first pass", "tests", "flags"
    ));
    print(&lines, samples, float(measured));
    for method in [Method::Article, Method::Honest] {
        workload.method = method;
        print(&ours(&Arc::new(workload.clone()), found), samples, float(measured));
    }
    say(&format!("load {}", load()));
    let _ = std::fs::remove_file(&file);
    ExitCode::SUCCESS
}

/// The plain job by the reference and by every program, in turn, so that a disturbance of the machine affects all.
///
/// Panics if one finds other flags than the reference: a wrong result in a short time is worth nothing.
fn plain(recorded: &Recorded, programs: &mut [Program]) -> (Vec<Line>, Found) {
    let reference = Reference::filled(recorded);
    let (mut lines, mut found) = (vec![Line::of("reference in Rust", "1")], Found::default());
    lines.extend(programs.iter().map(|program| Line::of(&program.name, program.threads)));
    for number in 0..=PASSES {
        let (pass, nearest) = reference.pass();
        assert!(pass.found.flags > 0, "nothing to flag: the workload proves nothing");
        assert!(nearest > NEAREST, "a p is within {nearest:e} of its threshold: rounding would decide");
        found = pass.found;
        lines[0].add(number, pass, recorded.measured);
        for (program, line) in programs.iter_mut().zip(&mut lines[1..]) {
            let theirs = program.pass().unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(theirs.found, pass.found, "{} finds (left) what the reference does not (right)", program.name);
            line.add(number, theirs, recorded.measured);
        }
    }
    (lines, found)
}

/// fleetdiff by a method of its own: of the plain one every hop must have the flags of the reference, of the honest one it has others.
///
/// Panics if it does not, or if rows differ between runs and numbers of workers.
fn ours(workload: &Arc<Workload>, reference: Found) -> Vec<Line> {
    let name = format!("fleetdiff, {}", workload.method.name());
    let mut lines = [1, 2].map(|workers| (workers, Line::of(&name, &workers.to_string())));
    let mut rows = None;
    for number in 0..=PASSES {
        for (workers, line) in &mut lines {
            let outcome = drive(workload, *workers).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(*rows.get_or_insert(outcome.rows), outcome.rows, "rows differ between runs");
            line.spent(number, outcome.hops.iter().map(|hop| hop.intake + hop.close).sum());
            if workload.method == Method::Article {
                let Standing { flags, hash, .. } = outcome.standing;
                assert_eq!(
                    (flags, hash),
                    (reference.flags, reference.hash),
                    "flags (left) differ from the reference's"
                );
                line.flags = format!("{flags} {hash:016x}");
            } else {
                line.tests = outcome.tests.to_string();
                line.flags = format!("(rows {:016x})", outcome.rows);
            }
        }
    }
    lines.map(|(_, line)| line).into()
}

impl Line {
    fn of(name: &str, threads: &str) -> Self {
        let (name, threads) = (name.to_owned(), threads.to_owned());
        Self { name, threads, first: f64::NAN, passes: Vec::new(), tests: String::new(), flags: String::new() }
    }

    fn add(&mut self, number: usize, pass: Pass, measured: usize) {
        let Found { flags, tests, hash } = pass.found;
        self.spent(number, pass.milliseconds);
        self.tests = format!("{:.0}", float(tests) / length_float(measured));
        self.flags = format!("{flags} {hash:016x}");
    }

    fn spent(&mut self, number: usize, milliseconds: f64) {
        if number == 0 {
            self.first = milliseconds;
        } else {
            self.passes.push(milliseconds);
        }
    }
}

fn print(lines: &[Line], samples: f64, measured: f64) {
    for Line { name, threads, first, passes, tests, flags } in lines {
        let spread = Spread::of(passes.clone());
        let rate = spread.map(|ms| samples / ms / 1e3);
        let hop = spread.map(|ms| ms / measured);
        let first = format!("{:.1}", first / measured);
        say(&format!("{name:<26}{threads:>8}{rate:>24}{hop:>24}{first:>12}{tests:>10}  {flags}"));
    }
}

/// The machine's load: means of 1, 5 and 15 minutes.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
