//! The window of a cell by build alone: samples of all pods and strata together, function by function.
//!
//! This is all that a method without pods and strata reads at a look. An entry is added when it comes and subtracted when it leaves
//! the window, so that a look copies nothing and subtracts nothing.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::CountKind;
use serde::{Deserialize, Serialize};

use super::bucket::{Addition, known};
use super::encoding::Entry;
use super::functions::CellFunctions;

/// Samples of one build within the window.
#[derive(Debug, Default, Serialize, Deserialize)]
struct BuildSums {
    samples: u64,
    /// By the function's place in columns.
    own: Vec<u64>,
    total: Vec<u64>,
}

impl BuildSums {
    fn of(&self, kind: CountKind) -> &[u64] {
        match kind {
            CountKind::SelfCount => &self.own,
            CountKind::Total => &self.total,
        }
    }
}

/// Samples within the window by build, all strata and pods together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MergedCounts {
    builds: BTreeMap<Build, BuildSums>,
}

/// Samples of some builds together.
#[derive(Debug, PartialEq, Eq)]
pub struct MergedArm {
    /// Of all functions.
    pub samples: u64,
    /// By the function's place in columns; places beyond the end have none.
    pub by_place: Vec<u64>,
}

impl MergedCounts {
    /// Adds what a profile adds. All its functions have a place.
    pub(super) fn add(&mut self, addition: &Addition, functions: &CellFunctions) {
        let sums = self.builds.entry(addition.build.clone()).or_default();
        sums.samples += addition.samples;
        for column in [&mut sums.own, &mut sums.total] {
            column.resize(column.len().max(functions.len()), 0);
        }
        for (place, Entry { own, total, .. }) in known(addition, functions) {
            sums.own[place] += own;
            sums.total[place] += total;
        }
    }

    /// Subtracts what was added before and has left the window.
    pub(super) fn subtract(&mut self, addition: &Addition, functions: &CellFunctions) {
        let Some(sums) = self.builds.get_mut(&addition.build) else { return };
        sums.samples -= addition.samples;
        for (place, Entry { own, total, .. }) in known(addition, functions) {
            sums.own[place] -= own;
            sums.total[place] -= total;
        }
        if sums.samples == 0 {
            self.builds.remove(&addition.build);
        }
    }

    /// The samples of these builds together.
    pub fn arm(&self, builds: &[Build], kind: CountKind) -> MergedArm {
        let mut arm = MergedArm { samples: 0, by_place: Vec::new() };
        for sums in builds.iter().filter_map(|build| self.builds.get(build)) {
            arm.samples += sums.samples;
            let column = sums.of(kind);
            arm.by_place.resize(arm.by_place.len().max(column.len()), 0);
            arm.by_place.iter_mut().zip(column).for_each(|(sum, count)| *sum += count);
        }
        arm
    }
}
