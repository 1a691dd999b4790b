//! The life of flags and the verdict of comparisons: sections 8 and 9 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::alert::flag_id;
use fleetdiff_schemas::identity::{Build, Service, stable_hash};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, ComparisonRow, FlagRow};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{FlagState, Scope, Severity, Support, Verdict};

use super::counts::Archive;
use super::evidence::{Evidence, judge};
use super::history::Open;
use super::report::call;
use super::row::{About, Line, lines, range};
use super::statistics::families::e_bh;
use super::verdicts;
use crate::config::Config;

/// A row of the live family: orders ties.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowId {
    pub profile_type: ProfileType,
    pub cell: CellKey,
    pub kind: CountKind,
    hash: u64,
    function: String,
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
}

/// A flag that is raised and not cleared.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    id: String,
    raised_at: Nanos,
    /// Start of the epoch in which it was raised.
    epoch: Hop,
    /// The effect at its last test.
    pub theta: f64,
    /// What was emitted last, and the effect then.
    emitted: CellRow,
    emitted_theta: f64,
    severity: Severity,
}

/// The live family of one comparison of builds.
#[derive(Clone, Debug)]
pub(super) struct Live {
    service: Service,
    base: Build,
    head: Build,
    epoch: Hop,
    /// Rows tested at some look of this epoch.
    joined: BTreeSet<RowId>,
    pub raised: BTreeMap<RowId, Raised>,
}

/// The cells of one type at a look.
pub(super) struct Looked {
    pub profile_type: ProfileType,
    pub cell: CellKey,
    pub evidence: Evidence,
    /// By count kind, those that are counted.
    pub lines: BTreeMap<CountKind, Vec<Line>>,
}

impl Live {
    pub fn new(service: &Service, open: &Open) -> Self {
        Self {
            service: service.clone(),
            base: open.base_name(),
            head: open.head.clone(),
            epoch: open.epoch,
            joined: BTreeSet::new(),
            raised: BTreeMap::new(),
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

    pub fn is_raised(&self, id: &RowId) -> bool {
        self.raised.contains_key(id)
    }

    /// The comparison closed: every flag is cleared, as it was emitted last.
    pub fn close(&self, hop: Hop) -> Vec<FlagRow> {
        let closed = |raised: &Raised| raised.flag(raised.emitted.clone(), FlagState::Cleared, hop, Some("comparison_closed"));
        self.raised.values().map(closed).collect()
    }

    /// One look: changes of flags, and the verdict of the comparison in each cell and over all.
    pub fn look(&mut self, config: &Config, archive: &Archive, blocks: &[Hop], open: &Open, hop: Hop) -> (Vec<FlagRow>, Vec<ComparisonRow>) {
        if self.epoch != open.epoch {
            self.epoch = open.epoch;
            self.joined.clear();
        }
        let looked = self.gather(config, archive, open, hop);
        let tested: BTreeMap<RowId, &Line> = looked
            .iter()
            .flat_map(|cell| cell.lines.values().flatten())
            .filter(|line| line.tested.is_some())
            .map(|line| (RowId::new(&line.row), line))
            .collect();
        self.joined.extend(tested.keys().cloned());
        let mut flags = self.follow(&tested, hop);
        flags.extend(self.raise(config, &tested, hop));
        let verdicts = verdicts::at_look(config, self, &looked, blocks, open, hop);
        (flags, verdicts)
    }

    fn gather(&self, config: &Config, archive: &Archive, open: &Open, hop: Hop) -> Vec<Looked> {
        let (start_at, end_at) = range(config, open, Scope::Epoch, hop);
        let one = |((profile_type, cell), counts)| {
            let evidence = judge(config, archive, &[&counts]);
            let of_kind = |kind: &CountKind| {
                let comparison = self.key(profile_type);
                let about = About { scope: Scope::Epoch, comparison, cell: CellKey::clone(&cell), kind: *kind, start_at, end_at };
                (*kind, lines(config, archive, &about, &evidence))
            };
            let lines = config.count_kinds.iter().map(of_kind).collect();
            Looked { profile_type, cell, evidence, lines }
        };
        archive.cells(config, open, Scope::Epoch, hop).into_iter().map(one).collect()
    }

    /// Flags raised before that move or are cleared.
    fn follow(&mut self, tested: &BTreeMap<RowId, &Line>, hop: Hop) -> Vec<FlagRow> {
        let mut flags = Vec::new();
        let epoch = self.epoch;
        self.raised.retain(|id, raised| {
            let Some((line, now)) = tested.get(id).and_then(|line| Some((*line, line.tested?))) else { return true };
            raised.theta = now.theta;
            if epoch > raised.epoch && line.row.support == Support::Firm && now.alike {
                flags.push(raised.flag(line.row.clone(), FlagState::Cleared, hop, Some("equivalent")));
                return false;
            }
            let half = raised.emitted.adjusted_ratio.map(|ratio| (ratio.high.ln() - ratio.low.ln()) / 2.0);
            let moved = half.is_some_and(|half| (now.theta - raised.emitted_theta).abs() > half);
            if moved || line.row.support != raised.emitted.support {
                raised.emit(line);
                flags.push(raised.flag(raised.emitted.clone(), FlagState::Updated, hop, None));
            }
            true
        });
        flags
    }

    /// e-BH over the rows tested now, in a family of all that joined.
    fn raise(&mut self, config: &Config, tested: &BTreeMap<RowId, &Line>, hop: Hop) -> Vec<FlagRow> {
        let mut candidates: Vec<(f64, &RowId, &Line)> = tested
            .iter()
            .filter_map(|(id, line)| Some((line.tested?.ln_e, id, *line)))
            .filter(|(ln_e, _, _)| *ln_e >= -config.q.ln())
            .collect();
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let descending: Vec<f64> = candidates.iter().map(|(ln_e, _, _)| *ln_e).collect();
        let called = e_bh(&descending, config.q, self.joined.len());
        let mut flags = Vec::new();
        for (_, id, line) in candidates.into_iter().take(called) {
            let large = line.tested.is_some_and(|now| now.theta.abs() >= config.delta);
            if large && !self.raised.contains_key(id) {
                let mut raised = Raised::new(config, line, self.epoch, hop);
                raised.emit(line);
                flags.push(raised.flag(raised.emitted.clone(), FlagState::Raised, hop, None));
                self.raised.insert(id.clone(), raised);
            }
        }
        flags
    }
}

impl Raised {
    fn new(config: &Config, line: &Line, epoch: Hop, hop: Hop) -> Self {
        Self {
            id: flag_id(&line.row, hop),
            raised_at: config.clock().end_of(hop),
            epoch,
            theta: line.tested.map_or(0.0, |now| now.theta),
            emitted: line.row.clone(),
            emitted_theta: 0.0,
            severity: Severity::Info,
        }
    }

    /// Takes the row as it is now for the one that is emitted.
    fn emit(&mut self, line: &Line) {
        let mut line = line.clone();
        call(&mut line);
        self.emitted_theta = line.tested.map_or(0.0, |now| now.theta);
        self.severity = match (line.row.verdict, line.row.support) {
            (Verdict::Regressed, Support::Firm) => Severity::Page,
            (Verdict::Regressed, _) => Severity::Ticket,
            _ => Severity::Info,
        };
        self.emitted = line.row;
    }

    fn flag(&self, row: CellRow, state: FlagState, sequence: Hop, cleared_because: Option<&str>) -> FlagRow {
        FlagRow {
            row,
            flag_id: self.id.clone(),
            state,
            raised_at: self.raised_at,
            sequence,
            severity: self.severity,
            cleared_because: cleared_because.map(str::to_owned),
            explains: Vec::new(),
        }
    }
}
