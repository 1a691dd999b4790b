//! The result as a table for people.

use std::io::{self, Write};

use fleetdiff_diff::answer::{headline, reach};
use fleetdiff_diff::compare::{Compared, Finding, Recording};
use fleetdiff_diff::figures::{amount, figure, of_runs, ratio_or_side};
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Values;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use super::arguments::{DiffArgs, MethodName, ROWS};
use super::columns::{self, Column};
use super::lines::{Head, Line};
use super::report;

/// Prints the headline, the samples behind it, and the rows.
pub(crate) fn print(
    out: &mut impl Write,
    sides: &Sides<Vec<Recording>>,
    compared: &Compared,
    args: &DiffArgs,
) -> io::Result<()> {
    if !args.table.quiet {
        say(out, sides, compared, args)?;
    }
    let hidden = if args.columns.are_wanted() {
        let column = Column { runs: &sides.head, compared };
        columns::print(out, &sides.base, &[column], args)?
    } else {
        evidence(out, compared, args)?
    };
    if hidden > 0 && !args.table.quiet {
        writeln!(out, "... and {hidden} more rows (--top 0 shows all)")?;
    }
    Ok(())
}

/// The headline, totals, and what is known about the variation between runs.
pub(crate) fn say(
    out: &mut impl Write,
    sides: &Sides<Vec<Recording>>,
    compared: &Compared,
    args: &DiffArgs,
) -> io::Result<()> {
    writeln!(out, "{}", headline(compared, &args.decides()))?;
    let side = |name: &str, samples: u64, runs: usize| {
        format!("{name} {} in {runs} run{}", amount(compared.values(), samples), if runs == 1 { "" } else { "s" })
    };
    let totals = compared.totals();
    let (base, head) = (side("base", totals.base, compared.runs.base), side("head", totals.head, compared.runs.head));
    let counted = match args.table.count_kind {
        CountKind::SelfCount => "at the leaf of the stack (self)",
        CountKind::Total => "anywhere on the stack (total)",
    };
    writeln!(out, "{}, functions {counted}: {base}, {head}", compared.profile_type.name())?;
    if args.table.verbose {
        runs(out, sides)?;
    }
    if args.method == MethodName::Honest {
        let caution = report::caution(compared);
        if !caution.is_empty() {
            writeln!(out, "{caution}")?;
        }
        if let Some(reach) = reach(compared) {
            writeln!(out, "{reach}")?;
        }
    }
    writeln!(out)
}

fn runs(out: &mut impl Write, sides: &Sides<Vec<Recording>>) -> io::Result<()> {
    for (side, runs) in [("base", &sides.base), ("head", &sides.head)] {
        for run in runs {
            writeln!(out, "  {side} {} {}", figure(run.values, run.profile.total()), run.label)?;
        }
    }
    Ok(())
}

/// Rows by evidence; gives how many are not shown.
fn evidence(out: &mut impl Write, compared: &Compared, args: &DiffArgs) -> io::Result<usize> {
    let kept: Vec<&Finding> =
        compared.of_kind(args.table.count_kind).filter(|finding| !args.table.hides(finding.amount().base)).collect();
    let shown = args.table.shown(ROWS).min(kept.len());
    let mut heads: Vec<Head> = ["base", "head", "ratio"].map(Head::figures).into();
    heads.extend(match compared.values() {
        Values::Samples => ["base samples", "head samples"].map(Head::figures),
        Values::Times => ["base time", "head time"].map(Head::figures),
    });
    heads.extend(["ln p", "q"].map(Head::figures));
    heads.push(Head::words("verdict"));
    heads.extend(args.table.verbose.then(|| Head::words("why")));
    heads.push(Head::words("function"));
    let cells = |finding: &Finding| line(finding, compared.values(), args.table.verbose);
    let lines: Vec<Line> = kept
        .iter()
        .take(shown)
        .map(|finding| Line { cells: cells(finding), is_strong: finding.is_shown_first() })
        .collect();
    args.table.layout(args.screen()).print(out, &heads, lines)?;
    Ok(kept.len() - shown)
}

fn line(finding: &Finding, values: Values, verbose: bool) -> Vec<String> {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    let mut line = vec![
        percent(finding.share.base),
        percent(finding.share.head),
        ratio_or_side(finding),
        figure(values, finding.amount().base),
        figure(values, finding.amount().head),
        number(finding.ln_p, |ln_p| format!("{ln_p:.1}")),
        number(finding.q_value, |q| if q < 1e-3 { format!("{q:.0e}") } else { format!("{q:.3}") }),
        verdict(finding),
    ];
    line.extend(verbose.then(|| why(finding)));
    line.push(name(finding));
    line
}

fn name(finding: &Finding) -> String {
    match (finding.functions, &finding.base_function) {
        (Some(number), _) => format!("{number} functions below the floor"),
        (None, Some(base)) => format!("{} (was {base})", finding.function),
        (None, None) => finding.function.to_string(),
    }
}

fn verdict(finding: &Finding) -> String {
    let name = of_runs(finding.verdict.name());
    match (&finding.cause, finding.reason) {
        (Some(cause), _) => format!("{name} (with {cause})"),
        (None, Some(reason @ (RowReason::OnlyInHead | RowReason::OnlyInBase | RowReason::FewPods)))
            if finding.verdict != Verdict::TooRare =>
        {
            format!("{name} ({})", of_runs(reason.name()))
        }
        _ => name,
    }
}

fn why(finding: &Finding) -> String {
    let reason = || finding.reason.map(|reason| of_runs(reason.name()));
    finding.detail.clone().or_else(reason).unwrap_or_else(|| "-".to_owned())
}

/// Two decimals, or four if two would show only zeros.
fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 5e-5 => "< 0.0001 %".to_owned(),
        percent if percent > 0.0 && percent < 0.05 => format!("{percent:.4} %"),
        percent => format!("{percent:.2} %"),
    }
}
