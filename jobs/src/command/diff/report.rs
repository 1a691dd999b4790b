//! The result, for the page and the picture.

use fleetdiff_diff::answer::{headline, one_by_function, reach};
use fleetdiff_diff::compare::times::NOTE;
use fleetdiff_diff::compare::{Compared, Finding, Recording, Spread};
use fleetdiff_diff::figures::of_runs;
use fleetdiff_diff::flame::{CallTree, Run, Sides};
use fleetdiff_diff::page::{FrameClass, Function, Replicate, Report, ReportSide};
use fleetdiff_formats::Values;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::Samples;

use super::arguments::DiffArgs;

/// Warning if the variation between runs is not known well, or nothing but that is.
pub(crate) fn caution(compared: &Compared) -> String {
    if compared.values() == Values::Times {
        return NOTE.to_owned();
    }
    match (compared.spread, compared.background) {
        (Spread::Unknown, Some(background)) if background > 0.0 => format!(
            "One run a side: run-to-run variation is unknown, so no change is known to be real; give 3 or more runs each. A function stands out if it differs more than the others let expect, whose typical variation beyond that of samples is {:.1} %.",
            100.0 * background
        ),
        (Spread::Unknown, _) => {
            "One run a side: run-to-run variation is unknown, so no change is known to be real; give 3 or more runs each. Samples alone decide what stands out, and in the next run it may be others."
        }
        .to_owned(),
        (Spread::Tentative, _) => {
            "With fewer than 5 runs per side, the variation between runs is known only roughly: significant functions are tentative, and no function can be equivalent."
        }
        .to_owned(),
        (Spread::Known, _) => String::new(),
    }
}

/// The page's contents.
pub(crate) fn report(sides: &Sides<Vec<Recording>>, compared: &Compared, args: &DiffArgs) -> Report {
    let totals = compared.totals();
    let side = |recordings: &[Recording], of: fn(Sides<u64>) -> u64| {
        let (sample_type, unit) = stands_for(compared);
        ReportSide {
            label: label(recordings),
            runs: u32::try_from(recordings.len()).unwrap_or(u32::MAX),
            replicate: Replicate::Run,
            samples: compared.samples.map(of),
            sample_type: sample_type.to_owned(),
            unit: unit.to_owned(),
            total: float(of(compared.weights.as_ref().map_or(totals, |weighed| weighed.totals))),
        }
    };
    let average = |samples: u64, runs: usize| float(samples) / float(u64::try_from(runs).unwrap_or(u64::MAX));
    let [base, head] = [&sides.base, &sides.head];
    let runs = |recordings| -> Vec<Run<'_>> { <[Recording]>::iter(recordings).filter_map(run).collect() };
    Report {
        title: format!("{} against {}", label(head), label(base)),
        headline: headline(compared, &args.decides()),
        caution: [caution(compared), reach(compared).unwrap_or_default()].join(" ").trim().to_owned(),
        base: side(base, |sides| sides.base),
        head: side(head, |sides| sides.head),
        head_weight: average(totals.base, compared.runs.base) / average(totals.head, compared.runs.head),
        functions: one_by_function(compared).into_iter().map(function).collect(),
        tree: CallTree::merge(&runs(base), &runs(head)),
    }
}

/// What weights are, and their unit: `alloc_space` in `bytes`, `cycles` in `count`; samples of the type if files do not
/// say.
fn stands_for(compared: &Compared) -> (&str, &str) {
    match &compared.weights {
        _ if compared.values() == Values::Times => (compared.profile_type.name(), "nanoseconds"),
        Some(weighed) => weighed.unit.split_once('/').unwrap_or((&weighed.unit, "count")),
        None => (compared.profile_type.name(), "samples"),
    }
}

fn run(recording: &Recording) -> Option<Run<'_>> {
    match &recording.profile.samples {
        Samples::Stacks(stacks) => Some(Run { names: &recording.profile.names, stacks }),
        Samples::Folded { .. } => None,
    }
}

/// The names of the first run of a side, and how many there are.
pub(crate) fn label(recordings: &[Recording]) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let first = recordings.first().map_or_else(String::new, |recording| name(&recording.label));
    match recordings.len() {
        0 | 1 => first,
        more => format!("{first} and {} more", more - 1),
    }
}

fn function(finding: &Finding) -> Function {
    let named = |reason: fleetdiff_schemas::verdict::RowReason| of_runs(reason.name());
    let cause = finding.cause.as_ref().map(|cause| format!("moves because {cause} does"));
    let class = FrameClass::of(&finding.function);
    Function::of(finding, class, finding.detail.clone().or(cause).or_else(|| finding.reason.map(named)))
}
