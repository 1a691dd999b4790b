//! What is compared, whatever the type of profile: two builds of one service.

use std::fmt::{self, Display, Formatter};

use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rows::{ComparisonKey, IncidentRow};

use crate::references::Literal;

/// Two builds of one service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// What is deployed.
    pub service: Service,
    /// The build in question.
    pub head: Build,
    /// The base builds, joined by `,`.
    pub base: Build,
}

impl Subject {
    pub(crate) fn of_key(key: &ComparisonKey) -> Self {
        Self { service: key.service.clone(), head: key.head_build.clone(), base: key.base_build.clone() }
    }

    pub(crate) fn of_incident(row: &IncidentRow) -> Self {
        Self { service: row.service.clone(), head: row.head_build.clone(), base: row.base_build.clone() }
    }

    /// As the command line names it: `v42:v41`.
    pub fn builds(&self) -> String {
        format!("{}:{}", self.head, self.base)
    }

    /// Whether somebody who writes `v42` or `v42:v41` means this.
    pub fn is_named(&self, name: &str) -> bool {
        name == self.head.as_str() || name == self.builds()
    }

    /// What rows of it have in common.
    pub(crate) fn filter(&self) -> Vec<(&'static str, Literal)> {
        let text = |name: &str| Literal::Text(name.to_owned());
        vec![
            ("service", text(self.service.as_str())),
            ("base_build", text(self.base.as_str())),
            ("head_build", text(self.head.as_str())),
        ]
    }
}

impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} against {}", self.service, self.head, self.base)
    }
}
