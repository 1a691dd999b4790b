//! The results as a comment for a pull request, in GitHub's Markdown: the headline, a line about the samples, and a
//! table of the functions that are significant or stand out. The others are counted.
//!
//! A comment may have 65,536 characters; this one stays below [`LONGEST`], whatever the names.

pub mod escape;

use std::fmt::Write;

use fleetdiff_formats::Values;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use self::escape::{code, text};
use super::Export;
use crate::answer::reach;
use crate::compare::Finding;
use crate::compare::times::NOTE;
use crate::figures::{amount, grouped, of_runs, ratio_or_side};

/// Most characters of a comment.
pub const LONGEST: usize = 60_000;
/// Characters reserved for the text below the table.
const BELOW: usize = 2_000;
/// Most characters of a headline, and of the sentence about the variation between runs.
const SENTENCE: usize = 2_000;

/// The comment, with at most `rows` rows of functions that are significant or stand out; 0: as many as there is room for.
pub fn markdown(export: &Export<'_>, rows: usize) -> String {
    let findings: Vec<&Finding> = export.compared.of_kind(export.count_kind).collect();
    let significant: Vec<&Finding> = findings.iter().copied().filter(|finding| finding.is_shown_first()).collect();
    let is_single = export.compared.can_only_stand_out();
    let mut comment = format!("**{}**\n\n{}\n\n", text(export.headline, SENTENCE), behind(export));
    if let Some(reach) = reach(export.compared) {
        let _ = writeln!(comment, "{}\n", text(&reach, SENTENCE));
    }
    if significant.is_empty() {
        let tested = findings.iter().filter(|finding| finding.ln_p.is_some()).count();
        let _ = writeln!(
            comment,
            "No function {}: {} of {} rows were tested.",
            if is_single { "stands out" } else { "is significant" },
            grouped(tested),
            grouped(findings.len())
        );
    } else {
        table(&mut comment, &significant, rows, is_single);
    }
    if let Some(counted) = not_significant(&findings) {
        let _ = writeln!(comment, "\n{}: {counted}.", if is_single { "Do not stand out" } else { "Not significant" });
    }
    comment
}

/// What the figures are about, and how well the variation between runs is known.
fn behind(export: &Export<'_>) -> String {
    let compared = export.compared;
    let counted = match export.count_kind {
        CountKind::SelfCount => "at the leaf of the stack (self)",
        CountKind::Total => "anywhere on the stack (total)",
    };
    let side = |name: &str, samples: u64, runs: usize| {
        let all = amount(compared.values(), samples);
        format!("{name} {all} in {} run{}", grouped(runs), if runs == 1 { "" } else { "s" })
    };
    let totals = compared.totals();
    let (base, head) = (side("base", totals.base, compared.runs.base), side("head", totals.head, compared.runs.head));
    let mut figures = format!("{}, functions {counted}: {base}, {head}", text(compared.profile_type.name(), SENTENCE));
    if compared.values() == Values::Times {
        let _ = write!(figures, ". {}", NOTE.trim_end_matches('.'));
    } else if let Some(weights) = &compared.weights {
        let totals = weights.totals;
        let _ = write!(
            figures,
            "; weights in {}: base {}, head {}",
            text(&weights.unit, SENTENCE),
            grouped(totals.base),
            grouped(totals.head)
        );
    }
    format!("{figures}. {}.", text(&begun(export.spread), SENTENCE))
}

/// A sentence with a capital first letter.
fn begun(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

fn table(comment: &mut String, significant: &[&Finding], rows: usize, is_single: bool) {
    comment.push_str(
        "| function | base | head | ratio (95 % interval) | verdict |\n| :--- | ---: | ---: | ---: | :--- |\n",
    );
    let most = if rows == 0 { significant.len() } else { rows };
    let mut length = comment.chars().count();
    let mut shown = 0;
    for finding in significant.iter().take(most) {
        let row = row(finding);
        length += row.chars().count();
        if length > LONGEST - BELOW {
            break;
        }
        comment.push_str(&row);
        shown += 1;
    }
    if significant.len() > shown {
        let left = significant.len() - shown;
        let plural = if left == 1 { "" } else { "s" };
        let [kind, rest] = if is_single { ["", " that stand out"] } else { ["significant ", ""] };
        let _ = writeln!(comment, "\n... and {} more {kind}function{plural}{rest}.", grouped(left));
    }
}

fn row(finding: &Finding) -> String {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    format!(
        "| {} | {} | {} | {} | {} |\n",
        code(&finding.function),
        percent(finding.share.base),
        percent(finding.share.head),
        ratio_or_side(finding),
        verdict(finding),
    )
}

fn verdict(finding: &Finding) -> String {
    let name = spoken(finding.verdict.name());
    match (&finding.cause, finding.reason) {
        (Some(cause), _) => format!("{name} (with {})", code(cause)),
        (None, Some(reason @ (RowReason::OnlyInHead | RowReason::OnlyInBase | RowReason::FewPods))) => {
            format!("{name} ({})", spoken(reason.name()))
        }
        _ => name,
    }
}

/// How many functions each other verdict has, in the order in which verdicts are decided.
fn not_significant(findings: &[&Finding]) -> Option<String> {
    let counted = Verdict::NAMES.iter().filter_map(|name| {
        let functions = |finding: &&Finding| usize::try_from(finding.functions.unwrap_or(1)).unwrap_or(0);
        let of =
            findings.iter().copied().filter(|finding| !finding.is_shown_first() && finding.verdict.name() == *name);
        let number: usize = of.map(|finding| functions(&finding)).sum();
        (number > 0).then(|| format!("{} {}", grouped(number), spoken(name)))
    });
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// A name of a closed list, as words.
fn spoken(name: &str) -> String {
    of_runs(name).replace('_', " ")
}
