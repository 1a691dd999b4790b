//! DuckDB, polars, pandas and pyarrow read an output folder without options and see what was written.
//!
//! Needs Python 3.11 or later with `venv`; installs the pinned readers (`tests/readers/requirements.txt`) into the build
//! folder when they are not there. `FLEETDIFF_READERS_PYTHON` names an interpreter that has them already.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../schemas/tests/generated/rows.rs"]
mod generated;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use fleetdiff_connectors::parquet::ParquetOutput;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::tables::{Kind, TableRow, Value};
use generated::Generator;
use serde_json::json;
use tempfile::TempDir;

fn readers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/readers")
}

/// An interpreter with the pinned readers.
fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("FLEETDIFF_READERS_PYTHON") {
        return python.into();
    }
    let requirements = fs::read_to_string(readers().join("requirements.txt")).unwrap();
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers");
    let python = environment.join("bin/python");
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).ok().as_deref() != Some(&requirements) {
        must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        must(Command::new(&python).args(pip).arg(readers().join("requirements.txt")));
        fs::write(&installed, requirements).unwrap();
    }
    python
}

fn must(command: &mut Command) {
    let hint = "the readers test needs Python 3.11 with venv (apt-get install python3-venv) and a package index";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    assert!(output.status.success(), "{command:?}: {}; {hint}", String::from_utf8_lossy(&output.stderr));
}

/// Rows, sums of counts and nulls, from the rows themselves.
fn figures<R: TableRow>(rows: &[R]) -> serde_json::Value {
    let counts = R::columns().iter().filter(|column| column.kind == Kind::Count);
    let sum_of = |value: Value<'_>| if let Value::Count(count) = value { count } else { 0 };
    let sums: serde_json::Map<_, _> = counts
        .map(|column| (column.name.to_owned(), rows.iter().map(|row| sum_of(column.value(row))).sum::<i64>().into()))
        .collect();
    let nulls: serde_json::Map<_, _> = R::columns()
        .iter()
        .map(|column| {
            let unknown = rows.iter().filter(|row| column.value(row) == Value::Null).count();
            (column.name.to_owned(), unknown.into())
        })
        .collect();
    json!({ "rows": rows.len(), "sums": sums, "nulls": nulls })
}

fn write(folder: &Path, tables: &Tables) {
    let mut output = ParquetOutput::create(folder, "{}".to_owned(), Duration::from_secs(600)).unwrap();
    output.write(tables).unwrap();
    let expected = json!({
        "cells": figures(&tables.cells),
        "flags": figures(&tables.flags),
        "comparisons": figures(&tables.comparisons),
        "ledger": figures(&tables.ledger),
        "rejected": figures(&tables.rejected),
    });
    fs::write(folder.join("expected.json"), expected.to_string()).unwrap();
}

fn read(folder: &Path) -> Output {
    let script = readers().join("read_output.py");
    let mut command = Command::new(python());
    command.arg(script).arg(folder).arg("--expect").arg(folder.join("expected.json"));
    command.output().unwrap()
}

/// 300 rows a table in four files each; rows without a hop; then a folder whose tables but one are empty; then the twin
/// that must fail: a row too many is expected.
#[test]
fn four_readers_see_what_was_written() {
    let full = TempDir::new().unwrap();
    let mut tables = Generator(21).tables(300);
    tables.rejected[0].hop_at = None;
    write(full.path(), &tables);
    let output = read(full.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("cells 300 rows, flags 300 rows"), "{text}");
    let last = text.lines().last().unwrap();
    let checks: u32 = last.strip_suffix(" checks passed").unwrap().parse().unwrap();
    assert!(checks > 800, "{text}");

    let nearly_empty = TempDir::new().unwrap();
    let only_ledger = Tables { ledger: Generator(22).tables(20).ledger, ..Tables::default() };
    write(nearly_empty.path(), &only_ledger);
    let output = read(nearly_empty.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("flags 0 rows"));

    let wrong = fs::read_to_string(full.path().join("expected.json")).unwrap().replacen("\"rows\":300", "\"rows\":301", 1);
    fs::write(full.path().join("expected.json"), wrong).unwrap();
    let output = read(full.path());
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("rows as written: found 300, expected 301"), "{errors}");
}
