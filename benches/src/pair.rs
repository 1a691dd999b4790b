//! Two sides of recorded runs, typical of a comparison on a laptop: many functions, more stacks, hundreds of millions
//! of samples.

use std::sync::Arc;

use fleetdiff_diff::compare::{Compared, Finding, Recording};
use fleetdiff_diff::flame::{CallTree, Run, Sides};
use fleetdiff_diff::page::{FrameClass, Function, Replicate, Report, ReportSide};
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, ProfileType, Samples, Stack};

use crate::workload::{Draws, zipf};

/// Functions of the program.
pub const FUNCTIONS: u32 = 4_000;
/// Stacks that are drawn; some are equal.
pub const STACKS: usize = 50_000;
/// Approximate number of samples of a side, over all its runs.
pub const SAMPLES: f64 = 300e6;
/// By how much runs of one side differ, function by function.
const CV: f64 = 0.03;
/// Functions of the head that cost more, by place in the order of popularity, and by how much.
const SLOWER: [u32; 5] = [7, 40, 150, 400, 900];
const BY: f64 = 1.25;

/// The stacks of the program and how popular each is.
pub struct Program {
    names: Arc<[Arc<str>]>,
    stacks: Vec<Vec<u32>>,
    /// Samples of each stack on a side, in the mean.
    means: Vec<f64>,
}

impl Program {
    /// The program of a seed. Each stack branches off an earlier one in its last fifth and continues with 1 to 4 frames
    /// of any function, popular ones more often, so that stacks share callers like those of real programs. The
    /// popularity of stacks falls like one over the rank.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let names = (0..FUNCTIONS)
            .map(|function| format!("service/part{}.Type{}.method{function}", function % 40, function % 700).into());
        let mut draws = Draws::seeded(seed);
        let scale = (f64::from(FUNCTIONS) + 1.0).ln();
        let mut stacks: Vec<Vec<u32>> = vec![(0..24).collect()];
        while stacks.len() < STACKS {
            let earlier = &stacks[below(&mut draws, stacks.len())];
            let kept = earlier.len() - below(&mut draws, earlier.len() / 5 + 1);
            let more = 1 + below(&mut draws, 4);
            let leaving = (0..more).map(|_| zipf(draws.unit(), scale).min(FUNCTIONS - 1));
            stacks.push(earlier.iter().copied().take(kept).chain(leaving).collect());
        }
        let parts: Vec<f64> = (0u32..).zip(&stacks).map(|(rank, _)| 1.0 / f64::from(rank + 10)).collect();
        let whole: f64 = parts.iter().sum();
        Self { names: names.collect(), stacks, means: parts.iter().map(|part| SAMPLES * part / whole).collect() }
    }

    /// This number of runs per side; five functions of the head cost a quarter more.
    #[must_use]
    pub fn sides(&self, runs: u32) -> Sides<Vec<Recording>> {
        let side = |seed: u64, head: bool| {
            (0..runs).map(|run| self.run(seed + u64::from(run), f64::from(runs), head)).collect()
        };
        Sides { base: side(1_000, false), head: side(2_000, true) }
    }

    /// The functions that cost more.
    #[must_use]
    pub fn slower(&self) -> Vec<&str> {
        let name = |function: u32| usize::try_from(function).ok().and_then(|place| self.names.get(place));
        SLOWER.into_iter().filter_map(name).map(|name| &**name).collect()
    }

    fn run(&self, seed: u64, of: f64, head: bool) -> Recording {
        let mut draws = Draws::seeded(seed);
        let costs: Vec<f64> = (0..FUNCTIONS)
            .map(|function| {
                let change = if head && SLOWER.contains(&function) { BY } else { 1.0 };
                change * (CV * normal(&mut draws) - CV * CV / 2.0).exp()
            })
            .collect();
        let mut stacks = Vec::with_capacity(self.stacks.len());
        for (frames, mean) in self.stacks.iter().zip(&self.means) {
            let leaf = frames.last().and_then(|leaf| usize::try_from(*leaf).ok());
            let mean = mean / of * leaf.map_or(1.0, |leaf| costs[leaf]);
            // Means are 60 and more, for which a normal count is as good as a Poisson one.
            let count = whole(mean + mean.sqrt() * normal(&mut draws));
            if count > 0 {
                stacks.push(Stack { frames: frames.clone(), count, cohort: None, value: 0 });
            }
        }
        Recording::of_stacks(format!("run-{seed}"), ProfileType::Cpu, Arc::clone(&self.names), stacks)
    }
}

/// The stacks of a run.
#[must_use]
pub fn stacks(run: &Recording) -> &[Stack] {
    match &run.profile.samples {
        Samples::Stacks(stacks) => stacks,
        Samples::Folded { .. } => &[],
    }
}

/// The call tree of both sides.
#[must_use]
pub fn tree(sides: &Sides<Vec<Recording>>) -> CallTree {
    CallTree::merge(&runs(&sides.base), &runs(&sides.head))
}

fn runs(side: &[Recording]) -> Vec<Run<'_>> {
    side.iter().map(|run| Run { names: &run.profile.names, stacks: stacks(run) }).collect()
}

/// The report that the program makes of a comparison, but for classes of frames.
#[must_use]
pub fn report(compared: &Compared, tree: CallTree) -> Report {
    let totals = compared.totals();
    let side = |label: &str, samples: u64, runs| ReportSide {
        replicate: Replicate::Run,
        label: label.to_owned(),
        runs: u32::try_from(runs).unwrap_or(u32::MAX),
        samples: Some(samples),
        sample_type: "cpu".to_owned(),
        unit: "samples".to_owned(),
        total: float(samples),
    };
    let function = |finding: &Finding| Function::of(finding, FrameClass::User, finding.detail.clone());
    Report {
        title: "head against base".to_owned(),
        headline: "What differs.".to_owned(),
        caution: String::new(),
        base: side("base", totals.base, compared.runs.base),
        head: side("head", totals.head, compared.runs.head),
        head_weight: float(totals.base) / float(totals.head),
        functions: compared
            .of_kind(CountKind::SelfCount)
            .filter(|finding| finding.functions.is_none())
            .map(function)
            .collect(),
        tree,
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "between 0 and the limit"
)]
fn below(draws: &mut Draws, limit: usize) -> usize {
    (draws.unit() * limit as f64) as usize
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 0 and far below 2^53"
)]
fn whole(count: f64) -> u64 {
    count.max(0.0).round() as u64
}

/// A normal number, by Box and Muller.
fn normal(draws: &mut Draws) -> f64 {
    let radius = (-2.0 * (1.0 - draws.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * draws.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_hold_their_samples_and_slower_functions_more() {
        let program = Program::seeded(1);
        let sides = program.sides(2);
        let total = |side: &[Recording]| side.iter().map(|run| run.profile.total()).sum::<u64>();
        for side in [&sides.base, &sides.head] {
            assert!((290_000_000..320_000_000).contains(&total(side)), "{}", total(side));
        }
        let of = |side: &[Recording], function: u32| {
            side.iter()
                .flat_map(stacks)
                .filter(|stack| stack.frames.last() == Some(&function))
                .map(|stack| stack.count)
                .sum::<u64>()
        };
        for function in SLOWER {
            let [base, head] = [of(&sides.base, function), of(&sides.head, function)];
            assert!(base > 0 && head * 100 > base * 115 && head * 100 < base * 135, "{function}: {base}, {head}");
        }
        let distinct: std::collections::BTreeSet<&Vec<u32>> =
            sides.base.iter().flat_map(stacks).map(|stack| &stack.frames).collect();
        assert!(distinct.len() > 48_000, "{}", distinct.len());
    }
}
