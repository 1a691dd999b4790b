//! Call trees of whole stacks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::{OVERFLOW, ProfileType, Samples};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::Hop;

use super::{Archive, BASE, HEAD, Origin};
use crate::admission::{Counted, at_frames};
use crate::timeline::{Open, Timeline};

/// Samples of head and base by path, block by block.
pub(crate) type Tree = BTreeMap<Hop, BTreeMap<usize, [u64; 2]>>;

impl Archive {
    /// The call trees of one cell in a comparison's epoch; empty if its profiles came without stacks.
    pub fn tree(&self, open: &Open, hop: Hop, profile_type: ProfileType, cell: &CellKey) -> Tree {
        let mut tree = Tree::new();
        for (origin, samples) in &self.stacks {
            let arm = match &origin.build {
                build if *build == open.head => HEAD,
                build if open.base.contains(build) => BASE,
                _ => continue,
            };
            if origin.applied > hop
                || origin.block < open.epoch
                || origin.profile_type != profile_type
                || origin.cell != *cell
            {
                continue;
            }
            let block = tree.entry(origin.block).or_default();
            for (path, count) in samples {
                block.entry(*path).or_default()[arm] += count;
            }
        }
        tree
    }
}

/// The stacks of all profiles that came with them.
pub(super) type Stacks = (Vec<Vec<usize>>, Vec<(Origin, Vec<(usize, u64)>)>);

pub(super) fn stacks(
    config: &Config,
    timeline: &Timeline,
    counted: &[&Counted],
    numbers: &HashMap<&Arc<str>, usize>,
) -> Stacks {
    let mut places: HashMap<Vec<usize>, usize> = HashMap::new();
    let overflow: Arc<str> = OVERFLOW.into();
    let mut paths = Vec::new();
    let mut all = Vec::new();
    for one in counted {
        let Samples::Stacks(stacks) = &one.profile.samples else { continue };
        let mut cohorts: BTreeMap<&Cohort, Vec<(usize, u64)>> = BTreeMap::new();
        let of_names: Vec<Option<usize>> = one.profile.names.iter().map(|name| numbers.get(name).copied()).collect();
        let is_over = one.over.is_path_over(&one.profile);
        for stack in stacks.iter().filter(|stack| stack.count > 0) {
            let frames: Vec<usize> = if is_over(&stack.frames) {
                numbers.get(&overflow).copied().into_iter().collect()
            } else {
                at_frames(&of_names, &stack.frames).flatten().copied().collect()
            };
            let path = *places.entry(frames).or_insert_with_key(|frames| {
                paths.push(frames.clone());
                paths.len() - 1
            });
            cohorts
                .entry(stack.cohort.as_ref().unwrap_or(&one.profile.identity.cohort))
                .or_default()
                .push((path, stack.count));
        }
        all.extend(cohorts.into_iter().map(|(cohort, samples)| (Origin::new(config, timeline, one, cohort), samples)));
    }
    (paths, all)
}
