//! The answers: for each share and change, how long it takes; for each share and time, the smallest change.

use fleetdiff_statistics::Arms;
use fleetdiff_statistics::power::{Design, detection_z, samples_by_rule};
use serde_json::{Value as Json, json};

use super::arguments::PowerArgs;
use super::study::Study;

/// Seconds for which the smallest detectable change is given: 5 minutes, 30 minutes, 6 hours, any time.
pub(crate) const MOMENTS: [f64; 4] = [300.0, 1800.0, 21_600.0, f64::INFINITY];
/// Seconds for which evidence of an epoch is kept: a change that takes longer is not found by waiting.
pub(crate) const EPOCH: f64 = 21_600.0;
/// Seconds within which more pods must be enough: the window, otherwise an epoch.
const PATIENCE: [f64; 2] = [1800.0, EPOCH];
/// The largest arm that is suggested.
const MOST_PODS: u32 = 1_000_000;

/// The answers for one study.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    /// The arms.
    pub(crate) study: Study,
    /// Each share with each change; empty if the variance between pods is not known.
    pub(crate) waits: Vec<Wait>,
    /// Each share.
    pub(crate) smallest: Vec<Smallest>,
}

/// How long it takes to detect a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Share of the function.
    pub(crate) share: f64,
    /// Relative change of its cost.
    pub(crate) change: f64,
    /// Seconds; infinite if more time cannot help.
    pub(crate) seconds: f64,
    /// If so, or if they exceed [`EPOCH`]: the number of pods that would show it; `None` if no number would.
    pub(crate) remedy: Option<Remedy>,
    /// Samples of one arm by the article's 1/(f r^2), if samples were independent.
    pub(crate) samples_if_independent: f64,
}

/// More pods, if more time cannot help.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remedy {
    /// How many more head pods.
    pub(crate) head_pods: u32,
    /// How many more base pods: 0 if more head pods are enough.
    pub(crate) base_pods: u32,
    /// Seconds after which the change is then detected.
    pub(crate) seconds: f64,
}

/// The smallest change that is detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smallest {
    /// Share of the function.
    pub(crate) share: f64,
    /// As ratios above 1, after each of [`MOMENTS`].
    pub(crate) ratios: [f64; 4],
}

impl Answers {
    /// The answers for a study.
    pub(crate) fn of(study: Study, args: &PowerArgs) -> Self {
        let Some(tau) = study.tau else { return Self { study, waits: Vec::new(), smallest: Vec::new() } };
        let z = detection_z(args.alpha, args.power);
        let design = |share| Design {
            z,
            pods: Arms { head: study.head_pods.into(), base: study.base_pods.into() },
            share,
            tau2: tau.map(|tau| tau * tau),
        };
        let pairs = args.share.iter().flat_map(|&share| args.change.iter().map(move |&change| (share, change)));
        let waits = pairs.map(|(share, change)| wait(&design(share), &study, change)).collect();
        let ratio = |share, seconds: f64| design(share).mde(study.rate * seconds).exp();
        let smallest = args
            .share
            .iter()
            .map(|&share| Smallest { share, ratios: MOMENTS.map(|seconds| ratio(share, seconds)) })
            .collect();
        Self { waits, smallest, study }
    }
}

fn wait(design: &Design, study: &Study, change: f64) -> Wait {
    let seconds = design.seconds_to_detect(study.rate, 1.0 + change);
    let remedy = if seconds > EPOCH { remedy(design, study, 1.0 + change) } else { None };
    Wait { share: design.share, change, seconds, remedy, samples_if_independent: samples_by_rule(design.share, change) }
}

/// The fewest additional head pods; if no number is enough, the fewest pods with which both arms are equally large.
fn remedy(design: &Design, study: &Study, ratio: f64) -> Option<Remedy> {
    let after = |more: [u32; 2]| {
        let pods = Arms { head: study.head_pods + more[0], base: study.base_pods + more[1] }.map(f64::from);
        Design { pods, ..*design }.seconds_to_detect(study.rate, ratio)
    };
    let head = |seconds| design.pods_needed(study.rate, ratio, seconds).map(|pods| [pods, 0]);
    let up_to = |pods: u32| [pods.saturating_sub(study.head_pods), pods.saturating_sub(study.base_pods)];
    let both = |seconds| fewest(|pods| after(up_to(pods)) <= seconds).map(up_to);
    let more = PATIENCE.into_iter().find_map(head).or_else(|| PATIENCE.into_iter().find_map(both))?;
    Some(Remedy { head_pods: more[0], base_pods: more[1], seconds: after(more) })
}

/// The fewest pods that are enough, given that more are never worse.
fn fewest(is_enough: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (1, MOST_PODS);
    while low < high {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    (low < MOST_PODS).then_some(low)
}

/// All answers as JSON. Infinite figures are null, since JSON has no infinity; `never` is then true.
pub(crate) fn to_json(answers: &[Answers], args: &PowerArgs) -> Json {
    let studies = answers.iter().map(|answers| {
        let Study { source, head_pods, base_pods, rate, tau } = &answers.study;
        json!({
            "comparison": source.as_ref().map(|source| json!(source.comparison)),
            "count_kind": source.as_ref().map(|source| source.count_kind.name()),
            "region": source.as_ref().map(|source| source.cell.region.as_str()),
            "cohort": source.as_ref().map(|source| source.cell.cohort.as_str()),
            "head_pods": head_pods,
            "base_pods": base_pods,
            "samples_per_pod_second": rate,
            "head_tau": tau.map(|tau| tau.head),
            "base_tau": tau.map(|tau| tau.base),
            "changes": answers.waits.iter().copied().map(Wait::into_json).collect::<Vec<_>>(),
            "smallest": answers.smallest.iter().copied().flat_map(Smallest::into_json).collect::<Vec<_>>(),
        })
    });
    json!({"alpha": args.alpha, "power": args.power, "studies": studies.collect::<Vec<_>>()})
}

impl Wait {
    fn into_json(self) -> Json {
        json!({
            "share": self.share,
            "change": self.change,
            "seconds": self.seconds,
            "never": self.seconds.is_infinite(),
            "more_head_pods": self.remedy.map(|remedy| remedy.head_pods),
            "more_base_pods": self.remedy.map(|remedy| remedy.base_pods),
            "seconds_with_more_pods": self.remedy.map(|remedy| remedy.seconds),
            "samples_of_an_arm_if_independent_not_calibrated": self.samples_if_independent,
        })
    }
}

impl Smallest {
    fn into_json(self) -> Vec<Json> {
        let at =
            |(seconds, ratio): (&f64, &f64)| json!({"share": self.share, "after_seconds": seconds, "ratio": ratio});
        MOMENTS.iter().zip(&self.ratios).map(at).collect()
    }
}
