//! Times in the place of counts: what [`Values::Times`](crate::Values::Times) reads.

use fleetdiff_schemas::profile::MAX_SAMPLES;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::labels::Unit;
use crate::observed::Observed;

/// Gives every entry the nanoseconds that it weighs for its count; what weighs nothing is left out. There are no weights beside
/// them.
///
/// # Errors
/// `unit_mismatch` if what samples weigh is no time, or is not said of each; `too_large` if it is more than 78 h.
pub(super) fn put(observed: &mut Observed<'_>) -> Result<(), Rejection> {
    let unit = observed.unit.take();
    if observed.samples.is_empty() {
        return Ok(());
    }
    let scale = unit.as_deref().and_then(nanoseconds_in);
    let weighed = observed.samples.iter().all(|sample| sample.details.weight.is_some());
    let Some(scale) = scale.filter(|_| weighed) else {
        return Err(Rejection::new(Reason::UnitMismatch, "it holds counts of samples, and no times of them"));
    };
    for sample in &mut observed.samples {
        sample.stack.count = sample.details.weight.take().unwrap_or(0).saturating_mul(scale);
    }
    observed.samples.retain(|sample| sample.stack.count > 0);
    observed.period = None;
    let all = observed.samples.iter().fold(0u64, |sum, sample| sum.saturating_add(sample.stack.count));
    if all > MAX_SAMPLES {
        let detail = format!("times of {all} ns in one profile, at most {MAX_SAMPLES} ns (78 h)");
        return Err(Rejection::new(Reason::TooLarge, detail));
    }
    Ok(())
}

/// Nanoseconds in one of what `name/unit` is in, if that is a time.
fn nanoseconds_in(unit: &str) -> Option<u64> {
    let (_, unit) = unit.rsplit_once('/')?;
    unit.parse::<Unit>().ok().and_then(Unit::nanoseconds).map(i64::unsigned_abs)
}
