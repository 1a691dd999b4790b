//! The result in one sentence.

use std::collections::BTreeSet;

use fleetdiff_formats::Values;
use fleetdiff_schemas::profile::{CountKind, ProfileType};

use crate::compare::{Compared, Finding, Method, Settings};
use crate::figures;
use crate::shorten::shortened;

/// Longest name of a function within the sentence, in characters.
pub(super) const LONGEST: usize = 100;

/// The function that differs most, by how much, how many callers follow it and how many other functions differ; what was
/// tested if nothing differs; what was missing if nothing could be tested. Without its full stop.
///
/// The findings must be [explained](super::explain).
pub fn headline(compared: &Compared, settings: &Settings) -> String {
    let functions: Vec<&Finding> = compared.findings.iter().filter(|finding| finding.functions.is_none()).collect();
    if functions.iter().all(|finding| finding.ln_p.is_none()) {
        return untested(compared, settings);
    }
    let shown = || functions.iter().copied().filter(|finding| finding.is_shown_first());
    let [is, are] =
        if compared.can_only_stand_out() { ["stands out", "stand out"] } else { ["is significant", "are significant"] };
    let Some(first) = shown().next() else {
        let tested = |kind| functions.iter().filter(|row| row.count_kind == kind && row.ln_p.is_some()).count();
        return format!(
            "nothing {is}: {} functions tested (self), {} (total)",
            figures::grouped(tested(CountKind::SelfCount)),
            figures::grouped(tested(CountKind::Total))
        );
    };
    let mut sentence = finding(first, compared);
    // Its own total samples may have it as their cause, and are no caller.
    let follows = |row: &&Finding| row.cause.as_deref() == Some(&*first.function) && row.function != first.function;
    let callers = shown().filter(follows).count();
    match callers {
        0 => {}
        1 => sentence.push_str("; its caller follows"),
        callers => sentence.push_str(&format!("; its {} callers follow", figures::grouped(callers))),
    }
    let others: BTreeSet<&str> =
        shown().filter(|row| row.cause.is_none() && row.function != first.function).map(|row| &*row.function).collect();
    match others.len() {
        0 => {}
        1 => sentence.push_str(&format!("; 1 more function {is}")),
        more => sentence.push_str(&format!("; {} more functions {are}", figures::grouped(more))),
    }
    if settings.method == Method::Article {
        sentence.push_str("; by the article's rule, which is not calibrated");
    }
    sentence
}

/// What differs, and by how much.
fn finding(finding: &Finding, compared: &Compared) -> String {
    let name = shortened(&finding.function, LONGEST);
    let points = 100.0 * (finding.share.head - finding.share.base);
    let digits = if points.abs() < 0.1 { 3 } else { 1 };
    let change = format!("{points:+.digits$} points of {} ({})", whole(compared), finding.count_kind.name());
    let verb = if compared.can_only_stand_out() { "stands out:" } else { "costs" };
    match finding.ratio {
        Some(ratio) => {
            format!("{name} {verb} x {:.2} ({:.2} to {:.2}), {change}", ratio.value, ratio.low, ratio.high)
        }
        None if finding.share.base <= 0.0 => format!("{name} is new: {change}"),
        None if finding.share.head <= 0.0 => format!("{name} is gone: {change}"),
        None => format!("{name} {verb} {change}"),
    }
}

/// What shares are of.
fn whole(compared: &Compared) -> String {
    match (compared.values(), compared.profile_type) {
        (Values::Times, _) => "all time".to_owned(),
        (Values::Samples, ProfileType::Cpu) => "CPU".to_owned(),
        (Values::Samples, other) => format!("{} samples", other.name()),
    }
}

fn untested(compared: &Compared, settings: &Settings) -> String {
    let totals = compared.totals();
    let amount = |value| figures::amount(compared.values(), value);
    let floor = match compared.values() {
        Values::Samples => format!("{} samples of both together", settings.min_count),
        Values::Times => format!("{:.2} % of all time", 100.0 * compared.times.map_or(0.0, |times| times.floor)),
    };
    format!(
        "not enough data: no function could be tested (base {}, head {}; a function needs {floor})",
        amount(totals.base),
        amount(totals.head)
    )
}
