//! The fan-out of a function's change: in which cells it is flagged, in which it is not, and the shortest description
//! of where.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::identity::{Cohort, MERGED, Region};
use crate::profile::CountKind;
use crate::rows::keys::{CellKey, ComparisonKey};
use crate::time::Nanos;
use crate::verdict::FanOutState;

/// The cells in which one function has flags, valid from `at` until a later row of the same function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FanOutRow {
    /// End of the hop at whose close this became so.
    pub changed_at: Nanos,
    /// Which builds of what.
    pub comparison: ComparisonKey,
    /// Self or total.
    pub count_kind: CountKind,
    /// The function.
    pub function: String,
    /// Every cell of the comparison, ascending; empty once the function has no flag any more.
    pub cells: Vec<FanOutCell>,
    /// Where it costs more, in the fewest lines.
    pub regressed: Vec<Extent>,
    /// Where it costs less, in the fewest lines.
    pub improved: Vec<Extent>,
}

/// One cell of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FanOutCell {
    /// Which.
    pub cell: CellKey,
    /// What is known of the function there.
    pub state: FanOutState,
}

/// Some cells of a comparison that are named together. `*` stands for a dimension that was merged away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Extent {
    /// All cells.
    Everywhere,
    /// All cells of a cohort.
    Cohort(Cohort),
    /// All cells of a region.
    Region(Region),
    /// A cohort's cells in some regions, ascending.
    CohortIn(Cohort, Vec<Region>),
    /// Some cohorts' cells in a region, ascending.
    RegionFor(Region, Vec<Cohort>),
}

impl Display for Extent {
    /// In words.
    ///
    /// ```
    /// use fleetdiff_schemas::fan_out::Extent;
    ///
    /// let two = Extent::CohortIn("Android-TV".into(), vec!["ap-south-1".into(), "ap-southeast-1".into()]);
    /// assert_eq!(two.to_string(), "Android-TV in ap-south-1 and ap-southeast-1");
    /// assert_eq!(Extent::CohortIn("session".into(), vec!["*".into()]).to_string(), "session");
    /// ```
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere => f.write_str("all cells"),
            Self::Cohort(cohort) => write!(f, "all of {cohort}"),
            Self::Region(region) => write!(f, "all of {region}"),
            Self::CohortIn(cohort, regions) => {
                let regions: Vec<_> = regions.iter().map(Region::as_str).collect();
                f.write_str(&in_place(&[cohort.as_str()], &regions))
            }
            Self::RegionFor(region, cohorts) => {
                let cohorts: Vec<_> = cohorts.iter().map(Cohort::as_str).collect();
                f.write_str(&in_place(&cohorts, &[region.as_str()]))
            }
        }
    }
}

fn in_place(cohorts: &[&str], regions: &[&str]) -> String {
    match (cohorts, regions) {
        ([MERGED], [MERGED]) => "all cells".to_owned(),
        ([MERGED], regions) => listed(regions),
        (cohorts, [MERGED]) => listed(cohorts),
        (cohorts, regions) => format!("{} in {}", listed(cohorts), listed(regions)),
    }
}

/// Names as a sentence lists them: `a`, `a and b`, `a, b and c`.
///
/// ```
/// assert_eq!(fleetdiff_schemas::fan_out::listed(&["a", "b", "c"]), "a, b and c");
/// ```
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
