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
    listed(&own, table)
}

/// The stacks that are shown of all that end at these paths.
fn listed(own: &BTreeMap<PathId, Pair>, table: &FunctionTable) -> Vec<StackCount> {
    let paths = table.paths();
    let mut through: BTreeMap<PathId, Pair> = BTreeMap::new();
    for (&path, &samples) in own {
        paths.beginnings(path).into_iter().for_each(|beginning| add(through.entry(beginning).or_default(), samples));
    }
    let Some(&all) = through.get(&EMPTY) else { return Vec::new() };
    let is_kept = |path: &PathId| {
        let samples = through.get(path).copied().unwrap_or_default();
        samples.iter().zip(all).any(|(&part, whole)| whole > 0 && part.saturating_mul(ONE_IN) >= whole)
    };
    let mut kept: BTreeMap<(PathId, bool), Pair> = BTreeMap::new();
    for (&path, &samples) in own {
        let last = paths.beginnings(path).into_iter().find(is_kept).unwrap_or(EMPTY);
        add(kept.entry((last, last != path)).or_default(), samples);
    }
    let named = kept.into_iter().map(|((path, is_rare), samples)| {
        let names = paths.frames(path).into_iter().map(|function| table.get(function).1.to_string());
        StackCount { stack: names.chain(is_rare.then(|| RARE_STACKS.to_owned())).collect(), samples }
    });
    named.collect()
}

fn add(sum: &mut Pair, more: Pair) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetdiff_schemas::profile::Stack;
    use fleetdiff_schemas::time::Hop;

    use super::*;

    /// A number that was forgotten goes to a later path, so that a path may have a smaller number than its caller.
    #[test]
    fn regression_samples_go_through_callers_of_any_number() {
        let table = FunctionTable::default();
        let ids = table.intern(&["gone", "main", "read", "parse"].map(Arc::from));
        let path_of = |frames: &[u32]| {
            let stack = Stack { frames: frames.to_vec(), count: 1, cohort: None, value: 0 };
            table.intern_paths(&[stack], &ids)[0]
        };
        let (gone, main, read) = (path_of(&[0]), path_of(&[1]), path_of(&[1, 2]));
        for hop in 0..3 {
            table.hold(ids.iter().copied());
            table.hold_paths([read].into_iter());
            table.finish_round(0, 1, Hop(hop));
        }
        let parse = path_of(&[1, 2, 3]);
        assert_eq!(parse, gone, "the number is given again");
        let own = BTreeMap::from([(main, [9_000, 0]), (read, [1, 0]), (parse, [9, 2])]);
        let stack =
            |names: &[&str], samples| StackCount { stack: names.iter().map(ToString::to_string).collect(), samples };
        let mut found = listed(&own, &table);
        found.sort_by_key(|listed| listed.stack.len());
        let expected =
            [stack(&["main"], [9_000, 0]), stack(&["main", "read"], [1, 0]), stack(&["main", "read", "parse"], [9, 2])];
        assert_eq!(found, expected);
    }
}
