//! Rows of a table whose cost other functions have in the other build.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;

use super::roll_ups::is_under;
use super::{LiveRows, SelectedKey};

/// Those of one kind of count: by cell or roll-up and stable hash, the function that has the cost instead.
pub(super) struct Moved<'l>(BTreeMap<CellKey, BTreeMap<u64, &'l String>>);

impl<'l> Moved<'l> {
    /// Those of some cells and roll-ups. A row of a roll-up has moved if it has in one of its cells and stands in none.
    pub(super) fn of<'c>(places: impl Iterator<Item = &'c CellKey>, kind: CountKind, live: &'l LiveRows) -> Self {
        let of_place = |place: &CellKey| {
            let here = |(of, cell, _): &SelectedKey| *of == kind && is_under(cell, place);
            let mut moved = BTreeMap::new();
            for ((.., hash), instead) in live.moved.iter().filter(|(key, _)| here(key)) {
                moved.entry(*hash).or_insert(instead);
            }
            for (.., hash) in live.standing.iter().filter(|key| here(key)) {
                moved.remove(hash);
            }
            moved
        };
        if live.moved.is_empty() {
            return Self(BTreeMap::new());
        }
        Self(places.map(|place| (place.clone(), of_place(place))).collect())
    }

    /// The function that has the cost of a function of a cell or roll-up in the other build.
    pub(super) fn get(&self, place: &CellKey, hash: u64) -> Option<&'l String> {
        self.0.get(place)?.get(&hash).copied()
    }
}
