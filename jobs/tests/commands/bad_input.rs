//! Bad files and bad folders: a rejected row or a clear error that names them, with the rest of the fleet's result
//! unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fleetdiff_formats::compression;
use fleetdiff_formats::pprof::proto;
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::{RejectedRow, Tables};
use fleetdiff_schemas::time::Nanos;
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::program::{Done, done, recorded, run};

const ARGUMENTS: [&str; 9] =
    ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--profile-type=cpu"];

static CLEAN: LazyLock<Done> = LazyLock::new(|| replay(&recorded("kv-snapshot")));

fn replay(fleet: &Path) -> Done {
    done(&[&["replay", fleet.to_str().unwrap()], &ARGUMENTS[..]].concat())
}

/// A copy of a recorded fleet to which bad lines are added.
struct Spoilt {
    folder: TempDir,
    /// The last good line.
    like: Value,
    /// The expected reason of each added line, by its number, and what the detail must name.
    expected: BTreeMap<i64, (Reason, String)>,
}

impl Spoilt {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        copy(&recorded("kv-snapshot"), folder.path());
        let lines = fs::read_to_string(folder.path().join("manifest.jsonl")).unwrap();
        let cpu = lines.lines().rfind(|line| line.contains("\"cpu\"")).unwrap();
        Self { like: serde_json::from_str(cpu).unwrap(), folder, expected: BTreeMap::new() }
    }

    fn manifest(&self) -> PathBuf {
        self.folder.path().join("manifest.jsonl")
    }

    /// Adds a line as it is.
    fn line(&mut self, text: &str, reason: Reason, named: &str) {
        let before = fs::read_to_string(self.manifest()).unwrap();
        self.expected.insert(i64::try_from(before.lines().count()).unwrap() + 1, (reason, named.to_owned()));
        fs::write(self.manifest(), format!("{before}{text}\n")).unwrap();
    }

    /// Adds a line that differs from a good one in some keys (null: the key is missing).
    fn entry(&mut self, changes: Value, reason: Reason, named: &str) {
        let mut entry = self.like.clone();
        for (key, value) in changes.as_object().unwrap() {
            if value.is_null() {
                entry.as_object_mut().unwrap().remove(key);
            } else {
                entry[key] = value.clone();
            }
        }
        self.line(&entry.to_string(), reason, named);
    }

    /// Adds a file and a line for it.
    fn file(&mut self, name: &str, bytes: &[u8], reason: Reason) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
        self.entry(json!({ "file": name }), reason, name);
    }

    fn good_file(&self) -> Vec<u8> {
        fs::read(self.folder.path().join(self.like["file"].as_str().unwrap())).unwrap()
    }

    /// A good profile with something changed in it.
    fn message(&self, change: impl FnOnce(&mut proto::Profile)) -> Vec<u8> {
        let mut message =
            proto::Profile::decode(&*compression::decompress(&self.good_file(), 1 << 24).unwrap()).unwrap();
        change(&mut message);
        compression::gzip(&message.encode_to_vec())
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Everything but rejections: cells, flags and verdicts in full, and the samples of the ledger.
fn assert_unchanged(spoilt: &Tables, clean: &Tables) {
    assert!(spoilt.cells == clean.cells, "other rows of cells");
    assert!(spoilt.flags == clean.flags, "other flags");
    assert!(spoilt.comparisons == clean.comparisons, "other verdicts");
    let counted = |tables: &Tables| tables.ledger.iter().map(|row| row.samples_counted).sum::<i64>();
    assert_eq!(counted(spoilt), counted(clean));
    assert!(
        clean.cells.len() > 1000 && clean.cells.iter().any(|row| row.verdict.is_significant()) && counted(clean) > 1000
    );
}

fn assert_rejected(rejected: &[RejectedRow], expected: &BTreeMap<i64, (Reason, String)>) {
    let found: BTreeMap<i64, &RejectedRow> = rejected.iter().map(|row| (row.position.offset, row)).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{rejected:#?}");
    for (line, (reason, named)) in expected {
        let row = found[line];
        assert_eq!(row.rejection.reason, *reason, "line {line}: {row:?}");
        let said = format!("{} {}", row.position.file.as_deref().unwrap_or_default(), row.rejection.detail);
        assert!(said.contains(named.as_str()), "line {line}: {row:?} does not name {named}");
    }
}

#[test]
fn regression_bad_files_and_lines_leave_the_rest_as_it_was() {
    let mut spoilt = Spoilt::new();
    let good = spoilt.good_file();
    spoilt.file("cut.pb.gz", &good[..good.len() / 2], Reason::Truncated);
    spoilt.file("garbage.pb.gz", &compression::gzip(&[0xff; 300]), Reason::Malformed);
    spoilt.file("nothing.pb.gz", b"", Reason::Empty);
    let empty = spoilt.message(|message| message.sample.clear());
    spoilt.file("empty.pb.gz", &empty, Reason::Empty);
    let negative = spoilt.message(|message| message.sample[0].value.fill(-7));
    spoilt.file("negative.pb.gz", &negative, Reason::NegativeValue);
    let beyond = spoilt.message(|message| message.location.clear());
    spoilt.file("beyond.pb.gz", &beyond, Reason::IndexOutOfRange);
    spoilt.entry(json!({ "file": "not-there.pb.gz" }), Reason::MissingFile, "not-there.pb.gz");
    spoilt.entry(json!({ "pod": null }), Reason::MissingIdentity, "pod");
    spoilt.entry(json!({ "service": "", "build": null }), Reason::MissingIdentity, "service, build");
    let (start, end) =
        (spoilt.like["start_unix_nano"].as_i64().unwrap(), spoilt.like["end_unix_nano"].as_i64().unwrap());
    let later = 7200 * 1_000_000_000;
    spoilt.entry(
        json!({ "start_unix_nano": start + later, "end_unix_nano": end + later }),
        Reason::FromFuture,
        "after every profile",
    );
    let decade = 315_360_000 * 1_000_000_000;
    for earlier in [decade, decade - 10_000_000_000, start] {
        spoilt.entry(
            json!({ "start_unix_nano": start - earlier, "end_unix_nano": end - earlier }),
            Reason::FromPast,
            "before every profile",
        );
    }
    spoilt.entry(json!({ "requests": -3 }), Reason::NegativeValue, "requests");
    spoilt.line("{ this is no JSON", Reason::Malformed, "JSON");
    let after = replay(spoilt.folder.path());
    assert_rejected(&after.tables.rejected, &spoilt.expected);
    let first = |tables: &Tables| tables.ledger.iter().map(|row| row.hop_at).min().unwrap();
    assert!(first(&CLEAN.tables).since(first(&after.tables)) < Nanos::from_seconds(60), "a hop of the past is open");
    assert_unchanged(&after.tables, &CLEAN.tables);
    assert!(CLEAN.tables.rejected.is_empty());
    let lines = after.run.stderr.lines().count();
    let reasons = spoilt.expected.values().map(|(reason, _)| *reason).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(lines, reasons, "one line a reason: {}", after.run.stderr);
}

#[test]
fn regression_a_fleet_of_nothing_but_faults_ends_well() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("manifest.jsonl"), "nonsense\n{}\n").unwrap();
    let done = done(&["replay", folder.path().to_str().unwrap()]);
    assert_eq!(done.tables.rejected.len(), 2);
    assert!(done.tables.cells.is_empty());
    assert!(done.run.stdout.contains("no comparison was open at the end"), "{}", done.run.stdout);
}

/// Runs a command that must fail and gives its message.
fn fail(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.code, 1, "fleetdiff {args:?}: {}{}", run.stdout, run.stderr);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    run.stderr
}

#[test]
fn regression_a_folder_that_is_no_fleet_is_named() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("nowhere");
    let output = folder.path().join("out");
    let (output, missing) = (output.to_str().unwrap(), missing.to_str().unwrap());
    let said = fail(&["replay", missing, "--output", output]);
    assert!(said.contains(missing) && said.contains("hint: "), "{said}");
    let said = fail(&["replay", folder.path().to_str().unwrap(), "--output", output]);
    assert!(said.contains("manifest.jsonl") && said.contains("hint: "), "{said}");
    assert!(!Path::new(output).exists(), "nothing is made for a fleet that cannot be read");
}

/// NB: tests may run as root, for whom permissions have no effect: a file is in the way instead.
#[test]
fn regression_an_output_that_cannot_be_written_is_named_before_the_work() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "in the way").unwrap();
    let fleet = recorded("rd-listpack");
    for output in [file.clone(), file.join("below")] {
        let output = output.to_str().unwrap();
        let said = fail(&["replay", fleet.to_str().unwrap(), "--output", output]);
        assert!(said.contains(output) && said.contains("name a folder that this user may write"), "{said}");
        let said = fail(&["demo", "--output", output]);
        assert!(said.contains(output), "{said}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "in the way");
}

#[test]
fn regression_an_output_of_another_run_is_not_overwritten() {
    let fleet = recorded("rd-listpack");
    let fleet = fleet.to_str().unwrap();
    let named = ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--count-kind", "self"];
    let first = done(&[&["replay", fleet], &named[..]].concat());
    let output = first.folder.path().to_str().unwrap();
    let before: Vec<_> = files(first.folder.path());
    let other = ["--warm-up", "0s", "--cell", "cohort", "--base", "A", "--head", "A2", "--count-kind", "self"];
    let said = fail(&[&["replay", fleet, "--output", output], &other[..]].concat());
    assert!(said.contains(output) && said.contains("choose an empty folder, or delete this one"), "{said}");
    assert_eq!(files(first.folder.path()), before);
    let again = run(&[&["replay", fleet, "--output", output], &named[..]].concat());
    assert_eq!(again.code, 0, "the same run again is no conflict: {}", again.stderr);
    assert_eq!(files(first.folder.path()), before);
}

/// Every file below a folder with its content, but for the lock, which names the process that wrote last.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.ends_with(".fleetdiff.lock") {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}
