//! Which limits hold from when on, if they change while a service runs.

use std::sync::{Arc, Mutex, PoisonError};

use fleetdiff_schemas::config::{Limits, LimitsByHop};
use fleetdiff_schemas::sink::SinkError;
use fleetdiff_schemas::time::Hop;

use super::{Decision, Decisions};

/// The limits of a run, shared by its workers and by who changes them.
#[derive(Clone, Debug)]
pub struct LimitsInForce(Arc<Mutex<InForce>>);

#[derive(Debug)]
struct InForce {
    limits: LimitsByHop,
    /// The first hop of which no worker has asked for the limits: no earlier one can have others.
    free_from: Hop,
}

impl LimitsInForce {
    /// Those of the log; before its first entry, these.
    pub fn of(decisions: &Decisions, first: Limits) -> Self {
        let mut known = known(decisions);
        let mut limits = LimitsByHop::new(known.next().map_or(first, |(_, known)| known));
        known.for_each(|(from, known)| {
            limits.change(from, known);
        });
        Self(Arc::new(Mutex::new(InForce { limits, free_from: decisions.decided_before })))
    }

    /// Those of the log, which gets what is configured besides.
    ///
    /// # Errors
    /// See [`super::DecisionLog::append`].
    pub fn begin(decisions: &Decisions, configured: Limits) -> Result<Self, SinkError> {
        if known(decisions).next().is_none() {
            decisions.append(&Decision::Limits { from_hop: Hop(0), limits: configured })?;
        }
        let in_force = Self::of(decisions, configured);
        in_force.change(configured, decisions)?;
        Ok(in_force)
    }

    /// Those that hold at a hop that closes now.
    pub fn at(&self, hop: Hop) -> Limits {
        let in_force = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        in_force.free_from = in_force.free_from.max(hop.plus(1));
        *in_force.limits.at(hop)
    }

    /// Others hold from the next hop on that is free, unless they are those that hold in the end. The log has them before they do.
    ///
    /// # Errors
    /// See [`super::DecisionLog::append`].
    pub fn change(&self, limits: Limits, decisions: &Decisions) -> Result<Option<Hop>, SinkError> {
        let in_force = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = in_force.limits.clone();
        let from_hop = changed.change(in_force.free_from, limits);
        let limits = *changed.last();
        if limits == *in_force.limits.last() {
            return Ok(None);
        }
        decisions.append(&Decision::Limits { from_hop, limits })?;
        in_force.limits = changed;
        Ok(Some(from_hop))
    }
}

/// The limits in the log of earlier runs.
fn known(decisions: &Decisions) -> impl Iterator<Item = (Hop, Limits)> {
    decisions.known.iter().filter_map(|decision| match decision {
        Decision::Limits { from_hop, limits } => Some((*from_hop, *limits)),
        _ => None,
    })
}
