//! Output folders: what is written, that it can be read back, and that it is written once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../schemas/tests/generated/rows.rs"]
#[expect(dead_code, reason = "verdicts are announced and have no file")]
mod generated;
#[path = "support/tree.rs"]
mod tree;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::parquet::{ParquetOutput, TABLES, Written, read_tables};
use fleetdiff_connectors::store::{Place, Store};
use fleetdiff_schemas::rows::{Archived, CellRow, LedgerRow, RejectedRow, Tables};
use fleetdiff_schemas::tables::{Kind, SCHEMA_VERSION, TableRow, arrow_schema_of, sort_rows};
use fleetdiff_schemas::time::Nanos;
use generated::{Generator, START_SECONDS};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding};
use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;

use self::tree::{files_below, tables_below};

const CONFIGURATION: &str = r#"{"q":0.05,"method":"honest"}"#;
const TEN_MINUTES: Duration = Duration::from_secs(600);

fn write(root: &Path, tables: &Tables) -> Result<Written, OutputError> {
    ParquetOutput::create(root, CONFIGURATION.to_owned(), TEN_MINUTES)?.write(std::slice::from_ref(tables))
}

fn sorted<R: TableRow>(rows: &[R]) -> Vec<R> {
    let mut rows: Vec<&R> = rows.iter().collect();
    sort_rows(&mut rows);
    rows.into_iter().cloned().collect()
}

fn all_sorted(tables: &Tables) -> Tables {
    Tables {
        cells: sorted(&tables.cells),
        evidence: sorted(&tables.evidence),
        flags: sorted(&tables.flags),
        comparisons: sorted(&tables.comparisons),
        incidents: sorted(&tables.incidents),
        verdicts: Vec::new(),
        scaling: sorted(&tables.scaling),
        rings: sorted(&tables.rings),
        scaling_findings: Vec::new(),
        heap: sorted(&tables.heap),
        waiting: sorted(&tables.waiting),
        stacks: sorted(&tables.stacks),
        load_curves: sorted(&tables.load_curves),
        heap_findings: Vec::new(),
        ledger: sorted(&tables.ledger),
        rejected: sorted(&tables.rejected),
        clocks: sorted(&tables.clocks),
        limits: sorted(&tables.limits),
        fan_out: Vec::new(),
        archived: Archived::default(),
    }
}

fn shuffle<T>(generator: &mut Generator, rows: &mut [T]) {
    for end in (1..rows.len()).rev() {
        let other = usize::try_from(generator.below(u64::try_from(end).unwrap() + 1)).unwrap();
        rows.swap(end, other);
    }
}

#[test]
fn every_row_comes_back() {
    for seed in 0..8 {
        let folder = TempDir::new().unwrap();
        let rows = [0, 1, 300][usize::try_from(seed % 3).unwrap()];
        let mut tables = Generator(seed).tables(rows);
        tables.ledger.push(Generator(seed).ledger());
        write(folder.path(), &tables).unwrap();
        let back = read_tables(folder.path()).unwrap();
        assert_eq!(all_sorted(&back), all_sorted(&tables), "seed {seed}");
    }
}

/// The law: bytes are a function of rows and configuration.
#[test]
fn order_bytes_do_not_depend_on_the_order_of_rows() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut tables = Generator(4).tables(400);
    write(first.path(), &tables).unwrap();
    let mut generator = Generator(5);
    shuffle(&mut generator, &mut tables.cells);
    shuffle(&mut generator, &mut tables.evidence);
    shuffle(&mut generator, &mut tables.flags);
    shuffle(&mut generator, &mut tables.comparisons);
    shuffle(&mut generator, &mut tables.incidents);
    shuffle(&mut generator, &mut tables.scaling);
    shuffle(&mut generator, &mut tables.rings);
    shuffle(&mut generator, &mut tables.heap);
    shuffle(&mut generator, &mut tables.waiting);
    shuffle(&mut generator, &mut tables.stacks);
    shuffle(&mut generator, &mut tables.load_curves);
    shuffle(&mut generator, &mut tables.ledger);
    shuffle(&mut generator, &mut tables.rejected);
    shuffle(&mut generator, &mut tables.clocks);
    shuffle(&mut generator, &mut tables.limits);
    write(second.path(), &tables).unwrap();
    let files = tables_below(first.path());
    assert_eq!(files.len(), 15 * 4, "fifteen tables, four intervals of ten minutes");
    assert_eq!(files, tables_below(second.path()));
}

#[test]
fn what_is_written_already_is_done() {
    let folder = TempDir::new().unwrap();
    let tables = Generator(6).tables(50);
    let first = write(folder.path(), &tables).unwrap();
    let before = tables_below(folder.path());
    let again = write(folder.path(), &tables).unwrap();
    assert!(first.files.iter().all(|file| file.created) && again.files.iter().all(|file| !file.created));
    assert_eq!(tables_below(folder.path()), before);
    assert_eq!(first.files.iter().map(|file| file.rows).sum::<usize>(), 15 * 50);
}

#[test]
fn another_result_stops_and_names_the_file() {
    let folder = TempDir::new().unwrap();
    let mut tables = Generator(6).tables(50);
    write(folder.path(), &tables).unwrap();
    let before = tables_below(folder.path());

    let mut output = ParquetOutput::create(folder.path(), "{}".to_owned(), TEN_MINUTES).unwrap();
    let error = output.write(std::slice::from_ref(&tables)).unwrap_err();
    assert_eq!(error.code(), "nondeterministic_output");
    assert!(
        error.to_string().contains(
            r#"with other settings: method was "honest", now there is no such setting, q was 0.05, now there is no such setting;"#
        ),
        "{error}"
    );

    tables.ledger[7].samples_counted += 1;
    let error = write(folder.path(), &tables).unwrap_err();
    let start = tables.ledger[7].hop_at.0 / 1_000_000_000 / 600 * 600;
    assert_eq!(error.code(), "nondeterministic_output");
    assert!(error.to_string().contains(&format!("{start}.parquet exists and differs: its ")), "{error}");

    tables.ledger.remove(7);
    let error = write(folder.path(), &tables).unwrap_err();
    assert!(error.to_string().contains("rows, now there are"), "{error}");
    assert_eq!(tables_below(folder.path()), before, "nothing was overwritten");
}

#[test]
fn files_lie_in_the_hour_of_their_rows() {
    let folder = TempDir::new().unwrap();
    let tables = Generator(8).tables(300);
    let written = write(folder.path(), &tables).unwrap();
    let cells: Vec<&str> = written.files.iter().map(|file| file.path.as_str()).take(4).collect();
    let expected = [
        "cells/date=2026-03-01/hour=09/1772358000.parquet",
        "cells/date=2026-03-01/hour=09/1772358600.parquet",
        "cells/date=2026-03-01/hour=10/1772359200.parquet",
        "cells/date=2026-03-01/hour=10/1772359800.parquet",
    ];
    assert_eq!(cells, expected);
    for (path, start) in expected.iter().zip([0, 600, 1_200, 1_800]) {
        let alone = TempDir::new().unwrap();
        fs::create_dir_all(alone.path().join(path).parent().unwrap()).unwrap();
        fs::copy(folder.path().join(path), alone.path().join(path)).unwrap();
        let rows = read_tables(alone.path()).unwrap().cells;
        let begin = Nanos::from_seconds(START_SECONDS + start);
        assert!(!rows.is_empty());
        for row in &rows {
            assert!(begin <= row.window_end_at && row.window_end_at < begin.plus(Nanos::from_seconds(600)), "{path}");
        }
        assert_eq!(rows, sorted(&rows), "{path} is sorted");
    }
}

#[test]
fn files_say_what_they_are() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &Generator(9).tables(300)).unwrap();
    let file =
        tables_below(folder.path()).remove(Path::new("cells/date=2026-03-01/hour=09/1772358000.parquet")).unwrap();
    let file = Bytes::from(file);
    let described = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    assert_eq!(described.schema().fields(), arrow_schema_of::<CellRow>().fields(), "descriptions and units too");
    let reader = SerializedFileReader::new(file).unwrap();
    let metadata = reader.metadata().file_metadata();
    let entries = metadata.key_value_metadata().unwrap();
    let value_of = |key: &str| entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.clone());
    assert_eq!(value_of("fleetdiff.schema_version").as_deref(), Some(SCHEMA_VERSION));
    assert_eq!(value_of("fleetdiff.program_version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(value_of("fleetdiff.configuration").as_deref(), Some(CONFIGURATION));

    assert_eq!(reader.num_row_groups(), 1);
    let group = reader.metadata().row_group(0);
    assert_eq!(group.sorting_columns().unwrap().len(), CellRow::SORTED_BY.len());
    for (column, chunk) in CellRow::columns().iter().zip(group.columns()) {
        // A list lies a few names deeper.
        assert_eq!(chunk.column_path().parts().first().map(String::as_str), Some(column.name));
        assert!(matches!(chunk.compression(), Compression::ZSTD(_)), "{}", column.name);
        assert!(chunk.statistics().is_some_and(|found| found.null_count_opt().is_some()), "{}", column.name);
        let dictionary = chunk.encodings().any(|encoding| encoding == Encoding::RLE_DICTIONARY);
        assert!(!(dictionary && column.kind == Kind::Number), "{} has a dictionary", column.name);
    }
}

#[test]
fn the_first_interval_has_a_file_of_every_table() {
    let folder = TempDir::new().unwrap();
    let mut output = ParquetOutput::create(folder.path(), CONFIGURATION.to_owned(), TEN_MINUTES).unwrap();
    assert_eq!(output.write(&[]).unwrap(), Written::default());
    let ledger = |seconds| LedgerRow { hop_at: Nanos::from_seconds(seconds), ..LedgerRow::default() };
    output.write(&[Tables { ledger: vec![ledger(START_SECONDS)], ..Tables::default() }]).unwrap();
    let paths: Vec<String> = tables_below(folder.path()).keys().map(|path| path.display().to_string()).collect();
    let expected = [
        "cells",
        "clocks",
        "comparisons",
        "evidence",
        "flags",
        "heap",
        "incidents",
        "ledger",
        "limits",
        "load_curves",
        "rejected",
        "rings",
        "scaling",
        "stacks",
        "waiting",
    ];
    let mut tables = TABLES;
    tables.sort_unstable();
    assert_eq!(tables, expected);
    assert_eq!(paths, expected.map(|table| format!("{table}/date=2026-03-01/hour=09/1772358000.parquet")));
    output.write(&[Tables { ledger: vec![ledger(START_SECONDS + 600)], ..Tables::default() }]).unwrap();
    assert_eq!(tables_below(folder.path()).len(), 16, "later intervals have files of rows alone");
    assert_eq!(read_tables(folder.path()).unwrap().ledger.len(), 2);
}

#[test]
fn rows_without_a_hop_lie_at_the_epoch() {
    let folder = TempDir::new().unwrap();
    let undated = RejectedRow { hop_at: None, ..Generator(1).rejected() };
    write(folder.path(), &Tables { rejected: vec![undated.clone()], ..Tables::default() }).unwrap();
    assert!(folder.path().join("rejected/date=1970-01-01/hour=00/0.parquet").is_file());
    assert_eq!(read_tables(folder.path()).unwrap().rejected, [undated]);
}

#[test]
fn instants_are_cut_to_microseconds() {
    let folder = TempDir::new().unwrap();
    let mut row = Generator(1).rejected();
    row.rejection.at = Some(Nanos(-1));
    write(folder.path(), &Tables { rejected: vec![row], ..Tables::default() }).unwrap();
    assert_eq!(read_tables(folder.path()).unwrap().rejected[0].rejection.at, Some(Nanos(-1_000)));
}

#[test]
fn a_large_table_has_several_row_groups() {
    let folder = TempDir::new().unwrap();
    let rows: Vec<LedgerRow> = (0..140_000)
        .map(|hop| LedgerRow {
            hop_at: Nanos::from_seconds(START_SECONDS),
            records_consumed: hop,
            ..LedgerRow::default()
        })
        .collect();
    let tables = Tables { ledger: rows, ..Tables::default() };
    write(folder.path(), &tables).unwrap();
    let file =
        tables_below(folder.path()).remove(Path::new("ledger/date=2026-03-01/hour=09/1772358000.parquet")).unwrap();
    let file = Bytes::from(file);
    assert_eq!(SerializedFileReader::new(file).unwrap().num_row_groups(), 2);
    assert_eq!(read_tables(folder.path()).unwrap().ledger, tables.ledger);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "not a folder").unwrap();
    for root in [file.clone(), file.join("out")] {
        let error = ParquetOutput::create(root.as_path(), String::new(), TEN_MINUTES).err().unwrap();
        assert_eq!(error.code(), "unwritable_output");
        let text = error.to_string();
        assert!(
            text.contains(&format!("cannot write {}: ", root.display())) && text.contains("name a folder"),
            "{text}"
        );
    }
    assert_eq!(files_below(folder.path()).len(), 1);

    // A folder that becomes unwritable during the run: a file is in the place of a table's folder.
    let root = folder.path().join("out");
    let mut output = ParquetOutput::create(root.as_path(), String::new(), TEN_MINUTES).unwrap();
    fs::write(root.join("cells"), "not a folder").unwrap();
    let error = output.write(&[Generator(1).tables(3)]).unwrap_err();
    assert_eq!(error.code(), "unwritable_output");
    assert!(error.to_string().contains("out/cells/date=2026-03-01/hour="), "{error}");
}

#[test]
fn a_row_with_nan_is_refused_and_named() {
    let folder = TempDir::new().unwrap();
    let mut tables = Generator(1).tables(3);
    tables.cells[2].q_value = Some(f64::NAN);
    let error = write(folder.path(), &tables).unwrap_err();
    assert_eq!(error.code(), "not_a_number");
    let text = error.to_string();
    assert!(text.contains("cells.q_value") && text.contains(".parquet"), "{text}");
    assert!(text.contains(&serde_json::json!(tables.cells[2].function).to_string()), "{text}");
}

#[test]
fn a_folder_of_others_is_not_read() {
    let folder = TempDir::new().unwrap();
    let code_of = |root: &Path| read_tables(root).unwrap_err().code();
    assert_eq!(code_of(folder.path()), "unreadable_output");
    assert_eq!(code_of(&folder.path().join("missing")), "unreadable_output");

    write(folder.path(), &Generator(1).tables(3)).unwrap();
    let files = tables_below(folder.path());
    let path_of = |table: &str| folder.path().join(files.keys().find(|path| path.starts_with(table)).unwrap());
    let cells = path_of("cells");
    let whole = fs::read(&cells).unwrap();
    fs::write(&cells, &whole[..whole.len() / 2]).unwrap();
    let error = read_tables(folder.path()).unwrap_err();
    assert_eq!(error.code(), "unreadable_output");
    assert!(error.to_string().contains(&cells.display().to_string()), "{error}");

    fs::copy(path_of("ledger"), &cells).unwrap();
    let error = read_tables(folder.path()).unwrap_err();
    assert!(error.to_string().contains("not those of the table cells"), "{error}");

    // The version's text in the footer, turned into another of the same length.
    let key = b"fleetdiff.schema_version";
    let place = whole.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    let mut later = whole.clone();
    let digit = later[place..].iter().position(|byte| *byte == SCHEMA_VERSION.as_bytes()[0]).unwrap();
    later[place + digit] = b'9';
    fs::write(&cells, later).unwrap();
    let error = read_tables(folder.path()).unwrap_err();
    assert_eq!(error.code(), "unsupported_schema_version");
    let expected = format!("has schema version 9, this program reads version {SCHEMA_VERSION}");
    assert!(error.to_string().contains(&expected), "{error}");

    fs::write(&cells, whole).unwrap();
    assert_eq!(read_tables(folder.path()).unwrap().cells.len(), 3);
}

#[test]
fn another_store_holds_the_same_bytes() {
    let folder = TempDir::new().unwrap();
    let tables = Generator(6).tables(20);
    write(folder.path(), &tables).unwrap();
    let store = Arc::new(object_store::memory::InMemory::new());
    let place = Place::Store(Store::of(store.clone(), "memory".to_owned()).unwrap());
    let mut output = ParquetOutput::create(&place, CONFIGURATION.to_owned(), TEN_MINUTES).unwrap();
    let written = output.write(std::slice::from_ref(&tables)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let local = tables_below(folder.path());
    assert_eq!(written.files.len(), local.len());
    for file in &written.files {
        let path = object_store::path::Path::from(file.path.as_str());
        let read = async { object_store::ObjectStoreExt::get(&*store, &path).await.unwrap().bytes().await.unwrap() };
        assert_eq!(runtime.block_on(read), local[Path::new(&file.path)], "{}", file.path);
    }
    let mut again = ParquetOutput::create(&place, "{}".to_owned(), TEN_MINUTES).unwrap();
    assert_eq!(again.write(std::slice::from_ref(&tables)).unwrap_err().code(), "nondeterministic_output");
}
