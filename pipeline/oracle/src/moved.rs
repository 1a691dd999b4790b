//! Functions that do the same work, in another way in each build: items 7 to 9 of section 11 of `docs/semantics.md`.

mod search;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::CellKey;

use self::search::{Row, Weighted, found, known};
use super::counts::{Archive, Tree};
use super::family::{Live, RowId};
use super::report::is_under;
use super::row::Line;
use super::statistics::always_valid::ln_e;
use super::statistics::g::ln_p_iid;

/// A group, by names.
#[derive(Clone, Debug)]
pub(super) struct Group {
    how: How,
    members: Vec<Member>,
    pub theta: f64,
    /// Of theta, but for that of the normalization.
    variance: f64,
    se: f64,
    counts: [f64; 2],
    stands: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Renamed,
    Renumbered,
    Inlined,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    delta: f64,
    /// Of which kinds its rows are those of the group.
    kinds: Vec<CountKind>,
    /// What it is inlined in.
    into: Option<String>,
}

impl Group {
    fn of(how: How, rows: &[Weighted<'_>]) -> Self {
        let sum =
            |of: fn(&Row<'_>) -> f64| rows.iter().map(|weighted| weighted.weight * of(&weighted.row)).sum::<f64>();
        let (head, base) = (sum(|row| row.head), sum(|row| row.base));
        let first = rows[0].row;
        let variance = sum(|row| row.se.powi(2)) / head.min(base).powi(2);
        let members = rows.iter().map(|Weighted { row, weight, kinds, into }| Member {
            name: row.name.to_owned(),
            delta: weight * row.delta(),
            kinds: kinds.clone(),
            into: into.map(str::to_owned),
        });
        Self {
            how,
            members: members.collect(),
            theta: (head / base).ln() - first.ln_f,
            variance,
            se: (variance + first.v).sqrt(),
            counts: [sum(|row| row.counts[0]), sum(|row| row.counts[1])],
            stands: None,
        }
    }

    /// ln of its e-value.
    pub fn ln_e(&self) -> f64 {
        ln_e(ln_p_iid((self.theta / self.se).powi(2)), self.se.powi(2))
    }

    /// It changed together: the member that changed most in that direction stands for it.
    fn stand(&mut self) {
        let along = |member: &Member| member.delta * self.theta.signum();
        let most = self.members.iter().map(along).fold(f64::NEG_INFINITY, f64::max);
        self.stands = self.members.iter().find(|member| along(member) >= most).map(|member| member.name.clone());
    }

    fn member(&self, name: &str, kind: CountKind) -> Option<&Member> {
        self.members.iter().find(|one| one.name == name && one.kinds.contains(&kind))
    }

    /// Whether a row of its cell is one of it.
    pub fn holds(&self, id: &RowId) -> bool {
        self.member(&id.function, id.kind).is_some()
    }

    /// Whether it is of the same rows.
    fn is_of(&self, other: &Self) -> bool {
        let rows =
            |group: &Self| group.members.iter().map(|one| (one.name.clone(), one.kinds.clone())).collect::<Vec<_>>();
        self.how == other.how && rows(self) == rows(other)
    }

    fn names(&self) -> Vec<&str> {
        self.members.iter().map(|member| member.name.as_str()).collect()
    }

    /// The function that has a member's cost in the other build; none of the one that stands.
    fn instead(&self, member: &Member) -> Option<&str> {
        match &self.stands {
            Some(stands) => Some(stands.as_str()).filter(|stands| *stands != member.name),
            None => {
                let along = |one: &Member| -one.delta * member.delta.signum();
                let most = self.members.iter().map(along).fold(f64::NEG_INFINITY, f64::max);
                self.members.iter().find(|one| along(one) >= most).map(|one| one.name.as_str())
            }
        }
    }

    /// What a flag of a member says.
    fn words(&self, member: &Member) -> String {
        let is_up = member.delta > 0.0;
        let (here, there) = if is_up { ("head", "base") } else { ("base", "head") };
        let alone: Vec<&str> = self
            .members
            .iter()
            .filter(|one| self.how != How::Inlined || one.into.is_some())
            .map(|one| one.name.as_str())
            .collect();
        let others: Vec<&str> = self.names().into_iter().filter(|name| *name != member.name).collect();
        let words = if self.how == How::Renumbered {
            format!("renumbered with {}", listed(&others))
        } else if self.how == How::Renamed {
            let other = alone.iter().find(|name| **name != member.name).copied().unwrap_or_default();
            format!("moved or renamed: it {} {other} in the {there}", if is_up { "was" } else { "is" })
        } else if let Some(into) = &member.into {
            format!("inlined in {into} in the {there}")
        } else {
            let verb = if alone.len() == 1 { "is" } else { "are" };
            format!("{} {verb} inlined in it in the {here}", listed(&alone))
        };
        if self.stands.is_none() {
            return words;
        }
        let [x, low, high] = [0.0, -1.0, 1.0].map(|side| (self.theta + side * 1.959_963_984_540_054 * self.se).exp());
        format!("{words}; together x {x:.2} ({low:.2} to {high:.2})")
    }
}

/// Names in a sentence.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two, three, ..] => format!("{one}, {two}, {three} and {} more", names.len() - 3),
    }
}

/// The stacks of all paths, each group as one function.
pub(super) fn joined<'a>(archive: &'a Archive, groups: &[Group]) -> Cow<'a, [Vec<usize>]> {
    if groups.is_empty() {
        return Cow::Borrowed(&archive.paths);
    }
    let number = |name: &str| archive.names.iter().position(|known| **known == *name);
    let mut paths = archive.paths.clone();
    for group in groups {
        let stands = group.stands.as_deref();
        for member in group.members.iter().filter(|member| Some(member.name.as_str()) != stands) {
            let of_others = stands.or_else(|| group.names().last().copied()).filter(|_| group.how != How::Inlined);
            let into = member.into.as_deref().or(of_others);
            let (Some(from), Some(to)) = (number(&member.name), into.and_then(number)) else { continue };
            paths.iter_mut().flatten().filter(|function| **function == from).for_each(|function| *function = to);
        }
        let standing = group.members.iter().find(|member| Some(member.name.as_str()) == stands);
        if let Some(inlined) = standing.filter(|member| member.into.is_some()).and_then(|member| number(&member.name)) {
            let callers: Vec<Option<usize>> = group
                .members
                .iter()
                .filter(|member| member.into.is_none())
                .map(|member| number(&member.name))
                .collect();
            for stack in paths.iter_mut().filter(|stack| callers.contains(&stack.last().copied())) {
                stack.push(inlined);
            }
        }
    }
    Cow::Owned(paths)
}

/// Groups of a look, each with its cell.
pub(super) type Groups = Vec<(Place, Group)>;

/// A cell of a type of profile.
type Place = (ProfileType, CellKey);

impl Live {
    /// Whether a row may be one of a group.
    fn is_candidate(&self, q: f64, id: &RowId, line: &Line) -> bool {
        let large = line.ln_e().is_some_and(|ln_e| ln_e >= -q.ln());
        !id.is_of_all() && Row::of(id, line).is_some() && (large || self.selected.contains_key(id))
    }

    /// The groups of the rows that are tested now, and the functions that may be in one, by cell.
    pub(super) fn regroup(
        &self,
        q: f64,
        tested: &BTreeMap<RowId, &Line>,
        archive: &Archive,
        tree: impl Fn(ProfileType, &CellKey) -> Tree,
    ) -> (Groups, BTreeMap<(ProfileType, CellKey), BTreeSet<String>>) {
        let mut by_cell: BTreeMap<(ProfileType, CellKey), Vec<(&RowId, &Line)>> = BTreeMap::new();
        for (id, line) in tested.iter().filter(|(id, line)| self.is_candidate(q, id, line)) {
            by_cell.entry((id.profile_type, id.cell.clone())).or_default().push((id, *line));
        }
        let (mut groups, mut seen) = (Vec::new(), BTreeMap::new());
        for (place, candidates) in by_cell {
            let names = candidates.iter().map(|(id, _)| id.function.clone()).collect();
            let tree = tree(place.0, &place.1);
            if !tree.is_empty() {
                let functions = known(archive, &tree, &candidates);
                let of_place = self.groups.get(&place).into_iter().flatten().filter(|group| group.how == How::Renamed);
                let mut before: Vec<(String, String)> =
                    of_place.map(|group| (group.members[0].name.clone(), group.members[1].name.clone())).collect();
                before.dedup();
                groups.extend(found(functions, &before).into_iter().map(|group| (place.clone(), group)));
            }
            seen.insert(place, names);
        }
        (groups, seen)
    }

    /// Takes the groups of a look, each with whether e-BH rejects that it stayed. Gives the rows of functions that stand for those that are
    /// rejected and changed enough.
    pub(super) fn take(
        &mut self,
        groups: Vec<(bool, (Place, Group))>,
        seen: &BTreeMap<(ProfileType, CellKey), BTreeSet<String>>,
        config: &Config,
        tested: &BTreeMap<RowId, &Line>,
    ) -> Vec<RowId> {
        let mut standing = Vec::new();
        let mut fresh: BTreeMap<(ProfileType, CellKey), Vec<Group>> = BTreeMap::new();
        for (rejected, (place, mut group)) in groups {
            let rows = |group: &Group| -> Vec<RowId> {
                let is_of_it = |id: &&RowId| {
                    let here = (id.profile_type, &id.cell) == (place.0, &place.1);
                    here && group.stands.as_deref() == Some(&*id.function)
                        && group.member(&id.function, id.kind).is_some()
                };
                tested.keys().chain(self.selected.keys()).filter(is_of_it).cloned().collect()
            };
            let before = self.groups.get(&place).into_iter().flatten().find(|before| before.is_of(&group));
            let stood = before.is_some_and(|before| {
                let is_selected = rows(before).iter().any(|id| self.selected.contains_key(id));
                before.stands.is_some() && before.theta * group.theta > 0.0 && is_selected
            });
            if rejected && group.theta.abs() >= config.min_effect {
                group.stand();
                let close = |id: &RowId| tested.get(id).is_some_and(|line| self.is_candidate(config.q, id, line));
                standing.extend(tested.keys().filter(|id| rows(&group).contains(id) && close(id)).cloned());
            } else if stood {
                group.stand();
            }
            fresh.entry(place).or_default().push(group);
        }
        for (place, groups) in &mut self.groups {
            let new: Vec<&str> = fresh.get(place).into_iter().flatten().flat_map(Group::names).collect();
            let none = BTreeSet::new();
            let seen = seen.get(place).unwrap_or(&none);
            groups.retain(|group| {
                let names = group.names();
                !names.iter().all(|name| seen.contains(*name)) && !names.iter().any(|name| new.contains(name))
            });
        }
        for (place, groups) in fresh {
            self.groups.entry(place).or_default().extend(groups);
        }
        standing
    }

    /// The group of a row, above all one for which it stands.
    fn group_of(&self, id: &RowId) -> Option<(&Group, &Member)> {
        let groups = self.groups.get(&(id.profile_type, id.cell.clone()))?.iter();
        let mut groups: Vec<_> =
            groups.filter_map(|group| Some((group, group.member(&id.function, id.kind)?))).collect();
        groups.sort_by_key(|(group, member)| group.stands.as_ref() != Some(&member.name));
        groups.first().copied()
    }

    /// The function that has a row's cost in the other build, if the row is no finding for that.
    pub(super) fn instead(&self, id: &RowId) -> Option<&str> {
        let (group, member) = self.group_of(id)?;
        group.instead(member)
    }

    /// Of the group for which a row stands: the variance of its change, and its counts.
    pub(super) fn figures_of_group(&self, id: &RowId) -> Option<(f64, [f64; 2])> {
        let (group, _) = self.group_of(id)?;
        Some((group.variance, group.counts))
    }

    /// What a flag of a row says of its group.
    pub(super) fn words_of_group(&self, id: &RowId) -> Option<String> {
        let (group, member) = self.group_of(id)?;
        Some(group.words(member))
    }

    /// The same for the row of a roll-up: in one of its cells that is so, and in none it stands for a group.
    pub(super) fn instead_below(&self, id: &RowId) -> Option<&str> {
        let below = self.groups.keys().filter(|(of, cell)| *of == id.profile_type && is_under(cell, &id.cell));
        let rows: Vec<RowId> = below.map(|(_, cell)| RowId { cell: cell.clone(), ..id.clone() }).collect();
        let stands = |row: &RowId| self.group_of(row).is_some() && self.instead(row).is_none();
        let mut instead = rows.iter().filter_map(|row| self.instead(row));
        instead.next().filter(|_| !rows.iter().any(stands))
    }
}
