//! What functions cost from build to build of a roll-out, in words.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use fleetdiff_pipeline::rules::advice::{effect_of, name, words};
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::rings::changed;
use fleetdiff_report::verdicts;
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{CellKey, RingRow, RingStep};

/// Paths with their own lines; the rest is counted.
const PATHS: usize = 5;

/// Prints, for each service with at least three builds side by side, what changed between any two of them, build by build. Of the kinds
/// of count the first is used: callers follow their callees.
pub(crate) fn print(out: &mut impl Write, rows: &[RingRow]) -> io::Result<()> {
    let Some(kind) = rows.iter().map(|row| row.count_kind).min() else { return Ok(()) };
    let mut services: BTreeMap<(&Service, ProfileType), Vec<&RingRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.count_kind == kind) {
        services.entry((&row.service, row.profile_type)).or_default().push(row);
    }
    for ((service, profile_type), rows) in services {
        let builds: BTreeMap<i64, &str> = rows.iter().map(|row| (row.ring, row.build.as_str())).collect();
        let builds: Vec<&str> = builds.into_values().collect();
        let heading = format!("{service} {} ({} samples), from build to build", profile_type.name(), kind.name());
        writeln!(out, "\n{heading}: {}\n", builds.join(", "))?;
        print_paths(out, &rows)?;
    }
    Ok(())
}

fn print_paths(out: &mut impl Write, rows: &[&RingRow]) -> io::Result<()> {
    let cells: BTreeSet<&CellKey> = rows.iter().map(|row| &row.cell).collect();
    let moved = changed(rows, |row| row);
    if moved.is_empty() {
        return writeln!(out, "  no function changed between any two of them within the last window");
    }
    for path in moved.iter().take(PATHS) {
        let Some(RingRow { function, cell, .. }) = path.first() else { continue };
        writeln!(out, "  {}, {}", name(function), words(&extents([cell], cells.iter().copied())))?;
        for row in path.iter().filter(|row| row.ring > 1) {
            let first = if row.first.build == row.previous.build { None } else { against(&row.first) };
            let steps: Vec<String> = against(&row.previous).into_iter().chain(first).collect();
            writeln!(out, "    {}: {}", row.build, steps.join("; "))?;
        }
    }
    if moved.len() > PATHS {
        writeln!(out, "  and {} more, all in the table rings", moved.len() - PATHS)?;
    }
    Ok(())
}

fn against(step: &RingStep) -> Option<String> {
    let build = step.build.as_ref()?;
    let verdict = step.verdict.map_or_else(verdicts::too_rare, verdicts::of_row).word;
    let ratio = step.ratio.map_or_else(|| "not tested".to_owned(), effect_of);
    Some(format!("{ratio} against {build}, {verdict}{}", verdicts::doubt(step.reason)))
}
