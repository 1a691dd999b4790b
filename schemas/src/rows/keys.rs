//! The keys of rows: what is compared, and where.

use serde::{Deserialize, Serialize};

use crate::identity::{Build, Cohort, MERGED, Region, Service};
use crate::profile::{Measure, ProfileType};

/// What is compared: the builds of one service in one measure. Orders rows of every table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComparisonKey {
    /// What is deployed.
    pub service: Service,
    /// What was observed.
    pub profile_type: ProfileType,
    /// What a count represents.
    pub measure: Measure,
    /// The base builds, joined by `,`.
    pub base_build: Build,
    /// The build in question.
    pub head_build: Build,
}

/// Where a row belongs: a cell, or a roll-up with `*` in region or cohort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// Where.
    pub region: Region,
    /// Which group of requests or pods.
    pub cohort: Cohort,
}

impl CellKey {
    /// Whether both dimensions are merged: the row over all cells, or the only cell there is.
    pub fn is_over_all(&self) -> bool {
        self.region.as_str() == MERGED && self.cohort.as_str() == MERGED
    }
}
