//! The table `cells`: sections 6 and 7 of `docs/semantics.md`.

mod judgements;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::number::{length_float, signed_float, table_count};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, EvidenceRow, RARE};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{RowReason, Scope, Verdict};

use self::judgements::Judgements;
use super::behind::behind;
use super::counts::{Archive, BASE, Cell, HEAD};
use super::evidence::Evidence;
use super::family::{Live, RowId};
use super::pods::ByPod;
use super::rates::Rate;
use super::requests::rates;
use super::row::{About, Line, add_always_valid, g_of, lines, range};
use super::statistics::families::{TwoLevel, bh, two_level, within_selected};
use super::timeline::Open;

/// The rows of one cell or roll-up.
struct Group {
    cell: CellKey,
    lines: Vec<Line>,
    /// Rows of functions under the floor that were tested; for cells within the window.
    rare: Vec<Line>,
}

/// The rows of a report.
#[derive(Default)]
pub(super) struct Reported {
    /// Of `cells`.
    pub cells: Vec<CellRow>,
    /// Of `evidence`.
    pub evidence: Vec<EvidenceRow>,
}

impl Reported {
    fn add(&mut self, other: Self) {
        self.cells.extend(other.cells);
        self.evidence.extend(other.evidence);
    }
}

/// A cell or a roll-up, and what is known about it.
type Judged = (CellKey, Evidence);

/// The input of a comparison's rows at one report.
pub(super) struct Report<'a> {
    pub config: &'a Config,
    pub archive: &'a Archive,
    pub open: &'a Open,
    pub live: &'a Live,
    pub hop: Hop,
    /// Whether the base is history: then nothing is computed by pod or by request.
    pub against_history: bool,
}

impl Report<'_> {
    /// The rows of both scopes, all types, kinds, cells and roll-ups.
    pub fn rows(&self) -> Reported {
        let mut rows = Reported::default();
        let differ = self.archive.differences(self.config, self.open, self.hop);
        for scope in [Scope::Window, Scope::Epoch] {
            let mut by_type: BTreeMap<ProfileType, BTreeMap<CellKey, Cell>> = BTreeMap::new();
            for ((profile_type, cell), counts) in self.archive.cells(self.config, self.open, scope, self.hop) {
                let place = (profile_type, cell);
                let counts = Cell { differ: differ.get(&place).copied().unwrap_or_default(), ..counts };
                by_type.entry(profile_type).or_default().insert(place.1, counts);
            }
            for (profile_type, cells) in by_type {
                rows.add(self.of_type(scope, profile_type, &cells));
            }
        }
        rows
    }

    /// The rows of one scope, type and all its cells.
    pub fn of_type(&self, scope: Scope, profile_type: ProfileType, cells: &BTreeMap<CellKey, Cell>) -> Reported {
        let Judgements { evidence, over_all, partly } = self.judge_all(cells);
        let has_head = |cell: &CellKey| evidence.iter().any(|(one, _)| one == cell);
        let mut reported = Reported::default();
        // Causes of all rows of a cell are among its self rows.
        let mut causes = BTreeMap::new();
        let total: i64 = evidence.iter().flat_map(|(_, evidence)| &evidence.arms).map(|arm| arm.total).sum();
        let known = evidence.iter().filter(|(_, evidence)| evidence.all.is_some());
        let rates_of_cells: BTreeMap<&CellKey, BTreeMap<CountKind, Rate>> =
            known.map(|(cell, evidence)| (cell, rates(self.archive, &[&cells[cell]], evidence))).collect();
        let inside = |key: &CellKey| -> Vec<&Cell> {
            let inside = cells.iter().filter(|(cell, _)| has_head(cell) && is_under(cell, key));
            inside.map(|(_, cell)| cell).collect()
        };
        for kind in CountKind::ALL.into_iter().filter(|kind| self.config.count_kinds.contains(kind)) {
            let with_rate = |(cell, evidence): &Judged, rate: Option<&Rate>| {
                let about = self.about(scope, profile_type, kind, cell);
                let mut lines = lines(self.config, self.archive, &about, evidence, rate);
                self.add_where_arms_ran(&mut lines, &inside(cell));
                if let Some(rate) = rate {
                    rate.fill_functions(&mut lines);
                }
                Group { cell: cell.clone(), lines, rare: Vec::new() }
            };
            let roll_up = |both: &Judged| {
                let rate = self.rate_of_roll_up(&both.1, kind, &inside(&both.0));
                with_rate(both, rate.as_ref())
            };
            let of_cell = |both: &Judged| {
                let (cell, evidence) = both;
                let mut group = with_rate(both, rates_of_cells.get(&cell).and_then(|rates| rates.get(&kind)));
                if !self.against_history {
                    let about = self.about(scope, profile_type, kind, cell);
                    self.add_what_cells_have(&about, evidence, &cells[cell], &mut group);
                }
                group
            };
            let mut family = Family {
                cells: evidence.iter().map(of_cell).collect(),
                over_all: over_all.iter().map(&roll_up).collect(),
                partly: partly.each_ref().map(|groups: &Vec<_>| groups.iter().map(&roll_up).collect()),
            };
            family.find_moved(self);
            family.control(self.archive.names.len(), total);
            family.call(self, scope);
            family.find_rare(self.config);
            family.find_uniform(self.config, scope);
            family.find_outlying(self.config);
            family.find_compositional(self.config, self.archive.names.len(), kind, &mut causes);
            reported.evidence.extend(self.behind(&family, &evidence, (&over_all, &partly), cells));
            let of_kind = family.into_rows(self.config).into_iter();
            reported.cells.extend(of_kind.map(|row| CellRow { is_roll_up: !cells.contains_key(&row.cell), ..row }));
        }
        reported
    }

    /// What the rows that are significant or selected by the live rule were computed from.
    fn behind(
        &self,
        family: &Family,
        of_cells: &[Judged],
        (over_all, partly): (&[Judged], &[Vec<Judged>; 2]),
        cells: &BTreeMap<CellKey, Cell>,
    ) -> Vec<EvidenceRow> {
        let over_all = if self.config.cell_by == CellBy::All { &[] } else { over_all };
        let judged = of_cells.iter().chain(over_all).chain(partly.iter().flatten());
        let mut rows = Vec::new();
        for (cell, evidence) in judged {
            let is_roll_up = !cells.contains_key(cell);
            let with_head = |key: &CellKey| of_cells.iter().any(|(one, _)| one == key);
            let covered = |key: &CellKey| if is_roll_up { with_head(key) && is_under(key, cell) } else { key == cell };
            let covered: Vec<&Cell> = cells.iter().filter(|(key, _)| covered(key)).map(|(_, counts)| counts).collect();
            for line in family.groups(is_roll_up).filter(|group| group.cell == *cell).flat_map(|group| &group.lines) {
                if line.row.verdict.is_significant() || self.live.selected.contains_key(&RowId::new(&line.row)) {
                    rows.extend(behind(line, evidence, &covered, is_roll_up));
                }
            }
        }
        rows
    }

    /// Rows whose arms share no stratum name the strata of each arm.
    fn add_where_arms_ran(&self, lines: &mut [Line], cells: &[&Cell]) {
        let shares_no_stratum =
            |line: &&mut Line| matches!(line.row.reason, Some(RowReason::NoBase | RowReason::NoCommonStratum));
        for line in lines.iter_mut().filter(shares_no_stratum) {
            let (head, base) = (ran(self.config, cells, HEAD), ran(self.config, cells, BASE));
            line.row.detail = Some(format!("head: {head}; base: {base}"));
        }
    }

    /// What single cells have and roll-ups do not: the row of all functions, and figures that only
    /// one of the scopes has.
    fn add_what_cells_have(&self, about: &About, evidence: &Evidence, cell: &Cell, group: &mut Group) {
        let all = evidence.all.as_ref().filter(|_| about.kind == CountKind::SelfCount);
        group.lines.extend(all.map(|all| all.line_of_all(about, evidence)));
        match about.scope {
            Scope::Window => {
                let pods = ByPod::of(self.archive, cell);
                pods.add_outliers(self.config, about, evidence, &mut group.lines);
                group.rare = pods.rare(self.config, about, evidence);
            }
            Scope::Epoch => {
                for line in &mut group.lines {
                    let largest = self.live.largest_ln_e(self.open.epoch, &RowId::new(&line.row));
                    add_always_valid(line, largest);
                }
            }
        }
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

/// Writes what a family gives to its tested rows: q-values, as logarithms by group and function number.
fn write(groups: &mut [Group], levels: &TwoLevel, ln_q: &[Vec<f64>]) {
    let known = |value: f64| Some(value).filter(|value| !value.is_nan());
    for (group, ln_q) in groups.iter_mut().zip(ln_q) {
        for line in group.lines.iter_mut().filter(|line| line.tested.is_some() && line.instead.is_none()) {
            let Some(function) = line.function else { continue };
            // A roll-up may test a function that is in the family neither by a cell nor by the row over all cells.
            line.row.q_value = Some(known(ln_q[function]).map_or(1.0, f64::exp));
            line.row.weight = known(levels.weights[function]);
            line.row.function_ln_p = known(levels.ln_p_f[function]);
        }
    }
}

impl Family {
    /// The cells, or the roll-ups.
    fn groups(&self, roll_ups: bool) -> impl Iterator<Item = &Group> {
        let rolled = self.over_all.iter().chain(self.partly.iter().flatten());
        self.cells.iter().filter(move |_| !roll_ups).chain(rolled.filter(move |_| roll_ups))
    }

    /// Share of cost by function number, over all cells; `total` is the sum of their samples.
    fn shares(&self, functions: usize, total: i64) -> Vec<f64> {
        let mut counts = vec![0; functions];
        for line in self.cells.iter().flat_map(|group| &group.lines) {
            if let Some(function) = line.function {
                counts[function] += line.row.head.count + line.row.base.count;
            }
        }
        counts.into_iter().map(|count| signed_float(count) / signed_float(total)).collect()
    }

    /// Which rows have moved, by the live rule: they are in no family.
    fn find_moved(&mut self, report: &Report<'_>) {
        if report.against_history {
            return;
        }
        for line in self.cells.iter_mut().flat_map(|group| &mut group.lines) {
            line.instead = report.live.instead(&RowId::new(&line.row)).map(str::to_owned);
        }
        for line in self.over_all.iter_mut().chain(self.partly.iter_mut().flatten()).flat_map(|group| &mut group.lines)
        {
            line.instead = report.live.instead_below(&RowId::new(&line.row)).map(str::to_owned);
        }
    }

    /// q-values of cells and roll-ups.
    fn control(&mut self, functions: usize, total: i64) {
        let ln_p_row = |line: &Line| line.of_family(|line| line.tested.as_ref().map(|tested| tested.ln_p_row));
        let over_all = matrix(&self.over_all, functions, ln_p_row);
        let shares = self.shares(functions, total);
        let levels = two_level(&matrix(&self.cells, functions, ln_p_row), &over_all[0], &shares);
        write(&mut self.cells, &levels, &levels.ln_q_value);
        for groups in self.partly.iter_mut().chain([&mut self.over_all]) {
            let ln_q = within_selected(&levels.ln_q_f, &matrix(groups, functions, ln_p_row));
            write(groups, &levels, &ln_q);
        }
    }

    /// What follows for the rows that are decided.
    fn call(&mut self, report: &Report<'_>, scope: Scope) {
        let Config { q, min_effect, .. } = report.config;
        let in_window = |line: &Line| line.row.q_value.is_some_and(|value| value <= *q);
        for line in self.cells.iter_mut().flat_map(|group| &mut group.lines) {
            let live = report.live.selected.get(&RowId::new(&line.row));
            let selected = match scope {
                Scope::Window => in_window(line),
                Scope::Epoch => live.is_some(),
            };
            if let Some(instead) = line.instead.clone().filter(|_| line.tested.is_some()) {
                line.moves(&instead);
            } else if selected && line.theta().is_some() {
                line.select(*min_effect);
                line.row.cause = live.and_then(|live| live.cause(report.live));
            }
        }
        let roll_ups = self.over_all.iter_mut().chain(self.partly.iter_mut().flatten());
        for line in roll_ups.flat_map(|group| &mut group.lines) {
            if let Some(instead) = line.instead.clone() {
                line.moves(&instead);
            } else if scope == Scope::Window && in_window(line) {
                line.select(*min_effect);
            }
        }
    }

    /// Decides functions under the floor. Significant ones get their own rows and are removed from the row of all rare
    /// functions.
    fn find_rare(&mut self, config: &Config) {
        let ln_q = bh(&values(&self.cells, |group| &group.rare, |line| line.row.rare_ln_p));
        let mut ln_q = ln_q.into_iter();
        for group in &mut self.cells {
            let family = std::mem::take(&mut group.rare).into_iter().zip(ln_q.by_ref());
            let selected: Vec<Line> =
                family.filter(|(_, ln_q)| *ln_q <= config.q.ln()).filter_map(|(line, _)| decide_rare(line)).collect();
            group.lines.retain_mut(|line| line.row.function != RARE || give_up(&mut line.row, &selected));
            group.lines.extend(selected);
        }
    }

    /// Costs per request: functions are one family, the rows of all functions another, which decides about them.
    fn find_uniform(&mut self, config: &Config, scope: Scope) {
        for of_all in [false, true] {
            let is_one = |line: &Line| (line.row.function == ALL_FUNCTIONS) == of_all;
            let member = |line: &Line| line.of_family(|line| line.row.per_request_ln_p.filter(|_| is_one(line)));
            let ln_q = bh(&values(&self.cells, |group| &group.lines, member));
            for (line, ln_q) in self.cells.iter_mut().flat_map(|group| &mut group.lines).zip(ln_q) {
                if ln_q.is_nan() {
                    continue;
                }
                line.row.per_request_q_value = Some(ln_q.exp());
                if scope == Scope::Window && of_all && ln_q <= config.q.ln() {
                    line.select(config.min_effect);
                }
            }
        }
    }

    /// Rows that are not decided but in which a minority of the head's pods differ.
    fn find_outlying(&mut self, config: &Config) {
        let ln_q = bh(&values(&self.cells, |group| &group.lines, |line| line.of_family(|line| line.row.outlier_ln_p)));
        let tested = ln_q.iter().filter(|ln_q| !ln_q.is_nan()).count();
        let selected = ln_q.iter().filter(|ln_q| **ln_q <= config.q.ln()).count();
        let ln_level = config.q.ln() + (length_float(selected) / length_float(tested.max(1))).ln();
        for (line, ln_q) in self.cells.iter_mut().flat_map(|group| &mut group.lines).zip(ln_q) {
            line.row.outlier_q_value = Some(ln_q.exp()).filter(|_| !ln_q.is_nan());
            let settled = matches!(line.row.verdict, Verdict::NotComparable | Verdict::Untestable);
            if line.decided || settled || ln_q.is_nan() || ln_q > config.q.ln() {
                continue;
            }
            let of_pods = bh(&line.deviating.iter().map(|(_, ln_p)| *ln_p).collect::<Vec<_>>());
            let named = line.deviating.iter().zip(of_pods).filter(|(_, ln_q)| *ln_q <= ln_level);
            let mut named: Vec<String> = named.map(|((name, _), _)| name.clone()).collect();
            named.sort();
            if !named.is_empty() && table_count(2 * named.len()) <= line.row.head.pods {
                (line.row.verdict, line.row.reason) = (Verdict::SomePodsOutlying, None);
                line.row.outlying_pods = named;
            }
        }
    }

    /// Rows of cells that moved only because another's share did. `causes` is filled from self rows, which come first.
    fn find_compositional(
        &mut self,
        config: &Config,
        functions: usize,
        kind: CountKind,
        causes: &mut BTreeMap<CellKey, String>,
    ) {
        if kind == CountKind::SelfCount {
            causes.extend(self.cells.iter().filter_map(|group| Some((group.cell.clone(), cause(group)?))));
        }
        let ln_p_comp = |line: &Line| line.tested.as_ref().map(|tested| tested.ln_p_comp);
        let ln_p = matrix(&self.cells, functions, |line| line.of_family(ln_p_comp));
        let ln_q = bh(&ln_p.concat());
        for (place, group) in self.cells.iter_mut().enumerate() {
            let open = |line: &&mut Line| !line.decided && line.row.verdict != Verdict::SomePodsOutlying;
            for line in group.lines.iter_mut().filter(open) {
                let (Some(function), Some(tested)) = (line.function, &line.tested) else { continue };
                if ln_q[place * functions + function].is_nan() || ln_q[place * functions + function] > config.q.ln() {
                    continue;
                }
                let by_others =
                    if tested.per_request { tested.theta_share - tested.theta } else { tested.ln_normalization };
                if tested.ambiguous {
                    (line.row.verdict, line.row.reason) = (Verdict::Inconclusive, Some(RowReason::AmbiguousScale));
                } else if by_others.abs() >= config.min_effect
                    && tested.theta_share * by_others > 0.0
                    && tested.theta.abs() < tested.theta_share.abs()
                {
                    line.row.verdict = Verdict::Compositional;
                    line.row.reason = None;
                    line.row.cause = causes.get(&group.cell).cloned();
                }
            }
        }
    }

    /// All rows. If there is only one merged cell, its rows are those over all cells.
    fn into_rows(self, config: &Config) -> Vec<CellRow> {
        let over_all = if config.cell_by == CellBy::All { Vec::new() } else { self.over_all };
        let groups = self.cells.into_iter().chain(over_all).chain(self.partly.into_iter().flatten());
        groups.flat_map(|group| group.lines).map(|line| line.row).collect()
    }
}

/// Whether a cell is this one, or one of those that a roll-up is over.
pub(super) fn is_under(cell: &CellKey, over: &CellKey) -> bool {
    let region = over.region.as_str() == MERGED || over.region == cell.region;
    region && (over.cohort.as_str() == MERGED || over.cohort == cell.cohort)
}

/// The first three strata of an arm in some cells, in words.
fn ran(config: &Config, cells: &[&Cell], arm: usize) -> String {
    let strata = cells.iter().flat_map(|cell| &cell.strata).filter(|(_, stratum)| stratum[arm].samples > 0);
    let strata: BTreeSet<_> = strata.map(|(key, _)| key).collect();
    first_three(
        strata
            .into_iter()
            .map(|(block, hardware, _)| format!("{hardware} from {}", rfc3339(config.clock().start_of(*block))))
            .collect(),
    )
}

/// The first three, and how many more.
pub(super) fn first_three(mut words: Vec<String>) -> String {
    if words.is_empty() {
        return "none".to_owned();
    }
    let more = words.len().saturating_sub(3);
    words.truncate(3);
    if more > 0 { format!("{} and {more} more", words.join(", ")) } else { words.join(", ") }
}

/// Values by row, group after group; NaN where a row has none.
fn values<'a>(
    groups: &'a [Group],
    lines: fn(&'a Group) -> &'a Vec<Line>,
    of: impl Fn(&Line) -> Option<f64>,
) -> Vec<f64> {
    groups.iter().flat_map(lines).map(|line| of(line).unwrap_or(f64::NAN)).collect()
}

/// Makes a function under the floor significant, in the direction of the arm in which its share is larger.
fn decide_rare(mut line: Line) -> Option<Line> {
    let [head, base] = [&line.row.head, &line.row.base].map(|arm| (i128::from(arm.count), i128::from(arm.total)));
    let verdict = match (head.0 * base.1).cmp(&(base.0 * head.1)) {
        Ordering::Greater => Verdict::Regressed,
        Ordering::Less => Verdict::Improved,
        Ordering::Equal => return None,
    };
    (line.row.verdict, line.row.reason) = (verdict, Some(RowReason::Rare));
    Some(line)
}

/// Removes significant functions from the row that stands for all functions under the floor; returns whether it still
/// stands for any.
fn give_up(row: &mut CellRow, selected: &[Line]) -> bool {
    row.functions = row.functions.map(|functions| functions - table_count(selected.len()));
    for (arm, of) in [(&mut row.head, HEAD), (&mut row.base, BASE)] {
        arm.count -= selected.iter().map(|line| [line.row.head.count, line.row.base.count][of]).sum::<i64>();
        arm.share = (arm.total > 0).then(|| signed_float(arm.count) / signed_float(arm.total));
    }
    (row.g, row.ln_p_iid) = g_of(&row.head, &row.base);
    row.functions != Some(0)
}

/// The significant function of a cell with the largest effect; among equal ones the first by stable hash.
fn cause(group: &Group) -> Option<String> {
    let mut largest: Option<(f64, &str)> = None;
    for line in group.lines.iter().filter(|line| line.row.verdict.is_significant()) {
        let Some(size) = line.tested.as_ref().map(|tested| tested.theta.abs()) else { continue };
        if largest.is_none_or(|(largest, _)| size > largest) {
            largest = Some((size, &line.row.function));
        }
    }
    largest.map(|(_, function)| function.to_owned())
}
