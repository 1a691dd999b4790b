//! What is announced over all rings: incidents, functions that scale worse, and leaks.

use std::sync::Arc;

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{HeapFindingRow, InRings, IncidentRow, ScalingFindingRow};
use fleetdiff_schemas::verdict::{FlagState, IncidentState};

use super::{At, Life, OverRings, PerRing};
use crate::rules::heap::findings::title;
use crate::rules::scaling::name;

/// Why a finding is over whose cause goes on in another comparison.
const IN_ANOTHER_RING: &str = "found_in_another_ring";

impl PerRing for IncidentRow {
    type About = String;
    const EVIDENCE: &'static str = "flag";

    fn builds(&self) -> (&Build, &Build) {
        (&self.base_build, &self.head_build)
    }

    fn about(&self) -> String {
        self.cause.clone()
    }

    fn costs_more(&self) -> bool {
        !self.regressed_in.is_empty()
    }

    fn life(&self) -> Life {
        match self.state {
            IncidentState::Raised | IncidentState::Updated => Life::Stands,
            IncidentState::Cleared => Life::Over,
            IncidentState::Superseded => Life::Explained,
        }
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    /// It is as severe as the most severe of the rings, and has the best support of any.
    fn over(self, rings: OverRings<'_, Self>) -> Self {
        let OverRings { members, is_known, at, introduced_by, found_in, summary } = rings;
        Self {
            state: if is_known { IncidentState::Updated } else { IncidentState::Raised },
            severity: members.iter().map(|other| other.severity).min().unwrap_or(self.severity),
            support: members.iter().map(|other| other.support).min().unwrap_or(self.support),
            changed_at: at.end,
            sequence: at.hop,
            summary,
            introduced_by,
            found_in,
            ..self
        }
    }

    fn goes_on_as(self, other: &Self, at: At) -> Self {
        Self {
            state: IncidentState::Superseded,
            changed_at: at.end,
            sequence: at.hop,
            superseded_by: Some(other.cause.clone()),
            superseded_by_id: Some(other.incident_id.clone()),
            cleared_because: None,
            summary: format!(
                "{} in {} against {} goes on as the incident of {} against {}.",
                self.cause, self.head_build, self.base_build, other.head_build, other.base_build
            ),
            ..self
        }
    }

    fn when(self, other: &Self) -> Self {
        Self { state: other.state, changed_at: other.changed_at, sequence: other.sequence, ..self }
    }
}

/// What both kinds of finding have in common: fields of one name, and the same words.
macro_rules! finding_per_ring {
    ($row:ident, $about:ty, |$it:ident| $of:expr, $name:expr) => {
        impl PerRing for $row {
            type About = $about;
            const EVIDENCE: &'static str = "finding";

            fn builds(&self) -> (&Build, &Build) {
                (&self.base_build, &self.head_build)
            }

            fn about(&self) -> $about {
                let $it = self;
                $of
            }

            fn costs_more(&self) -> bool {
                true
            }

            fn life(&self) -> Life {
                if self.state == FlagState::Cleared { Life::Over } else { Life::Stands }
            }

            fn summary(&self) -> &str {
                &self.summary
            }

            fn over(self, rings: OverRings<'_, Self>) -> Self {
                let OverRings { is_known, at, introduced_by, found_in, summary, .. } = rings;
                let state = if is_known { FlagState::Updated } else { FlagState::Raised };
                Self {
                    state,
                    changed_at: at.end,
                    sequence: at.hop,
                    summary,
                    rings: InRings { introduced_by, found_in },
                    ..self
                }
            }

            fn goes_on_as(self, other: &Self, at: At) -> Self {
                let name: fn(&Self) -> &str = $name;
                let summary = format!(
                    "{}: {} against {} goes on as {} against {}, which found the same.",
                    name(&self),
                    self.head_build,
                    self.base_build,
                    other.head_build,
                    other.base_build
                );
                Self {
                    state: FlagState::Cleared,
                    changed_at: at.end,
                    sequence: at.hop,
                    cleared_because: Some(IN_ANOTHER_RING.to_owned()),
                    summary,
                    action: "Nothing.".to_owned(),
                    ..self
                }
            }

            fn when(self, other: &Self) -> Self {
                Self { state: other.state, changed_at: other.changed_at, sequence: other.sequence, ..self }
            }
        }
    };
}

finding_per_ring!(
    ScalingFindingRow,
    (ProfileType, Arc<str>),
    |row| (row.profile_type, Arc::clone(&row.cause)),
    |row| name(&row.cause)
);
finding_per_ring!(HeapFindingRow, (), |_row| (), |row| title(row.class));
