//! What the program wrote, as DuckDB, polars, pandas and pyarrow read it.

#[path = "../../../connectors/tests/support/readers.rs"]
mod readers;

use fleetdiff_connectors::parquet::{ParquetOutput, read_table};
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::verdict::RowReason;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use tempfile::TempDir;

use super::program::{Done, run};
use super::{demo, replay};

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
    for done in [demo::demo(), replay::listpack()] {
        let is_listed = |row: &&CellRow| row.verdict.is_significant() && row.reason != Some(RowReason::Rare);
        assert_recomputed(done.folder.path(), done.tables.cells.iter().filter(is_listed).count());
    }
    let folder = TempDir::new().unwrap();
    let mut tables = demo::demo().tables.clone();
    tables.evidence.remove(0);
    let configuration = r#"{"dataflow":{"min_effect":0.01}}"#.to_owned();
    ParquetOutput::create(folder.path(), configuration, Duration::from_secs(600)).unwrap().write(&tables).unwrap();
    let output = readers::recompute(folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("recomputed"));
}

/// Each query of the page, on the output of the command that the page names. The twin: one query differs between SQL
/// and Python, and one check demands more than rounding allows.
#[test]
fn queries_of_the_documentation_give_the_same_rows_in_sql_and_in_polars() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/notebook.md").canonicalize().unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    let folder = TempDir::new().unwrap();
    let command = text.lines().find_map(|line| line.strip_prefix("fleetdiff demo ")).unwrap();
    let options: Vec<&str> = command.strip_suffix(" --output out").unwrap().split(' ').collect();
    let output = folder.path().join("out");
    let demo = run(&[&["demo"], &options[..], &["--output", output.to_str().unwrap()]].concat());
    assert_eq!(demo.code, 0, "{}", demo.stderr);

    let done = readers::run_page(folder.path(), &page);
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.starts_with("13 queries in SQL, 18 blocks of Python, 13 compared"), "{said}");

    let cells: Vec<CellRow> = read_table(&output).unwrap();
    let is_listed = |row: &&CellRow| row.verdict.is_significant() && row.reason != Some(RowReason::Rare);
    assert_recomputed(&output, cells.iter().filter(is_listed).count());

    let broken: PathBuf = folder.path().join("broken.md");
    std::fs::write(&broken, text.replacen("verdict = 'regressed'", "verdict = 'improved'", 1).replace("< 1e-9", "< 0"))
        .unwrap();
    let done = readers::run_page(folder.path(), &broken);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(errors.contains("1. What regressed") && errors.contains("10. Can I recompute"), "{errors}");
}
