//! What became of each flag of a run.

use std::collections::BTreeMap;

use fleetdiff_schemas::rows::FlagRow;
use fleetdiff_schemas::verdict::{FlagState, Severity};

/// The flags of a run.
#[derive(Debug, Default)]
pub struct Flags(Vec<Changes>);

/// One flag by its changes, in their order: at least one.
#[derive(Debug)]
pub struct Changes(Vec<FlagRow>);

impl Flags {
    /// Of the rows of table `flags`.
    #[must_use]
    pub fn of(rows: Vec<FlagRow>) -> Self {
        let mut flags: BTreeMap<String, Vec<FlagRow>> = BTreeMap::new();
        for row in rows {
            flags.entry(row.flag_id.clone()).or_default().push(row);
        }
        Self(flags.into_values().map(Changes).collect())
    }

    /// Each flag.
    pub fn iter(&self) -> impl Iterator<Item = &Changes> {
        self.0.iter()
    }

    /// How many flags fulfil a condition.
    pub fn count(&self, holds: impl Fn(&Changes) -> bool) -> usize {
        self.iter().filter(|changes| holds(changes)).count()
    }
}

impl Changes {
    /// Each change.
    pub fn iter(&self) -> impl Iterator<Item = &FlagRow> {
        self.0.iter()
    }

    /// As it was raised.
    #[must_use]
    pub fn first(&self) -> &FlagRow {
        &self.0[0]
    }

    /// As the recording ends.
    #[must_use]
    pub fn last(&self) -> &FlagRow {
        &self.0[self.0.len() - 1]
    }

    /// Whether it was not cleared.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.last().state != FlagState::Cleared
    }

    /// Whether it was raised before pods of the same age had met.
    #[must_use]
    pub fn is_raised_provisionally(&self) -> bool {
        is_provisional(self.first())
    }

    /// Whether it stands, though pods of the same age have not met.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.stands() && is_provisional(self.last())
    }

    /// Whether it was a page at some time.
    #[must_use]
    pub fn has_paged(&self) -> bool {
        self.iter().any(|row| row.severity == Severity::Page)
    }
}

fn is_provisional(row: &FlagRow) -> bool {
    row.row.provisional_until_at.is_some()
}
