//! Keys with numbers. The number of a key that is forgotten goes to a later one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use fleetdiff_schemas::number::index_of;
use foldhash::fast::RandomState;

use super::rounds::Mark;

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
        Self { entries: vec![(V::default(), Mark::new(0))], ..Self::default() }
    }

    /// Keys with these numbers, as met in round 0; `None` if two have one number, or one has two. A reserved number is none of a key.
    pub fn put_back(mut self, keys: impl Iterator<Item = (u32, K, V)>) -> Option<Self> {
        let reserved = self.entries.len();
        let mut taken = vec![true; reserved];
        for (number, key, known) in keys {
            let place = index_of(number);
            if place >= self.entries.len() {
                self.entries.resize_with(place + 1, || (V::default(), Mark::new(0)));
                taken.resize(place + 1, false);
            }
            let was_free = !std::mem::replace(&mut taken[place], true);
            self.entries[place].0 = known;
            if !was_free || self.numbers.insert(key, number).is_some() {
                return None;
            }
        }
        let free = (0..).zip(&taken).filter(|(_, taken)| !**taken).map(|(number, _)| number);
        self.free = free.collect();
        self.free.reverse();
        Some(self)
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

    /// Forgets what was not met since round `first`.
    pub fn forget_before(&mut self, first: u32) {
        let Self { numbers, entries, free } = self;
        numbers.retain(|_, &mut number| {
            let (known, mark) = &mut entries[index_of(number)];
            let is_met = mark.get() >= first;
            if !is_met {
                *known = V::default();
                free.push(number);
            }
            is_met
        });
        // The order in which a hash map gives them back means nothing.
        free.sort_unstable_by(|a, b| b.cmp(a));
        numbers.shrink_to(numbers.len() * 2);
    }
}
