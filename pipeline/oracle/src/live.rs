//! The life of flags and the verdict of comparisons: sections 8 and 9 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{float, signed_float};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonRow, FlagRow};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{FlagState, Scope, Support, Verdict};

use super::causes::{Cause, Here, Threshold, causes};
use super::counts::{Cell, Tree};
use super::evidence::{Evidence, Few, Using, judge};
use super::explained::{compositional, explains, shifts};
use super::family::{Flag, Live, LookAt, Looked, Provisional, RowId, Selected, effect};
use super::held::Measured;
use super::imbalance::Warnings;
use super::moved::joined;
use super::requests::rates;
use super::row::{About, Line, add_always_valid, lines, only_in, range};
use super::statistics::always_valid::{faded, is_gone};
use super::statistics::families::{e_bh, live_weights};
use super::verdicts;

/// Call trees by cell.
type Trees = BTreeMap<(ProfileType, CellKey), Tree>;

impl Live {
    /// The comparison closed: every flag is cleared, with its row as it was last tested.
    pub fn close(&self, config: &Config, hop: Hop) -> Vec<FlagRow> {
        let closed = |selected: &Selected| {
            let row = selected.row(config);
            Some(selected.flag.as_ref()?.change(config, row, FlagState::Cleared, hop, Some("comparison_closed")))
        };
        self.selected.values().filter_map(closed).collect()
    }

    /// One look: changes of flags, and the verdict of the comparison in each cell and over all.
    pub fn look(&mut self, at: &LookAt<'_>) -> (Vec<FlagRow>, Vec<ComparisonRow>) {
        if self.epoch != at.open.epoch {
            self.epoch = at.open.epoch;
            self.joined.clear();
            self.largest.clear();
            self.decided.clear();
        }
        let looked = self.gather(at);
        self.forget_other_ages(&looked);
        let tested: BTreeMap<RowId, &Line> = looked
            .iter()
            .flat_map(|cell| cell.lines.values().flatten())
            .filter(|line| line.theta().is_some())
            .map(|line| (RowId::new(&line.row), line))
            .collect();
        self.joined.extend(tested.keys().cloned());
        let (rejected, count) = self.rejected(at, &looked, &tested);
        let equivalent = self.follow(&tested);
        let faded: BTreeSet<RowId> = self.faded();
        let settled = self.settle(at, &looked, &rejected, &tested);
        self.admit(at.config, &rejected, &tested);
        let threshold = Threshold {
            min_effect: at.config.min_effect,
            ln_e: (wide(self.joined.len()) / (at.config.q * wide(count.max(1)))).ln(),
        };
        let trees = self.trees(at);
        let causes = self.causes(at, &trees, threshold);
        let reversed = self.reversed(&tested);
        let has_moved = |id: &&RowId| self.instead(id).is_some();
        let moved: BTreeSet<RowId> = self.selected.keys().filter(has_moved).cloned().collect();
        let stands = |id: &&RowId| {
            let large = |line: &&&Line| line.theta().is_some_and(|theta| theta.abs() >= at.config.min_effect);
            tested.get(id).filter(large).is_some_and(|line| line.holds())
        };
        let holding: BTreeSet<RowId> = rejected.iter().filter(stands).cloned().collect();
        let settles = |id: &RowId| {
            let ends = reversed.contains(id) || faded.contains(id) || settled.warm_up.contains(id);
            ends || settled.open.contains(id) || moved.contains(id)
        };
        let is_open = |id: &&RowId| tested.contains_key(id) && !equivalent.contains(id) && !settles(id);
        let open = self.selected.keys().filter(is_open).cloned().collect();
        let over = |id: &RowId| match () {
            () if moved.contains(id) => Some("moved"),
            () if equivalent.contains(id) => Some("equivalent"),
            () if settled.warm_up.contains(id) => Some("warm_up"),
            () if faded.contains(id) => Some("faded"),
            () if reversed.contains(id) => Some("reversed"),
            () => None,
        };
        let mut flags = self.change(at, over, (&settled.confirmed, &holding), &open, &causes);
        self.add_explained(at, &trees, &looked, &mut flags);
        let ended: Vec<RowId> = self.selected.keys().filter(|id| over(id).is_some()).cloned().collect();
        for id in ended {
            self.selected.remove(&id);
            if !matches!(over(&id), Some("warm_up" | "reversed" | "moved")) {
                self.decided.insert(id);
            }
        }
        (flags, verdicts::at_look(at, self, &looked))
    }

    /// Rows whose change has turned to the other direction.
    fn reversed(&self, tested: &BTreeMap<RowId, &Line>) -> BTreeSet<RowId> {
        let turned = |(id, one): (&RowId, &Selected)| {
            let is_other_way = one.now.theta().is_some_and(|theta| theta * one.theta < 0.0);
            (tested.contains_key(id) && one.provisional.is_none() && is_other_way).then(|| id.clone())
        };
        self.selected.iter().filter_map(turned).collect()
    }

    /// Takes the warnings of a report.
    pub fn doubt(&mut self, warnings: &Warnings) {
        let doubts = ["without a label:", "changes profiles:"];
        let is_doubtful =
            |warnings: &Vec<String>| warnings.iter().any(|words| doubts.iter().any(|doubt| words.contains(doubt)));
        let doubtful = warnings.iter().filter(|(_, warnings)| is_doubtful(warnings));
        self.doubtful = doubtful.map(|(place, _)| place.clone()).collect();
    }

    /// Takes the rows of a report: in which flags the change of the window is gone.
    pub fn report(&mut self, config: &Config, hop: Hop, rows: &[CellRow]) {
        let window: BTreeMap<RowId, &CellRow> =
            rows.iter().filter(|row| row.scope == Scope::Window).map(|row| (RowId::new(row), row)).collect();
        for (id, selected) in self.selected.iter_mut().filter(|(_, selected)| selected.provisional.is_none()) {
            let Some(flag) = &mut selected.flag else { continue };
            let interval = window.get(id).and_then(|row| effect(row)).map(|ratio| (ratio.low.ln(), ratio.high.ln()));
            match interval.filter(|interval| is_gone(flag.raised_theta, *interval)) {
                None => flag.gone.clear(),
                Some(interval) => {
                    let ten_minutes = config.clock().hops_in(Nanos::from_seconds(600));
                    if flag.gone.last().is_none_or(|(last, _)| last.plus(ten_minutes) <= hop) {
                        flag.gone.push((hop, interval));
                    }
                }
            }
        }
    }

    /// Flags whose change was gone in three such reports.
    fn faded(&self) -> BTreeSet<RowId> {
        let is_over = |flag: &Flag| {
            let intervals: Vec<(f64, f64)> = flag.gone.iter().map(|(_, interval)| *interval).collect();
            faded(flag.raised_theta, &intervals)
        };
        self.selected
            .iter()
            .filter(|(_, one)| one.flag.as_ref().is_some_and(is_over))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn gather(&mut self, at: &LookAt<'_>) -> Vec<Looked> {
        let LookAt { config, archive, open, .. } = at;
        let (start_at, end_at) = range(config, open, Scope::Epoch, at.hop);
        let differ = archive.differences(config, open, at.hop);
        let one = |((profile_type, cell), counts): ((ProfileType, CellKey), Cell)| {
            let place = (profile_type, cell);
            let (counts, cell) = (Cell { differ: differ.get(&place).copied().unwrap_or_default(), ..counts }, place.1);
            let evidence = self.evidence(at, profile_type, &cell, &counts);
            let rates = match evidence.all.is_some() && evidence.asks_requests() {
                true => rates(archive, &[&counts], &evidence),
                false => BTreeMap::new(),
            };
            let of_kind = |kind: &CountKind| {
                let comparison = self.key(profile_type);
                let about = About {
                    scope: Scope::Epoch,
                    comparison,
                    cell: CellKey::clone(&cell),
                    kind: *kind,
                    start_at,
                    end_at,
                };
                let mut lines = lines(config, archive, &about, &evidence, rates.get(kind));
                let asking = |line: &&mut Line| line.tested.as_ref().is_some_and(|tested| tested.asks_requests);
                if let Some(rate) = rates.get(kind) {
                    rate.fill_functions(lines.iter_mut().filter(asking));
                }
                let all = evidence.all.as_ref().filter(|_| *kind == CountKind::SelfCount);
                lines.extend(all.map(|all| all.line_of_all(&about, &evidence)));
                (*kind, lines)
            };
            let lines = config.count_kinds.iter().map(of_kind).collect();
            Looked { profile_type, cell, evidence, lines }
        };
        archive.cells(config, open, Scope::Epoch, at.hop).into_iter().map(one).collect()
    }

    /// The evidence of a cell at a look, with what is held, or measured afresh and held from now on.
    fn evidence(&mut self, at: &LookAt<'_>, profile_type: ProfileType, cell: &CellKey, counts: &Cell) -> Evidence {
        let place = (profile_type, cell.clone());
        let judged = |held| {
            judge(
                at.config,
                at.archive,
                &[counts],
                Using { requests: true, held, at_look: true, few: Few::WithoutRequests },
            )
        };
        let afresh = judged(None);
        if let Some(held) = self.held.get_mut(&place).filter(|held| held.holds(at, cell, &afresh)) {
            let evidence = judged(Some(&*held));
            held.add(&evidence);
            return evidence;
        }
        self.held.remove(&place);
        self.held.extend(Measured::of(at, &afresh).map(|measured| (place, measured)));
        afresh
    }

    /// The rows tested now that weighted e-BH rejects, in a family of all rows that joined, and the number of hypotheses that it rejects: groups
    /// are such in place of their rows. Remembers large e-values and groups.
    fn rejected(&mut self, at: &LookAt<'_>, looked: &[Looked], tested: &BTreeMap<RowId, &Line>) -> (Vec<RowId>, usize) {
        let q = at.config.q;
        // The largest u of a row of shares, over the smallest.
        let spread = (0.02_f64 / 0.0005).sqrt();
        for (id, line) in tested {
            let is_kept = |ln_e: &f64| id.is_of_all() || *ln_e >= -(q * spread).ln();
            let Some(ln_e) = line.ln_e().filter(is_kept) else { continue };
            let largest = self.largest.entry(id.clone()).or_insert(ln_e);
            *largest = largest.max(ln_e);
        }
        let (of_all, of_shares): (Vec<&RowId>, Vec<&RowId>) = self.joined.iter().partition(|id| id.is_of_all());
        let shares: Vec<f64> = of_shares.iter().map(|id| share(at, looked, id)).collect();
        let (weights, of_each) = live_weights(&shares, of_all.len());
        let weights: BTreeMap<&RowId, f64> =
            of_shares.into_iter().zip(weights).chain(of_all.into_iter().map(|id| (id, of_each))).collect();
        let tree = |profile_type, cell: &CellKey| at.archive.tree(at.open, at.hop, profile_type, cell);
        let (groups, seen) = self.regroup(q, tested, at.archive, tree);
        let is_free = |id: &RowId| {
            let place = (id.profile_type, id.cell.clone());
            let mut here = groups.iter().filter(|(of, _)| *of == place).map(|(_, group)| group);
            !here.any(|group| group.holds(id))
                && !self.groups.get(&place).into_iter().flatten().any(|group| group.holds(id))
        };
        let free: Vec<(&RowId, &&Line)> = tested.iter().filter(|(id, _)| is_free(id)).collect();
        let rows = free.iter().map(|(id, line)| line.ln_e().unwrap_or(f64::NAN) + weights[*id].ln());
        let all: Vec<f64> = rows.chain(groups.iter().map(|(_, group)| group.ln_e())).collect();
        let selected = e_bh(&all, q, self.joined.len());
        let count = selected.iter().filter(|selected| **selected).count();
        let (of_rows, of_groups) = selected.split_at(free.len());
        let rejected = free.into_iter().zip(of_rows).filter(|(_, selected)| **selected);
        let mut rejected: Vec<RowId> = rejected.map(|((id, _), _)| id.clone()).collect();
        let groups = of_groups.iter().copied().zip(groups).collect();
        rejected.extend(self.take(groups, &seen, at.config, tested));
        (rejected, count)
    }

    /// Updates selected rows; gives those that a later epoch shows to be equivalent.
    fn follow(&mut self, tested: &BTreeMap<RowId, &Line>) -> BTreeSet<RowId> {
        let mut equivalent = BTreeSet::new();
        let epoch = self.epoch;
        let largest: BTreeMap<RowId, f64> =
            self.selected.keys().map(|id| (id.clone(), self.largest_ln_e(epoch, id))).collect();
        for (id, selected) in &mut self.selected {
            let Some(line) = tested.get(id) else { continue };
            selected.now = with_always_valid(line, largest[id]);
            if epoch > selected.epoch && line.is_equivalent() {
                equivalent.insert(id.clone());
            }
        }
        equivalent
    }

    /// Large e-values of pods of different ages count no more once pods of the same age are compared, and the reverse.
    fn forget_other_ages(&mut self, looked: &[Looked]) {
        for cell in looked {
            let place = (cell.profile_type, cell.cell.clone());
            let across = cell.evidence.provisional_until_at.is_some();
            if across != self.across_ages.contains(&place) {
                self.largest.retain(|id, _| (id.profile_type, &id.cell) != (place.0, &place.1));
            }
            if across {
                self.across_ages.insert(place);
            } else {
                self.across_ages.remove(&place);
            }
        }
    }

    /// Provisional rows in cells in which pods of the same age are compared: from the third such look on they are
    /// confirmed by being rejected, or cleared if their interval covers 1 and leaves out half of the change, or after
    /// as long as a process is young.
    fn settle(
        &mut self,
        at: &LookAt<'_>,
        looked: &[Looked],
        rejected: &[RowId],
        tested: &BTreeMap<RowId, &Line>,
    ) -> Settled {
        let mut settled = Settled::default();
        for (id, selected) in &mut self.selected {
            let here = |cell: &&Looked| cell.profile_type == id.profile_type && cell.cell == id.cell;
            let Some(cell) = looked.iter().find(here) else { continue };
            let of_same_age = cell.evidence.strata > 0 && cell.evidence.provisional_until_at.is_none();
            let Some(provisional) = selected.provisional.as_mut().filter(|_| of_same_age) else { continue };
            let met = *provisional.met.get_or_insert(at.hop);
            provisional.looks += 1;
            if provisional.looks < 3 {
                settled.open.insert(id.clone());
                continue;
            }
            let line = tested.get(id);
            let large = line.is_some_and(|line| line.theta().is_some_and(|theta| theta.abs() >= at.config.min_effect));
            let now = line.and_then(|line| effect(&line.row));
            let refuted = now.is_some_and(|ratio| is_gone(provisional.theta, (ratio.low.ln(), ratio.high.ln())));
            if rejected.contains(id) && large && line.is_some_and(|line| line.holds()) {
                selected.provisional = None;
                selected.theta = line.and_then(|line| line.theta()).unwrap_or(0.0);
                settled.confirmed.insert(id.clone());
            } else if refuted || met.plus(at.config.clock().hops_in(at.config.young)) <= at.hop {
                settled.warm_up.insert(id.clone());
            } else {
                settled.open.insert(id.clone());
            }
        }
        settled
    }

    /// Selects rejected rows with a change that is large enough.
    fn admit(&mut self, config: &Config, rejected: &[RowId], tested: &BTreeMap<RowId, &Line>) {
        for id in rejected.iter().filter(|id| !self.decided.contains(id)) {
            let large = |line: &&&Line| line.theta().is_some_and(|theta| theta.abs() >= config.min_effect);
            let Some(line) = tested.get(id).filter(large).filter(|line| line.holds()) else { continue };
            let now = with_always_valid(line, self.largest_ln_e(self.epoch, id));
            let epoch = self.epoch;
            let provisional = line.row.provisional_until_at.map(|until_at| Provisional {
                until_at,
                theta: line.theta().unwrap_or(0.0),
                looks: 0,
                met: None,
            });
            let theta = line.theta().unwrap_or(0.0);
            let selected = || Selected { epoch, theta, now, flag: None, provisional, by: None };
            self.selected.entry(id.clone()).or_insert_with(selected);
        }
    }

    /// The call trees of cells with selected rows whose profiles came as stacks.
    fn trees(&self, at: &LookAt<'_>) -> Trees {
        let places: BTreeSet<(ProfileType, CellKey)> =
            self.selected.keys().map(|id| (id.profile_type, id.cell.clone())).collect();
        let trees = places.into_iter().map(|(profile_type, cell)| {
            let tree = at.archive.tree(at.open, at.hop, profile_type, &cell);
            ((profile_type, cell), tree)
        });
        trees.filter(|(_, tree)| !tree.is_empty()).collect()
    }

    /// The selected rows of a cell that are of functions and have not moved.
    fn selected_in(&self, (profile_type, cell): &(ProfileType, CellKey)) -> Vec<Here<'_>> {
        let here = |id: &RowId| id.profile_type == *profile_type && id.cell == *cell && !id.is_of_all();
        let here = |id: &RowId| here(id) && self.instead(id).is_none();
        self.selected.iter().filter(|(id, _)| here(id)).collect()
    }

    /// The cause of each selected row in cells with stacks.
    fn causes(&self, at: &LookAt<'_>, trees: &Trees, threshold: Threshold) -> BTreeMap<RowId, Cause> {
        let of_cell = |(place, tree): (&(ProfileType, CellKey), &Tree)| {
            let here = self.selected_in(place);
            let paths = joined(at.archive, self.groups.get(place).map_or(&[], Vec::as_slice));
            let causes = causes(&paths, tree, &here, threshold, |id| self.figures_of_group(id));
            here.into_iter().map(|(id, _)| id.clone()).zip(causes).collect::<Vec<_>>()
        };
        trees.iter().flat_map(of_cell).collect()
    }

    /// Adds to flags what they explain, and where work has moved.
    fn add_explained(&self, at: &LookAt<'_>, trees: &Trees, looked: &[Looked], flags: &mut [FlagRow]) {
        let mut words = BTreeMap::new();
        for (place, tree) in trees {
            words.extend(shifts(at.archive, tree, &self.selected_in(place)));
        }
        for flag in flags {
            let id = RowId::new(&flag.row);
            let cell = looked.iter().find(|cell| cell.profile_type == id.profile_type && cell.cell == id.cell);
            let compositional = cell.map_or_else(Vec::new, |cell| compositional(at.config, at.archive, &cell.evidence));
            flag.explains = explains(self, &id, &compositional);
            flag.row.detail = self.words_of_group(&id).or_else(|| words.get(&id).cloned());
            if flag.cleared_because.as_deref() == Some("moved") {
                flag.row.cause = self.instead(&id).map(str::to_owned);
            }
        }
    }

    /// What happens to selected rows: those that are `over`, each with why, and the `open` ones.
    fn change(
        &mut self,
        at: &LookAt<'_>,
        over: impl Fn(&RowId) -> Option<&'static str>,
        (confirmed, holding): (&BTreeSet<RowId>, &BTreeSet<RowId>),
        open: &BTreeSet<RowId>,
        causes: &BTreeMap<RowId, Cause>,
    ) -> Vec<FlagRow> {
        let (mut flags, mut lapsed) = (Vec::new(), Vec::new());
        for (id, selected) in &mut self.selected {
            if let (Some(because), Some(flag)) = (over(id), selected.flag.as_ref()) {
                let mut row = selected.row(at.config);
                if because == "equivalent" {
                    (row.verdict, row.reason) = (Verdict::Equivalent, None);
                }
                if because == "moved" && selected.now.tested.is_some() {
                    (row.verdict, row.reason) = (Verdict::Moved, only_in(&row));
                }
                flags.push(flag.change(at.config, row, FlagState::Cleared, at.hop, Some(because)));
            }
            let cause = causes.get(id).unwrap_or(&Cause::Stands);
            let is_free = selected.flag.is_none() && selected.by.is_some() && !matches!(cause, Cause::By(_));
            if open.contains(id) && is_free && !holding.contains(id) {
                lapsed.push(id.clone());
            } else if open.contains(id) {
                let confirmed = confirmed.contains(id);
                let doubtful = self.doubtful.contains(&(id.profile_type, id.cell.clone()));
                flags.extend(selected.change(at, (confirmed, doubtful), cause));
            }
        }
        lapsed.iter().for_each(|id| drop(self.selected.remove(id)));
        flags
    }
}

/// What pods of the same age decide of provisional rows at a look.
#[derive(Default)]
struct Settled {
    confirmed: BTreeSet<RowId>,
    warm_up: BTreeSet<RowId>,
    /// Undecided: nothing else happens to them.
    open: BTreeSet<RowId>,
}

impl Selected {
    /// The row as a flag gives it: provisional as long as the flag is.
    fn row(&self, config: &Config) -> CellRow {
        let provisional_until_at = self.provisional.as_ref().map(|provisional| provisional.until_at);
        CellRow { provisional_until_at, ..selected_row(config, &self.now) }
    }

    /// A row that is tested now and may be raised, updated or explained.
    fn change(&mut self, at: &LookAt<'_>, (confirmed, doubtful): (bool, bool), cause: &Cause) -> Option<FlagRow> {
        let row = self.row(at.config);
        let theta = self.now.theta().unwrap_or(0.0);
        match (&mut self.flag, cause) {
            (Some(flag), Cause::By(by)) if !flag.of_its_own => {
                let row = CellRow { cause: Some(by.function.clone()), ..row };
                let cleared = flag.change(at.config, row, FlagState::Cleared, at.hop, Some("explained"));
                (self.flag, self.by) = (None, Some(by.clone()));
                Some(cleared)
            }
            (Some(flag), _) => (confirmed || flag.has_moved(&row, theta, doubtful)).then(|| {
                flag.emit(row, theta, doubtful);
                flag.change(at.config, flag.emitted.clone(), FlagState::Updated, at.hop, None)
            }),
            (None, Cause::By(by)) => {
                self.by = Some(by.clone());
                None
            }
            (None, cause) => {
                self.by = None;
                let flag = self.flag.insert(Flag::new(at.hop, *cause == Cause::OfItsOwn, row, theta, doubtful));
                Some(flag.change(at.config, flag.emitted.clone(), FlagState::Raised, at.hop, None))
            }
        }
    }
}

/// The part of the samples of its cell that a row holds now, over shared strata; 0 in a cell that cannot be tested now.
fn share(at: &LookAt<'_>, looked: &[Looked], id: &RowId) -> f64 {
    let here = looked.iter().find(|cell| cell.profile_type == id.profile_type && cell.cell == id.cell);
    let counts = || {
        let evidence = &here.filter(|cell| cell.evidence.support != Support::Untestable)?.evidence;
        let function = at.archive.names.iter().position(|name| **name == *id.function)?;
        let [head, base] = evidence.kinds.get(&id.kind)?.counts.get(&function)?;
        let total: i64 = evidence.arms.iter().map(|arm| arm.total).sum();
        Some(float(head + base) / signed_float(total))
    };
    counts().unwrap_or(0.0)
}

/// A row with its always-valid figures.
fn with_always_valid(line: &Line, largest: f64) -> Line {
    let mut line = line.clone();
    add_always_valid(&mut line, largest);
    line
}

/// The row with the verdict that follows from its selection; a flag names no pods.
fn selected_row(config: &Config, line: &Line) -> CellRow {
    let mut line = line.clone();
    line.select(config.min_effect);
    line.row.outlying_pods.clear();
    line.row
}

/// A number of rows, as a float.
fn wide(rows: usize) -> f64 {
    float(u64::try_from(rows).unwrap_or(u64::MAX))
}
