//! Which builds of a service are compared, and since when.

use serde::{Deserialize, Serialize};

use crate::identity::{Build, Service};
use crate::time::Hop;

/// Which of the two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Side {
    /// The build in question.
    Head,
    /// What it is compared with.
    Base,
}

impl Side {
    /// Head, then base.
    pub const BOTH: [Self; 2] = [Self::Head, Self::Base];
    /// The names of both, in the same order.
    pub const NAMES: &'static [&'static str] = &["head", "base"];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Base => "base",
        }
    }

    /// The arm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::BOTH.into_iter().find(|side| side.name() == name)
    }
}

/// What is compared within one service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComparisonId {
    /// What is deployed.
    pub service: Service,
    /// The builds that together are the base.
    pub base: Vec<Build>,
    /// The build in question.
    pub head: Build,
}

impl ComparisonId {
    /// The arm of a build; `None` if it is in neither.
    pub fn side(&self, build: &Build) -> Option<Side> {
        if *build == self.head { Some(Side::Head) } else { self.base.contains(build).then_some(Side::Base) }
    }

    /// The builds of an arm.
    pub fn builds(&self, side: Side) -> &[Build] {
        match side {
            Side::Head => std::slice::from_ref(&self.head),
            Side::Base => &self.base,
        }
    }

    /// The base's builds joined by `,`, as tables name them.
    pub fn base_name(&self) -> Build {
        let names: Vec<_> = self.base.iter().map(Build::as_str).collect();
        Build::new(names.join(","))
    }
}

/// An open comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenComparison {
    /// Which.
    pub id: ComparisonId,
    /// First hop of its epoch.
    pub epoch: Hop,
}
