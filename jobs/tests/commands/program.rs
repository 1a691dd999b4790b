//! Runs of the program, and the rows that they write.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fleetdiff_connectors::parquet::read_tables;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonRow, Tables};
use fleetdiff_schemas::verdict::Scope;
use tempfile::TempDir;

/// What the program did.
pub struct Run {
    /// Exit code.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program with these arguments, without the variables of the caller's environment that it would read.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetdiff"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FLEETDIFF_")) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the program without the variables of the caller's environment that it would read.
pub fn run(args: &[&str]) -> Run {
    run_with(args, &[])
}

/// The same with these variables in its environment.
pub fn run_with(args: &[&str], variables: &[(&str, &str)]) -> Run {
    let Output { status, stdout, stderr } = command(args).envs(variables.iter().copied()).output().unwrap();
    let run = Run {
        code: status.code().unwrap(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    };
    assert!(!run.stderr.contains("panicked"), "fleetdiff {args:?}: {}", run.stderr);
    run
}

/// A run that succeeded, with its rows.
pub struct Done {
    pub run: Run,
    pub tables: Tables,
    pub folder: TempDir,
}

/// Runs a command to its end with a new folder as `--output`.
pub fn done(args: &[&str]) -> Done {
    let folder = TempDir::new().unwrap();
    let run = run(&[args, &["--output", folder.path().to_str().unwrap()]].concat());
    assert_eq!(run.code, 0, "fleetdiff {args:?}: {}", run.stderr);
    let mut tables = read_tables(folder.path()).unwrap();
    tables.sort();
    assert!(tables.ledger.iter().all(|row| row.balances()), "the ledger does not balance");
    Done { run, tables, folder }
}

impl Done {
    /// The rows of the last report.
    pub fn rows(&self, scope: Scope, kind: CountKind) -> Vec<&CellRow> {
        let last = self.tables.cells.iter().map(|row| row.window_end_at).max();
        self.tables
            .cells
            .iter()
            .filter(|row| Some(row.window_end_at) == last && row.scope == scope && row.count_kind == kind)
            .collect()
    }

    /// The verdicts of the last look.
    pub fn verdicts(&self, kind: CountKind) -> Vec<&ComparisonRow> {
        let last = self.tables.comparisons.iter().map(|row| row.window_end_at).max();
        self.tables.comparisons.iter().filter(|row| Some(row.window_end_at) == last && row.count_kind == kind).collect()
    }
}

/// A cell by its names.
pub fn cell(region: &str, cohort: &str) -> CellKey {
    CellKey { region: region.into(), cohort: cohort.into() }
}

/// Whether a row is one of a cell, not a roll-up.
pub fn is_cell(row: &CellRow) -> bool {
    row.cell.region.as_str() != "*" && row.cell.cohort.as_str() != "*"
}

/// A fleet that is recorded in this repository.
pub fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleets").join(name)
}
