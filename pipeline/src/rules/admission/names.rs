//! The numbers of a profile's names, found once for all profiles of a worker.
//!
//! Profiles of one process, and mostly of one service, have the same names, and decoders give the same text for the same name. A name
//! that was seen at the same address is therefore not looked up by its text again.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::counts::functions::FunctionTable;
use crate::counts::ids::FunctionId;

/// How many texts are remembered at most. They stay in memory while they are.
const MOST: usize = 1 << 16;

/// The numbers of names of one round.
#[derive(Debug, Default)]
pub(super) struct NumberedNames {
    /// The round in which they were asked for: later, numbers may be those of other names.
    round: u32,
    /// By address of the text. As long as the text is held, no other one has its address.
    known: HashMap<usize, (Arc<str>, FunctionId), RandomState>,
    /// The last table of names as it arrived, and the number of each.
    last: Option<(Arc<[Arc<str>]>, Vec<FunctionId>)>,
}

impl NumberedNames {
    /// Begins a round. Whether it is another one than before: then no number that was given still counts.
    pub(super) fn begin(&mut self, round: u32) -> bool {
        let is_other = self.round != round;
        if is_other {
            *self = Self { round, ..Self::default() };
        }
        is_other
    }

    /// The numbers of these names, in their order.
    pub(super) fn of(&mut self, names: &Arc<[Arc<str>]>, table: &FunctionTable) -> &[FunctionId] {
        let ids = match self.last.take() {
            Some((last, ids)) if Arc::ptr_eq(&last, names) => ids,
            _ => self.numbered(names, table),
        };
        let (_, ids) = self.last.insert((Arc::clone(names), ids));
        ids
    }

    fn numbered(&mut self, names: &[Arc<str>], table: &FunctionTable) -> Vec<FunctionId> {
        let mut new: Vec<(usize, Arc<str>)> = Vec::new();
        let known = &self.known;
        let number = |(place, name): (usize, &Arc<str>)| match known.get(&address(name)) {
            Some((_, id)) => *id,
            None => {
                new.push((place, Arc::clone(name)));
                0
            }
        };
        let mut ids: Vec<FunctionId> = names.iter().enumerate().map(number).collect();
        if new.is_empty() {
            return ids;
        }
        let texts: Vec<Arc<str>> = new.iter().map(|(_, name)| Arc::clone(name)).collect();
        if self.known.len() + texts.len() > MOST {
            self.known.clear();
        }
        for ((place, name), id) in new.into_iter().zip(table.intern(&texts)) {
            ids[place] = id;
            if self.known.len() < MOST {
                self.known.insert(address(&name), (name, id));
            }
        }
        ids
    }
}

fn address(name: &Arc<str>) -> usize {
    name.as_ptr().addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Arc<[Arc<str>]> {
        texts.iter().map(|text| Arc::from(*text)).collect()
    }

    /// What the table itself says.
    fn looked_up(names: &[Arc<str>], table: &FunctionTable) -> Vec<FunctionId> {
        table.intern(names)
    }

    #[test]
    fn a_name_has_the_number_of_its_text_wherever_that_stands() {
        let (mut numbered, table) = (NumberedNames::default(), FunctionTable::default());
        let first = names(&["main", "read", "parse"]);
        let others: Arc<[Arc<str>]> = [&first[2], &"write".into(), &"main".into(), &first[0]].map(Arc::clone).into();
        for table_of_names in [&first, &others, &others, &first] {
            assert_eq!(numbered.of(table_of_names, &table), looked_up(table_of_names, &table));
        }
    }

    #[test]
    fn texts_at_the_address_of_dropped_ones_have_their_own_numbers() {
        let (mut numbered, table) = (NumberedNames::default(), FunctionTable::default());
        for number in 0..1_000 {
            let fresh = names(&[&format!("f{number:04}"), "main"]);
            assert_eq!(numbered.of(&fresh, &table), looked_up(&fresh, &table));
        }
    }

    #[test]
    fn a_number_counts_in_its_round_only() {
        let (mut numbered, table) = (NumberedNames::default(), FunctionTable::default());
        let (gone, later) = (names(&["gone"]), names(&["later"]));
        let before = numbered.of(&gone, &table).to_vec();
        for hop in 0..4 {
            table.finish_round(0, 1, fleetdiff_schemas::time::Hop(hop));
        }
        // The number of the name that is forgotten goes to the next.
        assert_eq!(table.intern(&later), before);
        assert!(numbered.begin(table.round()) && !numbered.begin(table.round()));
        assert_ne!(numbered.of(&gone, &table), before);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut numbered, table) = (NumberedNames::default(), FunctionTable::default());
        for _ in 0..MOST / 1_000 + 10 {
            numbered.of(&names(&["main"; 1_000]), &table);
            assert!(numbered.known.len() <= MOST);
        }
    }
}
