//! Which function calls which among a few functions of a cell, from its call trees.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};

use crate::counts::cell::CellCounts;
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};
use crate::counts::paths::PathCounts;

/// A caller of less than one in so many samples of a function is left out.
const RARE: u64 = 100;

/// Samples of the head and of the base.
pub type Pair = [u64; 2];

/// The stacks of one cell that contain the functions in question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerCounts {
    /// All samples, by time block.
    pub blocks: Vec<Pair>,
    /// Stacks that contain functions in question, one entry for each order in which they call each other.
    pub stacks: Vec<CallerCount>,
    /// By function in question: who calls it.
    pub callers: BTreeMap<u64, Callers>,
}

/// The direct callers of a function: samples by the stable hash of the caller, 0 where it has none. Without callers of less than one sample in a
/// hundred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callers {
    /// Where it is first on the stack; only of functions that one build lacks.
    pub first: BTreeMap<u64, u64>,
    /// Where it is the leaf.
    pub leaf: BTreeMap<u64, u64>,
    /// The name of the most frequent where it is the leaf; none if it mostly has none there.
    pub name: Option<String>,
}

impl Callers {
    /// The most frequent caller where the function is the leaf, of several the one with the smallest hash; `None` if it mostly has none there.
    pub fn most(&self) -> Option<(u64, &str)> {
        Some((most(&self.leaf)?, self.name.as_deref()?))
    }
}

impl CallerCounts {
    /// Samples of head and base with each of the functions on the stack.
    pub fn seen(&self) -> BTreeMap<u64, Pair> {
        let mut seen: BTreeMap<u64, Pair> = BTreeMap::new();
        for stack in &self.stacks {
            let distinct: BTreeSet<u64> = stack.functions.iter().copied().collect();
            for function in distinct {
                let of_function = seen.entry(function).or_default();
                for samples in &stack.samples {
                    of_function.iter_mut().zip(samples).for_each(|(sum, samples)| *sum += samples);
                }
            }
        }
        seen
    }
}

fn most(samples: &BTreeMap<u64, u64>) -> Option<u64> {
    samples.iter().max_by(|(a, one), (b, other)| one.cmp(other).then(b.cmp(a))).map(|(caller, _)| *caller)
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

/// Samples by caller; of what has none under `None`.
type Counted = BTreeMap<Option<FunctionId>, u64>;

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
    let mut leaves: BTreeMap<u64, Counted> = BTreeMap::new();
    for (arm, block, tree) in trees(counts, comparison) {
        #[expect(clippy::iter_over_hash_type, reason = "integers are added up")]
        for (&path, &samples) in tree {
            blocks.entry(block).or_default()[arm] += samples;
            let Some(on_path) = known.on_path(path, counts, table) else { continue };
            let order = orders.entry((on_path.functions.clone(), on_path.leaf.is_some())).or_default();
            order.entry(block).or_default()[arm] += samples;
            if let (Some(&function), Some(caller)) = (on_path.functions.last(), on_path.leaf) {
                *leaves.entry(function).or_default().entry(caller).or_insert(0) += samples;
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
    let (stacks, blocks_of_both) = (stacks.collect(), blocks.values().copied().collect());
    let mut found = CallerCounts { blocks: blocks_of_both, stacks, callers: BTreeMap::new() };
    let seen = found.seen();
    let alone = seen.iter().filter(|(_, samples)| samples.contains(&0)).map(|(function, _)| *function).collect();
    let mut firsts = first_callers(counts, comparison, &alone, known, table);
    let mut named = |function| {
        let [first, leaf] = [&mut firsts, &mut leaves].map(|all| all.remove(&function).unwrap_or_default());
        (function, Callers::of(first, leaf, table))
    };
    found.callers = seen.keys().map(|function| named(*function)).collect();
    (!blocks.is_empty()).then_some(found)
}

/// The call trees of both builds, by arm and time block.
fn trees<'c>(
    counts: &'c CellCounts,
    comparison: &'c OpenComparison,
) -> impl Iterator<Item = (usize, Hop, &'c PathCounts)> {
    let of_side = |(arm, side)| {
        let trees = counts.call_trees().of(comparison.epoch, comparison.id.builds(side));
        trees.map(move |(block, tree)| (arm, block, tree))
    };
    [Side::Head, Side::Base].into_iter().enumerate().flat_map(of_side)
}

/// By function: samples by its caller where it is first on the stack. Few paths have functions that one build lacks, so that they are
/// looked through only for these.
fn first_callers(
    counts: &CellCounts,
    comparison: &OpenComparison,
    functions: &BTreeSet<u64>,
    known: &mut KnownPaths,
    table: &FunctionTable,
) -> BTreeMap<u64, Counted> {
    let mut callers: BTreeMap<u64, Counted> = BTreeMap::new();
    if functions.is_empty() {
        return callers;
    }
    let entries = counts.functions().entries();
    let hash = |frame| counts.functions().get(frame).map(|number| entries[number].0);
    for (_, _, tree) in trees(counts, comparison) {
        #[expect(clippy::iter_over_hash_type, reason = "integers are added up")]
        for (&path, &samples) in tree {
            let on_path = known.on_path(path, counts, table).map_or(&[][..], |on_path| &on_path.functions);
            let here: BTreeSet<u64> = on_path.iter().copied().filter(|function| functions.contains(function)).collect();
            if here.is_empty() {
                continue;
            }
            let frames = table.paths().frames(path);
            for function in here {
                let first = frames.iter().position(|frame| hash(*frame) == Some(function));
                let caller = first.and_then(|first| frames.get(first.checked_sub(1)?)).copied();
                *callers.entry(function).or_default().entry(caller).or_insert(0) += samples;
            }
        }
    }
    callers
}

impl Callers {
    /// Those that are kept.
    fn of(first: Counted, leaf: Counted, table: &FunctionTable) -> Self {
        let mut names = BTreeMap::new();
        let mut kept = |callers: Counted| -> BTreeMap<u64, u64> {
            let whole: u64 = callers.values().sum();
            let kept = callers.into_iter().filter(|(_, samples)| samples.saturating_mul(RARE) >= whole);
            let hashed = kept.map(|(caller, samples)| {
                let hash = caller.map_or(0, |caller| {
                    let (hash, name) = table.get(caller);
                    names.insert(hash, name);
                    hash
                });
                (hash, samples)
            });
            hashed.collect()
        };
        let (first, leaf) = (kept(first), kept(leaf));
        let name = most(&leaf).and_then(|hash| names.get(&hash)).map(ToString::to_string);
        Self { first, leaf, name }
    }
}

impl KnownPaths {
    fn on_path(&mut self, path: PathId, counts: &CellCounts, table: &FunctionTable) -> Option<&OnPath> {
        let functions = &self.functions;
        self.paths.entry(path).or_insert_with(|| OnPath::of(&table.paths().frames(path), functions, counts)).as_ref()
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
