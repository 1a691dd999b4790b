//! What was found, in columns.

use std::io::{self, Write};

use clap::Args;
use fleetdiff_diff::compare::{Compared, Finding, Spread};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use super::{DiffSettings, MethodName, headline, report};

/// What the table shows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub struct TableSettings {
    /// Which counts the table shows: of functions at the leaf (self), or anywhere on the stack (total)
    #[arg(long, default_value = "self")]
    pub count_kind: CountKind,
    /// Rows that the table shows at most; 0: all
    #[arg(long, default_value_t = 20)]
    pub top: usize,
}

/// Prints the headline, what stands behind it, and the rows.
pub fn print(out: &mut impl Write, compared: &Compared, settings: &DiffSettings) -> io::Result<()> {
    let kind = settings.table.count_kind;
    writeln!(out, "{}", headline(compared, settings))?;
    let side = |name: &str, samples: u64, runs: usize| format!("{name} {} samples in {runs} run{}", grouped(samples), if runs == 1 { "" } else { "s" });
    let (base, head) = (side("base", compared.samples.base, compared.runs.base), side("head", compared.samples.head, compared.runs.head));
    let counted = match kind {
        CountKind::SelfCount => "at the leaf of the stack (self)",
        CountKind::Total => "anywhere on the stack (total)",
    };
    writeln!(out, "{}, functions {counted}: {base}, {head}", compared.profile_type.name())?;
    match compared.spread {
        _ if settings.method == MethodName::Article => {}
        Spread::Unknown => writeln!(out, "Mind: {}.", report::UNKNOWN_SPREAD)?,
        Spread::Tentative => writeln!(out, "With fewer than 5 runs a side how much runs differ is known roughly: what is called is tentative, and nothing can be shown to be alike.")?,
        Spread::Known => {}
    }
    let rows: Vec<&Finding> = compared.of_kind(kind).collect();
    let shown = if settings.table.top == 0 { rows.len() } else { settings.table.top };
    let (first, rest) = rows.split_at(shown.min(rows.len()));
    writeln!(out)?;
    columns(out, first)?;
    if !rest.is_empty() {
        let called = rest.iter().filter(|finding| finding.verdict.is_called()).count();
        writeln!(out, "... and {} more rows, {called} of them called (--top 0 shows all)", rest.len())?;
    }
    Ok(())
}

const HEADS: [&str; 7] = ["base", "head", "ratio", "samples", "ln p", "q", "verdict"];

/// Figures first, and the function last, for names are of any length.
fn columns(out: &mut impl Write, rows: &[&Finding]) -> io::Result<()> {
    let cells: Vec<[String; 7]> = rows.iter().map(|finding| cells(finding)).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).chain([HEADS[column].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |cells: &[String], function: &str| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(place, (cell, &width))| if place == 6 { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        format!("{}  {function}", padded.collect::<Vec<_>>().join("  "))
    };
    writeln!(out, "{}", line(&HEADS.map(str::to_owned), "function"))?;
    for (row, finding) in cells.iter().zip(rows) {
        let name = finding.functions.map_or_else(|| finding.function.to_string(), |number| format!("{number} functions below the floor"));
        writeln!(out, "{}", line(row, &name))?;
    }
    Ok(())
}

fn cells(finding: &Finding) -> [String; 7] {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    [
        percent(finding.share.base),
        percent(finding.share.head),
        finding.ratio.map_or_else(|| one_sided(finding), ratio),
        format!("{} {}", grouped(finding.count.base), grouped(finding.count.head)),
        number(finding.ln_p, |ln_p| format!("{ln_p:.1}")),
        number(finding.q_value, |q| if q > 0.0 && q < 1e-3 { format!("{q:.0e}") } else { format!("{q:.3}") }),
        verdict(finding),
    ]
}

fn one_sided(finding: &Finding) -> String {
    match (finding.count.base, finding.count.head) {
        (0, 1..) => "new".to_owned(),
        (1.., 0) => "gone".to_owned(),
        _ => "-".to_owned(),
    }
}

fn ratio(ratio: Interval) -> String {
    format!("x {:.3} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high)
}

fn verdict(finding: &Finding) -> String {
    let name = finding.verdict.name();
    match (&finding.cause, finding.reason) {
        (Some(cause), _) => format!("{name} (with {cause})"),
        (None, Some(reason @ (RowReason::OnlyInHead | RowReason::OnlyInBase | RowReason::FewPods))) if finding.verdict != Verdict::TooRare => {
            format!("{name} ({})", reason.name())
        }
        _ => name.to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Digits in threes.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
