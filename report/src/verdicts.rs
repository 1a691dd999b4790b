//! Verdicts of the tables in the words of people, the same in a report and on a terminal.

use fleetdiff_schemas::verdict::{ComparisonVerdict, RowReason, Verdict};

use crate::document::{Tone, Verdict as Word};

/// The verdict of a row of `cells`.
pub fn of_row(verdict: Verdict) -> Word {
    match verdict {
        Verdict::Equivalent => Word::new("no change", Tone::Same),
        Verdict::Compositional => Word::new("compositional", Tone::Same),
        Verdict::Moved => Word::new("moved, renamed or inlined", Tone::Same),
        Verdict::SomePodsOutlying => Word::new("some pods outlying", Tone::Open),
        Verdict::Regressed => Word::new("regressed", Tone::More),
        Verdict::Improved => Word::new("improved", Tone::Less),
        Verdict::NotComparable => Word::new("not comparable", Tone::Open),
        Verdict::StandsOut => Word::new("stands out", Tone::Open),
        Verdict::Inconclusive | Verdict::Untestable | Verdict::TooRare => Word::new("inconclusive", Tone::Open),
    }
}

/// The verdict of a function without a row of its own in a cell.
pub fn too_rare() -> Word {
    Word::new("too rare to test", Tone::Open)
}

/// The verdict of a cell.
pub fn of_cell(verdict: ComparisonVerdict) -> Word {
    match verdict {
        ComparisonVerdict::Clean => Word::new("no change", Tone::Same),
        ComparisonVerdict::Inconclusive => Word::new("inconclusive", Tone::Open),
        ComparisonVerdict::NotComparable => Word::new("not comparable", Tone::Open),
        ComparisonVerdict::Regressed => Word::new("regressed", Tone::More),
        ComparisonVerdict::Improved => Word::new("improved", Tone::Less),
    }
}

/// Why a row is inconclusive, in brackets, where that is more than a lack of samples: what else may have made its change.
pub fn doubt(reason: Option<RowReason>) -> String {
    let is_doubt = matches!(
        reason,
        Some(
            RowReason::FewPods
                | RowReason::ContradictsShare
                | RowReason::LoadDiffers
                | RowReason::AgeDiffers
                | RowReason::AmbiguousScale
        )
    );
    if is_doubt { format!(" ({})", why(Verdict::Inconclusive, reason)) } else { String::new() }
}

/// Why a row was not decided, and what would decide it.
pub(crate) fn why(verdict: Verdict, reason: Option<RowReason>) -> &'static str {
    match reason {
        Some(RowReason::NoCommonStratum) => {
            "no time block and hardware has pods of both builds; deploy both on the same machines"
        }
        Some(RowReason::NoBase) => "there is nothing to compare with",
        Some(RowReason::Overflow) => "functions that exceed the limits of their service, counted together",
        Some(RowReason::Unsymbolised) => "frames have no symbols; ship them, and the functions can be tested",
        Some(RowReason::WholeProfile) => {
            "the function is on the stack of 99 % of the samples or more, so its share cannot rise"
        }
        Some(RowReason::FewPods) => "an arm has fewer than 2 pods, or too few buckets of them; more pods are needed",
        Some(RowReason::CountNeeded) => "the function has fewer samples than a test needs; time brings them",
        Some(RowReason::Rare) => "the function is rare; its count and its pods differ, which raises no flag",
        Some(RowReason::ContradictsShare) => "the change after normalization and that of the plain share disagree",
        Some(RowReason::LoadDiffers) => {
            "pods of one build serve more requests, and load alone may have made the change; compare at equal load"
        }
        Some(RowReason::AgeDiffers) => {
            "processes of one build have run longer, and memory in use grows by itself; start pods of both builds together, or wait \
             until they have run equally long"
        }
        Some(RowReason::OnePod) => "one pod makes the change, and without it the change is gone",
        Some(RowReason::AmbiguousScale) => "two groups of functions moved apart, and the data cannot say which one did",
        Some(RowReason::OnlyInHead) => "only the head has the function",
        Some(RowReason::OnlyInBase) => "only the base has the function",
        Some(RowReason::NeedsTime) => "more time will decide it",
        Some(RowReason::NeedsPods) => "more pods would decide it; more time does not help",
        Some(RowReason::LowLoad) => "the function is rarely sampled at this load",
        None => match verdict {
            Verdict::SomePodsOutlying => "some pods of the head differ from the others; the head as a whole does not",
            Verdict::TooRare => "the function has fewer samples than a test needs; time brings them",
            _ => "no single reason",
        },
    }
}
