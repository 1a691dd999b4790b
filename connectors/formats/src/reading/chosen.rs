//! The samples that are read of a profile, by their names and weights.

use std::sync::Arc;

use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::TimeRange;

use super::query::Reading;
use super::run::{Run, Unread, Weights};
use super::{naming, selection, slices, times_as_weights};
use crate::budget::{ALLOCATION, Budget};
use crate::labels::Contents;
use crate::observed::Observed;
use crate::values::Values;

/// Chooses samples, names frames, and makes profiles of both.
pub(super) fn run(
    reading: &Reading,
    mut observed: Observed<'_>,
    profile: impl FnOnce(Contents, Option<TimeRange>) -> Result<Profile, Rejection>,
) -> Result<Run, Unread> {
    let Observed { window, period, lost, .. } = observed;
    let timed = observed.span.is_some();
    if reading.values == Values::Times {
        times_as_weights::put(&mut observed)?;
    }
    selection::check_keys(reading, &observed)?;
    let passed = selection::select(reading, &mut observed)?;
    let slices = if reading.sliced { slices::cut(&mut observed) } else { None };
    let unit = observed.unit.take().filter(|_| observed.samples.iter().all(|sample| sample.details.weight.is_some()));
    let weights: Vec<u64> =
        unit.iter().flat_map(|_| observed.samples.iter().filter_map(|sample| sample.details.weight)).collect();
    let budget = observed.budget.clone();
    let contents = naming::named(reading, observed, &passed)?;
    let profile = profile(contents, window)?;
    let weighed = |unit| Ok::<_, Rejection>(Weights { unit, profile: weighed(&profile, &weights, &budget)? });
    let weights = unit.map(weighed).transpose()?;
    Ok(Run { profile, weights, window, timed, period, lost, slices })
}

/// A profile with these for counts, in the order of its stacks; what weighs nothing is left out.
fn weighed(profile: &Profile, weights: &[u64], budget: &Budget) -> Result<Profile, Rejection> {
    let stacks = match &profile.samples {
        Samples::Stacks(stacks) => stacks.as_slice(),
        Samples::Folded { .. } => &[],
    };
    for stack in stacks {
        budget.take(size_of::<Stack>() + size_of::<u32>() * stack.frames.len() + ALLOCATION)?;
    }
    let with = |(stack, &count): (&Stack, &u64)| (count > 0).then(|| Stack { count, ..stack.clone() });
    let stacks = Samples::Stacks(stacks.iter().zip(weights).filter_map(with).collect());
    // NB: names are shared; of the profile itself nothing else is large.
    let Profile { identity, names, .. } = profile;
    Ok(Profile { identity: Arc::clone(identity), names: Arc::clone(names), samples: stacks, ..*profile })
}
