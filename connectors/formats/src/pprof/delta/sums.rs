//! The samples of a file, those of one stack and labels added up.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::keys::{Keys, Numbers};
use super::numbers::{place, word};
use super::sample::Numbered;
use super::side::Side;

/// Sums by stack, one a column.
#[derive(Default)]
pub(super) struct Sums<'a> {
    columns: usize,
    /// The number of each stack and its first sample, in the order of their first sight in this file.
    stacks: Vec<(u32, &'a [u8])>,
    /// Their sums in the same order.
    sums: Vec<i64>,
    /// By number of stack: its place in that order.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<'a> Sums<'a> {
    pub(super) fn of(side: &mut Side<'a>, keys: &Keys, numbers: &mut Numbers<'a>) -> Result<Self, Rejection> {
        let (columns, samples) = (side.head.sample_type.len(), std::mem::take(&mut side.samples));
        let places = vec![ABSENT; numbers.stacks.len().max(samples.len())];
        let mut sums = Self { columns, stacks: Vec::with_capacity(samples.len()), places, ..Self::default() };
        let mut sample = Numbered::default();
        for message in samples {
            sample.read(message, columns, keys)?;
            side.count_more(sample.labels())?;
            if sample.values.len() != columns {
                let many =
                    if sample.values.len() > columns { "more".to_owned() } else { sample.values.len().to_string() };
                let detail = format!("a sample with {many} values for {columns} sample types");
                return Err(Rejection::new(Reason::Malformed, detail));
            }
            sums.add(numbers.stacks.number(&sample.stack), message, &sample.values)?;
        }
        Ok(sums)
    }

    fn add(&mut self, stack: u32, message: &'a [u8], values: &[i64]) -> Result<(), Rejection> {
        let place = self.place(stack, message);
        for (sum, value) in self.sums.iter_mut().skip(place * self.columns).zip(values) {
            match sum.checked_add(*value).filter(|_| *value >= 0) {
                Some(added) => *sum = added,
                None => return Err(not_added(*value)),
            }
        }
        Ok(())
    }

    /// The place of a stack, which begins at sums of 0 if it was not seen yet.
    fn place(&mut self, stack: u32, message: &'a [u8]) -> usize {
        let number = place(stack);
        if number >= self.places.len() {
            self.places.resize(number + number / 4 + 1, ABSENT);
        }
        match self.places.get_mut(number) {
            Some(known) if *known != ABSENT => place(*known),
            new => {
                let next = self.stacks.len();
                new.into_iter().for_each(|new| *new = word(next));
                self.stacks.push((stack, message));
                self.sums.resize(self.sums.len() + self.columns, 0);
                next
            }
        }
    }

    /// Stacks in the order of their first sight, each with its first sample and its sums.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u32, &'a [u8], &[i64])> {
        let sums = self.sums.chunks_exact(self.columns.max(1));
        self.stacks.iter().zip(sums).map(|((stack, first), sums)| (*stack, *first, sums))
    }

    /// The sums of a stack, if it is in this file.
    pub(super) fn get(&self, stack: u32) -> Option<&[i64]> {
        let start = self
            .places
            .get(place(stack))
            .filter(|place| **place != ABSENT)
            .map(|found| place(*found) * self.columns)?;
        self.sums.get(start..start + self.columns)
    }
}

#[cold]
fn not_added(value: i64) -> Rejection {
    if value < 0 {
        Rejection::new(Reason::NegativeValue, format!("a sample with the value {value}"))
    } else {
        Rejection::new(Reason::TooLarge, "values of one stack exceed 2^63 - 1 together")
    }
}
