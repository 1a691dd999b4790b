//! Work that other functions do in the other build: functions that were moved or renamed, and those that were inlined.
//!
//! A function is its name. One that was renamed is new in the head and gone from it, although nothing costs more; one that a compiler
//! inlined is gone, and its callers cost more by themselves. Both are seen from the rows that changed and from who calls whom:
//! - **Renamed**: a new and a gone function with the same callers and a similar cost ([`renamed`]).
//! - **Renumbered**: closures of one function, one of them new or gone, whose costs rose and fell by as much ([`renumbered`]).
//! - **Inlined**: a new or gone function, and callers whose own samples changed by as much the other way ([`inlined`]).
//!
//! Such functions are a *group*, and a group is tested as one function. If that did not change, none of its rows is a finding. If it did, the
//! rows of one member are: of the one that changed most in that direction.

mod inlined;
mod renamed;
mod renumbered;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_statistics::evalue::ln_e_of;
use serde::{Deserialize, Serialize};

use crate::evidence::callers::CallerCounts;

/// How many times as much the one may cost as the other, beyond two standard errors. As `diff` has it.
const FACTOR: f64 = 2.0;

/// A row that may be one of a group: significant, or close to it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'r> {
    /// Self or total.
    pub kind: CountKind,
    /// Stable hash of the function.
    pub function: u64,
    /// Its name.
    pub name: &'r str,
    /// Share of the samples of the head.
    pub head: f64,
    /// Share of those of the base.
    pub base: f64,
    /// Samples of head and base.
    pub counts: [f64; 2],
    /// Standard error of the difference.
    pub se: f64,
    /// ln of the cell's normalization factor.
    pub ln_normalization: f64,
    /// Variance of that.
    pub normalization_variance: f64,
}

/// Functions that do the same work, in another way in each build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What became of them.
    pub how: How,
    /// At least one that a build lacks and one other, the first of them first.
    pub members: Vec<Member>,
    /// ln of the ratio of their work together, normalized.
    pub theta: f64,
    /// Its variance but for that of the normalization.
    pub variance: f64,
    /// Its standard error.
    pub se: f64,
    /// Samples of head and base.
    pub counts: [f64; 2],
    /// The place of the member that stands for them, if they changed together.
    pub stands: Option<usize>,
}

/// What became of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Each build has one of two.
    Renamed,
    /// A compiler numbered them in the order of the source, to which one was added or removed.
    Renumbered,
    /// One build has the work of those that the other has in functions that both have.
    Inlined,
}

/// A function of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Stable hash.
    pub function: u64,
    /// Name.
    pub name: String,
    /// The change of its share.
    pub change: f64,
    /// Of which kinds its rows are those of the group.
    pub kinds: Vec<CountKind>,
    /// For one that is inlined: the member of which it is a part in the other build, above all.
    pub into: Option<u64>,
}

/// The groups of a cell, none of which stands yet. `known` are pairs that were found before, base first: they are pairs as long as they fit.
pub fn groups(parts: &[Part<'_>], callers: &CallerCounts, known: &[[u64; 2]]) -> Vec<Group> {
    let mut functions = Functions::of(parts, callers);
    let mut groups = renumbered::found(&functions);
    let numbered: BTreeSet<u64> = groups.iter().flat_map(Group::functions).collect();
    functions.0.retain(|function, _| !numbered.contains(function));
    let pairs = renamed::found(&functions, callers, known);
    groups.extend(
        pairs.iter().flat_map(|pair| Group::by_kind(How::Renamed, &functions.all(pair.map(|part| part.function)))),
    );
    let names: BTreeMap<u64, u64> = pairs.iter().map(|[base, head]| (base.function, head.function)).collect();
    let inlined = inlined::found(&functions, callers, &names);
    // The self rows of a pair in which others are inlined are in the group of those.
    let held: BTreeSet<u64> = inlined.iter().flat_map(Group::functions).collect();
    let is_apart = |group: &Group| {
        let is_own = group.members.iter().any(|member| member.kinds.contains(&CountKind::SelfCount));
        !is_own || group.how != How::Renamed || !group.functions().any(|function| held.contains(&function))
    };
    groups.retain(is_apart);
    groups.extend(inlined);
    groups
}

/// The rows of the functions of a cell.
struct Functions<'a>(BTreeMap<u64, Function<'a>>);

#[derive(Clone, Copy, Default)]
struct Function<'a> {
    own: Option<Part<'a>>,
    total: Option<Part<'a>>,
    /// Samples of head and base with it on the stack.
    seen: [u64; 2],
}

impl<'a> Functions<'a> {
    fn all<const N: usize>(&self, hashes: [u64; N]) -> [Function<'a>; N] {
        hashes.map(|hash| self.0.get(&hash).copied().unwrap_or_default())
    }

    fn of(parts: &[Part<'a>], callers: &CallerCounts) -> Self {
        let mut functions: BTreeMap<u64, Function<'a>> = BTreeMap::new();
        for part in parts {
            let function = functions.entry(part.function).or_default();
            match part.kind {
                CountKind::SelfCount => function.own = Some(*part),
                CountKind::Total => function.total = Some(*part),
            }
        }
        let seen = callers.seen();
        for (hash, function) in &mut functions {
            function.seen = seen.get(hash).copied().unwrap_or_default();
        }
        Self(functions)
    }
}

impl<'a> Function<'a> {
    fn is_new(&self) -> bool {
        self.seen[1] == 0
    }

    fn is_gone(&self) -> bool {
        self.seen[0] == 0
    }

    fn is_alone(&self) -> bool {
        self.is_new() || self.is_gone()
    }

    /// The row of all its samples, if it has one.
    fn widest(&self) -> Option<Part<'a>> {
        self.total.or(self.own)
    }

    fn row(&self, kind: CountKind) -> Option<Part<'a>> {
        match kind {
            CountKind::SelfCount => self.own,
            CountKind::Total => self.total,
        }
    }
}

impl Part<'_> {
    fn change(&self) -> f64 {
        self.head - self.base
    }
}

/// The sum of the changes of some rows, each with a weight, and its standard error.
fn sum<'p>(parts: impl Iterator<Item = (f64, Part<'p>)>) -> (f64, f64) {
    let (change, variance) = parts.fold((0.0, 0.0), |(change, variance), (weight, part)| {
        (change + weight * part.change(), variance + weight * part.se * part.se)
    });
    (change, libm::sqrt(variance))
}

/// |ln| of the ratio of two changes, each with its standard error; none if one is too large for the other.
fn apart([(one, se_one), (other, se_other)]: [(f64, f64); 2]) -> Option<f64> {
    let apart = libm::log((one / other).abs()).abs();
    let error = libm::hypot(se_one / one, se_other / other);
    (apart <= libm::log(FACTOR) + 2.0 * error).then_some(apart)
}

/// A row of a group: how much of it belongs to the group.
#[derive(Clone, Copy)]
struct Weighted<'a> {
    part: Part<'a>,
    weight: f64,
    kinds: &'static [CountKind],
    into: Option<u64>,
}

impl Group {
    /// Functions whose rows are all those of the group: one group of self rows and one of total rows, or one of both kinds if rows of one kind do
    /// not rise and fall.
    fn by_kind(how: How, functions: &[Function<'_>]) -> Vec<Self> {
        let moves = |kind: &&CountKind| {
            let changes = || functions.iter().filter_map(|function| function.row(**kind)).map(|part| part.change());
            changes().any(|change| change > 0.0) && changes().any(|change| change < 0.0)
        };
        let moving: Vec<&'static CountKind> = CountKind::ALL.iter().filter(moves).collect();
        let group = |kind: &&'static CountKind| {
            let kinds = if moving.len() > 1 { std::slice::from_ref(*kind) } else { &CountKind::ALL };
            let rows = functions.iter().filter_map(|function| function.row(**kind));
            let rows = rows.map(|part| Weighted { part, weight: 1.0, kinds, into: None });
            Self::of(how, &rows.collect::<Vec<_>>())
        };
        moving.iter().map(group).collect()
    }

    /// The standard error of the ln ratio is at most that of the differences over the smaller share.
    fn of(how: How, rows: &[Weighted<'_>]) -> Self {
        let sum = |of: fn(&Part<'_>) -> f64| rows.iter().map(|row| row.weight * of(&row.part)).sum::<f64>();
        let (head, base, variance) = (sum(|part| part.head), sum(|part| part.base), sum(|part| part.se * part.se));
        let first = rows.first().map(|row| row.part);
        let ln_normalization = first.map_or(0.0, |part| part.ln_normalization);
        let normalization_variance = first.map_or(0.0, |part| part.normalization_variance);
        let least = head.min(base);
        let variance = variance / (least * least);
        let counts = [0, 1].map(|arm| rows.iter().map(|row| row.weight * row.part.counts[arm]).sum());
        let members = rows.iter().map(|row| Member {
            function: row.part.function,
            name: row.part.name.to_owned(),
            change: row.weight * row.part.change(),
            kinds: row.kinds.to_vec(),
            into: row.into,
        });
        Self {
            how,
            members: members.collect(),
            theta: libm::log(head / base) - ln_normalization,
            variance,
            se: libm::sqrt(variance + normalization_variance),
            counts,
            stands: None,
        }
    }

    /// ln of the e-value of its change.
    pub fn ln_e(&self) -> f64 {
        ln_e_of(self.theta, self.se)
    }

    /// It changed: one member stands for it.
    pub fn stand(&mut self) {
        let along = |member: &Member| member.change * self.theta.signum();
        let places = 0..self.members.len();
        // NB: of equal changes the first.
        self.stands = places
            .reduce(|most, place| if along(&self.members[place]) > along(&self.members[most]) { place } else { most });
    }

    /// The rows of the member of a place.
    pub fn rows(&self, place: usize) -> impl Iterator<Item = (CountKind, u64)> {
        let Member { kinds, function, .. } = &self.members[place];
        kinds.iter().map(|kind| (*kind, *function))
    }

    /// If a row is one of the group: the place of its member.
    pub fn place(&self, kind: CountKind, function: u64) -> Option<usize> {
        self.members.iter().position(|member| member.function == function && member.kinds.contains(&kind))
    }

    /// The function that has a member's cost in the other build: the one that stands, or that changed most the other way.
    pub fn instead_of(&self, place: usize) -> Option<&Member> {
        if let Some(stands) = self.stands {
            return self.members.get(stands).filter(|_| stands != place);
        }
        let along = |member: &Member| -member.change * self.members[place].change.signum();
        let others = self.members.iter().filter(|member| along(member) > 0.0);
        others.reduce(|most, member| if along(member) > along(most) { member } else { most })
    }

    /// Its functions.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        self.members.iter().map(|member| member.function)
    }

    /// Whether it is of the same rows.
    pub fn is_of(&self, other: &Self) -> bool {
        let [kinds, of_other] = [self, other].map(|group| group.members.first().map(|member| &member.kinds));
        self.how == other.how && kinds == of_other && self.functions().eq(other.functions())
    }

    /// The two functions of a pair, base first.
    pub fn pair(&self) -> Option<[u64; 2]> {
        match (self.how, self.members.as_slice()) {
            (How::Renamed, [base, head]) => Some([base.function, head.function]),
            _ => None,
        }
    }

    /// Makes one function of its members on a stack of which the last function is the leaf if it is the stack's `own`.
    fn join(&self, functions: &mut Vec<u64>, own: bool) {
        let standing = self.stands.and_then(|place| self.members.get(place));
        for member in
            self.members.iter().filter(|member| standing.is_none_or(|standing| standing.function != member.function))
        {
            let to = match self.how {
                How::Renamed | How::Renumbered => {
                    standing.or_else(|| self.members.last()).map(|member| member.function)
                }
                How::Inlined => member.into,
            };
            if let Some(to) = to {
                functions
                    .iter_mut()
                    .filter(|function| **function == member.function)
                    .for_each(|function| *function = to);
            }
        }
        // What callers do by themselves is the work of the function that stands and is inlined in them.
        let inlined = standing.filter(|member| member.into.is_some());
        let is_caller = |leaf: u64| self.members.iter().any(|member| member.function == leaf && member.into.is_none());
        if let Some(inlined) = inlined.filter(|_| own && functions.last().is_some_and(|leaf| is_caller(*leaf))) {
            functions.push(inlined.function);
        }
    }
}

impl CallerCounts {
    /// The same stacks, each group as one function.
    pub fn joined(&self, groups: &[Group]) -> Self {
        let mut joined = self.clone();
        for stack in &mut joined.stacks {
            groups.iter().for_each(|group| group.join(&mut stack.functions, stack.own));
        }
        joined
    }
}
