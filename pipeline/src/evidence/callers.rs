//! Which function calls which among a few functions of a cell, from its call trees.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use serde::{Deserialize, Serialize};

use crate::counts::cell::CellCounts;
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};

/// Samples of the head and of the base.
pub type Pair = [u64; 2];

/// The stacks of one cell that contain the functions in question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerCounts {
    /// All samples, by time block.
    pub blocks: Vec<Pair>,
    /// Stacks that contain functions in question, one entry for each order in which they call each other.
    pub stacks: Vec<CallerCount>,
    /// By function in question: its most frequent caller, as stable hash and name.
    pub callers: BTreeMap<u64, (u64, String)>,
}

/// Stacks in which the functions in question call each other in one order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallerCount {
    /// Stable hashes, root first.
    pub functions: Vec<u64>,
    /// Whether the last of them is the leaf.
    pub own: bool,
    /// Samples by time block.
    pub samples: Vec<Pair>,
}

/// Results for paths already seen, for one set of functions: most paths recur at every look.
#[derive(Debug, Default)]
pub struct KnownPaths {
    functions: BTreeSet<usize>,
    paths: HashMap<PathId, Option<OnPath>>,
}

/// The functions in question on one path.
#[derive(Clone, Debug)]
struct OnPath {
    /// Stable hashes, root first.
    functions: Vec<u64>,
    /// Whether the last of them is the leaf, and its caller there.
    leaf: Option<Option<FunctionId>>,
}

/// The part of the call trees of a comparison's epoch that contains `functions`, given by the cell's numbers; `None` if
/// its profiles came without stacks, or `functions` is empty.
pub fn callers(
    counts: &CellCounts,
    comparison: &OpenComparison,
    functions: BTreeSet<usize>,
    known: &mut KnownPaths,
    table: &FunctionTable,
) -> Option<CallerCounts> {
    if functions.is_empty() {
        return None;
    }
    if known.functions != functions {
        *known = KnownPaths { functions, paths: HashMap::new() };
    }
    let mut blocks: BTreeMap<_, Pair> = BTreeMap::new();
    let mut orders: BTreeMap<(Vec<u64>, bool), BTreeMap<_, Pair>> = BTreeMap::new();
    let mut callers: BTreeMap<u64, BTreeMap<FunctionId, u64>> = BTreeMap::new();
    for (arm, side) in [Side::Head, Side::Base].into_iter().enumerate() {
        for (block, tree) in counts.call_trees().of(comparison.epoch, comparison.id.builds(side)) {
            #[expect(clippy::iter_over_hash_type, reason = "integers are added up")]
            for (&path, &samples) in tree {
                blocks.entry(block).or_default()[arm] += samples;
                let Some(on_path) = known.on_path(path, counts, table) else { continue };
                let order = orders.entry((on_path.functions.clone(), on_path.leaf.is_some())).or_default();
                order.entry(block).or_default()[arm] += samples;
                if let (Some(&function), Some(Some(caller))) = (on_path.functions.last(), on_path.leaf) {
                    *callers.entry(function).or_default().entry(caller).or_insert(0) += samples;
                }
            }
        }
    }
    let by_block = |samples: &BTreeMap<_, Pair>| {
        blocks.keys().map(|block| samples.get(block).copied().unwrap_or_default()).collect()
    };
    let stacks = orders.iter().map(|((functions, own), samples)| CallerCount {
        functions: functions.clone(),
        own: *own,
        samples: by_block(samples),
    });
    let stacks = stacks.collect();
    let callers = callers
        .into_iter()
        .filter_map(|(function, callers)| Some((function, most_frequent(callers, table)?)))
        .collect();
    (!blocks.is_empty()).then(|| CallerCounts { blocks: blocks.values().copied().collect(), stacks, callers })
}

/// The caller with the most samples; in a tie, the one with the smallest hash.
fn most_frequent(callers: BTreeMap<FunctionId, u64>, table: &FunctionTable) -> Option<(u64, String)> {
    let named = callers.into_iter().map(|(caller, samples)| (samples, table.get(caller)));
    let most = named.max_by(|(a, (hash_a, _)), (b, (hash_b, _))| a.cmp(b).then(hash_b.cmp(hash_a)));
    most.map(|(_, (hash, name))| (hash, name.to_string()))
}

impl KnownPaths {
    fn on_path(&mut self, path: PathId, counts: &CellCounts, table: &FunctionTable) -> Option<OnPath> {
        let functions = &self.functions;
        self.paths.entry(path).or_insert_with(|| OnPath::of(&table.paths().frames(path), functions, counts)).clone()
    }
}

impl OnPath {
    fn of(frames: &[FunctionId], functions: &BTreeSet<usize>, counts: &CellCounts) -> Option<Self> {
        let entries = counts.functions().entries();
        let in_question = |frame: FunctionId| counts.functions().get(frame).filter(|number| functions.contains(number));
        let found: Vec<u64> =
            frames.iter().filter_map(|&frame| in_question(frame).map(|number| entries[number].0)).collect();
        let is_leaf = frames.last().is_some_and(|&frame| in_question(frame).is_some());
        let caller = frames.len().checked_sub(2).and_then(|above| frames.get(above).copied());
        (!found.is_empty()).then(|| Self { functions: found, leaf: is_leaf.then_some(caller) })
    }
}
