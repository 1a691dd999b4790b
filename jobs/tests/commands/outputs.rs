//! What the program wrote, as DuckDB, polars, pandas and pyarrow see it.

#[path = "../../../connectors/tests/support/readers.rs"]
mod readers;

use fleetdiff_schemas::rows::Tables;

use super::program::Done;
use super::{demo, replay};

/// Reads a run's folder with all four; what they are to see comes from the program's own reader.
fn read(done: &Done, expected: &Tables) -> std::process::Output {
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
            text.contains(&format!("cells {} rows, flags {} rows", tables.cells.len(), tables.flags.len())),
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
