//! Rows whose cost other functions have in the other build: they are no findings.
//!
//! [Groups](crate::rules::moved) are looked for at each look, among rows that are selected or close to it, and each is one hypothesis of the look's
//! family in place of its rows: otherwise a build with other names would have so many false discoveries that the true ones lose their limit.
//! A group is remembered until a look at which all of its functions have such rows and are none, or one of them is in another: one may be seen
//! some looks before the other. A group that changed stays so while the row that stands for it is selected and its change has the same direction.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::rows::ComparisonKey;

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

impl LiveRule {
    /// The rows that e-BH rejects at a look; finds its groups.
    pub(super) fn rejected(&mut self, rows: &BTreeMap<FlagKey, RowEvidence>, look: &Look) -> Rejected {
        let mut fresh = self.regroup(rows, look);
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
        let changed = of_groups
            .iter()
            .zip(&fresh)
            .map(|(rejected, (_, group))| *rejected && group.theta.abs() >= self.min_effect);
        let changed: Vec<bool> = changed.collect();
        let count = rejected.len() + of_groups.iter().filter(|rejected| **rejected).count();
        for ((place, group), changed) in fresh.iter_mut().zip(changed) {
            if changed {
                group.stand();
                let is_close = |key: &FlagKey| rows.get(key).is_some_and(|evidence| self.is_close(key, evidence));
                rejected.extend(standing_keys(place, group).filter(is_close));
            } else if self.stood(place, group) {
                group.stand();
            }
        }
        self.remember(fresh, rows);
        Rejected { rows: rejected, count }
    }

    /// The groups of the rows that are tested now.
    fn regroup(&self, rows: &BTreeMap<FlagKey, RowEvidence>, look: &Look) -> Vec<(Place, Group)> {
        let mut fresh = Vec::new();
        for (place, callers) in &look.callers {
            let parts = self.parts(place, rows);
            let mut known: Vec<[u64; 2]> = self.groups_of(place).iter().filter_map(Group::pair).collect();
            // A pair has a group of each kind of count.
            known.dedup();
            fresh.extend(groups(&parts, callers, &known).into_iter().map(|group| (place.clone(), group)));
        }
        fresh
    }

    /// The rows of a cell that may be in a group.
    fn parts(&self, place: &Place, rows: &BTreeMap<FlagKey, RowEvidence>) -> Vec<Part> {
        let here = rows.iter().filter(|((comparison, cell, ..), _)| (comparison, cell) == (&place.0, &place.1));
        let close = here.filter(|(key, evidence)| self.is_close(key, evidence));
        close.filter_map(|(_, evidence)| part(evidence)).collect()
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
    fn remember(&mut self, fresh: Vec<(Place, Group)>, rows: &BTreeMap<FlagKey, RowEvidence>) {
        let places: BTreeSet<Place> = self.groups.keys().cloned().collect();
        for place in places {
            let seen: BTreeSet<u64> = self.parts(&place, rows).iter().map(|part| part.function).collect();
            let now: BTreeSet<u64> =
                fresh.iter().filter(|(of, _)| *of == place).flat_map(|(_, group)| group.functions()).collect();
            if let Some(groups) = self.groups.get_mut(&place) {
                groups.retain(|group| {
                    !group.functions().all(|function| seen.contains(&function))
                        && !group.functions().any(|function| now.contains(&function))
                });
            }
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
        let first = places.next()?;
        Some(
            places
                .find(|(group, place)| group.stands == Some(*place))
                .filter(|_| first.0.stands != Some(first.1))
                .unwrap_or(first),
        )
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
fn part(evidence: &RowEvidence) -> Option<Part> {
    let row = &evidence.row;
    Some(Part {
        kind: row.count_kind,
        function: evidence.hash,
        name: row.function.clone(),
        head: row.head.share?,
        base: row.base.share?,
        counts: [row.head.count, row.base.count].map(signed_float),
        se: evidence.share_error().filter(|_| !evidence.of_all)?,
        ln_normalization: evidence.ln_normalization,
        normalization_variance: evidence.normalization_variance,
    })
}
