//! The result in one sentence.

use fleetdiff_diff::compare::{Compared, Finding};
use fleetdiff_diff::figures;
use fleetdiff_formats::Values;

use super::arguments::{DiffArgs, MethodName};

/// Smallest cost or saving that matters, as a share of the base's samples: a tenth of a percent.
const WORTH: f64 = 0.001;

/// How many functions' shares moved, how many of these changes are significant or stand out, and how many are large enough to matter.
pub(crate) fn headline(compared: &Compared, args: &DiffArgs) -> String {
    of(
        &compared.of_kind(args.table.count_kind()).filter(|finding| finding.functions.is_none()).collect::<Vec<_>>(),
        compared,
        args,
    )
}

/// Computes this from findings, each of a different function.
pub(crate) fn of(findings: &[&Finding], compared: &Compared, args: &DiffArgs) -> String {
    if findings.iter().all(|finding| finding.ln_p.is_none()) {
        let totals = compared.totals();
        let (base, head, floor) = match compared.values() {
            Values::Samples => {
                let floor = args.decides().min_count;
                (format!("{} samples", totals.base), totals.head.to_string(), format!("{floor} of both together"))
            }
            Values::Times => {
                let time = |time| figures::amount(Values::Times, time);
                (
                    time(totals.base),
                    time(totals.head),
                    format!("{:.2} % of all time", 100.0 * compared.times.map_or(0.0, |times| times.floor)),
                )
            }
        };
        return format!(
            "not enough data: no function could be tested (base {base}, head {head}; a function needs {floor})"
        );
    }
    let count = |holds: &dyn Fn(&Finding) -> bool| findings.iter().filter(|finding| holds(finding)).count();
    let shifted = count(&Finding::has_shifted);
    let significant = count(&Finding::is_shown_first);
    let shifts = format!("{shifted} of {} functions shifted by more than 1 %", findings.len());
    if args.method == MethodName::Article {
        let verb = if significant == 1 { "is" } else { "are" };
        return format!("{shifts}, {significant} {verb} significant by the article's rule, which is not calibrated");
    }
    let is_more = |finding: &Finding| match finding.ratio {
        Some(ratio) => ratio.value > 1.0,
        None => finding.share.head > finding.share.base,
    };
    let more = count(&|finding| finding.is_shown_first() && is_more(finding));
    let worth = count(&|finding| finding.is_shown_first() && finding.impact() >= WORTH);
    let matter = match worth {
        all if all == significant => String::new(),
        0 => format!(", none by as much as 0.1 % of all {}", whole(compared)),
        some => format!(", {some} by at least 0.1 % of all {}", whole(compared)),
    };
    let [one, many] =
        if compared.can_only_stand_out() { ["stands out", "stand out"] } else { ["is significant", "are significant"] };
    match significant {
        0 => format!("{shifts}, none {one}"),
        1 => format!("{shifts}, 1 {one} ({}){matter}", if more == 1 { "more expensive" } else { "cheaper" }),
        significant => {
            let less = significant - more;
            format!("{shifts}, {significant} {many} ({more} more expensive, {less} cheaper){matter}")
        }
    }
}

/// What shares are of.
fn whole(compared: &Compared) -> &'static str {
    match compared.values() {
        Values::Samples => "samples",
        Values::Times => "time",
    }
}
