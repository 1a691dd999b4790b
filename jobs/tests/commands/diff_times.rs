//! `diff` of files with times that have no period: what is refused, with what hint, and what is said of enough runs.

use std::path::Path;

use fleetdiff_diff::compare::times::NOTE;
use fleetdiff_formats::Labels;
use fleetdiff_formats::compression::gzip;
use fleetdiff_formats::pprof::proto::{Function, Line, Location, Profile, Sample, ValueType};
use prost::Message;
use tempfile::TempDir;

use super::program::{Run, run};

const FUNCTIONS: u64 = 30;
/// The function of which the head has 30 % more.
const CHANGED: u64 = 2;

/// A number from 0 to 1 that looks drawn.
fn drawn(seed: u64) -> f64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    f64::from(u32::try_from((mixed ^ (mixed >> 32)) & 0xFFFF_FFFF).unwrap()) / f64::from(u32::MAX)
}

/// Columns of a file.
#[derive(Clone, Copy, PartialEq)]
enum Columns {
    /// `cpu/nanoseconds`, with no period.
    Times,
    /// `samples/count` and `cpu/nanoseconds`.
    Both,
    /// `samples/count`.
    Counts,
    /// `cpu/nanoseconds`, with no period, beside memory that was allocated.
    TimesAndMemory,
    /// Memory in use alone.
    InUse,
    /// One column that says no number of samples, as exports of one type have it.
    Alone(&'static str, &'static str),
}

const STRINGS: [&str; 11] = [
    "cpu",
    "nanoseconds",
    "samples",
    "count",
    "alloc_objects",
    "alloc_space",
    "bytes",
    "inuse_objects",
    "inuse_space",
    "delay",
    "goroutine",
];

/// A gzipped pprof file of a run of 20 s: function f below `main` takes 1/(f + 1), more or less by 8 %, and 9 to 11 ms a look.
fn pprof(seed: u64, factor: f64, columns: Columns) -> Vec<u8> {
    let names = ["main".to_owned()].into_iter().chain((0..FUNCTIONS).map(|function| format!("function_{function}")));
    let mut strings = vec![String::new()];
    strings.extend(STRINGS.map(str::to_owned));
    let first = strings.len();
    strings.extend(names);
    let id = |place: usize| u64::try_from(place + 1).unwrap();
    let places = 0..strings.len() - first;
    let function = places.clone().map(|place| Function {
        id: id(place),
        name: i64::try_from(first + place).unwrap(),
        ..Function::default()
    });
    let location = places.map(|place| Location {
        id: id(place),
        line: vec![Line { function_id: id(place), ..Line::default() }],
        ..Location::default()
    });
    let sample = (0..FUNCTIONS).map(|function| {
        let vary = 1.0 + 0.16 * (drawn(1_000 * seed + function) - 0.5);
        let changed = if function == CHANGED { factor } else { 1.0 };
        let looks = 500.0 * changed * vary / f64::from(u32::try_from(function).unwrap() + 1);
        let time = looks * 1e7 * (1.0 + 0.02 * (drawn(7_777 * seed + function) - 0.5));
        let [looks, time] = [looks, time].map(|value| format!("{value:.0}").parse::<i64>().unwrap());
        let value = match columns {
            Columns::Times => vec![time],
            Columns::Both => vec![looks, time],
            Columns::Counts => vec![looks],
            Columns::TimesAndMemory => vec![time, looks, 512 * looks],
            Columns::InUse => vec![looks, 512 * looks],
            Columns::Alone(..) => vec![looks],
        };
        Sample { location_id: vec![function + 2, 1], value, label: Vec::new() }
    });
    let of = |name, unit| ValueType { r#type: name, unit };
    let (times, counts) = (of(1, 2), of(3, 4));
    let profile = Profile {
        sample_type: match columns {
            Columns::Times => vec![times],
            Columns::Both => vec![counts, times],
            Columns::Counts => vec![counts],
            Columns::TimesAndMemory => vec![times, of(5, 4), of(6, 7)],
            Columns::InUse => vec![of(8, 4), of(9, 7)],
            Columns::Alone(name, unit) => {
                let place = |text: &str| i64::try_from(STRINGS.iter().position(|known| *known == text).unwrap() + 1);
                vec![of(place(name).unwrap(), place(unit).unwrap())]
            }
        },
        sample: sample.collect(),
        location: location.collect(),
        function: function.collect(),
        string_table: strings,
        time_nanos: 1_700_000_000_000_000_000,
        duration_nanos: 20_000_000_000,
        ..Profile::default()
    };
    gzip(&profile.encode_to_vec())
}

/// Runs of both sides in a folder.
struct Runs {
    folder: TempDir,
    base: Vec<String>,
    head: Vec<String>,
}

impl Runs {
    fn of(base: usize, head: usize, factor: f64) -> Self {
        let mut runs = Self { folder: TempDir::new().unwrap(), base: Vec::new(), head: Vec::new() };
        for number in 0..base {
            runs.base.push(runs.write(&format!("base-{number}.pb.gz"), &pprof(seed(number, 0), 1.0, Columns::Times)));
        }
        for number in 0..head {
            runs.head
                .push(runs.write(&format!("head-{number}.pb.gz"), &pprof(seed(number, 100), factor, Columns::Times)));
        }
        runs
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn diff(&self, more: &[&str]) -> Run {
        let borrowed = |paths: &'_ [String]| -> Vec<String> { paths.to_vec() };
        let args = [
            vec!["diff".to_owned(), "--base".to_owned()],
            borrowed(&self.base),
            vec!["--head".to_owned()],
            borrowed(&self.head),
        ]
        .concat();
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        run(&args)
    }

    fn refused(&self, more: &[&str], said: &[&str]) {
        let run = self.diff(more);
        assert!(run.code != 0 && run.stdout.is_empty(), "{} {}", run.code, run.stdout);
        for text in said {
            assert!(run.stderr.contains(text), "{text:?} is not in {}", run.stderr);
        }
    }
}

fn seed(number: usize, from: u64) -> u64 {
    u64::try_from(number).unwrap() + from
}

const HINT: &str = "or give at least 5 runs of each side: then their times are compared as weights";

#[test]
fn five_runs_of_each_side_show_what_changed() {
    let runs = Runs::of(5, 5, 1.3);
    let run = runs.diff(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains(" costs x 1."), "{}", run.stdout);
    assert!(run.stdout.contains(NOTE), "{}", run.stdout);
    let row = run.stdout.lines().find(|line| line.contains("regressed")).unwrap();
    assert!(row.ends_with("function_2") && row.contains(" s "), "{row}");
    assert!(!run.stdout.replace(NOTE, "").contains("samples"), "{}", run.stdout);
    let verbose = runs.diff(&["-v", "--count-kind", "total", "--top", "0"]);
    assert!(
        verbose.stdout.contains(" s ") && !verbose.stdout.replace(NOTE, "").contains("samples"),
        "{}",
        verbose.stdout
    );
    assert!(
        !["needs_time", "needs_runs", "low_load", "count_needed"].iter().any(|reason| verbose.stdout.contains(reason))
    );
    // Nothing changed, nothing is found.
    let equal = Runs::of(5, 5, 1.0).diff(&[]);
    assert!(equal.stdout.contains("nothing is significant"), "{}", equal.stdout);
}

#[test]
fn regression_times_without_a_period_are_not_left_for_memory() {
    let mut runs = Runs::of(0, 0, 1.0);
    let file = runs.write("both.pb.gz", &pprof(1, 1.0, Columns::TimesAndMemory));
    (runs.base, runs.head) = (vec![file.clone()], vec![file]);
    runs.refused(&[], &["unknown_period", "cpu in 30 values", "--period 10ms"]);
    assert_eq!(runs.diff(&["--period", "10ms"]).code, 0);
    let memory = runs.diff(&["--profile-type", "heap", "--format", "json"]);
    assert!(memory.stdout.contains(r#""profile_type": "heap""#), "{}", memory.stdout);
}

#[test]
fn regression_memory_in_use_is_compared_where_a_file_has_nothing_else() {
    let mut runs = Runs::of(0, 0, 1.0);
    let file = runs.write("in-use.pb.gz", &pprof(1, 1.0, Columns::InUse));
    (runs.base, runs.head) = (vec![file.clone()], vec![file]);
    let run = runs.diff(&["--format", "json"]);
    assert!(run.stdout.contains(r#""profile_type": "live_heap""#), "{} {}", run.stdout, run.stderr);
}

/// What Pyroscope and Parca let download is a profile of one column.
#[test]
fn regression_one_column_that_says_no_number_of_samples_is_refused_with_what_is_missing() {
    let cases = [
        ("alloc_space", "bytes", "alloc_space without alloc_objects", "pull pyroscope:URL"),
        ("inuse_objects", "count", "inuse_objects without inuse_space", "pull pyroscope:URL"),
        ("delay", "nanoseconds", "delay without contentions", "pull pyroscope:URL"),
        ("goroutine", "count", "goroutine/count: no samples of a clock", "(mutex)"),
    ];
    for (name, unit, said, hint) in cases {
        let mut runs = Runs::of(0, 0, 1.0);
        let file = runs.write("alone.pb.gz", &pprof(1, 1.0, Columns::Alone(name, unit)));
        (runs.base, runs.head) = (vec![file.clone()], vec![file]);
        runs.refused(&[], &["unsupported_type", said, hint]);
    }
}

#[test]
fn fewer_runs_are_refused_with_the_hint() {
    for (base, head) in [(1, 1), (3, 3), (4, 6)] {
        Runs::of(base, head, 1.3).refused(&[], &["unknown_period", "base-0.pb.gz", "--period 10ms", HINT]);
    }
    let runs = Runs::of(5, 5, 1.3);
    runs.refused(&["--columns"], &["5 runs of each side", "--columns"]);
    runs.refused(&["--method", "article"], &["article", "counts of samples", "--period"]);
    runs.refused(&["--min-count", "30"], &["--min-count 30 is a number of samples"]);
    // With a period they are counted, however few there are.
    let counted = Runs::of(1, 1, 1.0).diff(&["--period", "10ms"]);
    assert!(counted.code == 0 && counted.stdout.contains("samples in 1 run"), "{}", counted.stderr);
}

#[test]
fn both_sides_are_measured_in_the_same_way() {
    let mut runs = Runs::of(5, 5, 1.3);
    for (number, path) in runs.base.iter().enumerate() {
        runs.write(Path::new(path).file_name().unwrap().to_str().unwrap(), &pprof(seed(number, 0), 1.0, Columns::Both));
    }
    let mixed = runs.diff(&[]);
    assert!(mixed.code == 0 && mixed.stdout.contains(NOTE), "{} {}", mixed.stdout, mixed.stderr);
    assert_eq!(mixed.stdout, Runs::of(5, 5, 1.3).diff(&[]).stdout, "the times of both are what they were");
    let counted = pprof(3, 1.0, Columns::Counts);
    runs.base[3] = runs.write("counted.pb.gz", &counted);
    runs.refused(
        &[],
        &["counted.pb.gz", "counts of samples, and no times", "head-0.pb.gz", "unknown_period", "--period"],
    );
}

/// No format prints nanoseconds or quanta as samples.
#[test]
fn no_output_has_samples() {
    let runs = Runs::of(5, 5, 1.3);
    let text = |format: &str| {
        let run = runs.diff(&["--format", format]);
        assert_eq!(run.code, 0, "{format}: {}", run.stderr);
        run.stdout
    };
    let document: serde_json::Value = serde_json::from_str(&text("json")).unwrap();
    assert_eq!((&document["measure"], &document["note"]), (&"time".into(), &NOTE.into()));
    assert_eq!(document["weights_unit"], "time/nanoseconds");
    assert_eq!(
        (&document["settings"]["min_count"], &document["settings"]["min_share"]),
        (&serde_json::Value::Null, &0.001.into())
    );
    let null = |value: &serde_json::Value| value.is_null();
    assert!(null(&document["base"]["samples"]) && document["base"]["weight"].as_i64().unwrap() > 90_000_000_000);
    let findings = document["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|row| null(&row["base_count"]) && null(&row["head_count"]) && row["base_weight"].is_i64())
    );
    let schema: serde_json::Value = serde_json::from_str(fleetdiff_diff::export::json::JSON_SCHEMA).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document));
    let markdown = text("markdown");
    assert!(markdown.contains(NOTE) && !markdown.replace(NOTE, "").contains("samples"), "{markdown}");
    assert!(text("csv").lines().nth(1).unwrap().starts_with("function_2,,,self,,,"), "counts are empty");
    let svg = text("svg");
    assert!(svg.contains("5 runs, ") && !svg.replace(NOTE, "").contains("samples"), "{svg}");
    let page = text("html");
    assert!(page.contains(NOTE) && page.contains("\"samples\":null") && page.contains("\"unit\":\"nanoseconds\""));
    assert!(text("speedscope").contains("\"unit\":\"nanoseconds\""));
    assert!(text("difffolded").lines().all(|line| line.starts_with("main;function_")));
    assert!(runs.diff(&["-c", "delta"]).stdout.contains("differences are of time/nanoseconds"));
}

/// What is written as pprof is times again, which nobody can count.
#[test]
fn written_pprof_has_times_alone() {
    let runs = Runs::of(5, 5, 1.3);
    let name = runs.path("merged");
    assert_eq!(runs.diff(&["--format", "pprof", "--output", &name]).code, 0);
    let bytes = std::fs::read(runs.path("merged.base.pb.gz")).unwrap();
    let labels = Labels { period: Some("10ms".parse().unwrap()), ..labels() };
    let read = |labels| {
        fleetdiff_formats::Format::Pprof.decoder(&fleetdiff_formats::Options::default()).decode(&bytes, &Ok(labels))
    };
    assert_eq!(read(self::labels())[0].as_ref().unwrap_err().reason.name(), "unknown_period");
    let looks = read(labels)[0].as_ref().unwrap().total();
    assert!((9_000..11_000).contains(&looks), "{looks}");
}

fn labels() -> Labels {
    let stacks = std::sync::Arc::from(Vec::new());
    let run = fleetdiff_diff::compare::Recording::of_stacks(
        "",
        fleetdiff_schemas::profile::ProfileType::Cpu,
        stacks,
        Vec::new(),
    );
    Labels::of(&run.profile)
}
