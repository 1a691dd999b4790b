//! Samples of a cell by stack, as far as a picture shows them.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use fleetdiff_schemas::rows::RARE_STACKS;
use serde::{Deserialize, Serialize};

use super::callers::Pair;
use crate::counts::cell::CellCounts;
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{EMPTY, PathId};

/// A call path is kept if at least one in this many samples of an arm goes through it.
const ONE_IN: u64 = 1000;

/// One stack, or the rare ones below a call path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackCount {
    /// Names of functions, root first.
    pub stack: Vec<String>,
    /// Samples that end there.
    pub samples: Pair,
}

/// The stacks of a cell since the epoch of a comparison began; empty if its profiles came without stacks.
pub fn stacks(counts: &CellCounts, comparison: &OpenComparison, table: &FunctionTable) -> Vec<StackCount> {
    let mut own: BTreeMap<PathId, Pair> = BTreeMap::new();
    for (arm, side) in [Side::Head, Side::Base].into_iter().enumerate() {
        for (_, tree) in counts.call_trees().of(comparison.epoch, comparison.id.builds(side)) {
            #[expect(clippy::iter_over_hash_type, reason = "integers are added up")]
            for (&path, &samples) in tree {
                own.entry(path).or_default()[arm] += samples;
            }
        }
    }
    let paths = table.paths();
    let through = through(&own, |path| paths.caller(path));
    let Some(&all) = through.get(&EMPTY) else { return Vec::new() };
    let is_kept = |path: PathId| {
        let samples = through.get(&path).copied().unwrap_or_default();
        path == EMPTY || samples.iter().zip(all).any(|(&part, whole)| whole > 0 && part.saturating_mul(ONE_IN) >= whole)
    };
    let mut kept: BTreeMap<(PathId, bool), Pair> = BTreeMap::new();
    for (&path, &samples) in &own {
        let mut above = path;
        while !is_kept(above) {
            above = paths.caller(above);
        }
        add(kept.entry((above, above != path)).or_default(), samples);
    }
    let named = kept.into_iter().map(|((path, is_rare), samples)| {
        let names = paths.frames(path).into_iter().map(|function| table.get(function).1.to_string());
        StackCount { stack: names.chain(is_rare.then(|| RARE_STACKS.to_owned())).collect(), samples }
    });
    named.collect()
}

/// Samples that go through each path, from those that end there.
fn through(own: &BTreeMap<PathId, Pair>, caller: impl Fn(PathId) -> PathId) -> BTreeMap<PathId, Pair> {
    let mut through = own.clone();
    let mut below = PathId::MAX;
    // A path has a larger number than its caller, so that all that is below it has been added before.
    while let Some((&path, &samples)) = through.range(1..below).next_back() {
        add(through.entry(caller(path)).or_default(), samples);
        below = path;
    }
    through
}

fn add(sum: &mut Pair, more: Pair) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
