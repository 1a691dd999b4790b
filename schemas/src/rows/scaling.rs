//! What load does to the cost of a request: of one build, or of a head against its base.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CellKey, InRings, Interval};
use crate::identity::{Build, Service};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::time::{Hop, Nanos};
use crate::verdict::{FlagState, ScalingReason, ScalingVerdict, Severity};

/// How the cost of one function in one cell follows load: in one build, or in a head and its base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingRow {
    /// What is deployed.
    pub service: Service,
    /// What was observed.
    pub profile_type: ProfileType,
    /// What a count represents.
    pub measure: Measure,
    /// Self or total.
    pub count_kind: CountKind,
    /// The build in question.
    pub build: Build,
    /// The base builds with which it is compared, joined by `,`; `None` in a row about the build by itself.
    pub base_build: Option<Build>,
    /// Which cell.
    pub cell: CellKey,
    /// Function name, [`RARE`](super::RARE) or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub function: Arc<str>,
    /// For [`RARE`](super::RARE): how many functions it stands for; otherwise `None`.
    pub functions: Option<i64>,
    /// The first minute.
    pub window_start_at: Nanos,
    /// The end of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// What the row was computed from.
    pub basis: ScalingBasis,
    /// Samples of the function.
    pub count: i64,
    /// Samples per request: by which power of load they grow.
    pub elasticity: Option<Interval>,
    /// The same of the base.
    pub base_elasticity: Option<Interval>,
    /// The build's less the base's.
    pub elasticity_difference: Option<Interval>,
    /// ln p of an elasticity, or a difference, of at most .05 in either direction.
    pub ln_p: Option<f64>,
    /// The smallest false-discovery rate at which the row is significant.
    pub q_value: Option<f64>,
    /// The function at the lowest third of load.
    pub low: AtLoad,
    /// The function at the highest third.
    pub high: AtLoad,
    /// The 2x2 log-likelihood ratio of these two shares.
    pub g: Option<f64>,
    /// ln p of `g` if samples were independent.
    pub ln_p_iid: Option<f64>,
    /// The verdict.
    pub verdict: ScalingVerdict,
    /// Why there is none, or no other.
    pub reason: Option<ScalingReason>,
    /// What would settle it, in words.
    pub needed: Option<String>,
}

impl ScalingRow {
    /// What its verdict is about: the elasticity, or in a row of a comparison the difference of two.
    pub fn slope(&self) -> Option<Interval> {
        if self.base_build.is_some() { self.elasticity_difference } else { self.elasticity }
    }
}

/// What all functions of a build in a cell have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalingBasis {
    /// Pods that served.
    pub pods: i64,
    /// Minutes with requests.
    pub minutes: i64,
    /// Operations served in them.
    pub requests: i64,
    /// Samples of all functions.
    pub total: i64,
    /// The load at its highest over that at its lowest; `None` without a minute.
    pub load_span: Option<f64>,
    /// Correlation of what functions cost from one minute to the next.
    pub persistence: Option<f64>,
    /// Degrees of freedom.
    pub df: Option<f64>,
}

/// A function in minutes of a third of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AtLoad {
    /// Its share of all samples.
    pub share: Option<f64>,
    /// Its samples per request.
    pub per_request: Option<f64>,
}

/// A function of which a head scales worse than its base, whenever that is found, found in more cells, or over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingFindingRow {
    /// What is deployed.
    pub service: Service,
    /// What was observed.
    pub profile_type: ProfileType,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
    /// The function that scales worse, or [`ALL_FUNCTIONS`](super::ALL_FUNCTIONS).
    pub cause: Arc<str>,
    /// What happened.
    pub state: FlagState,
    /// Who should look.
    pub severity: Severity,
    /// When it was found first.
    pub raised_at: Nanos,
    /// When this happened: the end of the hop `sequence`.
    pub changed_at: Nanos,
    /// The hop at whose close it happened.
    pub sequence: Hop,
    /// Where it was found, in the fewest words.
    pub scales_worse_in: Vec<String>,
    /// The elasticity of the head, in the cell where the difference is the largest.
    pub elasticity: Option<Interval>,
    /// That of the base.
    pub base_elasticity: Option<Interval>,
    /// Their difference.
    pub elasticity_difference: Option<Interval>,
    /// The share of the function at the highest third of load, in the head.
    pub share_high_load: Option<f64>,
    /// The load at its highest over that at its lowest, in the head.
    pub load_span: Option<f64>,
    /// In which builds of a roll-out it stands.
    pub rings: InRings,
    /// For `cleared`: why.
    pub cleared_because: Option<String>,
    /// What was found, where and by how much, in a sentence.
    pub summary: String,
    /// What to do.
    pub action: String,
}
