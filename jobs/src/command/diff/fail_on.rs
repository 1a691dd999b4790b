//! `--fail-on`: what was found as an exit code.

use std::collections::BTreeSet;

use fleetdiff_diff::compare::{Compared, Finding};
use fleetdiff_schemas::verdict::Verdict;

use super::arguments::{DiffArgs, FailOn};
use crate::failure::Failure;

/// Names of functions that are printed; the rest is counted.
const NAMED: usize = 5;

/// Functions that the command was told to fail on.
#[derive(Debug, thiserror::Error)]
#[error("--fail-on {what}: {functions}")]
struct Found {
    what: &'static str,
    functions: String,
}

/// Fails if any function of the table's kind of count is one to fail on.
pub(crate) fn check(compared: &[&Compared], args: &DiffArgs) -> Result<(), Failure> {
    let Some(what) = strictest(&args.output.fail_on) else { return Ok(()) };
    let kind = args.table.count_kind();
    let findings = compared.iter().flat_map(|compared| compared.of_kind(kind));
    let found: BTreeSet<&str> =
        findings.filter(|finding| is_failure(finding, what)).map(|finding| &*finding.function).collect();
    if found.is_empty() {
        return Ok(());
    }
    let mut functions = found.iter().copied().take(NAMED).collect::<Vec<_>>().join(", ");
    if found.len() > NAMED {
        functions.push_str(&format!(" and {} more", found.len() - NAMED));
    }
    let what = match what {
        FailOn::Regressed => "regressed",
        FailOn::StandsOut => "stands-out",
    };
    Err(Failure::found(Found { what, functions }, "the comparison itself succeeded, and its result was written"))
}

/// `stands-out` includes `regressed`.
fn strictest(wanted: &[FailOn]) -> Option<FailOn> {
    wanted.iter().copied().find(|what| *what == FailOn::StandsOut).or_else(|| wanted.first().copied())
}

fn is_failure(finding: &Finding, what: FailOn) -> bool {
    match finding.verdict {
        Verdict::Regressed => true,
        Verdict::StandsOut => what == FailOn::StandsOut && finding.costs_more(),
        _ => false,
    }
}
