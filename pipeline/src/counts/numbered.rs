//! Keys with numbers. The number of a key that is forgotten goes to a later one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use fleetdiff_schemas::number::index_of;
use foldhash::fast::RandomState;

use super::rounds::{FIRST, Mark};

/// Keys with numbers, and what is known of each.
#[derive(Debug)]
pub(super) struct Numbered<K, V, S = RandomState> {
    numbers: HashMap<K, u32, S>,
    /// By number: what is known, and when it was met last; nothing where the number is free.
    entries: Vec<(V, Mark)>,
    /// Numbers that are free, descending.
    free: Vec<u32>,
}

impl<K, V, S: Default> Default for Numbered<K, V, S> {
    fn default() -> Self {
        Self { numbers: HashMap::default(), entries: Vec::new(), free: Vec::new() }
    }
}

impl<K: Eq + Hash, V: Default, S: BuildHasher + Default> Numbered<K, V, S> {
    /// No key has number 0.
    pub fn from_one() -> Self {
        Self { entries: vec![(V::default(), Mark::none())], ..Self::default() }
    }

    /// Keys with these numbers, as met in the first round; `None` if two have one number, or one has two. A reserved number is none of a
    /// key.
    pub fn put_back(mut self, keys: impl Iterator<Item = (u32, K, V)>) -> Option<Self> {
        let reserved = self.entries.len();
        for (number, key, known) in keys {
            let is_new = index_of(number) >= reserved && !self.is_taken(number) && !self.numbers.contains_key(&key);
            if !is_new {
                return None;
            }
            self.put(number, key, known, FIRST);
        }
        let free = (0..).zip(&self.entries).skip(reserved).filter(|(_, (_, mark))| !mark.is_met());
        self.free = free.map(|(number, _)| number).collect();
        self.free.reverse();
        Some(self)
    }

    /// Takes over a key with the number that it has elsewhere, as met in this round.
    pub fn put(&mut self, number: u32, key: K, known: V, round: u32) {
        let place = index_of(number);
        if place >= self.entries.len() {
            self.entries.resize_with(place + 1, || (V::default(), Mark::none()));
        }
        self.entries[place] = (known, Mark::new(round));
        self.numbers.insert(key, number);
    }

    /// Whether a key has this number.
    pub fn is_taken(&self, number: u32) -> bool {
        self.get(number).is_some_and(|(_, mark)| mark.is_met())
    }

    /// Marks those of these numbers that a key has in this round. Gives the others.
    pub fn mark(&self, numbers: impl Iterator<Item = u32>, round: u32) -> Vec<u32> {
        let is_unknown = |number: &u32| {
            let known = self.get(*number).filter(|(_, mark)| mark.is_met());
            known.map(|(_, mark)| mark.set(round)).is_none()
        };
        numbers.filter(is_unknown).collect()
    }

    /// The keys and their numbers, in no particular order.
    pub fn numbers(&self) -> impl Iterator<Item = (&K, u32)> {
        self.numbers.iter().map(|(key, &number)| (key, number))
    }

    /// How many keys have a number.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// What is known of a number that was given, and when it was met last.
    pub fn entry(&self, number: u32) -> &(V, Mark) {
        &self.entries[index_of(number)]
    }

    /// The same of any number.
    pub fn get(&self, number: u32) -> Option<&(V, Mark)> {
        self.entries.get(index_of(number))
    }

    /// What is known of the keys, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &(V, Mark)> {
        self.numbers.values().map(|&number| self.entry(number))
    }

    /// The number of a key that is met in this round, if it has one.
    pub fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q, round: u32) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        let &number = self.numbers.get(key)?;
        self.entry(number).1.set(round);
        Some(number)
    }

    /// The number of a key that is met in this round, with what is known of it if it is new.
    pub fn number_of(&mut self, key: K, round: u32, new: impl FnOnce(&K) -> V) -> u32 {
        if let Some(number) = self.find(&key, round) {
            return number;
        }
        let entry = (new(&key), Mark::new(round));
        let number = if let Some(number) = self.free.pop() {
            self.entries[index_of(number)] = entry;
            number
        } else {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        };
        self.numbers.insert(key, number);
        number
    }

    /// Forgets what was not met since round `first` and is held nowhere else. Gives its numbers.
    pub fn forget_before(&mut self, first: u32) -> Vec<u32> {
        let Self { numbers, entries, .. } = self;
        let mut forgotten = Vec::new();
        numbers.retain(|_, &mut number| {
            let entry = &mut entries[index_of(number)];
            let stays = entry.1.counts_since(first);
            if !stays {
                *entry = (V::default(), Mark::none());
                forgotten.push(number);
            }
            stays
        });
        numbers.shrink_to(numbers.len() * 2);
        forgotten
    }

    /// These numbers may be given again.
    pub fn release(&mut self, mut numbers: Vec<u32>) {
        self.free.append(&mut numbers);
        // The order in which a hash map gave them back means nothing.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }
}
