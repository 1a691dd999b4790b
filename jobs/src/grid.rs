//! The fan-out grid and the verdict in words.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, ComparisonRow, Tables};
use fleetdiff_schemas::verdict::{ComparisonVerdict, Scope, Verdict};

/// Prints, for each comparison, the grid of its cells and one sentence.
pub fn print(out: &mut impl Write, tables: &Tables) -> io::Result<()> {
    let kind = if tables.comparisons.iter().any(|row| row.count_kind == CountKind::SelfCount) { CountKind::SelfCount } else { CountKind::Total };
    let of_kind = || tables.comparisons.iter().filter(|row| row.count_kind == kind);
    let keys: BTreeSet<&ComparisonKey> = of_kind().map(|row| &row.comparison).collect();
    for key in keys {
        let cells: Vec<&ComparisonRow> = of_kind().filter(|row| row.comparison == *key && !is_over_all(&row.cell)).collect();
        let called = called(tables, key, kind);
        writeln!(out, "\n{} {} ({}): {} against {}", key.service, key.profile_type.name(), kind.name(), key.head_build, key.base_build)?;
        print_grid(out, &cells, &called)?;
        writeln!(out, "\n{}", sentence(&cells, &called))?;
    }
    Ok(())
}

/// The called self rows of the epoch at the last report, by cell, largest change first.
fn called<'a>(tables: &'a Tables, key: &ComparisonKey, kind: CountKind) -> BTreeMap<&'a CellKey, Vec<&'a CellRow>> {
    let mut called: BTreeMap<&CellKey, Vec<&CellRow>> = BTreeMap::new();
    let rows = tables.cells.iter().filter(|row| {
        row.comparison == *key && row.count_kind == kind && row.scope == Scope::Epoch && row.verdict.is_called() && !is_over_all(&row.cell)
    });
    rows.for_each(|row| called.entry(&row.cell).or_default().push(row));
    let change = |row: &CellRow| row.share_delta.map_or(0.0, |delta| delta.value.abs());
    called.values_mut().for_each(|rows| rows.sort_by(|a, b| change(b).total_cmp(&change(a))));
    called
}

fn print_grid(out: &mut impl Write, cells: &[&ComparisonRow], called: &BTreeMap<&CellKey, Vec<&CellRow>>) -> io::Result<()> {
    let regions: BTreeSet<_> = cells.iter().map(|row| row.cell.region.as_str()).collect();
    let cohorts: BTreeSet<_> = cells.iter().map(|row| row.cell.cohort.as_str()).collect();
    write!(out, "{:<16}", "")?;
    for cohort in &cohorts {
        write!(out, "{cohort:<40}")?;
    }
    writeln!(out)?;
    for region in regions {
        write!(out, "{region:<16}")?;
        for cohort in &cohorts {
            let here = |cell: &CellKey| cell.region.as_str() == region && cell.cohort.as_str() == *cohort;
            let row = cells.iter().find(|row| here(&row.cell));
            let rows = called.iter().find(|(cell, _)| here(cell)).map(|(_, rows)| rows);
            write!(out, "{:<40}", row.map_or_else(String::new, |row| in_words(row, rows)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn in_words(row: &ComparisonRow, called: Option<&Vec<&CellRow>>) -> String {
    let change = called.and_then(|rows| rows.first()).and_then(|row| {
        row.share_delta.map(|delta| format!("{} {:+.2} pp +- {:.2}", row.function, delta.value * 100.0, (delta.high - delta.low) * 50.0))
    });
    match (row.verdict, change) {
        (ComparisonVerdict::Regressed, Some(change)) => change,
        (ComparisonVerdict::Improved, Some(change)) => format!("{change} (better)"),
        (ComparisonVerdict::Regressed, None) => "regressed".to_owned(),
        (ComparisonVerdict::Improved, None) => "improved".to_owned(),
        (ComparisonVerdict::Clean, _) => "noise".to_owned(),
        (ComparisonVerdict::NotComparable, _) => "not comparable".to_owned(),
        (ComparisonVerdict::Inconclusive, _) => "not enough data yet".to_owned(),
    }
}

/// Which cohort and regions to roll back, which may stay, and which cannot be judged yet.
fn sentence(cells: &[&ComparisonRow], called: &BTreeMap<&CellKey, Vec<&CellRow>>) -> String {
    let with = |verdict| cells.iter().filter(|row| row.verdict == verdict).collect::<Vec<_>>();
    let named = |rows: &[&&ComparisonRow]| rows.iter().map(|row| cell_name(&row.cell)).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    for row in with(ComparisonVerdict::Regressed) {
        let worst = called.iter().find(|(cell, _)| ***cell == row.cell).and_then(|(_, rows)| rows.iter().find(|row| row.verdict == Verdict::Regressed));
        let by = worst.and_then(|row| row.adjusted_ratio.map(|ratio| format!(": {} x {:.3} ({:.3} to {:.3})", row.function, ratio.value, ratio.low, ratio.high)));
        parts.push(format!("roll back {}{}", cell_name(&row.cell), by.unwrap_or_default()));
    }
    let clean = with(ComparisonVerdict::Clean);
    if !clean.is_empty() {
        parts.push(format!("{} may stay", named(&clean)));
    }
    for row in with(ComparisonVerdict::Inconclusive) {
        parts.push(format!("{} cannot be judged yet ({})", cell_name(&row.cell), row.sentence));
    }
    let apart = with(ComparisonVerdict::NotComparable);
    if !apart.is_empty() {
        parts.push(format!("{} cannot be compared", named(&apart)));
    }
    format!("{}. Without request counts, a change that hits every function alike cannot be seen.", parts.join("; "))
}

fn cell_name(cell: &CellKey) -> String {
    match (cell.region.as_str(), cell.cohort.as_str()) {
        (MERGED, cohort) => cohort.to_owned(),
        (region, MERGED) => region.to_owned(),
        (region, cohort) => format!("{cohort} in {region}"),
    }
}

fn is_over_all(cell: &CellKey) -> bool {
    cell.region.as_str() == MERGED && cell.cohort.as_str() == MERGED
}
