//! What the program wrote, as DuckDB, polars, pandas and pyarrow read it.

#[path = "../../../connectors/tests/support/readers.rs"]
mod readers;

use fleetdiff_connectors::parquet::ParquetOutput;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow, Tables};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::RowReason;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;
use std::time::Duration;

use tempfile::TempDir;

use super::program::{Done, done, recorded};
use super::{demo, replay};

/// The settings that whoever recomputes reads from the files.
const SETTINGS: &str = r#"{"dataflow":{"evaluate_every":"10s","min_count":30,"min_effect":0.01,"q":0.05,"report_every":"10m","window":"30m"}}"#;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/notebook.md").canonicalize().unwrap()
}

/// The run that the page of the documentation and the notebook begin with.
pub static DOCUMENTED: LazyLock<Done> = LazyLock::new(|| {
    let text = fs::read_to_string(page()).unwrap();
    let command = text.lines().find_map(|line| line.strip_prefix("fleetdiff demo ")).unwrap();
    let options: Vec<&str> = command.strip_suffix(" --output out").unwrap().split(' ').collect();
    done(&[&["demo"], &options[..]].concat())
});

/// How many rows must have evidence.
fn significant(tables: &Tables) -> usize {
    let is_listed = |row: &&CellRow| row.verdict.is_significant() && row.reason != Some(RowReason::Rare);
    tables.cells.iter().filter(is_listed).count()
}

fn write(folder: &Path, tables: &Tables) {
    ParquetOutput::create(folder, SETTINGS.to_owned(), Duration::from_secs(600))
        .unwrap()
        .write(std::slice::from_ref(tables))
        .unwrap();
}

/// Reads a run's folder with all four; the expected values come from the program's own reader.
fn read(done: &Done, expected: &Tables) -> Output {
    let beside = tempfile::NamedTempFile::new().unwrap();
    readers::expect(beside.path(), expected);
    readers::read(done.folder.path(), beside.path())
}

#[test]
fn four_readers_see_what_the_program_wrote() {
    for done in [demo::demo(), replay::listpack()] {
        let output = read(done, &done.tables);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let tables = &done.tables;
        assert!(
            text.contains(&format!(
                "cells {} rows, evidence {} rows, flags {} rows",
                tables.cells.len(),
                tables.evidence.len(),
                tables.flags.len()
            )),
            "{text}"
        );
        assert!(
            !tables.cells.is_empty()
                && !tables.flags.is_empty()
                && !tables.comparisons.is_empty()
                && !tables.ledger.is_empty()
        );
        let checks: u32 = text.lines().last().unwrap().strip_suffix(" checks passed").unwrap().parse().unwrap();
        assert!(checks > 800, "{text}");
    }
    // The twin: one row fewer is expected than there are.
    let mut fewer = replay::listpack().tables.clone();
    fewer.flags.pop();
    let output = read(replay::listpack(), &fewer);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("flags rows as written"));
}

fn assert_recomputed(folder: &Path, significant: usize) {
    let output = readers::recompute(folder);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(significant > 0 && text.contains(&format!("{significant} of them significant, 0 failures")), "{text}");
}

/// The law: whoever has `cells` and `evidence` can recompute every significant row. The twin: in a folder in which one bucket
/// of one row is missing, that row is not what the counts say.
#[test]
fn significant_rows_are_recomputed_from_their_evidence() {
    for done in [demo::demo(), replay::listpack(), &DOCUMENTED] {
        assert_recomputed(done.folder.path(), significant(&done.tables));
    }
    let folder = TempDir::new().unwrap();
    let mut tables = demo::demo().tables.clone();
    tables.evidence.remove(0);
    write(folder.path(), &tables);
    let output = readers::recompute(folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("recomputed"));
}

/// Each query of the page, on the output of the command that the page names. The twin: one query differs between SQL
/// and Python, and one check demands more than rounding allows.
#[test]
fn queries_of_the_documentation_give_the_same_rows_in_sql_and_in_polars() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink(DOCUMENTED.folder.path(), folder.path().join("out")).unwrap();
    let done = readers::run_page(folder.path(), &page());
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.starts_with("12 queries in SQL, 15 blocks of Python, 12 compared"), "{said}");

    let broken: PathBuf = folder.path().join("broken.md");
    let text = fs::read_to_string(page()).unwrap();
    fs::write(&broken, text.replacen("verdict = 'regressed'", "verdict = 'improved'", 1).replace("< 1e-9", "< 0"))
        .unwrap();
    let done = readers::run_page(folder.path(), &broken);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(errors.contains("1. What regressed") && errors.contains("10. Can I recompute"), "{errors}");
}

/// What the example adds up is what the ledger says was counted, over all and over a part, with names. The twin: without one of the
/// files that it reads, it is less.
#[test]
fn the_archive_of_a_recorded_fleet_adds_up_to_its_ledger() {
    let fleet = recorded("rd-listpack");
    let replay = ["replay", fleet.to_str().unwrap(), "--warm-up", "0s", "--cell", "cohort", "--archive-keep", "24h"];
    let done = done(&[&replay[..], &["--base", "A,A2", "--head", "B", "--count-kind", "self"]].concat());
    let folder = done.folder.path();
    let counted = |from: Nanos, until: Nanos| {
        let rows = done.tables.ledger.iter().filter(|row| (from..until).contains(&row.hop_at));
        rows.map(|row| row.samples_counted).sum::<i64>()
    };
    let added = |range: &[&str]| {
        let output = readers::add_up(folder, range);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = done.tables.ledger.iter().map(|row| row.hop_at).min().unwrap();
    let last = done.tables.ledger.iter().map(|row| row.hop_at).max().unwrap();
    let all = counted(first, Nanos(i64::MAX));
    let said = added(&[]);
    assert!(all > 1000 && said.starts_with(&format!("{all} samples of ")), "{all}: {said}");
    assert!(said.lines().next().unwrap().ends_with(&format!(" files; {all} in call trees")), "{said}");
    assert!(said.contains("cpu A: ") && said.contains("cpu B: ") && said.contains(" total  lpFind"), "{said}");

    let third = Nanos((last.0 - first.0) / 3 / 10_000_000_000 * 10_000_000_000);
    let (from, until) = (first.plus(third), first.plus(third).plus(third));
    let part = added(&["--from", &rfc3339(from), "--until", &rfc3339(until)]);
    let expected = counted(from, until);
    assert!(
        expected > 0 && expected < all && part.starts_with(&format!("{expected} samples of ")),
        "{expected}: {part}"
    );
    let hops = third.0 / 10_000_000_000;
    let files: i64 = part.split(" hops in ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(part.contains(&format!(" samples of {hops} hops in ")), "{part}");
    assert!(files <= 2 * i64::from(hops.ilog2()) + 1, "{part}");

    let highest =
        fs::read_dir(folder.join("archive/counts")).unwrap().map(|level| level.unwrap().path()).max().unwrap();
    fs::remove_dir_all(highest).unwrap();
    assert_eq!(added(&[]).split(' ').next(), said.split(' ').next(), "the level below has the same");
    fs::remove_dir_all(folder.join("archive/counts/level=00")).unwrap();
    let output = readers::add_up(folder, &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no archive"), "{output:?}");
}

/// The notebook and the SQL run to their end, every check in them holds, and the notebook shows these figures. The twin: in a
/// folder in which one count of the evidence is larger by one, both find a row that does not follow from its counts.
#[test]
fn the_notebook_and_its_sql_run_and_their_checks_hold() {
    let done = readers::run_examples(DOCUMENTED.folder.path());
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.starts_with("deploy.sql and 21 cells of deploy.ipynb ran, with 3 pictures"), "{said}");

    let folder = TempDir::new().unwrap();
    let mut tables = DOCUMENTED.tables.clone();
    tables.evidence.iter_mut().find(|row| &*row.function != ALL_FUNCTIONS).unwrap().count += 1;
    write(folder.path(), &tables);
    fs::copy(DOCUMENTED.folder.path().join("alerts.jsonl"), folder.path().join("alerts.jsonl")).unwrap();
    let done = readers::run_examples(folder.path());
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("deploy.sql: Invalid Input Error: not so: each ratio follows from its evidence"),
        "{errors}"
    );
    assert!(
        errors.contains("deploy.ipynb: cell ratio: AssertionError: a ratio does not follow from its evidence"),
        "{errors}"
    );
}
