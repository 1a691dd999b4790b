//! Numbers for what is equal, in both files together: 0, 1, 2, ... in the order of first sight.
//!
//! Each level is made of numbers of the level below (functions of texts, program counters of functions, stacks of program
//! counters), so that things are equal if, and only if, a short row of words is.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Numbers of texts. Nothing is copied.
#[derive(Default)]
pub(super) struct Texts<'a> {
    table: HashTable<u32>,
    hasher: RandomState,
    texts: Vec<(u64, &'a str)>,
}

impl<'a> Texts<'a> {
    /// The numbers of a table of strings, by index.
    pub(super) fn of(&mut self, strings: &[&'a str]) -> Vec<u32> {
        // Most texts of the later file are known by then.
        if self.texts.is_empty() {
            self.table.reserve(strings.len(), |_| 0);
            self.texts.reserve(strings.len());
        }
        strings.iter().map(|text| self.number(text)).collect()
    }

    pub(super) fn number(&mut self, text: &'a str) -> u32 {
        let sought = self.hasher.hash_one(text);
        let known = |number: &u32| {
            self.texts.get(place(*number)).is_some_and(|(hash, known)| *hash == sought && *known == text)
        };
        if let Some(known) = self.table.find(sought, known) {
            return *known;
        }
        let next = word(self.texts.len());
        self.texts.push((sought, text));
        let texts = &self.texts;
        self.table.insert_unique(sought, next, |number| texts.get(place(*number)).map_or(0, |(hash, _)| *hash));
        next
    }
}

/// Numbers of rows of words.
#[derive(Default)]
pub(super) struct Rows {
    table: HashTable<u32>,
    hasher: RandomState,
    words: Vec<u32>,
    /// The hash of each row, and where its words end.
    rows: Vec<(u64, usize)>,
}

impl Rows {
    /// Makes room for the rows of the earlier file; most of the later one's are the same.
    pub(super) fn reserve(&mut self, rows: usize, words: usize) {
        if self.rows.is_empty() {
            self.table.reserve(rows, |_| 0);
            self.rows.reserve(rows);
            self.words.reserve(words);
        }
    }

    pub(super) fn number(&mut self, row: &[u32]) -> u32 {
        let sought = self.hasher.hash_one(row);
        if let Some(known) = self.table.find(sought, |known| self.row(*known) == row) {
            return *known;
        }
        let next = word(self.rows.len());
        self.words.extend_from_slice(row);
        self.rows.push((sought, self.words.len()));
        let rows = &self.rows;
        self.table.insert_unique(sought, next, |row| hash(rows, *row));
        next
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, number: u32) -> &[u32] {
        let row = place(number);
        let end_of = |row: usize| self.rows.get(row).map_or(0, |(_, end)| *end);
        let start = row.checked_sub(1).map_or(0, end_of);
        self.words.get(start..end_of(row)).unwrap_or_default()
    }
}

fn hash(rows: &[(u64, usize)], row: u32) -> u64 {
    rows.get(place(row)).map_or(0, |(hash, _)| *hash)
}

/// A place in a table as a word.
pub(super) fn word(place: usize) -> u32 {
    // NB: a table has at most a 32nd as many entries as there may be bytes, far fewer than 2^32.
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// A word as a place in a table.
pub(super) fn place(word: u32) -> usize {
    usize::try_from(word).unwrap_or(usize::MAX)
}

/// A number as two words.
pub(super) fn words(number: u64) -> [u32; 2] {
    let low = number & u64::from(u32::MAX);
    [low, number >> 32].map(|half| u32::try_from(half).unwrap_or(u32::MAX))
}
