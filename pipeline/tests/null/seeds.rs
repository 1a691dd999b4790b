//! Fleets by seed through the dataflow, two at a time.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{length_float, whole};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_simulation::fleet::Fleet;
use fleetdiff_simulation::run_fleet;

/// Fleets of an experiment, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 4;

/// The seeds of an experiment.
pub fn seeds() -> RangeInclusive<u64> {
    seeds_to(FLEETS)
}

/// The seeds of an experiment with so many fleets, unless `FLEETDIFF_NULL_FLEETS` says how many.
pub fn seeds_to(fleets: u64) -> RangeInclusive<u64> {
    let number = std::env::var("FLEETDIFF_NULL_FLEETS");
    1..=number.map_or(fleets, |number| number.parse().expect("FLEETDIFF_NULL_FLEETS is a number of fleets"))
}

/// The most of `runs` that may be false at a true rate of `rate`: three standard errors above it, for .05 2 of 10 and 3 of 20.
pub fn most_false(runs: usize, rate: f64) -> usize {
    let runs = length_float(runs);
    usize::try_from(whole((rate * runs + 3.0 * (rate * (1.0 - rate) * runs).sqrt()).floor())).unwrap_or(0)
}

/// What `of` gives for each of these seeds, in their order.
pub fn over<T: Send>(seeds: impl IntoIterator<Item = u64>, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let next = AtomicUsize::new(0);
    let take = || {
        let place = next.fetch_add(1, Ordering::Relaxed);
        seeds.get(place).map(|&seed| (place, seed))
    };
    let work = || std::iter::from_fn(take).map(|(place, seed)| (place, of(seed))).collect::<Vec<_>>();
    let mut all = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        all.extend(other.join().expect("the other half runs through"));
        all
    });
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// All rows of one fleet, on one worker.
pub fn rows(config: &Config, fleet: &Fleet) -> Tables {
    run_fleet(config, fleet).expect("a synthetic fleet runs through")
}
