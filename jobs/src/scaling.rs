//! What load does to the cost of requests, in words.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use fleetdiff_pipeline::rules::advice::{change, plural, words};
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::scaling::{at_twice_the_load, name};
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, Interval, ScalingRow};
use fleetdiff_schemas::verdict::ScalingVerdict;

/// Functions with their own line; the rest is counted.
const LINES: usize = 5;

/// What rows are about: a build, and the base with which it is compared.
type Subject<'a> = (&'a Build, Option<&'a Build>);

/// Rows by what they are about.
type Subjects<'a> = BTreeMap<Subject<'a>, Vec<&'a ScalingRow>>;

/// Prints, for each comparison, of which functions the head scales worse, and for each build what costs more under load. Of the kinds of
/// count the first is used: callers follow their callees.
pub(crate) fn print(out: &mut impl Write, rows: &[ScalingRow]) -> io::Result<()> {
    let Some(kind) = rows.iter().map(|row| row.count_kind).min() else { return Ok(()) };
    let mut of_types: BTreeMap<(&Service, ProfileType), Subjects<'_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.count_kind == kind) {
        let subject = (&row.build, row.base_build.as_ref());
        of_types.entry((&row.service, row.profile_type)).or_default().entry(subject).or_default().push(row);
    }
    for ((service, profile_type), subjects) in of_types {
        let heading = format!("\n{service} {} ({} samples) under load", profile_type.name(), kind.name());
        let mut all = subjects.values().flatten();
        if all.clone().all(|row| row.q_value.is_none()) {
            let needed = all.find_map(|row| row.needed.as_deref().filter(|_| row.verdict == ScalingVerdict::Withheld));
            writeln!(out, "{heading}: nothing can be said; needed: {}", needed.unwrap_or("more samples"))?;
            continue;
        }
        writeln!(out, "{heading}\n")?;
        // Comparisons first: they are what a deploy is about.
        let (compared, single): (Vec<_>, Vec<_>) = subjects.iter().partition(|((_, base), _)| base.is_some());
        for (subject, rows) in compared.into_iter().chain(single) {
            print_subject(out, subject, rows)?;
        }
    }
    Ok(())
}

fn print_subject(out: &mut impl Write, subject: &Subject<'_>, rows: &[&ScalingRow]) -> io::Result<()> {
    let (build, base) = *subject;
    let found = if base.is_some() { ScalingVerdict::ScalesWorse } else { ScalingVerdict::MoreExpensive };
    let cells: BTreeSet<&CellKey> = rows.iter().map(|row| &row.cell).collect();
    let withheld: Vec<&ScalingRow> =
        rows.iter().copied().filter(|row| row.verdict == ScalingVerdict::Withheld).collect();
    let silent: BTreeSet<&CellKey> = withheld.iter().map(|row| &row.cell).collect();
    let about = base.map_or_else(|| build.to_string(), |base| format!("{build} against {base}"));
    let functions = ranked(rows, found);
    let tested = rows.iter().filter(|row| row.q_value.is_some()).count();
    let tested_in = cells.len() - silent.len();
    if tested_in > 0 {
        let verb = if functions.len() < 2 { "costs" } else { "cost" };
        let number = match functions.len() {
            0 => "no function".to_owned(),
            number => format!("{number} {}", plural(number, "function")),
        };
        let what = match base {
            Some(base) => format!("{number} {verb} more at higher load than in {base}"),
            None => format!("{number} {verb} more at higher load"),
        };
        writeln!(
            out,
            "{about}: {what} ({tested} {} tested in {tested_in} of {} {})",
            plural(tested, "row"),
            cells.len(),
            plural(cells.len(), "cell")
        )?;
        for (function, rows) in functions.iter().take(LINES) {
            writeln!(out, "  {}", line(function, rows, &cells))?;
        }
        if functions.len() > LINES {
            writeln!(out, "  and {} more, all in the table scaling", functions.len() - LINES)?;
        }
    }
    if let Some(row) = withheld.first() {
        let needed = row.needed.as_deref().unwrap_or("more data");
        let places = words(&extents(silent.iter().copied(), cells.iter().copied()));
        writeln!(out, "{about}: nothing can be said in {places}; needed: {needed}")?;
    }
    Ok(())
}

/// Functions with this verdict, by how much they surely add at peak, and their rows; all functions together only if there is no other.
fn ranked<'a>(rows: &[&'a ScalingRow], verdict: ScalingVerdict) -> Vec<(&'a str, Vec<&'a ScalingRow>)> {
    let mut functions: BTreeMap<&str, Vec<&ScalingRow>> = BTreeMap::new();
    for &row in rows.iter().filter(|row| row.verdict == verdict) {
        functions.entry(&row.function).or_default().push(row);
    }
    if functions.len() > 1 {
        functions.remove(ALL_FUNCTIONS);
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    let weight = |rows: &[&ScalingRow]| rows.iter().map(|row| surely_added(row)).fold(0.0, f64::max);
    functions.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)).then_with(|| a.0.cmp(b.0)));
    functions
}

/// The lower end of the elasticity, or of the difference, times the share at peak.
fn surely_added(row: &ScalingRow) -> f64 {
    row.slope().map_or(0.0, |slope| slope.low * row.high.share.unwrap_or(1.0))
}

/// One function: by how much, and where.
fn line(function: &str, rows: &[&ScalingRow], cells: &BTreeSet<&CellKey>) -> String {
    let name = name(function);
    let places = words(&extents(rows.iter().map(|row| &row.cell), cells.iter().copied()));
    let lead = rows.iter().copied().max_by(|a, b| surely_added(a).total_cmp(&surely_added(b)));
    let at_twice = |slope: Option<Interval>| slope.map_or_else(String::new, |slope| change(at_twice_the_load(slope)));
    let Some(row) = lead else { return name.to_owned() };
    let base = match &row.base_build {
        Some(base) => format!(", in {base} {}", at_twice(row.base_elasticity)),
        None => String::new(),
    };
    let there = words(&extents([&row.cell], cells.iter().copied()));
    let several = if rows.len() > 1 { format!("; found in {places}") } else { String::new() };
    format!("{name}: in {there} a request costs {} at twice the load{base}{several}", at_twice(row.elasticity))
}
