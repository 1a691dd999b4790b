//! The table of function names: by far the most expensive part of a small record to read, and often the same in
//! successive records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Take;
use super::bytes::{Reader, malformed, text, truncated};
use super::layout::MAX_NAMES;
use crate::identity::stable_hash;
use crate::rejected::Rejection;

/// How many bytes of tables are remembered; the names in memory take about 3 times as much.
const REMEMBERED: usize = 4 << 20;

/// The tables of names of earlier records. A record with an identical table (tables are sorted, so: the same set of
/// functions) shares it instead of allocating one string per function again. For a record of one profile with 250
/// functions this saves 12 of 16 us (measured). When it is full, it forgets everything.
#[derive(Debug, Default)]
pub struct SeenNames {
    tables: BTreeMap<u64, Table>,
    bytes: usize,
}

#[derive(Debug)]
struct Table {
    section: Box<[u8]>,
    names: Arc<[Arc<str>]>,
}

impl SeenNames {
    /// The names of a section of a record.
    pub(super) fn names(&mut self, section: &[u8], take: &mut Take<'_>) -> Result<Arc<[Arc<str>]>, Rejection> {
        let hash = stable_hash(section);
        if let Some(table) = self.tables.get(&hash).filter(|table| *table.section == *section) {
            return Ok(Arc::clone(&table.names));
        }
        let names = read(section, take)?;
        self.remember(hash, section, &names);
        Ok(names)
    }

    fn remember(&mut self, hash: u64, section: &[u8], names: &Arc<[Arc<str>]>) {
        if section.len() > REMEMBERED / 16 {
            return;
        }
        if self.bytes + section.len() > REMEMBERED {
            *self = Self::default();
        }
        self.bytes += section.len();
        self.tables.insert(hash, Table { section: section.into(), names: Arc::clone(names) });
    }
}

/// What a name is counted as besides its text: its length, its place in two lists, and its counts.
const NAME: usize = 56;

/// Function names, strictly ascending, so that none occurs twice.
fn read(section: &[u8], take: &mut Take<'_>) -> Result<Arc<[Arc<str>]>, Rejection> {
    let mut reader = Reader::new(section);
    let number = reader.entries(1, MAX_NAMES)?;
    take(number * NAME + section.len())?;
    let mut lengths = Vec::with_capacity(number);
    for _ in 0..number {
        lengths.push(usize::try_from(reader.number()?).map_err(|_| truncated())?);
    }
    let mut rest = text(reader.take(reader.left())?)?;
    let mut names: Vec<Arc<str>> = Vec::with_capacity(number);
    let mut before = None;
    for length in lengths {
        let Some((name, after)) = rest.split_at_checked(length) else {
            return Err(malformed("a name that is cut or not UTF-8"));
        };
        if before.is_some_and(|before| before >= name) {
            return Err(malformed("names that do not ascend"));
        }
        names.push(name.into());
        (before, rest) = (Some(name), after);
    }
    if rest.is_empty() { Ok(names.into()) } else { Err(malformed("bytes after the last name")) }
}
