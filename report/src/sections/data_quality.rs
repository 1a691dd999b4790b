//! The ledger: what came in, and what was left out for which reason.

use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::rows::{LedgerRow, RejectedRow};

use crate::chart::Undrawn;
use crate::document::{Block, Cell, Section, Text, name, paragraph, words};
use crate::figures::total;
use crate::records::Records;
use crate::references::{Literal, References};

/// A line of the ledger: the column, what it means, and its value.
type Line = (&'static str, &'static str, fn(&LedgerRow) -> i64);

/// The lines that are always there, then those that are left out if they are 0 everywhere.
const LINES: [Line; 13] = [
    ("records_consumed", "profiles taken in", |row| row.records_consumed),
    ("records_rejected", "of these, rejected", |row| row.records_rejected),
    ("samples_received", "samples taken in", |row| row.samples_received),
    ("samples_counted", "counted", |row| row.samples_counted),
    ("samples_late_counted", "of these, late but in time", |row| row.samples_late_counted),
    ("samples_warm_up", "left out: warm-up of a process", |row| row.samples_warm_up),
    ("samples_drain", "left out: last moments of a process", |row| row.samples_drain),
    ("samples_idle", "left out: waiting that is idle", |row| row.samples_idle),
    ("samples_late_dropped", "left out: older than the window", |row| row.samples_late_dropped),
    ("samples_duplicate", "left out: seen before", |row| row.samples_duplicate),
    ("samples_superseded", "left out: snapshots not newer than the last one", |row| row.samples_superseded),
    ("samples_carried_over", "not new: held by an earlier snapshot", |row| row.samples_carried_over),
    ("samples_rejected", "left out: in rejected profiles", |row| row.samples_rejected),
];

pub(crate) fn section(records: &Records, references: &mut References) -> Result<Option<Section>, Undrawn> {
    if records.ledger.is_empty() {
        return Ok(None);
    }
    let balances = records.ledger.values().all(LedgerRow::balances);
    let verdict = if balances {
        "Every sample that came in is accounted for: the lines below add up."
    } else {
        "The lines below do not add up: this is an error in fleetdiff, please report it."
    };
    let mut blocks = vec![paragraph(vec![words("All services and builds of the output folder. "), words(verdict)])];
    blocks.push(ledger(records, references));
    if !records.rejected.is_empty() {
        blocks.push(paragraph(vec![words("Rejected, by reason, with the first of each:")]));
        blocks.push(rejected(records, references));
    }
    Ok(Some(Section { title: Some("Data: what came in, and what was left out".to_owned()), blocks }))
}

fn ledger(records: &Records, references: &mut References) -> Block {
    let types: Vec<(&String, &LedgerRow)> = records.ledger.iter().collect();
    let is_shown = |line: &&Line| {
        let is_always =
            ["records_consumed", "records_rejected", "samples_received", "samples_counted"].contains(&line.0);
        is_always || types.iter().any(|(_, row)| line.2(row) != 0)
    };
    let rows = LINES.iter().filter(is_shown).map(|(column, meaning, value)| {
        let of_type = types.iter().map(|(profile_type, row)| {
            let filter = vec![("profile_type", Literal::Text((*profile_type).clone()))];
            let mut text: Text = vec![total(value(row), references.sum::<LedgerRow>(column, filter))];
            if column.starts_with("samples") && *column != "samples_received" && row.samples_received > 0 {
                let part = signed_float(value(row)) / signed_float(row.samples_received) * 100.0;
                text.push(words(format!(" ({part:.2} %)")));
            }
            Cell::of(text)
        });
        [Cell::words(*meaning)].into_iter().chain(of_type).collect()
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let types = types.iter().map(|(profile_type, _)| profile_type.trim_start_matches('_'));
    let head: Vec<&str> = std::iter::once("what became of it").chain(types).collect();
    Block::list("Profiles and samples", &head, rows)
}

fn rejected(records: &Records, references: &mut References) -> Block {
    let rows = records.rejected.iter().map(|(reason, of_reason)| {
        let filter = vec![("reason", Literal::Text(reason.name().to_owned()))];
        vec![
            Cell::words(reason.name().replace('_', " ")),
            Cell::of(vec![total(of_reason.records, references.count::<RejectedRow>(filter))]),
            Cell::of(vec![name(of_reason.example.as_str())]),
        ]
    });
    Block::list("Rejected records by reason", &["reason", "records", "example"], rows)
}
