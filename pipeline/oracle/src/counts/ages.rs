//! Pods of different ages: which are compared, until when that is provisional, and the young ones of both arms.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Scope;

use super::{Archive, BASE, Cell, HEAD, Origin, Place, Sampled, Stratum};

impl Archive {
    /// What a cell in which pods of different ages are compared has of young pods of both arms, by their age in minutes:
    /// of the head within the window, of the base in the archive.
    pub fn young_pods(
        &self,
        config: &Config,
        (head, base): (&Build, &[Build]),
        hop: Hop,
        (place, cell): (&(ProfileType, CellKey), &Cell),
    ) -> BTreeMap<Place, Stratum> {
        let mut strata: BTreeMap<Place, Stratum> = BTreeMap::new();
        if cell.provisional_until_at.is_none() {
            return strata;
        }
        let is_kept =
            |build: &Build, own: Hop| self.timeline.archived_of(config, build, hop).is_some_and(|since| own >= since);
        for one in self.samples.iter().filter(|one| one.origin.age > 0 && one.origin.applied <= hop) {
            let Origin { own, profile_type, ref cell, ref build, ref hardware, .. } = one.origin;
            let has_left = own.plus(config.window_hops()) <= hop;
            let arm = match has_left {
                _ if (profile_type, cell) != (place.0, &place.1) => continue,
                false if build == head => HEAD,
                true if base.contains(build) && is_kept(build, own) => BASE,
                _ => continue,
            };
            let minutes = (config.clock().start_of(own).0 - one.started.0) / 60_000_000_000;
            let age = Hop(u64::try_from(minutes).unwrap_or(0));
            strata.entry((age, hardware.clone(), 1)).or_default()[arm].add(one, self.names.len(), Scope::Epoch);
        }
        strata.retain(|_, stratum| stratum.iter().all(|arm| arm.samples > 0));
        strata
    }

    /// When the first young pods of a cell's window are no longer young; the end of the hop if there are none.
    pub fn old_at(
        &self,
        config: &Config,
        (head, base): (&Build, &[Build]),
        hop: Hop,
        place: &(ProfileType, CellKey),
    ) -> Nanos {
        let is_young = |one: &&Sampled| {
            let Origin { applied, own, profile_type, ref cell, age, ref build, .. } = one.origin;
            let seen = applied <= hop && own.plus(config.window_hops()) > hop;
            age > 0 && seen && (profile_type, cell) == (place.0, &place.1) && (build == head || base.contains(build))
        };
        let first = self.samples.iter().filter(is_young).map(|one| one.started).min();
        first.map_or_else(|| config.clock().end_of(hop), |started| started.plus(config.young))
    }
}

impl Cell {
    /// Pods are compared with pods of the same age; only where no stratum allows that, ages are merged, and if that helps
    /// the cell is provisional until the given instant.
    pub fn of_like_ages(self, until_at: Nanos) -> Self {
        let is_shared = |stratum: &Stratum| stratum.iter().all(|arm| arm.samples > 0);
        if self.strata.values().any(is_shared) {
            return self;
        }
        let mut strata: BTreeMap<Place, Stratum> = BTreeMap::new();
        for ((block, hardware, _), [head, base]) in self.strata {
            let merged = strata.entry((block, hardware, 0)).or_default();
            merged[HEAD].merge(head);
            merged[BASE].merge(base);
        }
        let provisional_until_at = strata.values().any(is_shared).then_some(until_at);
        Self { strata, provisional_until_at, ..Self::default() }
    }
}
