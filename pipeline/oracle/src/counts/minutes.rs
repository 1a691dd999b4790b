//! What pods did minute by minute: section 17 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, Hardware, PodId};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos};

use super::{Archive, Origin};

/// Pods that are taken together.
pub(crate) type Place = (Build, Hardware, u8);

/// Minutes of a cell by number, and in each the pods that are taken together.
pub(crate) type Minutes = BTreeMap<u64, BTreeMap<Place, InMinute>>;

/// What some pods did in a minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct InMinute {
    pub requests: u64,
    pub samples: u64,
    /// Those that served.
    pub pods: BTreeSet<PodId>,
    /// Self and total by function number.
    pub functions: BTreeMap<usize, [u64; 2]>,
}

/// Hops of a minute.
pub(crate) fn hops_of_minute(config: &Config) -> u64 {
    config.clock().hops_in(Nanos::from_seconds(60)).max(1)
}

impl Archive {
    /// The whole minutes of the window at the close of `hop`, by type and cell.
    pub fn minutes(&self, config: &Config, hop: Hop) -> BTreeMap<(ProfileType, CellKey), Minutes> {
        let hops = hops_of_minute(config);
        let first = hop.plus(1).minus(config.window_hops());
        let minute_of = |origin: &Origin| {
            let number = origin.own.0 / hops;
            let is_whole = number * hops >= first.0 && number * hops + hops - 1 <= hop.0;
            (is_whole && origin.applied <= hop && origin.age == 0).then_some(number)
        };
        let mut cells: BTreeMap<(ProfileType, CellKey), Minutes> = BTreeMap::new();
        let mut at = |origin: &Origin, bucket: u8, change: &mut dyn FnMut(&mut InMinute)| {
            if let Some(number) = minute_of(origin) {
                let minutes = cells.entry((origin.profile_type, origin.cell.clone())).or_default();
                let place = (origin.build.clone(), origin.hardware.clone(), bucket);
                change(minutes.entry(number).or_default().entry(place).or_default());
            }
        };
        for one in &self.samples {
            at(&one.origin, one.bucket, &mut |minute| {
                minute.samples += one.samples;
                for (function, counts) in &one.functions {
                    let sums = minute.functions.entry(*function).or_default();
                    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
            });
        }
        for one in self.requests.iter().filter(|one| one.count > 0) {
            at(&one.origin, one.bucket, &mut |minute| {
                minute.requests += one.count;
                minute.pods.insert(one.pod.clone());
            });
        }
        cells
    }
}
