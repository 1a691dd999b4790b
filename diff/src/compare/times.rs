//! Runs of times that nobody can count: weights, compared by how runs differ among each other, and by nothing else.
//!
//! A profile of times without a period does not say how many samples it has, so that no chance of samples can be computed from it.
//! What is left is the variation between runs, which is measured and needs no count. The runs go through the dataflow with a grain of
//! time in the place of a sample ([`grain`](grain::of)): how coarse times are, as runs of one side show it. So what the dataflow takes for
//! chance of samples is measured between runs too. What does need counts is left out:
//!
//! | rule | here |
//! |---|---|
//! | the test of a single run | refused, as is everything below [`FEWEST_RUNS`] runs a side |
//! | the article's test on merged counts | refused |
//! | the floor of samples | a part of all time: [`Measured::floor`] |
//! | the test of rare functions, by samples and by the runs that show them | none |
//! | outlying runs, held against the counts that each is expected to have | none |
//! | whether a longer recording would help | not said |

mod grain;

use std::collections::BTreeSet;

use fleetdiff_formats::Values;
use fleetdiff_schemas::number::{float, whole};
use fleetdiff_schemas::profile::{CountKind, Profile, Samples, Stack};
use fleetdiff_schemas::rows::RARE;
use fleetdiff_schemas::verdict::{RowReason, Verdict};

use super::finding::Finding;
use super::outcome::{FEWEST_RUNS, Measured, NotCompared};
use super::recording::Recording;
use super::settings::{Method, Settings};
use super::sums::Sums;
use crate::sides::Sides;

/// The least part of all time from which a function is tested: a tenth of a percent, from which the headline says that a change matters.
/// A profiler that looks 100 times a second sees so much of 5 v 5 runs of 30 s 30 times, which is the floor of samples.
pub const FLOOR: f64 = 0.001;

/// And the fewest grains: the tests are calibrated from so many samples on.
const GRAINS: f64 = 30.0;

/// Says what was done, wherever results are shown.
pub const NOTE: &str = "The files have times without a period: they were compared as weights, by how runs differ among each other. There are no counts of samples.";

/// The shortest time that is something: the shortest period that a profiler can have, in nanoseconds.
const SHORTEST: u64 = 10_000;

impl Measured {
    pub(super) fn of(sides: &Sides<Vec<Recording>>) -> Self {
        let grain = grain::of(sides, FLOOR).max(SHORTEST);
        let all = float(total(&sides.base).saturating_add(total(&sides.head)));
        Self { grain, floor: FLOOR.max(GRAINS * float(grain) / all).min(1.0) }
    }

    /// The floor in grains.
    pub(super) fn fewest_grains(self, sides: &Sides<Vec<Recording>>) -> u64 {
        let grains = (total(&sides.base).saturating_add(total(&sides.head))) / self.grain;
        whole(libm::ceil(self.floor * float(grains))).max(1)
    }

    /// A run with grains for nanoseconds: of all its stacks together as many as its time is, to the nearest.
    pub(super) fn in_grains(self, profile: &Profile) -> Profile {
        let mut ahead = self.grain / 2;
        let mut grains = |stack: &Stack| {
            ahead = ahead.saturating_add(stack.count);
            let count = ahead / self.grain;
            ahead %= self.grain;
            (count > 0).then(|| Stack { count, ..stack.clone() })
        };
        let stacks = match &profile.samples {
            Samples::Stacks(stacks) => stacks.iter().filter_map(&mut grains).collect(),
            Samples::Folded { .. } => Vec::new(),
        };
        Profile { samples: Samples::Stacks(stacks), ..profile.clone() }
    }
}

fn total(side: &[Recording]) -> u64 {
    side.iter().map(|run| run.profile.total()).fold(0, u64::saturating_add)
}

/// What the runs are compared by.
pub(super) fn measure_of(sides: &Sides<Vec<Recording>>) -> Result<Values, NotCompared> {
    let mut all = sides.base.iter().chain(&sides.head);
    let Some(first) = all.next() else { return Err(NotCompared::Empty("base")) };
    match all.find(|other| other.values != first.values) {
        None => Ok(first.values),
        Some(other) => {
            let (counted, timed) = if first.values == Values::Samples { (first, other) } else { (other, first) };
            Err(NotCompared::CountsAndTimes { counted: counted.label.clone(), timed: timed.label.clone() })
        }
    }
}

/// Refuses what cannot be said of times.
pub(super) fn check(sides: &Sides<Vec<Recording>>, settings: &Settings) -> Result<(), NotCompared> {
    if settings.method == Method::Article {
        return Err(NotCompared::NeedsCounts);
    }
    let runs = |side: &[Recording]| side.iter().filter(|run| run.profile.total() >= SHORTEST).count();
    let runs = Sides { base: runs(&sides.base), head: runs(&sides.head) };
    if runs.base.min(runs.head) < FEWEST_RUNS { Err(NotCompared::FewRuns(runs)) } else { Ok(()) }
}

/// What is left of the findings in grains: no count, nothing that counts decided; what is below the floor is one finding, of each
/// kind.
pub(super) fn without_counts(findings: &mut Vec<Finding>, sides: &Sides<Vec<Recording>>, floor: f64) {
    // A rare function with a row has it from the test by counts.
    findings.retain(|finding| &*finding.function != RARE && finding.reason != Some(RowReason::Rare));
    let sums = Sides { base: Sums::of_weights(&sides.base), head: Sums::of_weights(&sides.head) };
    findings.iter_mut().for_each(|finding| leave_times(finding, &sums));
    for kind in CountKind::ALL {
        findings.extend(below_the_floor(findings, &sums, kind, floor));
    }
}

/// A finding with its times for its grains.
fn leave_times(finding: &mut Finding, sums: &Sides<Sums<'_>>) {
    let time = |sums: &Sums<'_>| sums.of(finding.count_kind, &finding.function);
    let time = Sides { base: time(&sums.base), head: time(&sums.head) };
    (finding.count, finding.share) = (None, shares(time, sums));
    if finding.verdict == Verdict::SomePodsOutlying {
        finding.verdict = Verdict::Inconclusive;
    }
    let holds = match finding.reason {
        Some(RowReason::NeedsTime | RowReason::NeedsPods | RowReason::LowLoad) => false,
        // Less than a grain is not nothing.
        Some(RowReason::OnlyInHead) => time.base == 0,
        Some(RowReason::OnlyInBase) => time.head == 0,
        _ => true,
    };
    finding.reason = finding.reason.filter(|_| holds);
}

fn shares(time: Sides<u64>, sums: &Sides<Sums<'_>>) -> Sides<f64> {
    let share = |own: u64, whole: u64| if whole == 0 { 0.0 } else { float(own) / float(whole) };
    Sides { base: share(time.base, sums.base.whole()), head: share(time.head, sums.head.whole()) }
}

/// All functions of a kind that have no finding, as one.
fn below_the_floor(findings: &[Finding], sums: &Sides<Sums<'_>>, kind: CountKind, floor: f64) -> Option<Finding> {
    let of_kind = findings.iter().filter(|finding| finding.count_kind == kind);
    let found: BTreeSet<&str> = of_kind.map(|finding| &*finding.function).collect();
    let left =
        |sums: &Sums<'_>| sums.functions(kind).filter(|(name, _)| !found.contains(name)).map(|(_, time)| time).sum();
    let weight: Sides<u64> = Sides { base: left(&sums.base), head: left(&sums.head) };
    let both = sums.base.functions(kind).chain(sums.head.functions(kind)).map(|(name, _)| name);
    let names: BTreeSet<&str> = both.filter(|name| !found.contains(name)).collect();
    (!names.is_empty()).then(|| Finding {
        function: RARE.into(),
        base_function: None,
        functions: i64::try_from(names.len()).ok(),
        count_kind: kind,
        count: None,
        weight: Some(weight),
        share: shares(weight, sums),
        ratio: None,
        ln_p: None,
        q_value: None,
        verdict: Verdict::TooRare,
        reason: None,
        cause: None,
        detail: Some(format!("less than {:.2} % of all time", 100.0 * floor)),
    })
}
