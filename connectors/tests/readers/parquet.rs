//! DuckDB, polars, pandas and pyarrow read an output folder without options and see what was written.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::generated::Generator;
use fleetdiff_connectors::parquet::ParquetOutput;
use fleetdiff_schemas::rows::Tables;
use tempfile::TempDir;

fn write(folder: &Path, tables: &Tables) {
    let mut output = ParquetOutput::create(folder, "{}".to_owned(), Duration::from_secs(600)).unwrap();
    output.write(std::slice::from_ref(tables)).unwrap();
    crate::readers::expect(&folder.join("expected.json"), tables);
}

fn read(folder: &Path) -> Output {
    crate::readers::read(folder, &folder.join("expected.json"))
}

/// 300 rows per table in four files each; rows without a hop; then a folder in which all tables but one are empty; then
/// the twin that must fail: one row too many is expected.
#[test]
fn four_readers_see_what_was_written() {
    let full = TempDir::new().unwrap();
    let mut tables = Generator(21).tables(300);
    tables.rejected[0].hop_at = None;
    write(full.path(), &tables);
    let output = read(full.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("cells 300 rows, evidence 300 rows, flags 300 rows"), "{text}");
    let last = text.lines().last().unwrap();
    let checks: u32 = last.strip_suffix(" checks passed").unwrap().parse().unwrap();
    assert!(checks > 800, "{text}");

    let nearly_empty = TempDir::new().unwrap();
    let only_ledger = Tables { ledger: Generator(22).tables(20).ledger, ..Tables::default() };
    write(nearly_empty.path(), &only_ledger);
    let output = read(nearly_empty.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("flags 0 rows"));

    let wrong =
        fs::read_to_string(full.path().join("expected.json")).unwrap().replacen("\"rows\":300", "\"rows\":301", 1);
    fs::write(full.path().join("expected.json"), wrong).unwrap();
    let output = read(full.path());
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("rows as written: found 300, expected 301"), "{errors}");
}
