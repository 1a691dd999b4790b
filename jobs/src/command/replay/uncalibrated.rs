//! The significant rows of a method that is not calibrated, for people: the warning first, then rows by the size of
//! their change.

use std::io::{self, Write};

use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellRow, ComparisonRow, Tables};
use fleetdiff_schemas::verdict::Scope;

use crate::columns::{Column, aligned};

/// Rows that get a line; the rest is counted.
const LINES: usize = 20;
/// Widest name of a function in a column.
const WIDEST: usize = 60;

/// Prints what is wrong with the method, and its significant rows for each comparison and kind of count of the last
/// report.
pub(crate) fn print(out: &mut impl Write, tables: &Tables, method: Method) -> io::Result<()> {
    writeln!(
        out,
        "NOT CALIBRATED (method {}): {}. No alerts; `--method honest` is the one to act on.",
        method.name(),
        warning(method)
    )?;
    for comparison in tables.comparisons.iter().filter(|row| is_whole(row, tables)) {
        print_comparison(out, comparison, tables)?;
    }
    writeln!(out)
}

/// What a method does and what is wrong with that.
fn warning(method: Method) -> &'static str {
    match method {
        Method::Honest => "by pods",
        Method::Article => "G on merged counts, as if samples were independent. It flags rows where nothing changed",
        Method::ArticleB => {
            "G of each pod merged by Fisher, as if pods did not differ. It flags whatever differs between pods"
        }
        Method::ArticleBStouffer => {
            "G of each pod merged by Stouffer, as if samples were independent. It flags rows where nothing changed"
        }
        Method::Naive => "shares subtracted, no test. Most of what is listed is chance",
    }
}

/// Whether this is the row of a comparison over all its cells.
fn is_whole(row: &ComparisonRow, tables: &Tables) -> bool {
    let of_same = |other: &&ComparisonRow| other.comparison == row.comparison && other.count_kind == row.count_kind;
    row.cell.is_over_all() || tables.comparisons.iter().filter(of_same).count() == 1
}

fn print_comparison(out: &mut impl Write, whole: &ComparisonRow, tables: &Tables) -> io::Result<()> {
    let (key, kind) = (&whole.comparison, whole.count_kind);
    writeln!(
        out,
        "\n{} {} ({} samples): {} against {}",
        key.service,
        key.profile_type.name(),
        kind.name(),
        key.head_build,
        key.base_build
    )?;
    writeln!(out, "{}", whole.sentence)?;
    let significant = significant(tables, whole, kind);
    let shown = &significant[..significant.len().min(LINES)];
    let cells = |(change, row): &(f64, &CellRow)| {
        vec![
            row.function.clone(),
            row.verdict.name().to_owned(),
            format!("{:+.3} pp", change * 100.0),
            format!("{} x {}", row.cell.region, row.cell.cohort),
            row.q_value.map_or_else(String::new, |q| format!("q {q:.1e}")),
        ]
    };
    let columns = [Column::WORDS.at_most(WIDEST), Column::WORDS, Column::FIGURES, Column::WORDS, Column::WORDS];
    for line in aligned(&columns, 2, &shown.iter().map(cells).collect::<Vec<_>>()) {
        writeln!(out, "  {line}")?;
    }
    if significant.len() > shown.len() {
        writeln!(out, "  and {} more, all in the table cells", significant.len() - shown.len())?;
    }
    Ok(())
}

/// The significant rows of the window with the change of their share, the largest first.
fn significant<'a>(tables: &'a Tables, whole: &ComparisonRow, kind: CountKind) -> Vec<(f64, &'a CellRow)> {
    let of_window = tables
        .cells
        .iter()
        .filter(|row| row.scope == Scope::Window && row.comparison == whole.comparison && row.count_kind == kind);
    let mut significant: Vec<(f64, &CellRow)> = of_window
        .filter(|row| row.verdict.is_significant())
        .filter_map(|row| Some((row.head.share? - row.base.share?, row)))
        .collect();
    let name = |row: &CellRow| (row.function.clone(), row.cell.clone());
    significant.sort_by(|(a, one), (b, other)| b.abs().total_cmp(&a.abs()).then_with(|| name(one).cmp(&name(other))));
    significant
}
