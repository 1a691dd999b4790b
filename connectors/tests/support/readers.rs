//! Other readers: DuckDB, polars, pandas and pyarrow read an output folder (`tests/readers`), as do the notebook and the
//! SQL in `examples`.
//!
//! Needs Python 3.11 or later with `venv`; installs the pinned packages of both (`examples/requirements.txt`) into the
//! build folder if they are missing. `FLEETDIFF_READERS_PYTHON` names an interpreter that has them already.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::tables::{Kind, TableRow, Value};
use serde_json::json;

use crate::tools::environment;

fn readers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/readers")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// An interpreter with the pinned packages, which the first test that needs it installs.
static PYTHON: LazyLock<PathBuf> = LazyLock::new(install);

fn install() -> PathBuf {
    if let Some(python) = std::env::var_os("FLEETDIFF_READERS_PYTHON") {
        return python.into();
    }
    let files = [readers(), examples()].map(|folder| folder.join("requirements.txt"));
    let versions = files.map(|file| fs::read_to_string(file).unwrap()).concat();
    let packages = ["-r".into(), examples().join("requirements.txt")];
    environment("readers", &packages, &versions).join("bin/python")
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

/// Writes what the readers must find in a folder with these tables.
pub fn expect(expected: &Path, tables: &Tables) {
    let figures = json!({
        "cells": figures(&tables.cells),
        "evidence": figures(&tables.evidence),
        "flags": figures(&tables.flags),
        "comparisons": figures(&tables.comparisons),
        "incidents": figures(&tables.incidents),
        "scaling": figures(&tables.scaling),
        "rings": figures(&tables.rings),
        "heap": figures(&tables.heap),
        "waiting": figures(&tables.waiting),
        "stacks": figures(&tables.stacks),
        "load_curves": figures(&tables.load_curves),
        "ledger": figures(&tables.ledger),
        "rejected": figures(&tables.rejected),
        "clocks": figures(&tables.clocks),
        "limits": figures(&tables.limits),
    });
    fs::write(expected, figures.to_string()).unwrap();
}

/// Lets all four read a folder and compare it with what [`expect`] wrote.
pub fn read(folder: &Path, expected: &Path) -> Output {
    let script = readers().join("read_output.py");
    Command::new(&*PYTHON).arg(script).arg(folder).arg("--expect").arg(expected).output().unwrap()
}

/// Recomputes the significant rows of an output folder from the counts behind them.
pub fn recompute(folder: &Path) -> Output {
    Command::new(&*PYTHON).arg(examples().join("recompute.py")).arg(folder).output().unwrap()
}

/// Adds up the archive of an output folder.
pub fn add_up(folder: &Path, range: &[&str]) -> Output {
    Command::new(&*PYTHON).arg(examples().join("archive.py")).arg(folder).args(range).output().unwrap()
}

/// Runs every query of a page of `docs` in `folder`, in which `out` is an output folder.
pub fn run_page(folder: &Path, page: &Path) -> Output {
    let script = readers().join("run_page.py");
    Command::new(&*PYTHON).arg(script).arg(page).current_dir(folder).output().unwrap()
}

/// Runs the notebook and the SQL of `examples` on an output folder; the figures must be those that the notebook shows.
pub fn run_examples(folder: &Path) -> Output {
    Command::new(&*PYTHON).arg(examples().join("run.py")).arg(folder).arg("--check").output().unwrap()
}
