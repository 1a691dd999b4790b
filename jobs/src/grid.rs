//! The fan-out grid and the verdict in words.

mod findings;
mod layout;
mod sentence;
mod uniform;

use std::io::{self, Write};

use fleetdiff_pipeline::rules::advice::{fixed, share_delta};
use fleetdiff_report::{Tone, Verdict as Word, verdicts};
use fleetdiff_schemas::rows::{CellKey, ComparisonKey, Tables};
use fleetdiff_schemas::verdict::{ComparisonVerdict, FanOutState, Verdict};

use crate::columns::{Column, aligned};
use findings::{Findings, FlaggedFunction};
use layout::{Colour, Entry, Grid};

/// Further functions with their own line; the rest is counted.
const LINES: usize = 20;
/// Widest name of a function in a column.
const WIDEST: usize = 60;

/// Prints, for each comparison, the grid of the worst significant function, a line for each other one, what was found in a
/// sentence, and what to do.
pub(crate) fn print(out: &mut impl Write, tables: &Tables) -> io::Result<()> {
    let all = Findings::of(tables);
    for (place, findings) in all.iter().enumerate() {
        let key = findings.key;
        writeln!(
            out,
            "\n{} {} ({} samples): {} against {}\n",
            key.service,
            key.profile_type.name(),
            findings.kind.name(),
            key.head_build,
            key.base_build
        )?;
        grid_of(findings).print(out)?;
        print_others(out, findings)?;
        writeln!(out, "\n{}", sentence::sentence(findings))?;
        match findings.history {
            Some(history) => writeln!(
                out,
                "No build of {} runs any more, so the {history}. A comparison with history never raises an alert: load and traffic of other days cannot be separated from the build, and a change that makes every function more expensive by the same factor cannot be detected.",
                key.base_build,
            )?,
            None => uniform::line(findings).into_iter().try_for_each(|line| writeln!(out, "{line}"))?,
        }
        // What to do follows from all types of profile together.
        let is_last = all[place + 1..].iter().all(|later| subject(later) != subject(findings));
        if let Some(action) = findings.action.filter(|_| is_last) {
            writeln!(out, "\nWhat to do: {action}")?;
        }
    }
    Ok(())
}

/// Which builds of what, whatever the type of profile.
fn subject<'a>(findings: &Findings<'a>) -> [&'a str; 3] {
    let ComparisonKey { service, base_build, head_build, .. } = findings.key;
    [service.as_str(), base_build.as_str(), head_build.as_str()]
}

/// Region by cohort, with the worst significant function, or with the verdicts of cells if none is significant.
fn grid_of(findings: &Findings<'_>) -> Grid {
    let worst = findings.flagged.first();
    let title = worst.map_or_else(|| "no function flagged".to_owned(), FlaggedFunction::named);
    let entries = findings.cells.iter().map(|(cell, row)| {
        let entry = match worst {
            Some(flagged) => of_function(flagged, cell),
            None => of_cell(row.verdict, row.equivalent_share),
        };
        ((*cell).clone(), entry)
    });
    Grid::new(title, entries.collect())
}

/// The change of a function's share in one cell, and its verdict.
fn of_function(flagged: &FlaggedFunction<'_>, cell: &CellKey) -> Entry {
    let row = flagged.rows.get(cell).copied();
    let Word { word, tone } = match flagged.states.get(cell) {
        Some(FanOutState::Regressed) => verdicts::of_row(Verdict::Regressed),
        Some(FanOutState::Improved) => verdicts::of_row(Verdict::Improved),
        _ => row.map_or_else(verdicts::too_rare, |row| verdicts::of_row(row.verdict)),
    };
    Entry { figure: row.and_then(share_delta).unwrap_or_else(|| "-".to_owned()), word, colour: colour(tone) }
}

/// The colour of a verdict's meaning.
fn colour(tone: Tone) -> Colour {
    match tone {
        Tone::More => Colour::Red,
        Tone::Less => Colour::Green,
        Tone::Same => Colour::Faint,
        Tone::Open => Colour::Yellow,
    }
}

fn of_cell(verdict: ComparisonVerdict, equivalent: Option<f64>) -> Entry {
    let Word { word, tone } = verdicts::of_cell(verdict);
    let figure = equivalent.map_or_else(|| "-".to_owned(), |share| format!("{} % equivalent", fixed(share * 100.0, 0)));
    Entry { figure, word, colour: colour(tone) }
}

/// A line for each significant function except the worst.
fn print_others(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    let Some((_, others)) = findings.flagged.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(());
    };
    writeln!(out, "\nalso flagged:")?;
    let shown = &others[..others.len().min(LINES)];
    let rows: Vec<Vec<String>> = shown.iter().map(|flagged| vec![flagged.named(), sentence::places(flagged)]).collect();
    for line in aligned(&[Column::WORDS.at_most(WIDEST), Column::WORDS], 2, &rows) {
        writeln!(out, "  {line}")?;
    }
    if others.len() > shown.len() {
        writeln!(out, "  and {} more, all in the table incidents", others.len() - shown.len())?;
    }
    Ok(())
}
