//! Which function calls which among a few functions of a cell, from its call trees.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use serde::{Deserialize, Serialize};

use crate::counts::cell::CellCounts;
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};

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
    /// Where it is first on the stack.
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
    /// Whether the last of them is the leaf.
    own: bool,
    /// Each of them once, with its caller where it is first.
    first: Vec<(u64, Option<FunctionId>)>,
    /// The caller of the leaf.
    leaf: Option<FunctionId>,
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
    let mut callers: BTreeMap<u64, [BTreeMap<Option<FunctionId>, u64>; 2]> = BTreeMap::new();
    for (arm, side) in [Side::Head, Side::Base].into_iter().enumerate() {
        for (block, tree) in counts.call_trees().of(comparison.epoch, comparison.id.builds(side)) {
            #[expect(clippy::iter_over_hash_type, reason = "integers are added up")]
            for (&path, &samples) in tree {
                blocks.entry(block).or_default()[arm] += samples;
                let Some(on_path) = known.on_path(path, counts, table) else { continue };
                let order = orders.entry((on_path.functions.clone(), on_path.own)).or_default();
                order.entry(block).or_default()[arm] += samples;
                if let Some(function) = on_path.functions.last().filter(|_| on_path.own) {
                    *callers.entry(*function).or_default()[1].entry(on_path.leaf).or_insert(0) += samples;
                }
                for (function, caller) in on_path.first {
                    *callers.entry(function).or_default()[0].entry(caller).or_insert(0) += samples;
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
    let callers = callers.into_iter().map(|(function, callers)| (function, named(callers, table))).collect();
    (!blocks.is_empty()).then(|| CallerCounts { blocks: blocks.values().copied().collect(), stacks, callers })
}

/// The callers that are kept, with the name of the most frequent.
fn named([first, leaf]: [BTreeMap<Option<FunctionId>, u64>; 2], table: &FunctionTable) -> Callers {
    let mut names = BTreeMap::new();
    let mut kept = |callers: BTreeMap<Option<FunctionId>, u64>| {
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
        hashed.collect::<BTreeMap<u64, u64>>()
    };
    let (first, leaf) = (kept(first), kept(leaf));
    let name = most(&leaf).and_then(|hash| names.get(&hash)).map(ToString::to_string);
    Callers { first, leaf, name }
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
        let above = |depth: usize| depth.checked_sub(1).and_then(|above| frames.get(above)).copied();
        let (mut found, mut first) = (Vec::new(), Vec::new());
        for (depth, &frame) in frames.iter().enumerate() {
            let Some(number) = in_question(frame) else { continue };
            let function = entries[number].0;
            if !found.contains(&function) {
                first.push((function, above(depth)));
            }
            found.push(function);
        }
        let own = frames.last().is_some_and(|&frame| in_question(frame).is_some());
        let leaf = above(frames.len().saturating_sub(1));
        (!found.is_empty()).then_some(Self { functions: found, own, first, leaf })
    }
}
