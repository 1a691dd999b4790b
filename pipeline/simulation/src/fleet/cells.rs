//! Naming cells: all of them, one region, one cohort, or one cell.

use std::str::FromStr;

use fleetdiff_schemas::identity::{Cohort, MERGED, Region};

/// A set of cells (region, cohort), by pattern.
///
/// ```
/// use fleetdiff_simulation::fleet::Cells;
/// let hit: Cells = "ap-south-1:Android-TV,eu-west-1:*".parse().unwrap();
/// assert!(hit.hold(&"ap-south-1".into(), &"Android-TV".into()));
/// assert!(hit.hold(&"eu-west-1".into(), &"iOS-iPad".into()));
/// assert!(!hit.hold(&"ap-south-1".into(), &"iOS-iPad".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells(Vec<(Option<Region>, Option<Cohort>)>);

impl Cells {
    /// Every cell.
    pub fn all() -> Self {
        Self(vec![(None, None)])
    }

    /// One cell.
    pub fn one(region: impl Into<Region>, cohort: impl Into<Cohort>) -> Self {
        Self(vec![(Some(region.into()), Some(cohort.into()))])
    }

    /// Every cell of a region.
    pub fn region(region: impl Into<Region>) -> Self {
        Self(vec![(Some(region.into()), None)])
    }

    /// Every cell of a cohort.
    pub fn cohort(cohort: impl Into<Cohort>) -> Self {
        Self(vec![(None, Some(cohort.into()))])
    }

    /// The union of two sets.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether a cell belongs to the set.
    pub fn hold(&self, region: &Region, cohort: &Cohort) -> bool {
        self.0.iter().any(|(wanted_region, wanted_cohort)| {
            wanted_region.as_ref().is_none_or(|wanted| wanted == region)
                && wanted_cohort.as_ref().is_none_or(|wanted| wanted == cohort)
        })
    }

    /// The patterns one by one, so that an empty one can be named.
    pub(super) fn patterns(&self) -> impl Iterator<Item = Self> + '_ {
        self.0.iter().map(|pattern| Self(vec![pattern.clone()]))
    }
}

impl std::fmt::Display for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let patterns = self.0.iter().map(|(region, cohort)| {
            let region = region.as_ref().map_or(MERGED, Region::as_str);
            format!("{region}:{}", cohort.as_ref().map_or(MERGED, Cohort::as_str))
        });
        f.write_str(&patterns.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Cells {
    type Err = String;

    /// Reads `REGION:COHORT,...`, where `*` stands for every region or cohort.
    fn from_str(text: &str) -> Result<Self, String> {
        let pattern = |part: &str| match part.trim().split_once(':') {
            Some((region, cohort)) if !region.is_empty() && !cohort.is_empty() => {
                let region = (region != MERGED).then(|| Region::from(region));
                Ok((region, (cohort != MERGED).then(|| Cohort::from(cohort))))
            }
            _ => Err(format!("cannot read {part:?} as a cell, expected REGION:COHORT (* stands for all)")),
        };
        text.split(',').map(pattern).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_there_and_back() {
        for text in ["*:*", "a:b,c:*", "*:d"] {
            assert_eq!(text.parse::<Cells>().unwrap().to_string(), text);
        }
        for text in ["", "a", ":b", "a:", "a:b,"] {
            assert!(text.parse::<Cells>().is_err(), "{text:?}");
        }
    }
}
