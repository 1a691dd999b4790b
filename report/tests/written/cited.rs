//! Figures against the rows that they cite, which are found again by the values of their reference, not by the report's code.

use fleetdiff_connectors::parquet::read_tables;
use fleetdiff_report::{Document, Figure, Literal, Reference, Takes, document};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::tables::{TableRow, Value};

use super::fleets::{
    self, MEMORY, REGRESSED, RINGS, ROLLED_OUT, UNCHANGED, UNDER_LOAD, WAITING, records, report, written,
};

/// The values of the cited columns of the only row, or the count or sum.
fn values<R: TableRow>(rows: &[R], reference: &Reference, columns: &[&str]) -> Vec<f64> {
    let column = |name: &str| R::columns().iter().find(|column| column.name == name).unwrap();
    let is_meant = |row: &&R| reference.filter.iter().all(|(name, literal)| equals(column(name).value(row), literal));
    let meant: Vec<&R> = rows.iter().filter(is_meant).collect();
    let number = |row: &R, name: &str| match column(name).value(row) {
        Value::Count(count) => fleetdiff_schemas::number::signed_float(count),
        Value::Number(number) => number,
        // A sum leaves out what is unknown.
        Value::Null if reference.takes == Takes::Sum(column(name).name) => 0.0,
        other => panic!("{name} of {} is {other:?}", reference.sql),
    };
    match reference.takes {
        Takes::Count => vec![fleetdiff_schemas::number::length_float(meant.len())],
        Takes::Sum(name) => vec![meant.iter().map(|row| number(row, name)).sum()],
        Takes::Row => {
            assert_eq!(meant.len(), 1, "{}", reference.sql);
            let numbers = columns.iter().filter(|name| !is_text(column(name).value(meant[0])));
            numbers.map(|name| number(meant[0], name)).collect()
        }
    }
}

fn is_text(value: Value<'_>) -> bool {
    matches!(value, Value::Text(_))
}

fn equals(value: Value<'_>, literal: &Literal) -> bool {
    match (value, literal) {
        (Value::Text(a), Literal::Text(b)) => a == b,
        (Value::Count(a), Literal::Count(b)) => a == *b,
        (Value::Instant(a), Literal::Instant(b)) => a == *b,
        (Value::Truth(a), Literal::Truth(b)) => a == *b,
        (Value::Null, Literal::Null) => true,
        _ => false,
    }
}

fn values_in(tables: &Tables, reference: &Reference, columns: &[&str]) -> Vec<f64> {
    match reference.table {
        "cells" => values(&tables.cells, reference, columns),
        "evidence" => values(&tables.evidence, reference, columns),
        "flags" => values(&tables.flags, reference, columns),
        "comparisons" => values(&tables.comparisons, reference, columns),
        "incidents" => values(&tables.incidents, reference, columns),
        "scaling" => values(&tables.scaling, reference, columns),
        "rings" => values(&tables.rings, reference, columns),
        "heap" => values(&tables.heap, reference, columns),
        "stacks" => values(&tables.stacks, reference, columns),
        "load_curves" => values(&tables.load_curves, reference, columns),
        "waiting" => values(&tables.waiting, reference, columns),
        "ledger" => values(&tables.ledger, reference, columns),
        "rejected" => values(&tables.rejected, reference, columns),
        other => panic!("there is no table {other}"),
    }
}

/// The numbers of a text, with the size of half a unit of their last digit.
fn numbers(text: &str) -> Vec<(f64, f64)> {
    let is_part = |character: char| character.is_ascii_digit() || ".-+,".contains(character);
    let words = text.split(|character| !is_part(character)).map(|word| word.trim_matches([',', '.']).replace(',', ""));
    words
        .filter_map(|word| {
            let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let half = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap());
            Some((word.parse().ok()?, half))
        })
        .collect()
}

/// Compares one figure, and gives how many numbers were compared.
fn check(figure: &Figure, reference: &Reference, tables: &Tables) -> usize {
    let expected = values_in(tables, reference, &figure.columns);
    if figure.columns.is_empty() && reference.takes == Takes::Row {
        return 0;
    }
    let shown = numbers(&figure.text);
    if let [seconds] = &expected[..]
        && figure.columns == ["seconds_to_significance"]
    {
        let unit = match figure.text.split(' ').next_back().unwrap().trim_end_matches('s') {
            "second" => 1.0,
            "minute" => 60.0,
            "hour" => 3_600.0,
            _ => 86_400.0,
        };
        assert!((shown[0].0 - seconds / unit).abs() < 1.0, "{figure:?}: {seconds} s");
        return 1;
    }
    let unit = match figure.text.split(' ').next_back().unwrap() {
        // The table has nanoseconds.
        "us" => 1e-3,
        "ms" => 1e-6,
        "s" => 1e-9,
        _ if figure.text.contains('%') || figure.text.contains("pp") => 100.0,
        _ => 1.0,
    };
    assert!(shown.len() >= expected.len(), "{figure:?}: {expected:?}");
    for ((shown, half), expected) in shown.iter().zip(&expected) {
        assert!((shown - expected * unit).abs() <= half * 1.001, "{figure:?}: {} says {expected}", reference.sql);
    }
    expected.len()
}

/// Compares every figure of a report with the rows that were read back, and gives how many numbers were compared.
fn checked(report: &Document, tables: &Tables) -> usize {
    let figures = report.figures();
    let reference = |figure: &Figure| &report.references[figure.citation.0 - 1];
    figures.iter().map(|figure| check(figure, reference(figure), tables)).sum()
}

#[test]
fn each_figure_is_that_of_its_row() {
    for (tables, least) in [
        (&*REGRESSED, 50),
        (&*UNCHANGED, 25),
        (&*ROLLED_OUT, 40),
        (&*UNDER_LOAD, 40),
        (&*RINGS, 60),
        (&*MEMORY, 40),
        (&*WAITING, 40),
    ] {
        let read = read_tables(written(tables).path()).unwrap();
        let compared = checked(&report(tables), &read);
        assert!(compared > least, "{compared} numbers were compared");
    }
}

/// The twin: rows that differ by one sample, or in the second digit of a ratio, are noticed.
#[test]
#[should_panic(expected = "says")]
fn a_figure_of_another_row_is_noticed() {
    let mut read = read_tables(written(&REGRESSED).path()).unwrap();
    read.cells.iter_mut().filter_map(|row| row.adjusted_ratio.as_mut()).for_each(|ratio| ratio.low *= 1.02);
    checked(&report(&REGRESSED), &read);
}

#[test]
fn sentences_are_those_of_their_rows() {
    let report = report(&REGRESSED);
    let quoted: Vec<&str> = report.figures().into_iter().map(|figure| figure.text.as_str()).collect();
    let last = REGRESSED.incidents.iter().max_by_key(|row| row.sequence).unwrap();
    for sentence in [&last.summary, &last.impact, &last.confidence] {
        assert!(quoted.contains(&sentence.as_str()), "{sentence}");
    }
    let over_all =
        REGRESSED.comparisons.iter().filter(|row| row.cell.is_over_all()).max_by_key(|row| row.window_end_at);
    assert!(quoted.contains(&over_all.unwrap().action.as_deref().unwrap()));
}

/// Each file that a reference names exists, and holds the row.
#[test]
fn references_name_the_files_of_their_rows() {
    let folder = written(&REGRESSED);
    let report = report(&REGRESSED);
    let rows = report.references.iter().filter(|reference| reference.takes == Takes::Row);
    assert!(rows.clone().count() > 10);
    for reference in rows {
        assert!(folder.path().join(&reference.file).is_file(), "{}", reference.file);
        assert!(reference.sql.contains(&reference.file), "{}", reference.sql);
    }
}

/// However rows are divided into files, the report is the same but for their names.
#[test]
fn the_same_tables_give_the_same_bytes() {
    let twice = [0, 1].map(|_| fleetdiff_report::html(&report(&REGRESSED)).unwrap());
    assert_eq!(twice[0], twice[1]);
    let records = records(&REGRESSED);
    let subjects: Vec<_> = records.subjects().into_iter().collect();
    let again = document(&records, &subjects).unwrap();
    assert_eq!(fleetdiff_report::markdown(&again), fleetdiff_report::markdown(&fleets::report(&REGRESSED)));
}
