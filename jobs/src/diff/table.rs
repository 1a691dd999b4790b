//! What was found, in lines for people.

use std::io::{self, Write};

use clap::Args;
use fleetdiff_diff::compare::{Compared, Finding, Recording};
use fleetdiff_diff::figures::{grouped, ratio_or_side};
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use super::columns::{self, Column};
use super::lines::{Head, Layout};
use super::{DiffSettings, MethodName, headline, report};

/// Rows that fit a screen.
pub const ROWS: usize = 20;

/// What the table shows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub struct TableSettings {
    /// Which counts the table shows: of functions at the leaf (self), or anywhere on the stack (total)
    #[arg(long, default_value = "self")]
    count_kind: CountKind,
    /// Rows that the table shows at most; 0: all. Without it 20, and all plain differences
    #[arg(long)]
    top: Option<usize>,
    /// Show only functions that the base has
    #[arg(short, long)]
    baseline_only: bool,
    /// What stands between columns, which are not aligned then; where it is in a name, a dot stands instead
    #[arg(short = 't', long, value_name = "TEXT")]
    field_separator: Option<String>,
    /// Rows alone: no headline, no titles of columns, no notes
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also the runs with their samples, and why each row has its verdict
    #[arg(short, long)]
    verbose: bool,
}

impl TableSettings {
    /// Where functions are counted.
    pub fn count_kind(&self) -> CountKind {
        self.count_kind
    }

    /// How many rows somebody asked for.
    pub fn asked_rows(&self) -> Option<usize> {
        self.top
    }

    /// How many rows are shown, where nobody said it so many.
    pub fn shown(&self, default: usize) -> usize {
        match self.top {
            Some(0) => usize::MAX,
            top => top.unwrap_or(default),
        }
    }

    /// Whether a function with so much on the base is left out.
    pub fn hides(&self, base: u64) -> bool {
        self.baseline_only && base == 0
    }

    /// Whether nothing but rows is printed.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// How lines are put.
    pub fn layout(&self) -> Layout<'_> {
        Layout { separator: self.field_separator.as_deref(), titles: !self.quiet }
    }
}

/// Prints the headline, what stands behind it, and the rows.
pub fn print(
    out: &mut impl Write,
    sides: &Sides<Vec<Recording>>,
    compared: &Compared,
    settings: &DiffSettings,
) -> io::Result<()> {
    if !settings.table.quiet {
        say(out, sides, compared, settings)?;
    }
    let hidden = if settings.columns.are_wanted() {
        let column = Column { runs: &sides.head, compared };
        columns::print(out, &sides.base, &[column], settings)?
    } else {
        evidence(out, compared, settings)?
    };
    if hidden > 0 && !settings.table.quiet {
        writeln!(out, "... and {hidden} more rows (--top 0 shows all)")?;
    }
    Ok(())
}

/// The headline, totals, and what is known of how much runs differ.
pub fn say(
    out: &mut impl Write,
    sides: &Sides<Vec<Recording>>,
    compared: &Compared,
    settings: &DiffSettings,
) -> io::Result<()> {
    writeln!(out, "{}", headline(compared, settings))?;
    let side = |name: &str, samples: u64, runs: usize| {
        format!("{name} {} samples in {runs} run{}", grouped(samples), if runs == 1 { "" } else { "s" })
    };
    let (base, head) = (
        side("base", compared.samples.base, compared.runs.base),
        side("head", compared.samples.head, compared.runs.head),
    );
    let counted = match settings.table.count_kind {
        CountKind::SelfCount => "at the leaf of the stack (self)",
        CountKind::Total => "anywhere on the stack (total)",
    };
    writeln!(out, "{}, functions {counted}: {base}, {head}", compared.profile_type.name())?;
    if settings.table.verbose {
        runs(out, sides)?;
    }
    if settings.method == MethodName::Honest {
        let caution = report::caution(compared);
        if !caution.is_empty() {
            writeln!(out, "{caution}")?;
        }
    }
    writeln!(out)
}

fn runs(out: &mut impl Write, sides: &Sides<Vec<Recording>>) -> io::Result<()> {
    for (side, runs) in [("base", &sides.base), ("head", &sides.head)] {
        for run in runs {
            writeln!(out, "  {side} {} {}", grouped(run.profile.total()), run.label)?;
        }
    }
    Ok(())
}

/// Rows by evidence; gives how many are not shown.
fn evidence(out: &mut impl Write, compared: &Compared, settings: &DiffSettings) -> io::Result<usize> {
    let kept: Vec<&Finding> = compared
        .of_kind(settings.table.count_kind)
        .filter(|finding| !settings.table.hides(finding.count.base))
        .collect();
    let shown = settings.table.shown(ROWS).min(kept.len());
    let mut heads: Vec<Head> =
        ["base", "head", "ratio", "base samples", "head samples", "ln p", "q"].map(Head::figures).into();
    heads.push(Head::words("verdict"));
    heads.extend(settings.table.verbose.then(|| Head::words("why")));
    heads.push(Head::words("function"));
    let lines: Vec<Vec<String>> =
        kept.iter().take(shown).map(|finding| line(finding, settings.table.verbose)).collect();
    settings.table.layout().print(out, &heads, &lines)?;
    Ok(kept.len() - shown)
}

fn line(finding: &Finding, verbose: bool) -> Vec<String> {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    let mut line = vec![
        percent(finding.share.base),
        percent(finding.share.head),
        ratio_or_side(finding),
        grouped(finding.count.base),
        grouped(finding.count.head),
        number(finding.ln_p, |ln_p| format!("{ln_p:.1}")),
        number(finding.q_value, |q| if q < 1e-3 { format!("{q:.0e}") } else { format!("{q:.3}") }),
        verdict(finding),
    ];
    line.extend(verbose.then(|| why(finding)));
    line.push(
        finding
            .functions
            .map_or_else(|| finding.function.to_string(), |number| format!("{number} functions below the floor")),
    );
    line
}

fn verdict(finding: &Finding) -> String {
    let name = finding.verdict.name();
    match (&finding.cause, finding.reason) {
        (Some(cause), _) => format!("{name} (with {cause})"),
        (None, Some(reason @ (RowReason::OnlyInHead | RowReason::OnlyInBase | RowReason::FewPods)))
            if finding.verdict != Verdict::TooRare =>
        {
            format!("{name} ({})", reason.name())
        }
        _ => name.to_owned(),
    }
}

fn why(finding: &Finding) -> String {
    let reason = || finding.reason.map(|reason| reason.name().to_owned());
    finding.detail.clone().or_else(reason).unwrap_or_else(|| "-".to_owned())
}

/// Two decimals, and four where these would hide what there is.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 5e-4 { format!("{:.4} %", 100.0 * share) } else { format!("{:.2} %", 100.0 * share) }
}
