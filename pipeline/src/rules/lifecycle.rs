//! The life cycle of flags: raised, updated, cleared.
//!
//! One state machine per comparison (service, base, head): looks go in, changes of flags come out. The
//! [family](super::live_family) of the look rejects rows; a rejected row is selected if it changed enough, no single pod
//! made it and its plain share does not contradict it. What other functions do in the other build is [no finding](moved). A selected row stays
//! selected until it is [over]. A flag is raised for it unless another selected row [explains](super::causes) it. The flag is cleared when another row
//! explains it later, when its work turns out to have moved, when a later epoch shows the function to be equivalent, when its change has [faded](fading), or when
//! the comparison ends; a single quiet hop never clears it. A flag from pods of different ages is provisional: once pods of the same age are compared
//! in its cell it is [confirmed or cleared](provisional).

mod emitted;
mod explained;
mod fading;
mod moved;
mod over;
mod provisional;
mod worst_cell;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::alert::flag_id;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, FlagRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{FlagState, Severity, Support};
use serde::{Deserialize, Serialize};

use self::emitted::Emitted;
use self::fading::Fading;
use self::moved::Rejected;
use self::provisional::Provisional;
use super::causes::{Cause, SelectedRow, Threshold, causes};
use super::live_family::LiveFamily;
use super::moved::Group;
use super::table::LiveRows;
use super::verdict::{Decided, verdict};
use crate::evidence::callers::CallerCounts;
use crate::evidence::row::RowEvidence;

/// Why a flag is cleared: the comparison has ended, a later epoch shows the function to be equivalent, another row
/// explains it, its change is gone, other functions have its cost in the other build, it has turned to the other direction, or pods of the same age do not show it.
pub(crate) const CLOSED: &str = "comparison_closed";
const EQUIVALENT: &str = "equivalent";
pub(crate) const EXPLAINED: &str = "explained";
const FADED: &str = "faded";
const MOVED: &str = "moved";
const REVERSED: &str = "reversed";
const WARM_UP: &str = "warm_up";

/// What identifies a flag among those of one comparison.
pub type FlagKey = (ComparisonKey, CellKey, CountKind, u64);

/// One look at all cells of a comparison.
#[derive(Debug)]
pub struct Look {
    /// The hop that is closing.
    pub hop: Hop,
    /// First hop of the epoch.
    pub epoch: Hop,
    /// Rows tested at some look of this epoch.
    pub family: LiveFamily,
    /// Rows tested now that may be raised, or are watched because they could be raised before.
    pub rows: Vec<RowEvidence>,
    /// Cells in which pods of the same age are compared.
    pub of_same_age: BTreeSet<Place>,
    /// Which of these rows' functions calls which, in cells whose profiles came as stacks.
    pub callers: BTreeMap<Place, CallerCounts>,
    /// Names of functions whose share moved only because another's did, in cells with such rows.
    pub compositional: BTreeMap<Place, Vec<String>>,
}

/// A cell of one type of profile.
pub type Place = (ComparisonKey, CellKey);

/// A selected row: raised as a flag, or explained by another row.
#[derive(Debug, Serialize, Deserialize)]
struct Selected {
    /// The epoch in which it was first selected.
    epoch: Hop,
    /// Its change then, or when it was confirmed.
    theta: f64,
    /// The row at the last look that tested it.
    now: RowEvidence,
    /// Whether that is the current look.
    is_tested: bool,
    /// If it rests on pods of different ages.
    provisional: Option<Provisional>,
    state: State,
}

#[derive(Debug, Serialize, Deserialize)]
enum State {
    /// Selected at this look for the first time.
    New,
    /// Explained by another selected row.
    Explained(FlagKey),
    /// It has a flag.
    Raised(Raised),
}

#[derive(Debug, Serialize, Deserialize)]
struct Raised {
    at: Hop,
    /// As it was announced last.
    emitted: Emitted,
    /// Whether its change is gone.
    fading: Fading,
    /// Its change without that of its callees is selected by itself: it is never explained again.
    by_itself: bool,
}

/// The flags of one comparison.
#[derive(Debug, Serialize, Deserialize)]
pub struct LiveRule {
    clock: HopClock,
    q: f64,
    min_effect: f64,
    /// Hops for which a process is young.
    young: u64,
    selected: BTreeMap<FlagKey, Selected>,
    /// Functions that do the same work, in another way in each build.
    groups: BTreeMap<Place, Vec<Group>>,
    /// Cells in which pods differ by something other than the build, as of the last report: nobody is paged for them.
    doubtful: BTreeSet<Place>,
    /// Flags cleared in the current epoch by what was seen in it: they are not raised again before it ends.
    decided: BTreeSet<FlagKey>,
    epoch: Hop,
}

/// Selected rows that are no longer, each with why.
type Over = BTreeMap<FlagKey, &'static str>;

/// An event in the life of a flag.
struct FlagEvent {
    key: FlagKey,
    state: FlagState,
    /// When it was raised.
    raised: Hop,
    /// As it was announced last.
    severity: Severity,
    /// Why, if it is cleared.
    because: Option<&'static str>,
}

/// What happens to a selected row at a look.
enum Change {
    Raise {
        by_itself: bool,
    },
    Update,
    Clear(&'static str),
    Explain(FlagKey),
    /// It is no longer selected, without a word: it had no flag.
    Lapse,
}

impl LiveRule {
    /// A live rule without flags.
    pub fn new(config: &Config) -> Self {
        let clock = config.clock();
        let Config { q, min_effect, young, .. } = *config;
        let young = clock.hops_in(young);
        let (selected, groups) = (BTreeMap::new(), BTreeMap::new());
        let (doubtful, decided) = (BTreeSet::new(), BTreeSet::new());
        Self { clock, q, min_effect, young, selected, groups, doubtful, decided, epoch: Hop(0) }
    }

    /// Takes the cells of a report in which pods differ by something other than the build.
    pub fn doubt(&mut self, cells: BTreeSet<Place>) {
        self.doubtful = cells;
    }

    /// Takes a look and gives what changed, in the order of flags.
    pub fn look(&mut self, mut look: Look) -> Vec<FlagRow> {
        if self.epoch != look.epoch {
            self.epoch = look.epoch;
            self.decided.clear();
        }
        let rows = std::mem::take(&mut look.rows);
        let mut rows: BTreeMap<FlagKey, RowEvidence> = rows.into_iter().map(|row| (key_of(&row), row)).collect();
        let Rejected { rows: rejected, count } = self.rejected(&rows, &look);
        let threshold = Threshold { min_effect: self.min_effect, ln_e: look.family.ln_e_needed(count, self.q) };
        let equivalent = self.follow(&mut rows);
        let settled = self.settle(look.hop, &look.of_same_age, &rejected);
        self.admit(&rejected, rows);
        let causes = self.causes(&look.callers, threshold);
        let mut over = Over::new();
        let moved = self.selected.keys().filter(|key| self.has_moved(key)).cloned().collect();
        let ends = [(REVERSED, self.reversed()), (FADED, self.faded())];
        let ends = ends.into_iter().chain([(WARM_UP, settled.warm_up), (EQUIVALENT, equivalent), (MOVED, moved)]);
        for (because, keys) in ends {
            over.extend(keys.into_iter().map(|key| (key, because)));
        }
        let mut changes = self.changes(&over, (&settled.open, &settled.confirmed), &rejected, causes);
        let flags = self.apply(&mut changes, look.hop, &look.callers, &look.compositional);
        for (key, because) in over {
            self.selected.remove(&key);
            if ![WARM_UP, REVERSED, MOVED].contains(&because) {
                self.decided.insert(key);
            }
        }
        flags
    }

    /// Ends the comparison: every flag is cleared.
    pub fn close(&mut self, hop: Hop) -> Vec<FlagRow> {
        let selected = std::mem::take(&mut self.selected);
        let ended = selected.iter().filter_map(|(key, selected)| {
            let State::Raised(raised) = &selected.state else { return None };
            Some(self.flag(selected, &raised.cleared(key.clone(), CLOSED), hop))
        });
        let ended = ended.collect();
        self.decided.clear();
        self.groups.clear();
        ended
    }

    /// What is known of the rows of one type of profile, for tables.
    pub fn of_tables(&self, comparison: &ComparisonKey) -> LiveRows {
        let of_type = self.selected.iter().filter(|((key, ..), _)| key == comparison);
        let cause = |selected: &Selected| match &selected.state {
            State::Explained(by) => self.selected.get(by).map(|cause| cause.now.row.function.clone()),
            _ => None,
        };
        let selected = of_type.map(|((_, cell, kind, hash), selected)| ((*kind, cell.clone(), *hash), cause(selected)));
        let mut rows = LiveRows { selected: selected.collect(), ..LiveRows::default() };
        self.add_groups(comparison, &mut rows);
        rows
    }

    /// The selected rows of one type and kind, by cell, as last tested, each with whether it is flagged. The row of all
    /// samples together is among those of self counts.
    pub fn rows<'a>(
        &'a self,
        comparison: &'a ComparisonKey,
        kind: CountKind,
    ) -> impl Iterator<Item = (&'a CellKey, &'a RowEvidence, bool)> {
        let of_kind = self.selected.iter().filter(move |((key, _, of, _), _)| key == comparison && *of == kind);
        of_kind.map(|((_, cell, _, _), selected)| (cell, &selected.now, matches!(selected.state, State::Raised(_))))
    }

    /// Updates selected rows, removing theirs from `rows`, and gives those that a later epoch shows to be equivalent.
    fn follow(&mut self, rows: &mut BTreeMap<FlagKey, RowEvidence>) -> BTreeSet<FlagKey> {
        let mut equivalent = BTreeSet::new();
        for (key, selected) in &mut self.selected {
            let now = rows.remove(key);
            selected.is_tested = now.is_some();
            let Some(now) = now else { continue };
            selected.now = now;
            if self.epoch > selected.epoch && selected.now.row.support == Support::Firm && selected.now.equivalent {
                equivalent.insert(key.clone());
            }
        }
        equivalent
    }

    /// Selects the rows that e-BH rejects now and did not reject before.
    fn admit(&mut self, rejected: &BTreeSet<FlagKey>, mut rows: BTreeMap<FlagKey, RowEvidence>) {
        for key in rejected {
            if let Some(now) = rows.remove(key)
                && may_be_raised(&now, self.min_effect)
                && !self.decided.contains(key)
            {
                let provisional = Provisional::of(&now);
                let (epoch, theta) = (self.epoch, now.theta);
                let selected = Selected { epoch, theta, now, is_tested: true, provisional, state: State::New };
                self.selected.insert(key.clone(), selected);
            }
        }
    }

    /// What explains each selected row, cell by cell; rows of cells without stacks have no other cause.
    fn causes(
        &self,
        callers: &BTreeMap<Place, CallerCounts>,
        threshold: Threshold,
    ) -> BTreeMap<FlagKey, Cause<FlagKey>> {
        let mut all = BTreeMap::new();
        for ((comparison, cell), callers) in callers {
            let here = self.functions_of(comparison, cell);
            let rows = self.selected_rows(&here);
            let groups = self.groups_of(&(comparison.clone(), cell.clone()));
            let callers = if groups.is_empty() { Cow::Borrowed(callers) } else { Cow::Owned(callers.joined(groups)) };
            for (cause, (key, _)) in causes(&rows, &callers, threshold).into_iter().zip(&here) {
                all.insert((*key).clone(), cause.map(|row| here[row].0.clone()));
            }
        }
        all
    }

    /// These rows as causes are looked for.
    fn selected_rows(&self, rows: &[(&FlagKey, &Selected)]) -> Vec<SelectedRow> {
        let group = |key: &FlagKey| self.group_of(key).map(|(group, _)| group);
        rows.iter().map(|(key, selected)| selected_row(&selected.now, group(key))).collect()
    }

    /// The selected rows of a cell's functions, without those that have moved.
    fn functions_of(&self, comparison: &ComparisonKey, cell: &CellKey) -> Vec<(&FlagKey, &Selected)> {
        let here = self.selected.iter().filter(|((key, of, ..), _)| key == comparison && of == cell);
        here.filter(|(key, selected)| !selected.now.of_all && !self.has_moved(key)).collect()
    }

    /// What happens to each selected row. A row that is not tested now, as in the first hops of an epoch, stays as it
    /// is, unless it is over; so does a provisional row on which pods of the same age have not decided.
    fn changes(
        &self,
        over: &Over,
        (open, confirmed): (&BTreeSet<FlagKey>, &BTreeSet<FlagKey>),
        rejected: &BTreeSet<FlagKey>,
        mut causes: BTreeMap<FlagKey, Cause<FlagKey>>,
    ) -> Vec<(FlagKey, Change)> {
        let change = |(key, selected): (&FlagKey, &Selected)| {
            let cause = causes.remove(key).unwrap_or(Cause::Nothing);
            if let Some(because) = over.get(key) {
                let is_raised = matches!(selected.state, State::Raised(_));
                return is_raised.then(|| (key.clone(), Change::Clear(because)));
            }
            let change = match (&selected.state, cause) {
                (State::Raised(raised), Cause::Row(by)) if !raised.by_itself => Change::Explain(by),
                (State::Raised(raised), _) => {
                    let is_news = confirmed.contains(key)
                        || Emitted::now(selected, self.is_doubtful(key)).has_moved_from(&raised.emitted);
                    return is_news.then(|| (key.clone(), Change::Update));
                }
                (_, Cause::Row(by)) => Change::Explain(by),
                (State::Explained(_), _) if self.has_lapsed(key, selected, rejected) => Change::Lapse,
                (_, cause) => Change::Raise { by_itself: cause == Cause::Itself },
            };
            Some((key.clone(), change))
        };
        let concerned = |(key, selected): &(&FlagKey, &Selected)| {
            over.contains_key(*key) || selected.is_tested && !open.contains(*key)
        };
        self.selected.iter().filter(concerned).filter_map(change).collect()
    }

    fn is_doubtful(&self, (comparison, cell, ..): &FlagKey) -> bool {
        self.doubtful.contains(&(comparison.clone(), cell.clone()))
    }

    /// Applies the changes and gives the rows of those that affect flags.
    fn apply(
        &mut self,
        changes: &mut Vec<(FlagKey, Change)>,
        hop: Hop,
        callers: &BTreeMap<Place, CallerCounts>,
        compositional: &BTreeMap<Place, Vec<String>>,
    ) -> Vec<FlagRow> {
        let mut events = Vec::new();
        for (key, change) in changes.drain(..) {
            let is_doubtful = self.is_doubtful(&key);
            if matches!(change, Change::Lapse) {
                self.selected.remove(&key);
                continue;
            }
            let Some(selected) = self.selected.get_mut(&key) else { continue };
            let now = Emitted::now(selected, is_doubtful);
            let severity = now.severity;
            match (change, &mut selected.state) {
                (Change::Raise { by_itself }, state) => {
                    let fading = Fading::of(now.theta);
                    *state = State::Raised(Raised { at: hop, emitted: now, fading, by_itself });
                    events.push(FlagEvent { key, state: FlagState::Raised, raised: hop, severity, because: None });
                }
                (Change::Update, State::Raised(raised)) => {
                    raised.emitted = now;
                    events.push(FlagEvent {
                        key,
                        state: FlagState::Updated,
                        raised: raised.at,
                        severity,
                        because: None,
                    });
                }
                (Change::Clear(because), State::Raised(raised)) => events.push(raised.cleared(key, because)),
                (Change::Explain(by), state) => {
                    if let State::Raised(raised) = state {
                        events.push(raised.cleared(key, EXPLAINED));
                    }
                    *state = State::Explained(by);
                }
                (Change::Update | Change::Clear(_) | Change::Lapse, _) => {}
            }
        }
        let shifts = self.shifts(callers);
        let row = |event: FlagEvent| {
            let key = &event.key;
            let mut flag = self.flag(self.selected.get(key)?, &event, hop);
            flag.explains = self.explained_by(key, compositional);
            let group = self.group_of(key);
            flag.row.detail = group.map(|(group, place)| group.sentence(place)).or_else(|| shifts.get(key).cloned());
            flag.row.cause = match &self.selected.get(key)?.state {
                State::Explained(by) => self.selected.get(by).map(|cause| cause.now.row.function.clone()),
                _ => group.and_then(|(group, place)| group.instead_of(place)).map(|instead| instead.name.clone()),
            };
            Some(flag)
        };
        let mut flags: Vec<FlagRow> = events.into_iter().filter_map(row).collect();
        flags.sort_by(|a, b| order(a).cmp(&order(b)));
        flags
    }

    /// The row is as it was last tested: significant, unless it is cleared because it is equivalent. It is of this hop.
    fn flag(&self, selected: &Selected, event: &FlagEvent, hop: Hop) -> FlagRow {
        let (is_selected, moved) = (event.because != Some(EQUIVALENT), event.because == Some(MOVED));
        let decided = Decided { selected: is_selected, moved, ..Decided::default() };
        let (verdict, reason) = verdict(&selected.now, &decided, self.min_effect);
        let provisional_until_at = selected.provisional.as_ref().map(|provisional| provisional.until_at);
        let window_end_at = self.clock.end_of(hop);
        let row = CellRow { window_end_at, verdict, reason, provisional_until_at, ..selected.now.row.clone() };
        FlagRow {
            flag_id: flag_id(&row, event.raised),
            severity: event.severity,
            row,
            state: event.state,
            raised_at: self.clock.end_of(event.raised),
            sequence: hop,
            cleared_because: event.because.map(str::to_owned),
            explains: Vec::new(),
        }
    }
}

impl Raised {
    fn cleared(&self, key: FlagKey, because: &'static str) -> FlagEvent {
        FlagEvent {
            key,
            state: FlagState::Cleared,
            raised: self.at,
            severity: self.emitted.severity,
            because: Some(because),
        }
    }
}

/// A selected row as causes are looked for: with the figures of the group for which it stands, if it does.
fn selected_row(evidence: &RowEvidence, group: Option<&Group>) -> SelectedRow {
    let row = &evidence.row;
    let own = [row.head.count, row.base.count].map(signed_float);
    let (theta, variance, [head, base]) =
        group.map_or((evidence.theta, evidence.variance, own), |group| (group.theta, group.variance, group.counts));
    let counted = head > 0.0 && base > 0.0;
    SelectedRow {
        kind: row.count_kind,
        function: evidence.hash,
        theta,
        ln_normalization: evidence.ln_normalization,
        normalization_variance: evidence.normalization_variance,
        dispersion: if counted { (variance / (1.0 / head + 1.0 / base)).max(1.0) } else { 1.0 },
        count: head + base,
    }
}

fn key_of(evidence: &RowEvidence) -> FlagKey {
    let row = &evidence.row;
    (row.comparison.clone(), row.cell.clone(), row.count_kind, evidence.hash)
}

fn order(flag: &FlagRow) -> (&ComparisonKey, &CellKey, CountKind, &str) {
    (&flag.row.comparison, &flag.row.cell, flag.row.count_kind, &flag.row.function)
}

/// Whether a rejected row changed enough, its plain share does not contradict it, and neither load nor age nor a single pod may have made it.
fn may_be_raised(now: &RowEvidence, min_effect: f64) -> bool {
    now.theta.abs() >= min_effect && !now.contradicts && now.suspect.is_none() && now.one_pod.is_empty()
}
