//! What would settle a row whose load, or whose samples, say nothing.

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::rows::ScalingBasis;
use fleetdiff_schemas::verdict::ScalingReason;
use fleetdiff_statistics::scaling::{LEAST_INTERVALS, LEAST_PODS, LEAST_SPAN};

/// In words: what is needed of a build that has this reason.
pub(super) fn needed(reason: ScalingReason, basis: &ScalingBasis, build: &Build, min_count: u64) -> String {
    let ScalingBasis { pods, minutes, .. } = basis;
    match reason {
        ScalingReason::FewPods => {
            format!(
                "at least {LEAST_PODS} pods of {build} that serve requests and are no longer young; there are {pods}"
            )
        }
        ScalingReason::FewMinutes => {
            format!(
                "at least {LEAST_INTERVALS} minutes with requests to pods of {build} that are no longer young; there are {minutes}"
            )
        }
        ScalingReason::LoadSpanTooSmall => format!(
            "load of {build} that differs by a factor of {LEAST_SPAN} within the window; it differed by {:.2}",
            basis.load_span.unwrap_or(1.0)
        ),
        ScalingReason::LoadIsTime => format!(
            "load of {build} that both rises and falls within the window: now whatever else changed with time looks like load"
        ),
        ScalingReason::DriftOutlastsWindow => {
            format!(
                "more pods of {build} or a longer window: what its functions cost drifts for as long as the window lasts"
            )
        }
        ScalingReason::CountNeeded => format!("at least {min_count} samples of the function in {build}"),
        ScalingReason::AtOneEnd => format!("samples of the function in {build} at other loads too"),
    }
}
