//! Whether a change is one of a side, or of a few of its runs.
//!
//! The test asks whether the sums of both sides differ by more than runs do among each other. What hardly any run has, and one or two have a
//! lot of, as what is imported or compiled once, is rare enough that no estimate of how much runs differ sees it coming. So a change is one
//! of a side only if more than half of its runs show it.

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::verdict::Verdict;
use fleetdiff_statistics::median::median;

use super::finding::Finding;
use super::recording::Recording;
use super::sums::{Sums, part};
use crate::sides::Sides;

/// The part of the mean change of the side that a run must have to show it. A guess: what single samples are to a hundred is no change, and
/// what a run has less than others because runs differ is one.
const SHOWN: f64 = 0.25;

/// Rows of which at most half of the runs of the side that has more of the function show the change are not significant: some runs are outlying.
/// A run shows it that differs from the median run of the other side by [`SHOWN`] of what the mean does.
///
/// Shares of the head are compared after the normalization factor. `sums` are those of each run.
pub(super) fn demand_majority<'r>(
    findings: &mut [Finding],
    sides: &'r Sides<Vec<Recording>>,
    sums: impl Fn(&'r [Recording]) -> Sums<'r>,
) {
    let runs = |side: &'r [Recording]| side.iter().map(|run| sums(std::slice::from_ref(run))).collect::<Vec<_>>();
    let (base, head) = (runs(&sides.base), runs(&sides.head));
    for finding in findings.iter_mut().filter(|finding| finding.verdict.is_significant()) {
        let share =
            |run: &Sums<'_>, factor: f64| factor * part(run.of(finding.count_kind, &finding.function), run.whole());
        let base: Vec<f64> = base.iter().map(|run| share(run, factor(finding))).collect();
        let head: Vec<f64> = head.iter().map(|run| share(run, 1.0)).collect();
        let (name, more, less) =
            if finding.verdict == Verdict::Regressed { ("head", head, base) } else { ("base", base, head) };
        let median = median(&less);
        let change = |share: f64| share - median;
        let mean = more.iter().sum::<f64>() / float(u64::try_from(more.len()).unwrap_or(u64::MAX));
        let showing = more.iter().filter(|share| change(**share) >= SHOWN * change(mean)).count();
        if 2 * showing <= more.len() {
            finding.verdict = Verdict::SomePodsOutlying;
            (finding.reason, finding.cause) = (None, None);
            finding.detail = Some(format!(
                "the change is in {showing} of the {} runs of the {name}, not in most of them",
                more.len()
            ));
        }
    }
}

/// The normalization factor by which the head's share is divided; 1 where a side lacks the function.
fn factor(finding: &Finding) -> f64 {
    let plain = finding.share.head / finding.share.base;
    match finding.ratio {
        Some(ratio) if plain.is_normal() && ratio.value.is_normal() => plain / ratio.value,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::profile::{CountKind, ProfileType, Stack};
    use fleetdiff_schemas::rows::Interval;

    use super::*;

    /// Runs of 10,000 samples, so many of them of the function.
    fn side(counts: &[u64]) -> Vec<Recording> {
        let names: Arc<[Arc<str>]> = ["once".into(), "rest".into()].into();
        let run = |&count: &u64| {
            let stack = |frame, count| Stack { frames: vec![frame], count, cohort: None, value: 0 };
            let stacks = [stack(0, count), stack(1, 10_000 - count)].into_iter().filter(|stack| stack.count > 0);
            Recording::of_stacks("run", ProfileType::Cpu, Arc::clone(&names), stacks.collect())
        };
        counts.iter().map(run).collect()
    }

    /// The row of the function, once it was found significant.
    fn left(base: &[u64], head: &[u64], ratio: Option<f64>) -> (Verdict, Option<String>) {
        let share = |counts: &[u64]| counts.iter().map(|count| float(*count) / 10_000.0).sum::<f64>() / 4.0;
        let share = Sides { base: share(base), head: share(head) };
        let more = ratio.map_or(share.head > share.base, |ratio| ratio > 1.0);
        let mut findings = [Finding {
            function: "once".into(),
            base_function: None,
            functions: None,
            count_kind: CountKind::Total,
            count: None,
            weight: None,
            share,
            ratio: ratio.map(|value| Interval { value, low: value, high: value }),
            ln_p: Some(-9.0),
            q_value: Some(0.007),
            verdict: if more { Verdict::Regressed } else { Verdict::Improved },
            reason: None,
            cause: None,
            detail: None,
        }];
        let sides = Sides { base: side(base), head: side(head) };
        demand_majority(&mut findings, &sides, Sums::of_samples);
        let [Finding { verdict, detail, .. }] = findings;
        (verdict, detail)
    }

    /// Four runs of one Python program that imported from a cold disk in two of them, and four that did not.
    #[test]
    fn regression_what_half_of_the_runs_do_is_no_change_of_the_side() {
        let (verdict, detail) = left(&[19, 0, 95, 0], &[0; 4], None);
        assert_eq!(verdict, Verdict::SomePodsOutlying);
        assert_eq!(detail.as_deref(), Some("the change is in 2 of the 4 runs of the base, not in most of them"));
        assert_eq!(left(&[17, 1, 70, 0], &[0, 1, 0, 0], Some(0.01)).0, Verdict::SomePodsOutlying, "one sample is none");
        assert_eq!(left(&[10; 4], &[30, 9, 40, 10], Some(2.2)).0, Verdict::SomePodsOutlying);
    }

    #[test]
    fn what_most_runs_do_stays() {
        for (base, head, ratio) in [
            ([19, 30, 95, 0], [0; 4], None),
            ([0; 4], [12, 11, 0, 9], None),
            ([100, 110, 90, 105], [120, 108, 125, 118], Some(1.16)),
        ] {
            let expected = if base[0] < head[0] { Verdict::Regressed } else { Verdict::Improved };
            assert_eq!(left(&base, &head, ratio), (expected, None), "{base:?} {head:?}");
        }
    }

    /// Shares of the head that grew by 30 % because something else shrank are compared after that.
    #[test]
    fn the_normalization_factor_is_taken_out() {
        let (base, head) = ([100, 104, 98, 102], [118, 126, 121, 123]);
        assert_eq!(left(&base, &head, Some(122.0 / 101.0 / 1.3)).0, Verdict::Improved);
        assert_eq!(left(&base, &[150, 120, 119, 121], Some(127.5 / 101.0 / 1.22)).0, Verdict::SomePodsOutlying);
    }
}
