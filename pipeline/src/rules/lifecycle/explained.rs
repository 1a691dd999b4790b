//! What a flag explains, and where work has moved.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::profile::CountKind;

use super::{FlagKey, LiveRule, Place, Selected, State};
use crate::evidence::callers::CallerCounts;
use crate::rules::causes::{Shift, shifts};

/// How many functions of which only the share moved are named with a flag.
const NAMED: usize = 20;

impl LiveRule {
    /// Names of what moved only because this flag's function did: callers first, then functions of which only the share
    /// moved.
    pub(super) fn explained_by(&self, flag: &FlagKey, compositional: &BTreeMap<Place, Vec<String>>) -> Vec<String> {
        let callers =
            self.selected.values().filter(|selected| matches!(&selected.state, State::Explained(by) if by == flag));
        let mut names: Vec<String> = callers
            .map(|selected| format!("{} ({})", selected.now.row.function, selected.now.row.count_kind.name()))
            .collect();
        if self.is_largest_of_cell(flag) {
            let (comparison, cell, ..) = flag;
            let own: BTreeSet<&str> =
                self.own_of_cell(flag).map(|(_, selected)| selected.now.row.function.as_str()).collect();
            let moved = compositional.get(&(comparison.clone(), cell.clone())).into_iter().flatten();
            let moved: Vec<&String> = moved.filter(|name| !own.contains(name.as_str())).collect();
            names.extend(moved.iter().take(NAMED).map(|name| format!("{name} (share)")));
            if moved.len() > NAMED {
                names.push(format!("{} more (share)", moved.len() - NAMED));
            }
        }
        names
    }

    /// Whether the flag is the self row of its cell with the largest change, to which compositional rows are
    /// attributed.
    fn is_largest_of_cell(&self, flag: &FlagKey) -> bool {
        let largest = self
            .own_of_cell(flag)
            .max_by(|(a, one), (b, other)| one.now.theta.abs().total_cmp(&other.now.theta.abs()).then(b.cmp(a)));
        largest.is_some_and(|(key, _)| key == flag)
    }

    /// The selected self rows of the cell of a flag.
    fn own_of_cell(&self, flag: &FlagKey) -> impl Iterator<Item = (&FlagKey, &Selected)> {
        self.selected.iter().filter(|(key, selected)| {
            let is_here = key.0 == flag.0 && key.1 == flag.1 && key.2 == CountKind::SelfCount;
            is_here && !selected.now.of_all && !self.has_moved(key)
        })
    }

    /// In words, by flag: from where, or to where, its work moved.
    pub(super) fn shifts(&self, callers: &BTreeMap<Place, CallerCounts>) -> BTreeMap<FlagKey, String> {
        let mut words = BTreeMap::new();
        for ((comparison, cell), callers) in callers {
            let here = self.functions_of(comparison, cell);
            let rows = self.selected_rows(&here);
            let moved =
                |row: usize| here[row].1.now.row.share_delta.map(|delta| (delta.value, (delta.high - delta.low) / 2.0));
            for Shift { to, from, caller } in shifts(&rows, callers, moved) {
                let name = |row: usize| &here[row].1.now.row.function;
                words.insert(
                    here[to].0.clone(),
                    format!("cost shift under {caller}: work moved here from {}", name(from)),
                );
                words.insert(here[from].0.clone(), format!("cost shift under {caller}: work moved to {}", name(to)));
            }
        }
        words
    }
}
