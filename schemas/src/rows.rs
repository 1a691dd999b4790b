//! The rows that fleetdiff writes; an unknown value is `None`, never 0 or -1. [`crate::tables`] lists and describes
//! their columns.

mod archived;
mod clock;
mod evidence;
mod heap;
pub(crate) mod incident;
pub(crate) mod keys;
mod limit;
mod load_curve;
mod order;
mod ring;
mod scaling;
mod stack;
mod waiting;

pub use self::archived::{Archived, CallTreeRow, FunctionNameRow, PodCountsRow, Span};
pub use self::clock::ClockRow;
pub use self::evidence::{EvidenceRow, SharedFigures};
pub use self::heap::{HeapFindingRow, HeapRow, LevelFace};
pub use self::incident::{IncidentRow, VerdictRow};
pub use self::keys::{CellKey, ComparisonKey};
pub use self::limit::LimitRow;
pub use self::load_curve::LoadCurveRow;
pub use self::ring::{InRings, RingRow, RingStep};
pub use self::scaling::{AtLoad, ScalingBasis, ScalingFindingRow, ScalingRow};
pub use self::stack::{RARE_STACKS, StackRow};
pub use self::waiting::WaitingRow;

use serde::{Deserialize, Serialize};

use crate::fan_out::FanOutRow;
use crate::profile::{CountKind, Position};
use crate::rejected::Rejection;
use crate::time::{Hop, Nanos};
use crate::verdict::{BaseKind, ComparisonVerdict, FlagState, RowReason, Scope, Severity, Support, Verdict};

/// A value with its interval; an estimate is never given without one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end, 95 % unless stated otherwise.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a ratio has both its parts: it is neither to nothing nor of nothing.
    #[must_use]
    pub fn has_both_parts(&self) -> bool {
        self.value > 0.0 && self.value.is_finite()
    }
}

/// The name of the row that stands for all functions under the floor of 30 samples.
pub const RARE: &str = "_rare";

/// The name of the row that stands for all samples of a cell together: the cost of a request over all functions.
pub const ALL_FUNCTIONS: &str = "(all)";

/// One function in one cell of one comparison, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRow {
    /// Window or epoch.
    pub scope: Scope,
    /// Which builds of what.
    pub comparison: ComparisonKey,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell.
    pub cell: CellKey,
    /// Whether it covers several cells.
    pub is_roll_up: bool,
    /// If only pods of different ages could be compared: when the first young ones are no longer young.
    pub provisional_until_at: Option<Nanos>,
    /// Function name, [`RARE`] or [`ALL_FUNCTIONS`].
    pub function: String,
    /// For [`RARE`]: how many functions it stands for; otherwise `None`.
    pub functions: Option<i64>,
    /// Start of the window or epoch.
    pub window_start_at: Nanos,
    /// End of the window: the end of the hop at whose close the row was computed.
    pub window_end_at: Nanos,
    /// The head's figures.
    pub head: ArmFigures,
    /// The base's figures.
    pub base: ArmFigures,
    /// Head share less base share, -1..1.
    pub share_delta: Option<Interval>,
    /// Strata that both arms share.
    pub strata: i64,
    /// The 2x2 log-likelihood ratio over merged counts.
    pub g: Option<f64>,
    /// ln p of `g` if samples were independent.
    pub ln_p_iid: Option<f64>,
    /// By how much the head's pods vary more than expected, moderated.
    pub head_dispersion: Option<f64>,
    /// By how much the base's pods vary more than expected, moderated.
    pub base_dispersion: Option<f64>,
    /// Welch's degrees of freedom of the test, including the prior's.
    pub df: Option<f64>,
    /// The test statistic against the normalization factor.
    pub statistic: Option<f64>,
    /// ln p of the share with normalization factor 1.
    pub ln_p: Option<f64>,
    /// ln p against a change of at most the minimum effect, after normalization.
    pub ln_p_min_effect: Option<f64>,
    /// ln p against a change of at most the minimum effect from what the base's own young pods once were; where pods of
    /// different ages are compared.
    pub young_ln_p: Option<f64>,
    /// ln of the p-value that the family takes: the largest of all that must hold.
    pub ln_p_row: Option<f64>,
    /// The weight of the function in its family, by its share of cost.
    pub weight: Option<f64>,
    /// ln p that the function changed in no cell.
    pub function_ln_p: Option<f64>,
    /// The smallest false-discovery rate at which the row is significant.
    pub q_value: Option<f64>,
    /// Ratio of shares.
    pub ratio: Option<Interval>,
    /// Ratio of shares, divided by the cell's normalization factor.
    pub adjusted_ratio: Option<Interval>,
    /// ln p of the share after normalization; this is the p-value that decides.
    pub adjusted_ln_p: Option<f64>,
    /// Ratio of cost per request.
    pub per_request_ratio: Option<Interval>,
    /// ln p of the cost per request, tested against its own dispersion between pods.
    pub per_request_ln_p: Option<f64>,
    /// The smallest false-discovery rate at which the cost per request is significant; a separate family.
    pub per_request_q_value: Option<f64>,
    /// ln of the mixture e-value.
    pub ln_e: Option<f64>,
    /// ln of the always-valid p-value: 1 over the largest e-value since the epoch began. Scope `epoch` only.
    pub always_valid_ln_p: Option<f64>,
    /// Adjusted ratio with an always-valid 95 % interval, which holds at every look; from 0 to infinity if there is
    /// hardly any data. Scope `epoch` only.
    pub always_valid_ratio: Option<Interval>,
    /// For fewer than 30 samples: ln p of counts and of pods that show the function.
    pub rare_ln_p: Option<f64>,
    /// ln p of the test whether some of the head's pods differ from the base's pods. Scope `window` only.
    pub outlier_ln_p: Option<f64>,
    /// The smallest false-discovery rate at which some pods are significantly outlying; a separate family.
    pub outlier_q_value: Option<f64>,
    /// For `some_pods_outlying`: the pods, ascending.
    pub outlying_pods: Vec<String>,
    /// The smallest ratio above 1 that would have been detected, at alpha 1e-4 and power .8.
    pub minimum_detectable_ratio: Option<f64>,
    /// Seconds of samples until a change of 5 % would be detected; infinite if only more pods can help.
    pub seconds_to_significance: Option<f64>,
    /// If that is infinite: with how many more head pods a change of 5 % would be detected within a window; `None` if
    /// no number of pods suffices.
    pub pods_needed: Option<i64>,
    /// Total number of samples at which a change of 5 % would be detected if samples were independent: 1 / (share x
    /// .05^2). Not calibrated.
    pub samples_needed_iid: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether there are enough pods for a test.
    pub support: Support,
    /// Why.
    pub reason: Option<RowReason>,
    /// The function whose change moved this row: for `compositional`, and for a caller that moves because a callee does.
    pub cause: Option<String>,
    /// Details of the reason in words: the strata of each side, or where work has moved from.
    pub detail: Option<String>,
}

impl CellRow {
    /// The change by which the row is decided, with its interval: after normalization, or for all functions together per
    /// request.
    #[must_use]
    pub fn effect(&self) -> Option<Interval> {
        if self.function == ALL_FUNCTIONS { self.per_request_ratio } else { self.adjusted_ratio }
    }

    /// The row of a function that is not tested, without counts.
    #[must_use]
    pub fn untested(
        scope: Scope,
        comparison: ComparisonKey,
        count_kind: CountKind,
        cell: CellKey,
        function: String,
    ) -> Self {
        Self {
            scope,
            comparison,
            count_kind,
            cell,
            is_roll_up: false,
            provisional_until_at: None,
            function,
            functions: None,
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            head: ArmFigures::default(),
            base: ArmFigures::default(),
            share_delta: None,
            strata: 0,
            g: None,
            ln_p_iid: None,
            head_dispersion: None,
            base_dispersion: None,
            df: None,
            statistic: None,
            ln_p: None,
            ln_p_min_effect: None,
            young_ln_p: None,
            ln_p_row: None,
            weight: None,
            function_ln_p: None,
            q_value: None,
            ratio: None,
            adjusted_ratio: None,
            adjusted_ln_p: None,
            per_request_ratio: None,
            per_request_ln_p: None,
            per_request_q_value: None,
            ln_e: None,
            always_valid_ln_p: None,
            always_valid_ratio: None,
            rare_ln_p: None,
            outlier_ln_p: None,
            outlier_q_value: None,
            outlying_pods: Vec::new(),
            minimum_detectable_ratio: None,
            seconds_to_significance: None,
            pods_needed: None,
            samples_needed_iid: None,
            verdict: Verdict::Inconclusive,
            support: Support::Untestable,
            reason: None,
            cause: None,
            detail: None,
        }
    }
}

/// One arm of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmFigures {
    /// Samples of the function.
    pub count: i64,
    /// Samples of all functions.
    pub total: i64,
    /// `count / total`, 0..1; `None` without samples.
    pub share: Option<f64>,
    /// Distinct pods with samples.
    pub pods: i64,
    /// Occupied buckets.
    pub buckets: i64,
    /// Operations served, if known.
    pub requests: Option<i64>,
}

/// One change of one flag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlagRow {
    /// The row at that moment, scope `epoch`; of method `article`, scope `window`.
    pub row: CellRow,
    /// Stable identity of the flag: a hash of its key and the hop at which it was raised, in hexadecimal.
    pub flag_id: String,
    /// What happened.
    pub state: FlagState,
    /// When the flag was raised.
    pub raised_at: Nanos,
    /// The hop at whose close it happened.
    pub sequence: Hop,
    /// Severity: who should look at it, and how soon.
    pub severity: Severity,
    /// For `cleared`: `comparison_closed`, `equivalent`, `explained`, `faded`, `not_significant`, `reversed` or
    /// `warm_up`.
    pub cleared_because: Option<String>,
    /// Rows that changed only because this one did.
    pub explains: Vec<String>,
}

/// One comparison in one cell (or over all, `*`), at one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// Which builds of what.
    pub comparison: ComparisonKey,
    /// Self or total.
    pub count_kind: CountKind,
    /// Which cell; `*`, `*` for all.
    pub cell: CellKey,
    /// Whether it covers several cells.
    pub is_roll_up: bool,
    /// Start of the epoch.
    pub window_start_at: Nanos,
    /// End of the hop at whose close this was computed.
    pub window_end_at: Nanos,
    /// Head samples since the epoch began.
    pub head_total: i64,
    /// Base samples since the epoch began.
    pub base_total: i64,
    /// Head pods.
    pub head_pods: i64,
    /// Base pods.
    pub base_pods: i64,
    /// Functions tested at this look.
    pub functions_tested: i64,
    /// The cell's normalization factor (1 over all cells).
    pub normalization_factor: Option<f64>,
    /// All normalization factors on which a change must hold, with the part of cost that stands still on each, if there
    /// are several.
    pub admissible_factors: Vec<String>,
    /// Estimated variance between the head's pods on the log scale.
    pub head_pod_variance: Option<f64>,
    /// Estimated variance between the base's pods on the log scale.
    pub base_pod_variance: Option<f64>,
    /// Rows that the live rule has raised and not cleared.
    pub flags: i64,
    /// Time blocks of the epoch so far.
    pub time_blocks: i64,
    /// Strata in which an arm is missing.
    pub strata_dropped: i64,
    /// Share of the base's self samples in equivalent functions, 0..1.
    pub equivalent_share: Option<f64>,
    /// The verdict.
    pub verdict: ComparisonVerdict,
    /// The verdict in words.
    pub sentence: String,
    /// What to do in each cell, in words; only over all cells.
    pub action: Option<String>,
    /// Tests of the A/A check, if it was made.
    pub aa_check_tests: Option<i64>,
    /// How many of these tests were significant.
    pub aa_check_flags: Option<i64>,
    /// Warnings; if the base is history, its hours and days.
    pub warnings: Vec<String>,
    /// What the head is compared with: builds that run beside it, or history. A comparison with history never raises an
    /// alert.
    pub base_kind: BaseKind,
}

/// What became of the records and samples applied in one hop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Start of the application hop.
    pub hop_at: Nanos,
    /// Name of the profile type, `_unknown` for parts that could not be decoded.
    pub profile_type: String,
    /// Profiles (or undecodable records) taken in.
    pub records_consumed: i64,
    /// Profiles decoded.
    pub records_decoded: i64,
    /// Profiles rejected.
    pub records_rejected: i64,
    /// Samples decoded.
    pub samples_received: i64,
    /// Samples added to counters, including those of late records.
    pub samples_counted: i64,
    /// Samples counted from records older than the watermark.
    pub samples_late_counted: i64,
    /// Dropped: within a pod's warm-up.
    pub samples_warm_up: i64,
    /// Dropped: within the last moments of a process.
    pub samples_drain: i64,
    /// Left out: waiting that is idle, of `off_cpu` and `wall` profiles.
    pub samples_idle: i64,
    /// Dropped: older than the window.
    pub samples_late_dropped: i64,
    /// Dropped: seen before.
    pub samples_duplicate: i64,
    /// Dropped: snapshots not after the last one used.
    pub samples_superseded: i64,
    /// Carried over, so not of this interval: what the previous snapshot already held, or the whole of a first
    /// snapshot.
    pub samples_carried_over: i64,
    /// Dropped: in rejected parts.
    pub samples_rejected: i64,
}

impl LedgerRow {
    /// Whether everything that came in is accounted for.
    pub fn balances(&self) -> bool {
        let accounted = self.samples_counted
            + self.samples_warm_up
            + self.samples_drain
            + self.samples_idle
            + self.samples_late_dropped
            + self.samples_duplicate
            + self.samples_superseded
            + self.samples_carried_over
            + self.samples_rejected;
        self.samples_received == accounted && self.records_consumed == self.records_decoded + self.records_rejected
    }
}

/// One part that was not counted, where it is and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RejectedRow {
    /// Start of the hop of rejection: the watermark hop of its partition; `None` before the first good record.
    pub hop_at: Option<Nanos>,
    /// Where it came from.
    pub position: Position,
    /// Index of the part within the record.
    pub part: i64,
    /// Why.
    pub rejection: Rejection,
}

/// Rows of every table, in any order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// Rows of functions in cells.
    pub cells: Vec<CellRow>,
    /// What significant and flagged rows of functions were computed from.
    pub evidence: Vec<EvidenceRow>,
    /// Changes of flags.
    pub flags: Vec<FlagRow>,
    /// Evaluations of comparisons.
    pub comparisons: Vec<ComparisonRow>,
    /// How the cost of functions follows load.
    pub scaling: Vec<ScalingRow>,
    /// What a request cost minute by minute, in functions of which a head scales worse.
    pub load_curves: Vec<LoadCurveRow>,
    /// What functions cost from ring to ring of a roll-out.
    pub rings: Vec<RingRow>,
    /// What became of memory.
    pub heap: Vec<HeapRow>,
    /// What requests waited for.
    pub waiting: Vec<WaitingRow>,
    /// Samples by stack where a comparison changed most.
    pub stacks: Vec<StackRow>,
    /// What became of records and samples.
    pub ledger: Vec<LedgerRow>,
    /// Rejected parts.
    pub rejected: Vec<RejectedRow>,
    /// Pods whose clock is wrong.
    pub clocks: Vec<ClockRow>,
    /// What services bring beyond their limits.
    pub limits: Vec<LimitRow>,
    /// Changes of incidents.
    pub incidents: Vec<IncidentRow>,
    /// Changes of what is said about whole comparisons; announced, not written to files.
    pub verdicts: Vec<VerdictRow>,
    /// Functions of which a head scales worse; announced, not written to files.
    pub scaling_findings: Vec<ScalingFindingRow>,
    /// Heads that leak without allocating more; announced, not written to files.
    pub heap_findings: Vec<HeapFindingRow>,
    /// In which cells each function is flagged; given to commands, not written to files.
    pub fan_out: Vec<FanOutRow>,
    /// What was counted, pod by pod, if that is kept; files of its own have it.
    pub archived: Archived,
}
