//! The table `cells`: sections 6 and 7 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::{Cohort, MERGED, Region};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, CellRow};
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{RowReason, Scope, Verdict};

use super::counts::{Archive, Cell, HEAD};
use super::evidence::{Evidence, judge};
use super::history::Open;
use super::live::{Live, RowId};
use super::row::{About, Line, lines, range};
use super::statistics::families::{ln_bh, second_level, two_level};
use crate::config::{CellBy, Config};

/// The rows of one cell or roll-up.
struct Group {
    cell: CellKey,
    lines: Vec<Line>,
}

/// All that a comparison's rows are made from at one report.
pub(super) struct Report<'a> {
    pub config: &'a Config,
    pub archive: &'a Archive,
    pub open: &'a Open,
    pub live: &'a Live,
    pub hop: Hop,
}

impl Report<'_> {
    /// The rows of both scopes, all types, kinds, cells and roll-ups.
    pub fn rows(&self) -> Vec<CellRow> {
        let mut rows = Vec::new();
        for scope in [Scope::Window, Scope::Epoch] {
            let mut by_type: BTreeMap<ProfileType, BTreeMap<CellKey, Cell>> = BTreeMap::new();
            for ((profile_type, cell), counts) in self.archive.cells(self.config, self.open, scope, self.hop) {
                by_type.entry(profile_type).or_default().insert(cell, counts);
            }
            for (profile_type, cells) in by_type {
                rows.extend(self.of_type(scope, profile_type, &cells));
            }
        }
        rows
    }

    fn of_type(&self, scope: Scope, profile_type: ProfileType, cells: &BTreeMap<CellKey, Cell>) -> Vec<CellRow> {
        let judged = |chosen: &dyn Fn(&CellKey) -> bool| {
            let chosen: Vec<&Cell> = cells.iter().filter(|(cell, _)| chosen(cell)).map(|(_, counts)| counts).collect();
            judge(self.config, self.archive, &chosen)
        };
        let evidence: Vec<(CellKey, Evidence)> = cells.keys().map(|cell| (cell.clone(), judged(&|one| one == cell))).collect();
        let evidence: Vec<_> = evidence.into_iter().filter(|(_, evidence)| evidence.samples[HEAD] > 0).collect();
        let everywhere = CellKey { region: Region::from(MERGED), cohort: Cohort::from(MERGED) };
        let over_all = vec![(everywhere, judged(&|_| true))];
        let (mut over_cohorts, mut over_regions) = (Vec::new(), Vec::new());
        if self.config.cell_by == CellBy::RegionCohort && evidence.len() >= 2 {
            for region in cells.keys().map(|cell| &cell.region).collect::<BTreeSet<_>>() {
                let key = CellKey { region: region.clone(), cohort: Cohort::from(MERGED) };
                over_cohorts.push((key, judged(&|cell| cell.region == *region)));
            }
            for cohort in cells.keys().map(|cell| &cell.cohort).collect::<BTreeSet<_>>() {
                let key = CellKey { region: Region::from(MERGED), cohort: cohort.clone() };
                over_regions.push((key, judged(&|cell| cell.cohort == *cohort)));
            }
        }
        let mut rows = Vec::new();
        // Causes of all rows of a cell are among its self rows.
        let mut causes = BTreeMap::new();
        for kind in CountKind::ALL.into_iter().filter(|kind| self.config.count_kinds.contains(kind)) {
            let groups = |evidence: &[(CellKey, Evidence)]| -> Vec<Group> {
                let group = |(cell, evidence): &(CellKey, Evidence)| {
                    let about = self.about(scope, profile_type, kind, cell);
                    Group { cell: cell.clone(), lines: lines(self.config, self.archive, &about, evidence) }
                };
                evidence.iter().map(group).collect()
            };
            let mut family = Family {
                cells: groups(&evidence),
                over_all: groups(&over_all),
                partly: [groups(&over_cohorts), groups(&over_regions)],
            };
            family.control(self.archive.names.len());
            family.call(self, scope);
            family.find_compositional(self.config, self.archive.names.len(), kind, &mut causes);
            rows.extend(family.into_rows(self.config));
        }
        rows
    }

    fn about(&self, scope: Scope, profile_type: ProfileType, kind: CountKind, cell: &CellKey) -> About {
        let (start_at, end_at) = range(self.config, self.open, scope, self.hop);
        let comparison = self.live.key(profile_type);
        About { scope, comparison, cell: cell.clone(), kind, start_at, end_at }
    }
}

/// A family of rows: cells x functions of one comparison, kind and scope, and their roll-ups.
struct Family {
    cells: Vec<Group>,
    over_all: Vec<Group>,
    /// Over cohorts, and over regions.
    partly: [Vec<Group>; 2],
}

/// ln p by group and function number; NaN where a group did not test the function.
fn matrix(groups: &[Group], functions: usize, ln_p: impl Fn(&Line) -> Option<f64>) -> Vec<Vec<f64>> {
    let of_group = |group: &Group| {
        let mut row = vec![f64::NAN; functions];
        for line in &group.lines {
            if let (Some(function), Some(ln_p)) = (line.function, ln_p(line)) {
                row[function] = ln_p;
            }
        }
        row
    };
    groups.iter().map(of_group).collect()
}

/// Writes q-values, given as logarithms by group and function number, into tested rows.
fn write(groups: &mut [Group], ln_q: &[Vec<f64>]) {
    for (group, ln_q) in groups.iter_mut().zip(ln_q) {
        for line in group.lines.iter_mut().filter(|line| line.tested.is_some()) {
            let ln_q = line.function.map(|function| ln_q[function]).filter(|ln_q| !ln_q.is_nan());
            line.row.q_value = ln_q.map(f64::exp);
        }
    }
}

impl Family {
    /// q-values of cells and roll-ups.
    fn control(&mut self, functions: usize) {
        let ln_p_row = |line: &Line| line.tested.map(|tested| tested.ln_p_row);
        let over_all = matrix(&self.over_all, functions, ln_p_row);
        let levels = two_level(&matrix(&self.cells, functions, ln_p_row), &over_all[0]);
        write(&mut self.cells, &levels.ln_q_value);
        for groups in &mut self.partly {
            let ln_q = second_level(&levels.ln_q_f, &matrix(groups, functions, ln_p_row));
            write(groups, &ln_q);
        }
        write(&mut self.over_all, &[levels.ln_q_f]);
    }

    /// Which rows are regressed or improved.
    fn call(&mut self, report: &Report<'_>, scope: Scope) {
        let in_window = |row: &CellRow| row.q_value.is_some_and(|q| q <= report.config.q);
        for line in self.cells.iter_mut().flat_map(|group| &mut group.lines) {
            let called = match scope {
                Scope::Window => in_window(&line.row),
                Scope::Epoch => report.live.is_raised(&RowId::new(&line.row)),
            };
            if called {
                call(line);
            }
        }
        let roll_ups = self.over_all.iter_mut().chain(self.partly.iter_mut().flatten());
        for line in roll_ups.flat_map(|group| &mut group.lines) {
            if scope == Scope::Window && in_window(&line.row) {
                call(line);
            }
        }
    }

    /// Rows of cells that moved only because another's share did. `causes` is filled from self rows, which come first.
    fn find_compositional(&mut self, config: &Config, functions: usize, kind: CountKind, causes: &mut BTreeMap<CellKey, String>) {
        if kind == CountKind::SelfCount {
            causes.extend(self.cells.iter().filter_map(|group| Some((group.cell.clone(), cause(group)?))));
        }
        let ln_p = matrix(&self.cells, functions, |line| line.tested.map(|tested| tested.ln_p_comp));
        let ln_q = ln_bh(&ln_p.concat());
        for (place, group) in self.cells.iter_mut().enumerate() {
            for line in group.lines.iter_mut().filter(|line| !line.row.verdict.is_called()) {
                let (Some(function), Some(tested)) = (line.function, line.tested) else { continue };
                let moved = ln_q[place * functions + function] <= config.q.ln()
                    && tested.ln_scale.abs() >= config.delta
                    && tested.theta_share * tested.ln_scale > 0.0
                    && tested.theta.abs() < tested.theta_share.abs();
                if moved {
                    line.row.verdict = Verdict::Compositional;
                    line.row.reason = None;
                    line.row.cause = causes.get(&group.cell).cloned();
                }
            }
        }
    }

    /// All rows. Where all is one cell, that cell's rows are those over all cells.
    fn into_rows(self, config: &Config) -> Vec<CellRow> {
        let over_all = if config.cell_by == CellBy::All { Vec::new() } else { self.over_all };
        let groups = self.cells.into_iter().chain(over_all).chain(self.partly.into_iter().flatten());
        groups.flat_map(|group| group.lines).map(|line| line.row).collect()
    }
}

/// Calls a tested row by the sign of its effect.
pub(super) fn call(line: &mut Line) {
    let Some(tested) = line.tested else { return };
    let row = &mut line.row;
    if tested.theta > 0.0 {
        (row.verdict, row.reason) = (Verdict::Regressed, (row.base.count == 0).then_some(RowReason::OnlyInHead));
    } else if tested.theta < 0.0 {
        (row.verdict, row.reason) = (Verdict::Improved, (row.head.count == 0).then_some(RowReason::OnlyInBase));
    }
}

/// The called function of a cell with the largest effect; of equal ones the first by stable hash.
fn cause(group: &Group) -> Option<String> {
    let mut largest: Option<(f64, &str)> = None;
    for line in group.lines.iter().filter(|line| line.row.verdict.is_called()) {
        let size = line.tested?.theta.abs();
        if largest.is_none_or(|(largest, _)| size > largest) {
            largest = Some((size, &line.row.function));
        }
    }
    largest.map(|(_, function)| function.to_owned())
}
