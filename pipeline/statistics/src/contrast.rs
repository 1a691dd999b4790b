//! All that one test of a cell needs.

use std::collections::BTreeMap;

use crate::arms::Arms;
use crate::strata::{Model, Stratum};

/// Ids of functions that are in no family: those that stand for several functions.
pub type Untested = [Option<usize>; 2];

/// All that one test of a cell needs.
#[derive(Clone, Default)]
pub struct Contrast<'a> {
    /// Number of functions; their ids are `0..functions`.
    pub functions: usize,
    /// All strata; those in which an arm has no exposure take no part.
    pub strata: Vec<Stratum<'a>>,
    /// Distinct pods by bucket, over all strata; an occupied bucket that is missing here counts one pod.
    pub pods: Arms<BTreeMap<u16, u32>>,
    /// Functions that are in no family: their samples count only to the exposure.
    pub untested: Untested,
    /// The functions that are tested, ascending, if not all are: results then go by place in this list. The others count to the
    /// exposure only.
    pub only: Option<Vec<u32>>,
    /// In which order sums over functions are taken, as places of results; empty if as they stand. It gives the last bits that
    /// functions in this order would have.
    pub order: Vec<u32>,
}

impl<'a> Contrast<'a> {
    /// The contrast of all `functions` over `strata`.
    #[must_use]
    pub fn new(functions: usize, strata: Vec<Stratum<'a>>, pods: Arms<BTreeMap<u16, u32>>) -> Self {
        Self { functions, strata, pods, ..Self::default() }
    }

    /// How many functions have results.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.only.as_ref().map_or(self.functions, Vec::len)
    }

    /// The id of the function whose results are at this place.
    #[must_use]
    pub fn id(&self, place: usize) -> u32 {
        match &self.only {
            Some(only) => only[place],
            None => u32::try_from(place).unwrap_or(u32::MAX),
        }
    }

    /// The place of results of the function with this id; `None` if it has none.
    #[must_use]
    pub fn place(&self, id: usize) -> Option<usize> {
        match &self.only {
            Some(only) => only.binary_search(&u32::try_from(id).ok()?).ok(),
            None => (id < self.functions).then_some(id),
        }
    }

    /// The strata in which both arms have exposure.
    pub fn shared(&self, model: Model) -> impl Iterator<Item = &Stratum<'a>> {
        self.strata.iter().filter(move |stratum| stratum.both().iter().all(|arm| arm.exposure(model) > 0))
    }

    /// How many strata lack an arm.
    #[must_use]
    pub fn dropped(&self, model: Model) -> usize {
        self.strata.len() - self.shared(model).count()
    }
}
