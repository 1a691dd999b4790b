//! Adds up the rows of one hop that are about the same: pods with a wrong clock, and limits that are exceeded.

use fleetdiff_schemas::rows::{ClockRow, LimitRow};
use timely::ExchangeData;
use timely::dataflow::StreamVec;

use super::at_close::AtClose;

/// A row of which several workers, or several profiles, may each give a part.
pub trait Part: ExchangeData + Ord {
    /// Whether another row is about the same.
    fn is_about_the_same(&self, other: &Self) -> bool;

    /// Adds what another row about the same holds.
    fn add(&mut self, other: &Self);
}

impl Part for ClockRow {
    fn is_about_the_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    fn add(&mut self, other: &Self) {
        self.add(other);
    }
}

impl Part for LimitRow {
    fn is_about_the_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    fn add(&mut self, other: &Self) {
        self.add(other);
    }
}

/// See [`AddUp::add_up`].
pub trait AddUp<'scope> {
    /// Adds up rows about the same, once their hop is closed.
    fn add_up(self, name: &str) -> Self;
}

impl<'scope, R: Part> AddUp<'scope> for StreamVec<'scope, u64, R> {
    fn add_up(self, name: &str) -> Self {
        self.at_close(name, |_| 0, |closed| added_up(closed.items))
    }
}

fn added_up<R: Part>(mut parts: Vec<R>) -> Vec<R> {
    parts.sort();
    let mut rows: Vec<R> = Vec::new();
    for part in parts {
        match rows.last_mut() {
            Some(row) if row.is_about_the_same(&part) => row.add(&part),
            _ => rows.push(part),
        }
    }
    rows
}
