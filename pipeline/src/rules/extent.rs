//! The fewest lines that name some cells of a grid of regions and cohorts.
//!
//! A line is a cohort or a region, with the affected cells in it. Every affected cell lies on two lines, and at least
//! one of them must be chosen: the chosen lines are a vertex cover of the graph whose vertices are cohorts and regions
//! and whose edges are the affected cells. In such a bipartite graph the smallest cover has as many lines as the
//! largest matching (König 1931), and can be computed from it.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::fan_out::Extent;
use fleetdiff_schemas::identity::{Cohort, MERGED, Region};
use fleetdiff_schemas::rows::CellKey;

/// Names the cells `meant`, a part of the grid `cells`, with the fewest lines: cohorts first, each ascending.
///
/// ```
/// use fleetdiff_pipeline::rules::extent::extents;
/// use fleetdiff_schemas::rows::CellKey;
///
/// let cell = |region: &str, cohort: &str| CellKey { region: region.into(), cohort: cohort.into() };
/// let grid: Vec<_> = ["north", "south", "west"].iter().flat_map(|r| ["tv", "web"].map(|c| cell(r, c))).collect();
/// let meant = [cell("north", "tv"), cell("south", "tv"), cell("west", "tv"), cell("west", "web")];
/// let words: Vec<_> = extents(&meant, &grid).iter().map(ToString::to_string).collect();
/// assert_eq!(words, ["all of tv", "web in west"]);
/// ```
pub fn extents<'a>(
    meant: impl IntoIterator<Item = &'a CellKey>,
    cells: impl IntoIterator<Item = &'a CellKey>,
) -> Vec<Extent> {
    let (meant, grid) = (Grid::of(meant), Grid::of(cells));
    if meant.is_empty() {
        Vec::new()
    } else if meant.regions_of == grid.regions_of {
        vec![Extent::Everywhere]
    } else {
        meant.described_within(&grid)
    }
}

/// Some cells, by either dimension.
struct Grid<'a> {
    regions_of: BTreeMap<&'a Cohort, BTreeSet<&'a Region>>,
    cohorts_of: BTreeMap<&'a Region, BTreeSet<&'a Cohort>>,
}

impl<'a> Grid<'a> {
    fn of(cells: impl IntoIterator<Item = &'a CellKey>) -> Self {
        let mut grid = Self { regions_of: BTreeMap::new(), cohorts_of: BTreeMap::new() };
        for cell in cells {
            grid.regions_of.entry(&cell.cohort).or_default().insert(&cell.region);
            grid.cohorts_of.entry(&cell.region).or_default().insert(&cell.cohort);
        }
        grid
    }

    fn is_empty(&self) -> bool {
        self.regions_of.is_empty()
    }

    fn described_within(&self, all: &Self) -> Vec<Extent> {
        let (cohorts, regions) = self.cover();
        let is_whole_cohort = |cohort: &Cohort| self.regions_of.get(cohort) == all.regions_of.get(cohort);
        let is_whole_region = |region: &Region| self.cohorts_of.get(region) == all.cohorts_of.get(region);
        let mut extents = Vec::new();
        for cohort in &cohorts {
            let of_cohort = &self.regions_of[*cohort];
            let named_by_region = |region: &Region| regions.contains(region) && is_whole_region(region);
            extents.push(if is_whole_cohort(cohort) && !is_merged(of_cohort.iter().map(|region| region.as_str())) {
                Extent::Cohort((*cohort).clone())
            } else {
                let rest = of_cohort.iter().filter(|region| !named_by_region(region));
                Extent::CohortIn((*cohort).clone(), rest.map(|region| (*region).clone()).collect())
            });
        }
        for region in &regions {
            let of_region = &self.cohorts_of[*region];
            extents.push(if is_whole_region(region) && !is_merged(of_region.iter().map(|cohort| cohort.as_str())) {
                Extent::Region((*region).clone())
            } else {
                let rest = of_region.iter().filter(|cohort| !cohorts.contains(*cohort));
                Extent::RegionFor((*region).clone(), rest.map(|cohort| (*cohort).clone()).collect())
            });
        }
        extents
    }

    /// The smallest cover: the regions that a walk along alternating edges from the unmatched cohorts reaches, and the
    /// cohorts that it does not reach.
    fn cover(&self) -> (BTreeSet<&'a Cohort>, BTreeSet<&'a Region>) {
        let matching = self.matching();
        let matched: BTreeSet<&Cohort> = matching.values().copied().collect();
        let mut waiting: Vec<&Cohort> =
            self.regions_of.keys().copied().filter(|cohort| !matched.contains(cohort)).collect();
        let mut reached: BTreeSet<&Cohort> = waiting.iter().copied().collect();
        let mut regions = BTreeSet::new();
        while let Some(cohort) = waiting.pop() {
            for &region in &self.regions_of[cohort] {
                if regions.insert(region)
                    && let Some(&next) = matching.get(region)
                    && reached.insert(next)
                {
                    waiting.push(next);
                }
            }
        }
        (self.regions_of.keys().copied().filter(|cohort| !reached.contains(cohort)).collect(), regions)
    }

    /// A largest matching: region to cohort.
    fn matching(&self) -> BTreeMap<&'a Region, &'a Cohort> {
        let mut matching = BTreeMap::new();
        for &cohort in self.regions_of.keys() {
            self.augment(cohort, &mut BTreeSet::new(), &mut matching);
        }
        matching
    }

    /// Finds a region for the cohort, and moves other cohorts to other regions if necessary.
    fn augment(
        &self,
        cohort: &'a Cohort,
        tried: &mut BTreeSet<&'a Region>,
        matching: &mut BTreeMap<&'a Region, &'a Cohort>,
    ) -> bool {
        for &region in &self.regions_of[cohort] {
            if !tried.insert(region) {
                continue;
            }
            let holder = matching.get(region).copied();
            if holder.is_none_or(|holder| self.augment(holder, tried, matching)) {
                matching.insert(region, cohort);
                return true;
            }
        }
        false
    }
}

fn is_merged<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    names.all(|name| name == MERGED)
}
