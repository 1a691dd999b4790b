//! `fleetdiff diff` compared with the real `perf diff`: the same recordings, the same options, the same figures.
//!
//! The recordings are made during the test (`tests/perf-diff/record.sh`). If perf is missing or may not record, a note
//! is printed, and the recordings in the repository are used together with perf's output for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fleetdiff_formats::compression::decompress;
use tempfile::TempDir;

use super::program::run;

/// Percentages and periods of one function, as both print them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    /// Share of the base in hundredths of a percent.
    baseline: i64,
    base_period: u64,
    /// In hundredths of a point; none where perf computes none: it computes it only if both sides have a value.
    delta: Option<i64>,
    period: u64,
}

type Rows = BTreeMap<String, Figures>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/perf-diff")
}

/// A case: its name, and the options for `fleetdiff diff`.
fn cases() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(folder().join("cases.tsv")).unwrap();
    let case = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        (columns[0].to_owned(), columns[2].split_whitespace().map(str::to_owned).collect())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(case).collect()
}

fn hundredths(text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches('%').trim_start_matches('+');
    if text.is_empty() {
        None
    } else {
        Some(text.replace('.', "").parse().unwrap_or_else(|_| panic!("{text:?} is no percentage")))
    }
}

/// Rows of perf, with functions named like ours. For addresses without a symbol and lines that were not found perf
/// prints offsets, which differ between builds: they are left out.
fn rows_of_perf(text: &str, keys: &str) -> Rows {
    let row = |line: &str| {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let parts: Vec<String> = columns[4..].iter().map(|part| named(part)).collect();
        let period = |text: &str| if text.is_empty() { 0 } else { text.parse().unwrap() };
        let figures = Figures {
            baseline: hundredths(columns[0]).unwrap_or(0),
            base_period: period(columns[1]),
            delta: hundredths(columns[2]),
            period: period(columns[3]),
        };
        (parts.join("  "), figures)
    };
    let mut rows = Rows::new();
    for (name, figures) in text.lines().map(row).filter(|(name, _)| comparable(name, keys)) {
        // perf distinguishes functions with the same name by their addresses.
        let sum = rows.entry(name).or_insert(Figures { baseline: 0, base_period: 0, delta: None, period: 0 });
        sum.baseline += figures.baseline;
        sum.base_period += figures.base_period;
        sum.delta = figures.delta.map(|delta| delta + sum.delta.unwrap_or(0)).or(sum.delta);
        sum.period += figures.period;
    }
    rows
}

/// `[k] read` is `read_[k]`, `[.] work` is `work`.
fn named(part: &str) -> String {
    match (part.strip_prefix("[k] "), part.strip_prefix("[.] ")) {
        (Some(kernel), _) => format!("{kernel}_[k]"),
        (_, Some(user)) => user.to_owned(),
        _ => part.to_owned(),
    }
}

fn comparable(name: &str, keys: &str) -> bool {
    let nameless = name.split("  ").any(|part| {
        part.starts_with("0x") || part.starts_with("[unknown]") || part == "_unsymbolised" || part == "[filtered]"
    });
    !nameless && (!keys.contains("srcline") || name.contains(':'))
}

fn rows_of_fleetdiff(text: &str, keys: &str) -> Rows {
    let row = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        let figures = Figures {
            baseline: hundredths(columns[0]).unwrap_or(0),
            base_period: columns[1].parse().unwrap(),
            delta: hundredths(columns[2]),
            period: columns[3].parse().unwrap(),
        };
        (columns[columns.len() - 1].to_owned(), figures)
    };
    text.lines().map(row).filter(|(name, _)| comparable(name, keys)).collect()
}

/// Recordings as text, and perf's output for them.
struct Recorded {
    folder: TempDir,
}

impl Recorded {
    /// Records now, or uses the recordings in the repository.
    fn new() -> Self {
        let recorded = Self { folder: TempDir::new().unwrap() };
        let made = Command::new(folder().join("record.sh")).arg(recorded.folder.path()).output().unwrap();
        match made.status.code() {
            Some(0) => {}
            Some(3) => {
                eprintln!(
                    "perf cannot record here, so the kept recording is compared: {}",
                    String::from_utf8_lossy(&made.stderr).trim()
                );
                recorded.unpack();
            }
            _ => panic!("record.sh: {}", String::from_utf8_lossy(&made.stderr)),
        }
        recorded
    }

    fn kept() -> Self {
        let recorded = Self { folder: TempDir::new().unwrap() };
        recorded.unpack();
        recorded
    }

    fn unpack(&self) {
        for entry in fs::read_dir(folder().join("recorded")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = decompress(&fs::read(&path).unwrap(), 1 << 24).unwrap().into_owned();
            fs::write(
                self.folder.path().join(path.file_name().unwrap().to_str().unwrap().trim_end_matches(".gz")),
                bytes,
            )
            .unwrap();
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Compares each case; returns the number of compared rows.
    fn agrees_with_perf(&self) -> usize {
        let (base, head) = (self.path("base.perf_script"), self.path("head.perf_script"));
        let mut compared = 0;
        for (name, options) in cases() {
            let keys = options.join(" ");
            let theirs = rows_of_perf(&fs::read_to_string(self.path(&format!("{name}.csv"))).unwrap(), &keys);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let plain = [
                "diff",
                "--base",
                &base,
                "--head",
                &head,
                // perf keeps clones of a function apart.
                "--name-rules-off",
                "native",
                "-q",
                "-t",
                ",",
                "-c",
                "delta",
                "-p",
                "--top",
                "0",
                "--min-count",
                "1",
            ];
            let ours = run(&[&plain[..], &options].concat());
            if theirs.is_empty() {
                // If nothing is left perf prints nothing; here that is an error with the reason.
                assert!(ours.code != 0 && ours.stderr.contains("holds no sample"), "{name}: {}", ours.stderr);
                continue;
            }
            assert_eq!(ours.code, 0, "{name}: {}", ours.stderr);
            let ours = rows_of_fleetdiff(&ours.stdout, &keys);
            assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{name}");
            for (function, theirs) in theirs {
                let ours = ours[&function];
                assert_eq!((ours.base_period, ours.period), (theirs.base_period, theirs.period), "{name}: {function}");
                assert!((ours.baseline - theirs.baseline).abs() <= 1, "{name}: {function}: {ours:?}, perf {theirs:?}");
                let difference = theirs.delta.zip(ours.delta).map(|(theirs, ours)| (theirs - ours).abs());
                assert!(
                    difference.is_none_or(|difference| difference <= 1) && ours.delta.is_some(),
                    "{name}: {function}: {ours:?}, perf {theirs:?}"
                );
                compared += 1;
            }
        }
        compared
    }
}

#[test]
fn oracle_recordings_of_now_are_compared_as_perf_compares_them() {
    let compared = Recorded::new().agrees_with_perf();
    assert!(compared >= 30, "{compared} rows");
    println!("{compared} rows");
}

#[test]
fn oracle_the_kept_recording_is_compared_as_perf_compared_it() {
    let compared = Recorded::kept().agrees_with_perf();
    assert!(compared >= 30, "{compared} rows");
    println!("{compared} rows");
}

/// A recording is read as it is, and what is advised for one that is not gives a text that is read.
#[test]
fn regression_a_recording_is_read_and_the_hint_of_one_that_is_not_gives_a_text() {
    let folder = TempDir::new().unwrap();
    let shell = |command: &str| Command::new("sh").args(["-c", command]).current_dir(folder.path()).output().unwrap();
    let record = |options: &str| {
        shell(&format!(
            "perf record -q {options} -o perf.data -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'"
        ))
    };
    let made = record("-g");
    if !made.status.success() {
        eprintln!("perf cannot record here: {}", String::from_utf8_lossy(&made.stderr).trim());
        return;
    }
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let both = |name: &str| run(&["diff", "--base", &file(name), "--head", &file(name)]);
    let read = both("perf.data");
    assert_eq!(read.code, 0, "{}", read.stderr);
    assert!(record("-F 99 --call-graph dwarf,1024").status.success());
    let refused = both("perf.data");
    let hint = refused.stderr.lines().find_map(|line| line.split_once("write its text: ")).unwrap().1;
    let written = shell(hint);
    assert!(written.status.success(), "{hint}: {}", String::from_utf8_lossy(&written.stderr));
    let compared = both("run.perf_script");
    assert_eq!(compared.code, 0, "{hint}: {}", compared.stderr);
}
