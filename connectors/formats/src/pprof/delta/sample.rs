//! A sample, in buffers that serve one after another.

use fleetdiff_schemas::rejected::Rejection;

use super::keys::Keys;
use super::numbers::word;
use super::side::label;
use crate::pprof::proto::Label;
use crate::wire::fields;

/// What a sample says, in the ids and indexes of its file.
#[derive(Default)]
pub(super) struct Sample {
    /// Ids of locations, leaf first.
    pub(super) locations: Vec<u64>,
    pub(super) labels: Vec<Label>,
}

impl Sample {
    pub(super) fn read(&mut self, message: &[u8]) -> Result<(), Rejection> {
        self.locations.clear();
        self.labels.clear();
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => {
                    value.append_to(&mut self.locations, usize::MAX, |id| id)?;
                }
                3 => self.labels.push(label(value)?),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a sample says, in numbers that hold in both files.
#[derive(Default)]
pub(super) struct Numbered {
    /// How many program counters, which (leaf first), and the labels in ascending order.
    pub(super) stack: Vec<u32>,
    pub(super) values: Vec<i64>,
    labels: Vec<[u32; 5]>,
}

impl Numbered {
    pub(super) fn read(&mut self, message: &[u8], columns: usize, keys: &Keys) -> Result<(), Rejection> {
        self.stack.clear();
        self.stack.push(0);
        self.values.clear();
        self.labels.clear();
        let mut unknown = None;
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => {
                    let counter = |id| {
                        keys.counter(id).unwrap_or_else(|| {
                            unknown.get_or_insert(id);
                            0
                        })
                    };
                    value.append_to(&mut self.stack, usize::MAX, counter)?;
                }
                // One too many tells as well as all of them.
                2 => {
                    value.append_to(&mut self.values, columns + 1, u64::cast_signed)?;
                }
                3 => self.labels.push(keys.label(&label(value)?)?),
                _ => {}
            }
        }
        if let Some(id) = unknown {
            return Err(keys.locations.missing(id));
        }
        let length = word(self.stack.len().saturating_sub(1));
        self.stack.first_mut().into_iter().for_each(|first| *first = length);
        self.labels.sort_unstable();
        self.stack.extend(self.labels.iter().flatten());
        Ok(())
    }

    /// How many labels it has.
    pub(super) fn labels(&self) -> usize {
        self.labels.len()
    }
}
