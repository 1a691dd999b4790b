//! Rows whose cost other functions have in the other build: they are no findings.
//!
//! [Groups](crate::rules::moved) are looked for at each look, among rows that are selected or close to it, and each is one hypothesis of the look's
//! family in place of its rows: otherwise a build with other names would have so many false discoveries that the true ones lose their limit.
//! A group is remembered until a look at which all of its functions have such rows and are none, or one of them is in another: one may be seen
//! some looks before the other. A group that changed stays so while the row that stands for it is selected and its change has the same direction.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey};

use super::{FlagKey, LiveRule, Look, Place};
use crate::evidence::row::RowEvidence;
use crate::rules::moved::{Group, Part, groups};
use crate::rules::table::{LiveRows, SelectedKey};

/// What a look rejects.
pub(super) struct Rejected {
    /// Rows, of a group that changed those of the function that stands for it.
    pub(super) rows: BTreeSet<FlagKey>,
    /// Hypotheses.
    pub(super) count: usize,
}

/// Rows that are selected or close to it, by cell.
#[derive(Default)]
struct Near<'r>(BTreeMap<(&'r ComparisonKey, &'r CellKey), Vec<&'r RowEvidence>>);

impl<'r> Near<'r> {
    fn of<'p>(&'p self, place: &'p Place) -> &'p [&'r RowEvidence] {
        self.0.get(&(&place.0, &place.1)).map_or(&[], Vec::as_slice)
    }
}

impl LiveRule {
    /// The rows that e-BH rejects at a look; finds its groups.
    pub(super) fn rejected(&mut self, rows: &BTreeMap<FlagKey, RowEvidence>, look: &Look) -> Rejected {
        let near = self.near(rows);
        let mut fresh = self.regroup(&near, look);
        let old = self.groups.iter().flat_map(|(place, groups)| groups.iter().map(move |group| (place, group)));
        let all = old.chain(fresh.iter().map(|(place, group)| (place, group)));
        let grouped: BTreeSet<FlagKey> = all
            .flat_map(|(place, group)| (0..group.members.len()).flat_map(|member| keys(place, group, member)))
            .collect();
        let free: Vec<(&FlagKey, &RowEvidence)> = rows.iter().filter(|(key, _)| !grouped.contains(*key)).collect();
        let of_groups: Vec<f64> = fresh.iter().map(|(_, group)| group.ln_e()).collect();
        let (of_rows, of_groups) = look.family.rejected(free.iter().map(|(_, row)| *row), &of_groups, self.q);
        let mut rejected: BTreeSet<FlagKey> =
            free.iter().zip(&of_rows).filter(|(_, rejected)| **rejected).map(|((key, _), _)| (*key).clone()).collect();
        let count = rejected.len() + of_groups.iter().filter(|rejected| **rejected).count();
        for ((place, group), is_rejected) in fresh.iter_mut().zip(of_groups) {
            if is_rejected && group.theta.abs() >= self.min_effect {
                group.stand();
                let is_close = |key: &FlagKey| rows.get(key).is_some_and(|evidence| self.is_close(key, evidence));
                rejected.extend(standing_keys(place, group).filter(is_close));
            } else if self.stood(place, group) {
                group.stand();
            }
        }
        self.remember(fresh, &near);
        Rejected { rows: rejected, count }
    }

    /// The groups of the rows that are close; most cells have nothing that is new or gone, and so none.
    fn regroup(&self, near: &Near<'_>, look: &Look) -> Vec<(Place, Group)> {
        let is_alone = |row: &&RowEvidence| row.row.head.count == 0 || row.row.base.count == 0;
        let mut fresh = Vec::new();
        for (place, callers) in &look.callers {
            let rows = near.of(place);
            if !rows.iter().any(is_alone) {
                continue;
            }
            let parts: Vec<Part<'_>> = rows.iter().filter_map(|evidence| part(evidence)).collect();
            let mut known: Vec<[u64; 2]> = self.groups_of(place).iter().filter_map(Group::pair).collect();
            // A pair has a group of each kind of count.
            known.dedup();
            fresh.extend(groups(&parts, callers, &known).into_iter().map(|group| (place.clone(), group)));
        }
        fresh
    }

    /// The rows that may be in a group: tested ones of functions that are close.
    fn near<'r>(&self, rows: &'r BTreeMap<FlagKey, RowEvidence>) -> Near<'r> {
        let mut near = Near::default();
        for (key, evidence) in rows {
            let row = &evidence.row;
            let is_tested = !evidence.of_all && row.share_delta.is_some() && row.df.is_some();
            if is_tested && self.is_close(key, evidence) {
                near.0.entry((&key.0, &key.1)).or_default().push(evidence);
            }
        }
        near
    }

    /// Whether a row is selected, or close to it.
    fn is_close(&self, key: &FlagKey, evidence: &RowEvidence) -> bool {
        evidence.row.ln_e.is_some_and(|ln_e| ln_e >= -libm::log(self.q)) || self.selected.contains_key(key)
    }

    /// Whether this group changed before, and the row that stands for it is still selected.
    fn stood(&self, place: &Place, group: &Group) -> bool {
        let before = self.groups_of(place).iter().find(|before| before.is_of(group));
        let stands = before.filter(|before| before.stands.is_some() && before.theta * group.theta > 0.0);
        stands.is_some_and(|before| standing_keys(place, before).any(|key| self.selected.contains_key(&key)))
    }

    /// Replaces groups by those that were found now.
    fn remember(&mut self, fresh: Vec<(Place, Group)>, near: &Near<'_>) {
        for (place, groups) in &mut self.groups {
            let seen: BTreeSet<u64> = near.of(place).iter().map(|row| row.hash).collect();
            let of_place = fresh.iter().filter(|(of, _)| of == place);
            let now: BTreeSet<u64> = of_place.flat_map(|(_, group)| group.functions()).collect();
            groups.retain(|group| {
                !group.functions().all(|function| seen.contains(&function))
                    && !group.functions().any(|function| now.contains(&function))
            });
        }
        for (place, group) in fresh {
            self.groups.entry(place).or_default().push(group);
        }
        self.groups.retain(|_, groups| !groups.is_empty());
    }

    /// The groups of a cell.
    pub(super) fn groups_of(&self, place: &Place) -> &[Group] {
        self.groups.get(place).map_or(&[], Vec::as_slice)
    }

    /// The group of a row, and the place of its function in it: one for which it stands, if there is one.
    pub(super) fn group_of(&self, (comparison, cell, kind, function): &FlagKey) -> Option<(&Group, usize)> {
        let groups = self.groups_of(&(comparison.clone(), cell.clone()));
        let mut places = groups.iter().filter_map(|group| Some((group, group.place(*kind, *function)?)));
        places.clone().find(|(group, place)| group.stands == Some(*place)).or_else(|| places.next())
    }

    /// Whether other functions have the cost of a row in the other build, so that it is no finding.
    pub(super) fn has_moved(&self, key: &FlagKey) -> bool {
        self.group_of(key).is_some_and(|(group, place)| group.stands != Some(place))
    }

    /// What tables need to know of the groups of one type of profile.
    pub(super) fn add_groups(&self, comparison: &ComparisonKey, rows: &mut LiveRows) {
        for ((of, cell), groups) in self.groups.iter().filter(|((of, _), _)| of == comparison) {
            let each = groups.iter().flat_map(|group| (0..group.members.len()).flat_map(|member| group.rows(member)));
            for (kind, function) in each.collect::<BTreeSet<_>>() {
                let Some((group, place)) = self.group_of(&(of.clone(), cell.clone(), kind, function)) else { continue };
                let key: SelectedKey = (kind, cell.clone(), function);
                match group.instead_of(place) {
                    Some(instead) => drop(rows.moved.insert(key, instead.name.clone())),
                    None => drop(rows.standing.insert(key)),
                }
            }
        }
    }
}

/// The rows of a member of a group.
fn keys<'g>(place: &'g Place, group: &'g Group, member: usize) -> impl Iterator<Item = FlagKey> + 'g {
    group.rows(member).map(move |(kind, function)| (place.0.clone(), place.1.clone(), kind, function))
}

/// Those of the one that stands for it.
fn standing_keys<'g>(place: &'g Place, group: &'g Group) -> impl Iterator<Item = FlagKey> + 'g {
    group.stands.into_iter().flat_map(move |stands| keys(place, group, stands))
}

/// A tested row of a function, as groups are made of.
fn part(evidence: &RowEvidence) -> Option<Part<'_>> {
    let row = &evidence.row;
    Some(Part {
        kind: row.count_kind,
        function: evidence.hash,
        name: &row.function,
        head: row.head.share?,
        base: row.base.share?,
        counts: [row.head.count, row.base.count].map(signed_float),
        se: evidence.share_error()?,
        ln_normalization: evidence.ln_normalization,
        normalization_variance: evidence.normalization_variance,
    })
}
