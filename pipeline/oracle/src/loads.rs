//! How much more the pods of one arm serve than those of the other, and how much longer they have run: lines 8 and 9 of section 7 of
//! `docs/semantics.md`.

use fleetdiff_schemas::verdict::{LevelReason, RowReason};

use super::statistics::pod_levels::Change;

/// How the loads of the arms of a cell differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loads {
    /// Requests per second of a pod, the mean over pods: head, base.
    pub means: [f64; 2],
    /// Variance of ln of their ratio.
    pub variance: f64,
}

impl Loads {
    /// ln of their ratio.
    pub fn ln_ratio(&self) -> f64 {
        (self.means[0] / self.means[1]).ln()
    }

    /// Whether a change is not shown, at so many standard errors, to be larger than their ratio.
    pub fn may_have_made(&self, theta: f64, variance: f64, errors: f64) -> bool {
        theta.abs() - self.ln_ratio().abs() <= errors * (variance + self.variance).sqrt()
    }
}

/// The ages of the arms' processes, in hours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ages {
    pub head: f64,
    pub base: f64,
}

/// What the arms of a cell differ in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Differences {
    pub loads: Option<Loads>,
    /// Of memory in use.
    pub ages: Option<Ages>,
}

/// Which of these may have made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    ByLoad,
    ByAge,
}

impl Made {
    /// The reason of a level.
    pub fn of_level(self) -> LevelReason {
        match self {
            Self::ByLoad => LevelReason::LoadDiffers,
            Self::ByAge => LevelReason::AgeDiffers,
        }
    }

    /// The reason of a row of `cells`.
    pub fn of_row(self) -> RowReason {
        match self {
            Self::ByLoad => RowReason::LoadDiffers,
            Self::ByAge => RowReason::AgeDiffers,
        }
    }
}

impl Ages {
    /// ln of their ratio.
    pub fn ln_ratio(&self) -> f64 {
        (self.head / self.base).ln()
    }
}

impl Differences {
    /// The largest of each.
    pub fn largest(all: &[Self]) -> Self {
        let loads = all.iter().filter_map(|one| one.loads);
        let ages = all.iter().filter_map(|one| one.ages);
        Self {
            loads: loads.max_by(|a, b| a.ln_ratio().abs().total_cmp(&b.ln_ratio().abs())),
            ages: ages.max_by(|a, b| a.ln_ratio().abs().total_cmp(&b.ln_ratio().abs())),
        }
    }

    /// What may have made a change of a share.
    pub fn of_share(&self, theta: f64, variance: f64) -> Option<Made> {
        self.made((theta, variance, 3.719_016), |ages| ages.ln_ratio().abs())
    }

    /// What may have made a change of what a pod holds: the older one holds no less.
    pub fn of_level(&self, change: &Change) -> Option<Made> {
        let theta = change.value().ln();
        self.made((theta, change.variance_of_ln(), change.errors()), |ages| (ages.ln_ratio() * theta.signum()).max(0.0))
    }

    /// What may have made a difference of growth an hour: the older one grows no faster.
    pub fn of_growth(&self, change: &Change) -> Option<Made> {
        let difference = change.value();
        let Ages { head, base } = self.ages?;
        let most = ((1.0 / head - 1.0 / base) * difference.signum()).max(0.0);
        let is_more = difference.abs() - most > change.errors() * change.variance().sqrt();
        (most > 0.0 && !is_more).then_some(Made::ByAge)
    }

    fn made(&self, (theta, variance, errors): (f64, f64, f64), of_age: impl Fn(Ages) -> f64) -> Option<Made> {
        let by_load = self.loads.is_some_and(|loads| loads.may_have_made(theta, variance, errors));
        if by_load {
            return Some(Made::ByLoad);
        }
        let age = self.ages.map(of_age).filter(|most| *most > 0.0)?;
        let (load, of_load) = self.loads.map_or((0.0, 0.0), |loads| (loads.ln_ratio().abs(), loads.variance));
        (theta.abs() - load - age <= errors * (variance + of_load).sqrt()).then_some(Made::ByAge)
    }
}
