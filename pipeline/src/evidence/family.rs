//! What a cell remembers of one comparison and kind of count between looks.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};

/// The members of the live rule's family in one cell, and the e-values that were large.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Family {
    epoch: Hop,
    /// Whether pods of different ages were compared at the latest look.
    across_ages: bool,
    /// By place in columns.
    joined: Vec<bool>,
    watched: BTreeSet<usize>,
    largest: BTreeMap<usize, f64>,
}

impl Family {
    /// Begins a look in this epoch, with this number of functions in the cell. E-values from pods of different ages say
    /// nothing more once pods of the same age are compared.
    pub(super) fn begin(&mut self, epoch: Hop, across_ages: bool, functions: usize) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.joined.clear();
            self.largest.clear();
        }
        if self.across_ages != across_ages {
            self.across_ages = across_ages;
            self.largest.clear();
        }
        self.joined.resize(functions.max(self.joined.len()), false);
    }

    /// These functions were tested: they join.
    pub(super) fn join(&mut self, tested: impl Iterator<Item = usize>) {
        for function in tested {
            if let Some(joined) = self.joined.get_mut(function) {
                *joined = true;
            }
        }
    }

    /// The weighted e-value of a function may have reached 1/q: it is watched from now on.
    pub(super) fn watch(&mut self, function: usize) {
        self.watched.insert(function);
    }

    /// The e-value of a function has reached what the largest weight makes 1/q; that of all functions together may be any.
    pub(super) fn remember(&mut self, function: usize, ln_e: f64) {
        let largest = self.largest.entry(function).or_insert(ln_e);
        *largest = largest.max(ln_e);
    }

    /// Functions whose weighted e-value may have reached 1/q at some look since the comparison opened, ascending.
    pub fn watched(&self) -> impl Iterator<Item = usize> + '_ {
        self.watched.iter().copied()
    }

    /// ln of the largest e-value of a function at the looks of `epoch`, 0 (an e-value of 1) if none was remembered, or if the epoch
    /// has had no look yet.
    pub fn largest_ln_e(&self, epoch: Hop, function: usize) -> f64 {
        self.largest.get(&function).filter(|_| self.epoch == epoch).map_or(0.0, |ln_e| ln_e.max(0.0))
    }

    /// The sum of what members weigh, in the order of the cell's numbers, given by place in columns.
    pub(super) fn weight(&self, places: &[u32], weight_of: impl Fn(usize) -> f64) -> f64 {
        let places = places.iter().map(|&place| index_of(place));
        places.filter(|&place| self.joined.get(place) == Some(&true)).map(weight_of).sum()
    }

    /// Functions tested at some look of this epoch.
    pub fn members(&self) -> u64 {
        self.joined.iter().map(|&joined| u64::from(joined)).sum()
    }
}
