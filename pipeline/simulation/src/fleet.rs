//! Synthetic fleets whose truth is known, from a seed.
//!
//! A pod's expected samples of a function are its size x the function's share x the pod's own multiplier for the
//! function (log-normal, for as long as the pod lives) x what the cell, the build, the machine and the moment do to it.
//! The counts of a profile are independent Poisson numbers with these means, drawn by call path and folded to self
//! and total counts, so that the two agree as they do in real profiles.
//!
//! Everything about a pod follows from (seed, pod name, period): a profile is the same whether it is made first or
//! last, by one thread or several, early or late, whole or folded, and it does not depend on the other pods.
//!
//! ```
//! use fleetdiff_simulation::fleet::{Cells, Fleet};
//! use fleetdiff_schemas::time::Nanos;
//! let fleet = Fleet::seeded(11)
//!     .pods_per_cell(2, 4)
//!     .regress("serialize_video_chunk", Cells::cohort("Android-TV"), 1.10)
//!     .late(0.02, Nanos::from_seconds(420))
//!     .restarts(1)
//!     .build();
//! assert_eq!(fleet.pods(), 9 * 6);
//! assert_eq!(fleet.partitions(2), fleet.partitions(2));
//! ```

mod builder;
mod call_tree;
mod cells;
mod delivery;
mod error;
mod plan;
mod pod_sampler;
pub(crate) mod poisson;
mod presets;
pub(crate) mod random;
mod ring;
mod roster;
mod sway;

use std::sync::Arc;

use fleetdiff_schemas::identity::{Build, Identity};
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::time::{Nanos, TimeRange};

pub use builder::FleetBuilder;
pub use call_tree::Calls;
pub use cells::Cells;
pub use delivery::{FleetSource, Partition};
pub use error::FleetError;
pub use ring::Ring;

/// A synthetic fleet, ready to be read any number of times.
///
/// Cheap to clone; profiles are made as they are read and never all held at once.
#[derive(Clone, Debug)]
pub struct Fleet {
    plan: Arc<plan::Plan>,
}

impl Fleet {
    /// Begins a fleet with these defaults: 3 x 3 cells of 5 head and 20 base pods of a video service, deployed after a
    /// minute, 10 minutes long, nothing changed.
    pub fn seeded(seed: u64) -> FleetBuilder {
        FleetBuilder::new(seed)
    }

    /// The reader of one of `workers` workers (counted from 0): it owns the partitions p of
    /// [`FleetBuilder::partition_count`] with p mod `workers` = `worker`.
    pub fn source(&self, worker: usize, workers: usize) -> FleetSource {
        FleetSource::new(&self.plan, worker, workers)
    }

    /// One of `partitions` partitions (counted from 0), in order of delivery.
    pub fn partition(&self, partition: u32, partitions: u32) -> Partition {
        Partition::new(&self.plan, partition, partitions)
    }

    /// All records of the fleet spread over this many partitions, each in order of delivery. Held in memory: for small
    /// fleets.
    pub fn partitions(&self, partitions: u32) -> Vec<Vec<Decoded>> {
        (0..partitions).map(|partition| self.partition(partition, partitions).collect()).collect()
    }

    /// The base build.
    pub fn base(&self) -> &Build {
        &self.plan.settings.base
    }

    /// The head build.
    pub fn head(&self) -> &Build {
        &self.plan.settings.head
    }

    /// How many pods there are from first to last.
    pub fn pods(&self) -> usize {
        self.plan.pods.len()
    }

    /// Every process of every pod, with the time within the fleet's in which it lived, by pod and start.
    pub fn processes(&self) -> Vec<(Arc<Identity>, TimeRange)> {
        let whole = self.time();
        let clip = |range: TimeRange| TimeRange { start: range.start.max(whole.start), end: range.end.min(whole.end) };
        let lives = self.plan.pods.iter().flat_map(|pod| &pod.lives);
        let mut processes: Vec<_> = lives.map(|life| (Arc::clone(&life.identity), clip(life.lived))).collect();
        processes.sort_by(|a, b| (&a.0.pod, a.1.start).cmp(&(&b.0.pod, b.1.start)));
        processes
    }

    /// Upper bound of the number of profiles of the whole fleet, without copies (a profile without samples is not
    /// sent).
    pub fn profiles(&self) -> u64 {
        let lived = |pod: &roster::Pod, period| u64::from(pod.life(self.plan.window(pod, period)).is_some());
        self.plan.pods.iter().map(|pod| (0..self.plan.periods).map(|period| lived(pod, period)).sum::<u64>()).sum()
    }

    /// From the first instant to the last end of a window.
    pub fn time(&self) -> TimeRange {
        let start = self.plan.settings.starts_at;
        let periods = i64::try_from(self.plan.periods).unwrap_or(i64::MAX);
        let last = self.plan.pods.last().map_or(Nanos(0), |pod| pod.phase);
        TimeRange { start, end: start.plus(Nanos(periods.saturating_mul(self.plan.settings.period.0))).plus(last) }
    }

    /// The functions in which samples are taken, with their expected share of an unchanged pod's samples, largest
    /// first.
    pub fn functions(&self) -> Vec<(Arc<str>, f64)> {
        let tree = &self.plan.tree;
        let shares =
            tree.names.iter().enumerate().map(|(function, name)| (Arc::clone(name), tree.self_share(function)));
        let mut functions: Vec<_> = shares.filter(|(_, share)| *share > 0.0).collect();
        functions.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        functions
    }
}

/// Builds the fleet.
impl FleetBuilder {
    /// The fleet.
    ///
    /// # Errors
    /// [`FleetError`] says which property is impossible, or which name in an effect does not exist.
    pub fn try_build(self) -> Result<Fleet, FleetError> {
        let plan = plan::Plan::new(self.settings)?;
        Ok(Fleet { plan: Arc::new(plan) })
    }

    /// The fleet, for properties that are written in the program.
    ///
    /// # Panics
    /// If [`try_build`](Self::try_build) fails.
    pub fn build(self) -> Fleet {
        match self.try_build() {
            Ok(fleet) => fleet,
            Err(error) => panic!("{error}"),
        }
    }
}
