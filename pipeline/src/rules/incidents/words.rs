//! An incident in words that can be read alone: what happened, what to do, how sure it is and what it costs.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::fan_out::listed;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, FlagRow, Interval};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{IncidentState, Severity, Support};

use super::cells::Cells;
use crate::rules::advice::{self, LISTED, PodsNow, Standing, change, changes, instant, length, named, plural};
use crate::rules::extent::extents;
use crate::rules::kernel::callers_outside;
use crate::rules::wording::Wording;

/// The smallest share that is written as a number.
const SMALLEST_SHARE: f64 = 0.0005;
/// ln of the smallest p-value that is written as a number.
const LN_SMALLEST: f64 = -690.0;

/// Whether something is more expensive or cheaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    More,
    Less,
}

impl Direction {
    /// NB: only an improvement has this severity.
    pub(super) fn of(flag: &FlagRow) -> Self {
        if flag.severity == Severity::Info { Self::Less } else { Self::More }
    }
}

/// What the words are made from.
pub(super) struct Account<'a> {
    /// The cause.
    pub(super) cause: &'a str,
    /// What happened.
    pub(super) state: IncidentState,
    /// The flags that stand, or those that ended last.
    pub(super) flags: &'a [&'a FlagRow],
    /// What moves with the cause.
    pub(super) explains: &'a [String],
    /// The function that explains the cause, if that is why it ended.
    pub(super) superseded_by: Option<&'a str>,
    /// Why flags were cleared, if some were.
    pub(super) because: Option<&'a str>,
    pub(super) service: &'a Service,
    pub(super) head: &'a Build,
    pub(super) base: &'a Build,
    pub(super) cells: &'a Cells,
    pub(super) config: &'a Config,
}

impl Account<'_> {
    /// The row that stands for the incident: the most severe one, self before total, with the largest change.
    pub(super) fn lead(&self) -> Option<&CellRow> {
        let size = |flag: &FlagRow| flag.row.effect().map_or(f64::INFINITY, |ratio| libm::log(ratio.value).abs());
        let by_size = |a: &FlagRow, b: &FlagRow| size(b).total_cmp(&size(a));
        let rank = |flag: &FlagRow| (flag.severity, flag.row.count_kind);
        let lead = self.flags.iter().copied().min_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| by_size(a, b)));
        lead.map(|flag| &flag.row)
    }

    /// If all flags that stand rest on pods of different ages: when that is over.
    pub(super) fn provisional_until_at(&self) -> Option<Nanos> {
        let each: Option<Vec<Nanos>> = self.flags.iter().map(|flag| flag.row.provisional_until_at).collect();
        each?.into_iter().max()
    }

    /// Where the cause moved in this direction, in the fewest words.
    pub(super) fn places(&self, direction: Direction) -> Vec<String> {
        let meant = self.flags.iter().filter(|flag| Direction::of(flag) == direction);
        places(&meant.map(|flag| flag.row.cell.clone()).collect(), &self.grid())
    }

    /// Every cell that is known.
    fn grid(&self) -> BTreeSet<&CellKey> {
        self.cells.keys().into_iter().chain(self.flags.iter().map(|flag| &flag.row.cell)).collect()
    }

    /// The smallest always-valid p-value of the flags.
    pub(super) fn always_valid_ln_p(&self) -> Option<f64> {
        self.flags.iter().filter_map(|flag| flag.row.always_valid_ln_p).min_by(f64::total_cmp)
    }

    /// One row for each cell: of the type of profile of the row that stands for the incident, self before total.
    fn rows(&self, direction: Direction) -> Vec<&CellRow> {
        let Some(lead) = self.lead() else { return Vec::new() };
        let mut by_cell: BTreeMap<&CellKey, &CellRow> = BTreeMap::new();
        for flag in self.flags.iter().filter(|flag| Direction::of(flag) == direction) {
            if flag.row.comparison == lead.comparison {
                let row = by_cell.entry(&flag.row.cell).or_insert(&flag.row);
                if flag.row.count_kind < row.count_kind {
                    *row = &flag.row;
                }
            }
        }
        by_cell.into_values().collect()
    }

    /// What happened, where and by how much.
    pub(super) fn summary(&self) -> String {
        let Self { service, head, base, cause, .. } = self;
        let comparison = format!("{service} {head} against {base}");
        let subject = advice::name(cause);
        match self.state {
            IncidentState::Raised | IncidentState::Updated => {
                let detail = self.lead().and_then(|row| row.detail.as_ref());
                let detail = detail.map_or_else(String::new, |detail| format!("; {detail}"));
                format!("{}{detail}{}{} ({comparison}).", self.change(), self.elsewhere(), self.provisional())
            }
            IncidentState::Superseded => format!(
                "The change of {subject} is explained by {}, which it calls and whose incident goes on; nothing has recovered \
                 ({comparison}).",
                self.superseded_by.unwrap_or("another function"),
            ),
            IncidentState::Cleared => {
                let places: Vec<String> = [self.places(Direction::More), self.places(Direction::Less)].concat();
                let because = match self.because {
                    Some("comparison_closed") => "one of the builds has no pods any more",
                    Some("moved") => {
                        "in the other build another function has its cost; it was moved, renamed or inlined"
                    }
                    Some("faded") => "in three reports in a row the change with which it was flagged was gone",
                    Some("reversed") => "it has turned to the other direction, in which it is not significant",
                    Some("warm_up") => "once pods of the same age ran in both builds, the difference was gone",
                    Some("equivalent") => "a later epoch shows it to be equivalent (within 5 %)",
                    Some(other) => other,
                    None => "its flags were cleared",
                };
                format!("{subject} is no longer flagged in {}: {because} ({comparison}).", places.join(", "))
            }
        }
    }

    /// The change as a sentence, by direction.
    fn change(&self) -> String {
        let Some(lead) = self.lead() else { return String::new() };
        let subject = match lead.count_kind {
            _ if self.cause == ALL_FUNCTIONS => "A request, all functions together,".to_owned(),
            CountKind::SelfCount => self.cause.to_owned(),
            CountKind::Total => format!("{} with all that it calls", self.cause),
        };
        let callers = callers_outside(self.cause, self.explains);
        let below =
            if callers.is_empty() { String::new() } else { format!(", in the kernel below {},", named(&callers)) };
        let parts: Vec<String> = [self.part(Direction::More), self.part(Direction::Less)].concat();
        let share = self.share(lead).map(|share| format!("; it takes {share}")).unwrap_or_default();
        format!("{subject}{below} {}{share}", parts.join(", and "))
    }

    /// The change in one direction: each cell with its figures, or their range if there are many; cells in which only one
    /// build has the cause by themselves.
    fn part(&self, direction: Direction) -> Vec<String> {
        let place =
            |rows: &[&CellRow]| places(&rows.iter().map(|row| row.cell.clone()).collect(), &self.grid()).join(", ");
        let (both, one): (Vec<_>, Vec<_>) = self.rows(direction).into_iter().partition(|row| row.effect().is_some());
        let changed = if both.len() <= LISTED {
            let each = both.iter().filter_map(|row| Some(format!("{} in {}", change(row.effect()?), place(&[*row]))));
            listed(&each.collect::<Vec<_>>())
        } else {
            changes(&both).map_or_else(String::new, |change| format!("{change} in {}", place(&both)))
        };
        let alone = match direction {
            Direction::More => format!("is new in {} in {}", self.head, place(&one)),
            Direction::Less => format!("is gone in {} in {}", self.head, place(&one)),
        };
        let does = self.lead().map_or("", |lead| Wording::of(lead.comparison.profile_type).does);
        let changed = (!both.is_empty()).then(|| format!("{does} {changed}"));
        changed.into_iter().chain((!one.is_empty()).then_some(alone)).collect()
    }

    /// The share of the cause in the row that stands for it.
    fn share(&self, lead: &CellRow) -> Option<String> {
        // What is gone takes no share.
        let share = lead.head.share.filter(|share| self.cause != ALL_FUNCTIONS && *share > 0.0)?;
        let place = places(&[lead.cell.clone()].into(), &self.grid()).join(", ");
        let share = if share < SMALLEST_SHARE { "less than 0.1".to_owned() } else { percent(share) };
        Some(format!("{share} % of the {} samples of {} in {place}", type_of(lead), self.head))
    }

    /// The other types of profile that it shows in.
    fn elsewhere(&self) -> String {
        let lead = self.lead().map(|row| &row.comparison);
        let others: BTreeSet<&ComparisonKey> =
            self.flags.iter().map(|flag| &flag.row.comparison).filter(|key| Some(*key) != lead).collect();
        let others: Vec<&str> = others.into_iter().map(|key| key.profile_type.name()).collect();
        if others.is_empty() { String::new() } else { format!("; also in {} profiles", listed(&others)) }
    }

    /// That it may be a warm-up.
    fn provisional(&self) -> String {
        self.provisional_until_at().map_or_else(String::new, |until_at| {
            let against_young = self.flags.iter().all(|flag| flag.row.young_ln_p.is_some());
            let also = if against_young {
                format!("; pods of {} did not show this when they were as young", self.base)
            } else {
                String::new()
            };
            format!(
                "; provisional: pods of {} are young, and a warm-up cannot be excluded before {}{also}",
                self.head,
                instant(until_at)
            )
        })
    }

    /// What to do: while the incident stands, the advice.
    pub(super) fn action(&self, advice: String) -> String {
        match self.state {
            IncidentState::Superseded => {
                format!("See the incident of {}.", self.superseded_by.unwrap_or("the other function"))
            }
            IncidentState::Cleared => format!("Nothing has to be done about {} any more.", advice::name(self.cause)),
            IncidentState::Raised | IncidentState::Updated => advice,
        }
    }

    /// How sure it is, and what that promises.
    pub(super) fn confidence(&self) -> String {
        let p = self.always_valid_ln_p().map(|ln_p| {
            let p = if ln_p < LN_SMALLEST { "below 1e-299".to_owned() } else { format!("{:.0e}", libm::exp(ln_p)) };
            format!("Always-valid p-value: {p}. It holds however often and whenever one looks. ")
        });
        let Config { q, epoch, .. } = self.config;
        let promise = format!(
            "Where nothing changed, at most {} % of comparisons raise any incident within {}.",
            percent(*q),
            length(epoch.as_seconds())
        );
        let rows = [self.rows(Direction::More), self.rows(Direction::Less)].concat();
        let few: BTreeSet<PodsNow> = rows
            .iter()
            .filter(|row| row.support != Support::Firm)
            .map(|row| self.cells.pods(&row.comparison, &row.cell).unwrap_or_else(|| PodsNow::of_flag(row)))
            .collect();
        let few: Vec<String> = few.iter().map(PodsNow::to_string).collect();
        let support = if few.is_empty() {
            " Support is firm: at least 5 pods of each build.".to_owned()
        } else {
            format!(" Support is tentative: {}; firm support needs 5 of each build.", listed(&few))
        };
        let doubt = if self.flags.iter().any(|flag| is_doubtful(flag)) {
            " But pods differ by something other than the build, as the warnings say, and none of this allows for that."
        } else {
            ""
        };
        format!("{}{promise}{support}{doubt}", p.unwrap_or_default())
    }

    /// What the change costs, as a part of all samples.
    pub(super) fn impact(&self) -> String {
        let rows = [self.rows(Direction::More), self.rows(Direction::Less)].concat();
        if self.cause == ALL_FUNCTIONS {
            let parts = [self.part(Direction::More), self.part(Direction::Less)].concat();
            return format!("Each request {}.", parts.join(", and "));
        }
        let deltas: Vec<(&CellRow, Interval)> =
            rows.into_iter().filter_map(|row| Some((row, row.share_delta?))).collect();
        let Some((first, _)) = deltas.first() else { return "The change of its share is not known.".to_owned() };
        let samples = format!("of all {} samples", type_of(first));
        if deltas.len() > LISTED {
            let least = deltas.iter().map(|(_, delta)| delta.value).fold(f64::INFINITY, f64::min);
            let most = deltas.iter().map(|(_, delta)| delta.value).fold(f64::NEG_INFINITY, f64::max);
            return format!("{:+.2} to {:+.2} % {samples} in {} cells.", least * 100.0, most * 100.0, deltas.len());
        }
        let grid = self.grid();
        let parts = deltas.iter().map(|(row, Interval { value, low, high })| {
            let place = places(&[row.cell.clone()].into(), &grid).join(", ");
            format!("{:+.2} % ({:.2} to {:.2} %) {samples} in {place}", value * 100.0, low * 100.0, high * 100.0)
        });
        format!("{}.", listed(&parts.collect::<Vec<_>>()))
    }
}

/// Whether nobody is paged for a flag because pods of its cell differ by something other than the build.
pub(super) fn is_doubtful(flag: &FlagRow) -> bool {
    // NB: of what is more expensive, firm and not provisional, only this is no page.
    let may_page = flag.row.support == Support::Firm && flag.row.provisional_until_at.is_none();
    may_page && flag.severity == Severity::Ticket
}

/// Some cells of a grid, in the fewest words.
pub(super) fn places(meant: &BTreeSet<CellKey>, grid: &BTreeSet<&CellKey>) -> Vec<String> {
    extents(meant, grid.iter().copied()).iter().map(ToString::to_string).collect()
}

/// The verdict over all cells in a sentence.
pub(super) fn of_verdict(
    service: &Service,
    head: &Build,
    base: &Build,
    standings: &BTreeMap<CellKey, Standing>,
    improved: &BTreeSet<CellKey>,
) -> String {
    let grid: BTreeSet<&CellKey> = standings.keys().collect();
    let part = |word: &str, meant: BTreeSet<CellKey>| {
        let place = places(&meant, &grid).join(", ");
        let of = format!("{} of {} {}", meant.len(), grid.len(), plural(grid.len(), "cell"));
        (!meant.is_empty()).then(|| format!("{word} in {of} ({place})"))
    };
    let with = |is: fn(&Standing) -> bool| -> BTreeSet<CellKey> {
        let meant = standings.iter().filter(|(cell, standing)| is(standing) && !improved.contains(*cell));
        meant.map(|(cell, _)| cell.clone()).collect()
    };
    let is_clean = |standing: &Standing| matches!(standing, Standing::Keep | Standing::SomePods(_));
    let is_open =
        |standing: &Standing| matches!(standing, Standing::Wait(_) | Standing::Needs(_) | Standing::OtherCauses(_));
    let parts = [
        part("regressed", with(Standing::costs_more)),
        part("improved", improved.clone()),
        part("unchanged", with(is_clean)),
        part("inconclusive", with(is_open)),
        part("not comparable", with(|standing| *standing == Standing::NotComparable)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{service} {head} against {base}: {}.", parts.join("; "))
}

/// A fraction in percent, with a decimal unless that is 0.
fn percent(fraction: f64) -> String {
    let percent = format!("{:.1}", fraction * 100.0);
    percent.strip_suffix(".0").map(str::to_owned).unwrap_or(percent)
}

fn type_of(row: &CellRow) -> &'static str {
    row.comparison.profile_type.name()
}
