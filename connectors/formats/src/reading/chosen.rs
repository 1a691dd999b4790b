//! The samples that are read of a profile, by their names and weights.

use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::TimeRange;

use super::query::Reading;
use super::run::{Run, Unread, Weights};
use super::{naming, selection};
use crate::labels::Contents;
use crate::observed::Observed;

/// Chooses samples, names frames, and makes profiles of both.
pub(super) fn run(
    reading: &Reading,
    mut observed: Observed<'_>,
    profile: impl FnOnce(Contents, Option<TimeRange>) -> Result<Profile, Rejection>,
) -> Result<Run, Unread> {
    let (timed, window, period) = (observed.span.is_some(), observed.window, observed.period);
    selection::check_keys(reading, &observed)?;
    let passed = selection::select(reading, &mut observed)?;
    let unit = observed.unit.take().filter(|_| observed.samples.iter().all(|sample| sample.details.weight.is_some()));
    let weights: Vec<u64> =
        unit.iter().flat_map(|_| observed.samples.iter().filter_map(|sample| sample.details.weight)).collect();
    let contents = naming::named(reading, observed, &passed)?;
    let profile = profile(contents, window)?;
    let weights = unit.map(|unit| Weights { unit, profile: weighed(&profile, &weights) });
    Ok(Run { profile, weights, window, timed, period })
}

/// A profile with these for counts, in the order of its stacks; what weighs nothing is left out.
fn weighed(profile: &Profile, weights: &[u64]) -> Profile {
    let stacks = match &profile.samples {
        Samples::Stacks(stacks) => stacks.as_slice(),
        Samples::Folded { .. } => &[],
    };
    let with = |(stack, &count): (&Stack, &u64)| (count > 0).then(|| Stack { count, ..stack.clone() });
    Profile { samples: Samples::Stacks(stacks.iter().zip(weights).filter_map(with).collect()), ..profile.clone() }
}
