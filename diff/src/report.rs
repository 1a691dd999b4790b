//! The contents of a report: plain values for the page and for the static picture.

use std::sync::Arc;

use fleetdiff_formats::Values;
use fleetdiff_formats::names::FrameClass as NameClass;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::Verdict;
use serde::Serialize;

use crate::compare::finding::Finding;
use crate::flame::CallTree;

/// A comparison of two sides, with the test results of each function.
#[derive(Clone, Debug)]
pub struct Report {
    /// What is compared, in a few words.
    pub title: String,
    /// The result in a sentence, the same in every output.
    pub headline: String,
    /// What limits what can be concluded, in sentences; empty if nothing does.
    pub caution: String,
    /// The base.
    pub base: ReportSide,
    /// The head.
    pub head: ReportSide,
    /// How many samples of a base run correspond to one sample of a head run, finite and above 0: the factor for widths
    /// and colours of the head. The total of a base run over that of a head run compares shares; 1 compares counts.
    pub head_weight: f64,
    /// At most one row per function, in the order of tables: callers right behind what explains them. A frame without a row is shown as not tested.
    pub functions: Vec<Function>,
    /// The stacks of both sides; their counts are samples, or nanoseconds where the sides have no samples.
    pub tree: CallTree,
}

impl Report {
    /// What the counts of the tree are.
    pub(crate) fn values(&self) -> Values {
        if self.base.samples.is_some() && self.head.samples.is_some() { Values::Samples } else { Values::Times }
    }
}

/// One side, as the page names it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportSide {
    /// Its name: a build, a file, a folder.
    pub label: String,
    /// How many replicates.
    pub runs: u32,
    /// What these are.
    pub replicate: Replicate,
    /// Raw samples of all runs; none where times are compared, of which nobody knows how many samples they are.
    pub samples: Option<u64>,
    /// What was sampled: `cpu`, `heap`.
    pub sample_type: String,
    /// The unit of `total`: `nanoseconds`, `bytes`, `count`.
    pub unit: String,
    /// The weight of the samples of all runs, in `unit`; at least 0.
    pub total: f64,
}

/// What repeats a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Replicate {
    /// A recording of a program.
    Run,
    /// A pod of a fleet.
    Pod,
}

impl Replicate {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Pod => "pod",
        }
    }
}

/// Whose code a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameClass {
    /// The program's, or unknown.
    User,
    /// The runtime of its language.
    Runtime,
    /// The kernel, and the libraries below every program.
    System,
}

impl FrameClass {
    /// The class of a function, by its name.
    pub fn of(function: &str) -> Self {
        match NameClass::of(function) {
            NameClass::Program | NameClass::Unknown => Self::User,
            NameClass::Runtime => Self::Runtime,
            NameClass::Native | NameClass::Kernel => Self::System,
        }
    }
}

/// The test of one function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// The name of its frames.
    pub name: Arc<str>,
    /// Whose code it is.
    pub class: FrameClass,
    /// Whether the figures are of samples at its leaf or anywhere below it.
    pub counted: CountKind,
    /// What is concluded.
    pub verdict: Verdict,
    /// The reason, if there is one: `only_in_head`, `only_in_base`, or a sentence.
    pub reason: Option<String>,
    /// The function that explains why this one differs too.
    pub cause: Option<String>,
    /// Whether the change is significant. Only significant functions are drawn in colour.
    pub significant: bool,
    /// Raw samples over all runs of the base; none where times are compared.
    pub base_count: Option<u64>,
    /// Raw samples over all runs of the head; none where times are compared.
    pub head_count: Option<u64>,
    /// Share of the base's samples, 0 to 1.
    pub base_share: f64,
    /// Share of the head's samples, 0 to 1.
    pub head_share: f64,
    /// Head over base; none if it could not be estimated.
    pub ratio: Option<Ratio>,
    /// Natural logarithm of the p-value, at most 0; none if nothing was tested.
    pub ln_p: Option<f64>,
    /// The smallest false-discovery rate at which it is significant, 0 to 1; none if nothing was tested.
    pub q_value: Option<f64>,
}

impl Function {
    /// The row of a finding for a function of this class; `reason` is shown to readers as it is.
    pub fn of(finding: &Finding, class: FrameClass, reason: Option<String>) -> Self {
        Self {
            name: Arc::clone(&finding.function),
            class,
            counted: finding.count_kind,
            verdict: finding.verdict,
            reason,
            cause: finding.cause.clone(),
            significant: finding.verdict.is_significant(),
            base_count: finding.count.map(|count| count.base),
            head_count: finding.count.map(|count| count.head),
            base_share: finding.share.base,
            head_share: finding.share.head,
            ratio: finding.ratio.map(|ratio| Ratio { estimate: ratio.value, low: ratio.low, high: ratio.high }),
            ln_p: finding.ln_p,
            q_value: finding.q_value,
        }
    }
}

/// A ratio with its interval, all at least 0 and `low <= estimate <= high`. An infinite value becomes null in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The best estimate.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
