//! What is different between two sides of recorded profiles, and which of it is real.
//!
//! Each file is a run, and runs are to this comparison what pods are to a fleet: how much they differ is measured, and a change
//! must exceed it. So the runs of both sides go through the dataflow of fleets, as pods of two builds in one cell, and its rows
//! are the findings. With a single run on a side nobody knows how much runs differ; then samples decide ([`single`]), against what most
//! functions show together, which is said, for a difference between two runs need not be one between two programs.

mod background;
pub mod contained;
pub mod kinship;
mod recording;
mod replicates;
pub mod single;
pub mod sums;
mod weights;

use std::cmp::Ordering;
use std::sync::Arc;

use fleetdiff_formats::reading::FILTERED;
use fleetdiff_pipeline::run::RunError;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellRow, Interval, RARE};
use fleetdiff_schemas::verdict::{RowReason, Scope, Verdict};

use self::kinship::Kinship;
pub use self::recording::{Recording, nobody};
use crate::flame::Sides;
pub use fleetdiff_formats::reading::Weights;

/// How much weight there is in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// What weights are.
    pub unit: Arc<str>,
    /// Of each side.
    pub totals: Sides<u64>,
}

/// What calls a function changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Runs as replicates, a robust scale, false discovery controlled.
    #[default]
    Honest,
    /// p of G on merged counts below 1e-4: for comparison, not calibrated.
    Article,
}

/// What decides beside the recordings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What calls a function changed.
    pub method: Method,
    /// False-discovery rate of each family.
    pub q: f64,
    /// Smallest change on the log scale that is called.
    pub delta: f64,
    /// Smallest count of both sides together that is tested.
    pub min_count: u64,
    /// Between single runs, by how much functions differ beyond what independent samples do: a standard deviation of log ratios.
    /// None: what most functions show.
    pub background: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { method: Method::Honest, q: 0.05, delta: 0.01, min_count: 30, background: None }
    }
}

/// What is known of how much runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spread {
    /// Nothing: a side has a single run.
    Unknown,
    /// A little: 2 to 4 runs on the smaller side.
    Tentative,
    /// Enough: at least 5 runs a side.
    Known,
}

impl Spread {
    fn of(runs: Sides<usize>) -> Self {
        match runs.base.min(runs.head) {
            0 | 1 => Self::Unknown,
            2..=4 => Self::Tentative,
            _ => Self::Known,
        }
    }
}

/// One function, at the leaf of stacks or anywhere on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its name, or `_rare` for all below the floor.
    pub function: Arc<str>,
    /// For `_rare`: how many functions.
    pub functions: Option<i64>,
    /// Where on a stack it is counted.
    pub count_kind: CountKind,
    /// Samples of all runs.
    pub count: Sides<u64>,
    /// What they stand for, if every run has weights. Tests look at samples, never at weights.
    pub weight: Option<Sides<u64>>,
    /// Share of the side's samples, 0 to 1.
    pub share: Sides<f64>,
    /// Head against base, the common scale of all functions taken out; none where a side lacks the function or nothing was tested.
    pub ratio: Option<Interval>,
    /// ln of the p-value that decides; none where nothing was tested.
    pub ln_p: Option<f64>,
    /// The smallest false-discovery rate at which it is called.
    pub q_value: Option<f64>,
    /// What is concluded.
    pub verdict: Verdict,
    /// Why.
    pub reason: Option<RowReason>,
    /// The function whose change moved this one.
    pub cause: Option<String>,
    /// More, in words.
    pub detail: Option<String>,
}

impl Finding {
    /// Of the base's samples, the share by which the head costs more (or less) at least, 0 where that may be nothing.
    pub fn impact(&self) -> f64 {
        let share = self.share.base.max(self.share.head);
        match self.ratio {
            None => (self.share.head - self.share.base).abs(),
            Some(ratio) if ratio.low > 1.0 => share * (1.0 - 1.0 / ratio.low),
            Some(ratio) if ratio.high < 1.0 => share * (1.0 - ratio.high),
            Some(_) => 0.0,
        }
    }

    /// Whether its share has moved by more than 1 % of itself, whatever tests say.
    pub fn has_shifted(&self) -> bool {
        let Sides { base, head } = self.share;
        (head - base).abs() > 0.01 * base
    }
}

/// All findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What was sampled.
    pub profile_type: ProfileType,
    /// Runs of each side.
    pub runs: Sides<usize>,
    /// Samples of each side.
    pub samples: Sides<u64>,
    /// What weights are, and how much of it each side has, if every run has weights.
    pub weights: Option<Weighed>,
    /// What is known of how much runs differ.
    pub spread: Spread,
    /// Between single runs, by how much functions differ beyond what independent samples do ([`Settings::background`]).
    pub background: Option<f64>,
    /// How much both sides have in common.
    pub kinship: Kinship,
    /// Self counts, then total counts, each with what is called first, and by what it comes to at least.
    pub findings: Vec<Finding>,
}

impl Compared {
    /// The findings of one kind, in their order.
    pub fn of_kind(&self, kind: CountKind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.count_kind == kind)
    }
}

/// Why two sides cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// A side without a sample.
    #[error("the {0} holds no sample")]
    Empty(&'static str),
    /// Profiles of several types.
    #[error("{first} is a {first_type} profile and {other} a {other_type} profile", first_type = .first_type.name(), other_type = .other_type.name())]
    Types {
        /// A run.
        first: String,
        /// Its type.
        first_type: ProfileType,
        /// One of another type.
        other: String,
        /// That type.
        other_type: ProfileType,
    },
    /// Weights of several units.
    #[error("{first} has weights of {first_unit} and {other} of {other_unit}")]
    Units {
        /// A run.
        first: String,
        /// What its weights are.
        first_unit: Arc<str>,
        /// One with other weights.
        other: String,
        /// What those are.
        other_unit: Arc<str>,
    },
    /// Profiles of different programs.
    #[error("base and head have {} of {} functions in common, and {:.1} % of their samples: these are profiles of different programs", .0.common, .0.fewer, 100.0 * .0.overlap)]
    Strangers(Kinship),
    /// The dataflow failed.
    #[error(transparent)]
    Failed(#[from] RunError),
}

/// Compares two sides.
///
/// # Errors
/// See [`NotCompared`].
pub fn compare(sides: &Sides<Vec<Recording>>, settings: &Settings) -> Result<Compared, NotCompared> {
    let profile_type = one_type(sides)?;
    let samples = Sides { base: total(&sides.base), head: total(&sides.head) };
    for (side, samples) in [("base", samples.base), ("head", samples.head)] {
        if samples == 0 {
            return Err(NotCompared::Empty(side));
        }
    }
    let kinship = Kinship::of(sides);
    if kinship.are_strangers() {
        return Err(NotCompared::Strangers(kinship));
    }
    // The article knows no floor.
    let min_count = if settings.method == Method::Article { 1 } else { settings.min_count };
    let rows = replicates::rows(sides, &Settings { min_count, ..*settings })?;
    // What a filter left out is part of the whole, and no function.
    let of_functions = rows.iter().filter(|row| row.scope == Scope::Window && row.function != FILTERED);
    let mut findings: Vec<Finding> = of_functions.map(finding).collect();
    let runs = Sides { base: sides.base.len(), head: sides.head.len() };
    let spread = Spread::of(runs);
    let mut background = None;
    match settings.method {
        Method::Article => single::test_as_the_article(&mut findings, samples),
        Method::Honest if spread == Spread::Unknown => {
            background = Some(single::test(&mut findings, samples, settings))
        }
        Method::Honest => {}
    }
    let weights = weights::weigh(&mut findings, sides)?;
    findings.sort_by(in_order);
    Ok(Compared { profile_type, runs, samples, weights, spread, background, kinship, findings })
}

fn one_type(sides: &Sides<Vec<Recording>>) -> Result<ProfileType, NotCompared> {
    let mut all = sides.base.iter().chain(&sides.head);
    let first = all.next().ok_or(NotCompared::Empty("base"))?;
    match all.find(|other| other.profile.profile_type != first.profile.profile_type) {
        None => Ok(first.profile.profile_type),
        Some(other) => Err(NotCompared::Types {
            first: first.label.clone(),
            first_type: first.profile.profile_type,
            other: other.label.clone(),
            other_type: other.profile.profile_type,
        }),
    }
}

fn total(side: &[Recording]) -> u64 {
    side.iter().map(|recording| recording.profile.total()).sum()
}

fn finding(row: &CellRow) -> Finding {
    let count = |count: i64| u64::try_from(count).unwrap_or(0);
    Finding {
        function: row.function.as_str().into(),
        functions: row.functions,
        count_kind: row.count_kind,
        count: Sides { base: count(row.base.count), head: count(row.head.count) },
        weight: None,
        share: Sides { base: row.base.share.unwrap_or(0.0), head: row.head.share.unwrap_or(0.0) },
        ratio: row.adjusted_ratio,
        ln_p: row.adjusted_ln_p,
        q_value: row.q_value,
        verdict: row.verdict,
        reason: row.reason,
        cause: row.cause.clone(),
        detail: row.detail.clone(),
    }
}

/// Kind, then what is called by what it comes to at least, then what the others moved, then the rest by evidence; `_rare` last.
fn in_order(a: &Finding, b: &Finding) -> Ordering {
    let rank = |finding: &Finding| match finding.verdict {
        _ if &*finding.function == RARE => 3,
        verdict if verdict.is_called() => 0,
        Verdict::Compositional | Verdict::SomePodsOutlying => 1,
        _ => 2,
    };
    let moved = |finding: &Finding| (finding.share.head - finding.share.base).abs();
    let ln_p = |finding: &Finding| if rank(finding) == 2 { finding.ln_p.unwrap_or(0.0) } else { 0.0 };
    let impact = |finding: &Finding| if rank(finding) == 0 { finding.impact() } else { 0.0 };
    a.count_kind
        .cmp(&b.count_kind)
        .then(rank(a).cmp(&rank(b)))
        .then(impact(b).total_cmp(&impact(a)))
        .then(ln_p(a).total_cmp(&ln_p(b)))
        .then(moved(b).total_cmp(&moved(a)))
        .then_with(|| a.function.cmp(&b.function))
}
