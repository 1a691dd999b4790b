//! What is remembered about one comparison's live family between looks, and the input of a look.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::alert::flag_id;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Service, stable_hash};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, FlagRow, Interval};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{FlagState, Severity, Support};

use super::aa_check::Checked;
use super::counts::Archive;
use super::evidence::Evidence;
use super::held::Measured;
use super::imbalance::Warnings;
use super::moved::Group;
use super::row::Line;
use super::timeline::Open;

/// A row of the live family: orders ties.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowId {
    pub profile_type: ProfileType,
    pub cell: CellKey,
    pub kind: CountKind,
    pub hash: u64,
    pub function: String,
}

impl RowId {
    pub fn new(row: &CellRow) -> Self {
        Self {
            profile_type: row.comparison.profile_type,
            cell: row.cell.clone(),
            kind: row.count_kind,
            hash: stable_hash(row.function.as_bytes()),
            function: row.function.clone(),
        }
    }

    /// Whether it is the row of all functions of its cell.
    pub fn is_of_all(&self) -> bool {
        self.function == ALL_FUNCTIONS
    }
}

/// A selected row.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    /// Start of the epoch in which it was first selected.
    pub epoch: Hop,
    /// Its change then, or when it was confirmed.
    pub theta: f64,
    /// As it was last tested.
    pub now: Line,
    /// Its flag, if it has one.
    pub flag: Option<Flag>,
    /// If it rests on pods of different ages.
    pub provisional: Option<Provisional>,
    /// What explains it, if it has no flag.
    pub by: Option<RowId>,
}

/// What a row that rests on pods of different ages waits for.
#[derive(Clone, Debug)]
pub(super) struct Provisional {
    pub until_at: Nanos,
    /// The change with which it was selected.
    pub theta: f64,
    /// Looks at which pods of the same age were compared in its cell, and the hop of the first.
    pub looks: u64,
    pub met: Option<Hop>,
}

/// A current flag.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    pub raised: Hop,
    /// It has its own cause, and is never explained.
    pub of_its_own: bool,
    /// What was emitted last, and the effect then.
    pub emitted: CellRow,
    pub emitted_theta: f64,
    pub severity: Severity,
    /// The effect with which it was raised.
    pub raised_theta: f64,
    /// The latest reports in a row in which that was gone, ten minutes apart, each with ln of the window's interval.
    pub gone: Vec<(Hop, (f64, f64))>,
}

/// The live family of one comparison of builds.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub service: Service,
    pub base: Build,
    pub head: Build,
    pub epoch: Hop,
    /// Rows tested at some look of this epoch.
    pub joined: BTreeSet<RowId>,
    /// ln of the largest e-value in this epoch, of rows that reached 1/q.
    pub largest: BTreeMap<RowId, f64>,
    /// Rows cleared in this epoch because they were equivalent or had faded.
    pub decided: BTreeSet<RowId>,
    pub selected: BTreeMap<RowId, Selected>,
    /// Functions that do the same work, in another way in each build.
    pub groups: BTreeMap<(ProfileType, CellKey), Vec<Group>>,
    /// What was measured over all functions of a cell, as long as it is held.
    pub held: BTreeMap<(ProfileType, CellKey), Measured>,
    /// Cells in which something without a label divides pods, by the latest report.
    pub doubtful: BTreeSet<(ProfileType, CellKey)>,
    /// Cells in which pods of different ages were compared at the latest look.
    pub across_ages: BTreeSet<(ProfileType, CellKey)>,
}

/// The cells of one type at a look.
pub(super) struct Looked {
    pub profile_type: ProfileType,
    pub cell: CellKey,
    pub evidence: Evidence,
    /// By count kind, those that are counted.
    pub lines: BTreeMap<CountKind, Vec<Line>>,
}

/// The input of a look.
pub(super) struct LookAt<'a> {
    pub config: &'a Config,
    pub archive: &'a Archive,
    pub blocks: &'a [Hop],
    pub open: &'a Open,
    pub hop: Hop,
    /// Whether the look is a report.
    pub report: bool,
    /// The A/A check, if the look is a report.
    pub checked: &'a Checked,
    /// Imbalances of the arms, if the look is a report.
    pub imbalance: &'a Warnings,
}

impl Live {
    pub fn new(service: &Service, open: &Open) -> Self {
        Self {
            service: service.clone(),
            base: open.base_name(),
            head: open.head.clone(),
            epoch: open.epoch,
            joined: BTreeSet::new(),
            largest: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            decided: BTreeSet::new(),
            selected: BTreeMap::new(),
            groups: BTreeMap::new(),
            held: BTreeMap::new(),
            across_ages: BTreeSet::new(),
        }
    }

    /// The key of this comparison in a profile type.
    pub fn key(&self, profile_type: ProfileType) -> ComparisonKey {
        ComparisonKey {
            service: self.service.clone(),
            profile_type,
            measure: profile_type.measure(),
            base_build: self.base.clone(),
            head_build: self.head.clone(),
        }
    }

    /// ln of the largest e-value of a row at the looks of an epoch, if it reached 1/q; otherwise 0.
    pub fn largest_ln_e(&self, epoch: Hop, id: &RowId) -> f64 {
        self.largest.get(id).filter(|_| self.epoch == epoch).map_or(0.0, |ln_e| ln_e.max(0.0))
    }
}

impl Selected {
    /// The function that explains the row, if that is still selected.
    pub fn cause(&self, live: &Live) -> Option<String> {
        self.by.as_ref().filter(|by| live.selected.contains_key(by)).map(|by| by.function.clone())
    }
}

impl Flag {
    /// A flag that is raised now.
    pub fn new(raised: Hop, of_its_own: bool, row: CellRow, theta: f64, doubtful: bool) -> Self {
        let mut flag = Self {
            raised,
            of_its_own,
            emitted: row.clone(),
            emitted_theta: theta,
            severity: Severity::Info,
            raised_theta: theta,
            gone: Vec::new(),
        };
        flag.emit(row, theta, doubtful);
        flag
    }

    /// Records the current row as the emitted one.
    pub fn emit(&mut self, row: CellRow, theta: f64, doubtful: bool) {
        self.emitted_theta = theta;
        self.severity = severity(&row, theta, doubtful);
        self.emitted = row;
    }

    /// Whether the effect moved by more than half the width of the interval last emitted, or the support or severity changed.
    pub fn has_moved(&self, row: &CellRow, theta: f64, doubtful: bool) -> bool {
        let half = effect(&self.emitted).map(|ratio| (ratio.high.ln() - ratio.low.ln()) / 2.0);
        let is_other = row.support != self.emitted.support || severity(row, theta, doubtful) != self.severity;
        is_other || half.is_some_and(|half| (theta - self.emitted_theta).abs() > half)
    }

    /// A change of it as the table has it: the row as last tested, in a window that ends with the hop.
    pub fn change(
        &self,
        config: &Config,
        row: CellRow,
        state: FlagState,
        sequence: Hop,
        cleared_because: Option<&str>,
    ) -> FlagRow {
        let raised_at: Nanos = config.clock().end_of(self.raised);
        FlagRow {
            flag_id: flag_id(&row, self.raised),
            row: CellRow { window_end_at: config.clock().end_of(sequence), ..row },
            state,
            raised_at,
            sequence,
            severity: self.severity,
            cleared_because: cleared_because.map(str::to_owned),
            explains: Vec::new(),
        }
    }
}

/// The change by which a row is decided.
pub(super) fn effect(row: &CellRow) -> Option<Interval> {
    if row.function == ALL_FUNCTIONS { row.per_request_ratio } else { row.adjusted_ratio }
}

fn severity(row: &CellRow, theta: f64, doubtful: bool) -> Severity {
    match row.support {
        _ if theta <= 0.0 => Severity::Info,
        Support::Firm if row.provisional_until_at.is_none() && !doubtful => Severity::Page,
        _ => Severity::Ticket,
    }
}
