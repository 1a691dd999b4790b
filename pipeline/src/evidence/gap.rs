//! What may have made a change although the code is the same: the pods of one arm serve more, or have run longer.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{LevelReason, RowReason};
use fleetdiff_statistics::pod_levels::LevelChange;
use serde::{Deserialize, Serialize};

use super::ages::AgeGap;
use super::arm_facts::ArmFacts;
use super::load::LoadGap;

/// By so many standard errors a change must exceed what the pods' differences may have done: one-sided p = 1e-4.
const ERRORS: f64 = 3.719_016;
/// The same as a two-sided level, for changes of levels of pods, of which there may be few.
const LEVEL: f64 = 1.0 - 2e-4;
/// Loads, and ages, count as different if one is more than this many times the other.
const FACTOR: f64 = 4.0 / 3.0;

/// How the pods of the head differ from those of the base in what changes profiles of one code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    load: LoadGap,
    /// Of memory in use; nothing in profiles of other types, which start anew with each profile.
    age: AgeGap,
}

/// What may have made a change alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Suspect {
    /// The load.
    Load,
    /// The age of processes, or that and the load together.
    Age,
}

impl Gap {
    /// Of head and base; `hop` is closing.
    pub fn of(arms: &[ArmFacts<'_>; 2], profile_type: ProfileType, clock: HopClock, hop: Hop) -> Self {
        let is_of_memory = profile_type == ProfileType::LiveHeap;
        let age = if is_of_memory { AgeGap::of(arms, clock, hop) } else { AgeGap::default() };
        Self { load: LoadGap::of(arms), age }
    }

    /// The largest of several, of each kind.
    pub fn largest(gaps: impl Iterator<Item = Self> + Clone) -> Self {
        let age = largest(gaps.clone().map(|gap| gap.age), |age| age.of_shares());
        Self { age, ..Self::default() }.with_load_of(gaps)
    }

    /// With the largest difference of loads of several.
    #[must_use]
    pub fn with_load_of(self, gaps: impl Iterator<Item = Self>) -> Self {
        Self { load: largest(gaps.map(|gap| gap.load), |load| load.ln_ratio.abs()), ..self }
    }

    /// What may have made a share, or a cost per request, differ by `theta`, of this variance.
    pub fn may_have_made(self, theta: f64, variance: f64) -> Option<Suspect> {
        self.explains((theta, variance), self.age.of_shares(), ERRORS)
    }

    /// What may have made a ratio of what pods hold, or allocate per request.
    pub fn may_have_made_level(self, ratio: LevelChange) -> Option<Suspect> {
        let theta = libm::log(ratio.value());
        self.explains((theta, ratio.variance_of_ln()), self.age.of_levels(theta), ratio.errors(LEVEL))
    }

    /// What may have made a difference of growth.
    pub fn may_have_made_growth(self, difference: LevelChange) -> Option<Suspect> {
        let of_age = self.age.of_growth(difference.value());
        let beyond = difference.value().abs() - of_age;
        (of_age > 0.0 && beyond <= difference.errors(LEVEL) * libm::sqrt(difference.variance())).then_some(Suspect::Age)
    }

    /// The change is not shown to be larger than what load, or that and age, may have done.
    fn explains(self, (theta, variance): (f64, f64), of_age: f64, errors: f64) -> Option<Suspect> {
        let of_load = self.load.ln_ratio.abs();
        let error = errors * libm::sqrt(variance + self.load.variance);
        if of_load > 0.0 && theta.abs() - of_load <= error {
            Some(Suspect::Load)
        } else if of_age > 0.0 && theta.abs() - of_load - of_age <= error {
            Some(Suspect::Age)
        } else {
            None
        }
    }
}

/// Whether a load, or an age, is so much larger than the other that profiles of one code may differ for it.
pub(super) fn differ(head: f64, base: f64) -> bool {
    head > FACTOR * base || base > FACTOR * head
}

/// The largest of several by its size, of equal ones the last.
fn largest<G: Default>(gaps: impl Iterator<Item = G>, size: impl Fn(&G) -> f64) -> G {
    gaps.max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or_default()
}

impl Suspect {
    /// Why a row is not decided.
    pub fn of_row(self) -> RowReason {
        match self {
            Self::Load => RowReason::LoadDiffers,
            Self::Age => RowReason::AgeDiffers,
        }
    }

    /// Why a level has no direction.
    pub fn of_level(self) -> LevelReason {
        match self {
            Self::Load => LevelReason::LoadDiffers,
            Self::Age => LevelReason::AgeDiffers,
        }
    }
}
