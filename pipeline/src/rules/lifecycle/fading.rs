//! Flags of a change that is gone: a warm-up that took longer than pods are young, or a cause that was mended.
//!
//! The evidence of an epoch only grows, so it does not show that a change is over; the window does. A flag has faded if, in three
//! reports at least ten minutes apart and with none between them that says otherwise, the 95 % interval of the window covers no
//! change and leaves out half of the change with which the flag was raised. A report that does not test the row says otherwise too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, Interval};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_statistics::faded::{LOOKS, is_refuted};
use serde::{Deserialize, Serialize};

use super::provisional::in_logarithms;
use super::{FlagKey, LiveRule, State};

/// Reports closer together than this count as one.
const SPACING: Nanos = Nanos::from_seconds(600);

/// A row among those of one type of profile and scope.
type RowKey<'r> = (&'r CellKey, CountKind, &'r str);

fn key_within(row: &CellRow) -> RowKey<'_> {
    (&row.cell, row.count_kind, &row.function)
}

/// What the reports since a flag was raised say of its change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Fading {
    /// The change with which it was raised.
    theta: f64,
    /// Reports in which it was gone.
    reports: usize,
    /// The last of them.
    last: Option<Hop>,
}

impl Fading {
    /// Of a flag that is raised now.
    pub fn of(theta: f64) -> Self {
        Self { theta, reports: 0, last: None }
    }

    /// Takes the change in the window of a report, if the row was tested.
    fn report(&mut self, hop: Hop, spacing: u64, interval: Option<Interval>) {
        if !interval.is_some_and(|interval| is_refuted(self.theta, &in_logarithms(interval))) {
            (self.reports, self.last) = (0, None);
        } else if self.last.is_none_or(|last| last.plus(spacing) <= hop) {
            (self.reports, self.last) = (self.reports + 1, Some(hop));
        }
    }
}

impl LiveRule {
    /// Takes the rows of the window of a report, of one type of profile. Those of provisional flags decide nothing.
    pub fn report(&mut self, hop: Hop, comparison: &ComparisonKey, rows: &[Arc<CellRow>]) {
        let spacing = self.clock.hops_in(SPACING);
        let effects: BTreeMap<RowKey<'_>, Option<Interval>> =
            rows.iter().map(|row| (key_within(row), row.effect())).collect();
        let of_type = self.selected.iter_mut().filter(|((of, ..), _)| of == comparison);
        for (_, selected) in of_type.filter(|(_, selected)| selected.provisional.is_none()) {
            if let State::Raised(raised) = &mut selected.state {
                raised.fading.report(hop, spacing, effects.get(&key_within(&selected.now.row)).copied().flatten());
            }
        }
    }

    /// The flags that have faded.
    pub(super) fn faded(&self) -> BTreeSet<FlagKey> {
        let is_over = |state: &State| matches!(state, State::Raised(raised) if raised.fading.reports >= LOOKS);
        self.selected.iter().filter(|(_, selected)| is_over(&selected.state)).map(|(key, _)| key.clone()).collect()
    }
}
