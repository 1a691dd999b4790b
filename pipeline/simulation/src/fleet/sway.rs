//! How the costs of a build sway: what a function costs moves for all pods of the build at once, as when caches, data or neighbours
//! change. No number of pods averages it out.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::Build;

use super::builder::Settings;
use super::random::{LogNormal, Purpose, generator, key_of, next_normal};

/// By build and period, the cost of each function relative to what it is on average.
#[derive(Debug, Default)]
pub(super) struct Sway(BTreeMap<Build, Vec<Vec<f64>>>);

impl Sway {
    /// Of every build of the fleet: for each function a stationary autoregressive process of order 1, one step a period.
    pub(super) fn of(settings: &Settings, periods: u64, functions: usize) -> Self {
        let Some((cv, over)) = settings.sway else { return Self::default() };
        let (spread, kept) = (LogNormal::with_cv(cv), libm::exp(-settings.period.as_seconds() / over.as_seconds()));
        let builds = [&settings.base, &settings.head].into_iter().chain(settings.rings.iter().map(|ring| &ring.build));
        let of_build = |build: &Build| {
            let mut rng = generator(key_of(settings.seed, build.as_str()), Purpose::Sway, 0);
            let mut states: Vec<f64> = (0..functions).map(|_| next_normal(&mut rng)).collect();
            let fresh = libm::sqrt(1.0 - kept * kept);
            let step = |_| {
                let costs = states.iter().map(|&state| spread.at(state)).collect();
                states.iter_mut().for_each(|state| *state = kept * *state + fresh * next_normal(&mut rng));
                costs
            };
            (0..periods).map(step).collect()
        };
        Self(builds.map(|build| (build.clone(), of_build(build))).collect())
    }

    /// The costs of a period; empty if costs do not sway.
    pub(super) fn costs(&self, build: &Build, period: u64) -> &[f64] {
        let of_build = usize::try_from(period).ok().and_then(|period| self.0.get(build)?.get(period));
        of_build.map_or(&[], Vec::as_slice)
    }
}
