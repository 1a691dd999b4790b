//! `diff`: recorded profiles of two sides, and which of their differences are significant.

mod arguments;
mod columns;
mod fail_on;
mod files;
mod lines;
mod notes;
mod output;
mod report;
mod same;
mod table;

use std::io::Write;

use fleetdiff_diff::answer;
use fleetdiff_diff::compare::sums::Sums;
use fleetdiff_diff::compare::{Compared, NotCompared, Recording, compare};
use fleetdiff_diff::flame::Sides;
use fleetdiff_diff::pairs::Pairs;
use fleetdiff_formats::Values;
use fleetdiff_schemas::profile::CountKind;

pub(crate) use self::arguments::DiffArgs;
use self::columns::Column;
use self::files::{Read, read};
use crate::failure::Failure;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff diff before.pb.gz after.pb.gz
  fleetdiff diff --base before-*.pb.gz --head after-*.pb.gz --output diff.html
  fleetdiff diff --base main-*.pb.gz --head change-*.pb.gz --output diff.md --fail-on regressed
  perf script | fleetdiff diff before.perf_script -
  fleetdiff diff --base old.folded --head new.folded --count-kind total --top 50";

/// Compares, and writes the result.
pub(crate) fn run(args: &DiffArgs) -> Result<(), Failure> {
    output::check(args)?;
    let Read { sides, notes } = read(&args.files, args.columns.declared())?;
    args.columns.check(sides.head.len())?;
    check_floor(&sides, args)?;
    check_filters(&sides, args)?;
    notes::print(&notes, args);
    if args.columns.splits_heads() {
        return each_head(sides, args);
    }
    let pairs = if args.pairs() { Pairs::of(&sides, args.decides().min_count) } else { Pairs::default() };
    let sides = pairs.joined(sides);
    let mut compared = answered(&sides, args)?;
    pairs.label(&mut compared);
    output::write(&sides, &compared, args)?;
    notes::print(&notes::of(&sides, &compared, &pairs, args), args);
    fail_on::check(&[&compared], args)
}

/// Compares, and puts the findings in the order of every output.
fn answered(sides: &Sides<Vec<Recording>>, args: &DiffArgs) -> Result<Compared, Failure> {
    let mut compared = compare(sides, &args.decides()).map_err(|fault| explained(fault, args))?;
    answer::explain(&mut compared, sides);
    Ok(compared)
}

/// Refuses filters that leave nothing of a side.
fn check_filters(sides: &Sides<Vec<Recording>>, args: &DiffArgs) -> Result<(), Failure> {
    #[derive(Debug, thiserror::Error)]
    #[error("{0} a single sample that passes {1}")]
    struct NothingPasses(&'static str, String);
    let filters = args.files.reading.filters();
    if filters.is_empty() {
        return Ok(());
    }
    let has = |side: &[Recording]| Sums::of_samples(side).functions(CountKind::SelfCount).next().is_some();
    let sides = match (has(&sides.base), has(&sides.head)) {
        (true, true) => return Ok(()),
        (false, false) => "neither base nor head has",
        (false, true) => "the base does not have",
        (true, false) => "the head does not have",
    };
    let hint = "names must be as the table without the filter shows them; --top 0 shows all";
    Err(Failure::with_hint(NothingPasses(sides, filters.join(" and ")), hint))
}

/// Refuses a floor of samples where there are none.
fn check_floor(sides: &Sides<Vec<Recording>>, args: &DiffArgs) -> Result<(), Failure> {
    #[derive(Debug, thiserror::Error)]
    #[error("--min-count {0} is a number of samples, and the files have times without a period")]
    struct NoSamples(u64);
    let timed = sides.base.iter().any(|run| run.values == Values::Times);
    match args.min_count.filter(|_| timed) {
        Some(floor) => Err(Failure::usage(
            NoSamples(floor),
            "remove it, or say how long it is from one sample to the next with --period, as in --period 10ms",
        )),
        None => Ok(()),
    }
}

/// Compares each head separately with the base, and writes a column for each.
fn each_head(sides: Sides<Vec<Recording>>, args: &DiffArgs) -> Result<(), Failure> {
    let (mut text, mut compared) = (Vec::new(), Vec::new());
    let mut pair = Sides { base: sides.base, head: Vec::new() };
    for (head, number) in sides.head.into_iter().zip(1..) {
        pair.head = vec![head];
        let found = answered(&pair, args)?;
        if !args.table.is_quiet() {
            writeln!(text, "Column {number}: {}", report::label(&pair.head))?;
            table::say(&mut text, &pair, &found, args)?;
        }
        compared.push((std::mem::take(&mut pair.head), found));
    }
    let columns: Vec<Column<'_>> = compared.iter().map(|(runs, compared)| Column { runs, compared }).collect();
    columns::print(&mut text, &pair.base, &columns, args)?;
    output::put(args, &text)?;
    fail_on::check(&compared.iter().map(|(_, compared)| compared).collect::<Vec<_>>(), args)
}

fn explained(failure: NotCompared, args: &DiffArgs) -> Failure {
    let filters = args.files.reading.filters();
    if matches!(failure, NotCompared::DifferentPrograms(_)) && !filters.is_empty() {
        let hint = format!("check what {} leaves of each side", filters.join(" and "));
        return Failure::with_hint(failure, hint);
    }
    let hint = match &failure {
        NotCompared::Nameless { .. } => {
            "symbolise first: record where the program's symbols are, or convert with the program at hand, as pprof -proto PROGRAM FILE does"
        }
        NotCompared::Empty(_) => "check that the files are profiles of the requested type (--profile-type)",
        NotCompared::Types { .. } => "give files of one type, or choose it with --profile-type",
        NotCompared::Units { .. } => "give files whose weights are of one unit",
        NotCompared::DifferentPrograms(_) => {
            "check that both sides are profiles of the same program and type, with symbols"
        }
        NotCompared::CountsAndTimes { .. } => "say how long it is from one sample to the next with --period",
        NotCompared::FewRuns(_) => {
            "give more runs of each side, or say how long it is from one sample to the next with --period, as in --period 10ms; --columns compares each head file by itself"
        }
        NotCompared::NeedsCounts => "say how long it is from one sample to the next with --period, as in --period 10ms",
        NotCompared::Failed(_) => return Failure::from(failure),
    };
    Failure::with_hint(failure, hint)
}
