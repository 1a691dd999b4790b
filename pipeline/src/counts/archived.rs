//! What additions to a cell are in the archive: rows that name functions and call paths by stable hashes.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::{Build, Hardware, PodId};
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::rows::{Archived, CallTreeRow, FunctionNameRow, PodCountsRow, Span};

use super::bucket::Addition;
use super::encoding::{Entry, decode};
use super::functions::FunctionTable;
use super::ids::{EMPTY, FunctionId, PathId};
use super::paths::decode_paths;
use crate::rules::pods::CellId;

/// Counts and values of one function: self and total of each.
type Sums = [u64; 4];

/// What one pod added.
#[derive(Default)]
struct OfPod {
    samples: u64,
    requests: u64,
    value: u64,
    has_values: bool,
    functions: BTreeMap<FunctionId, Sums>,
}

impl OfPod {
    fn add(&mut self, addition: &Addition) {
        self.samples = self.samples.saturating_add(addition.samples);
        self.requests = self.requests.saturating_add(addition.requests);
        self.value = self.value.saturating_add(addition.value);
        self.has_values |= addition.value > 0;
        let each = addition.value_of_each();
        let mut add = |function, more: Sums| {
            let sums = self.functions.entry(function).or_default();
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        };
        for Entry { function, own, total } in decode(&addition.functions) {
            let [own_value, total_value] = [own, total].map(|count| count.saturating_mul(each.unwrap_or(0)));
            add(function, [own, total, own_value, total_value]);
        }
        for Entry { function, own, total } in decode(&addition.values) {
            add(function, [0, 0, own, total]);
        }
    }

    fn row(self, (cell, span): (&CellId, Span), of: (Build, Hardware, PodId), hashes: &Hashes) -> PodCountsRow {
        let mut functions: Vec<(i64, Sums)> =
            self.functions.into_iter().map(|(id, sums)| (hashes.of(id), sums)).collect();
        functions.sort_unstable();
        let column = |place: usize| functions.iter().map(|(_, sums)| table_count(sums[place])).collect();
        let known = |number: u64| (number > 0).then(|| table_count(number));
        let [own, total, own_value, total_value] = [0, 1, 2, 3].map(column);
        let values = |column| if self.has_values { column } else { Vec::new() };
        let (build, hardware, pod) = of;
        PodCountsRow {
            span,
            service: cell.service.clone(),
            profile_type: cell.profile_type,
            cell: cell.cell.clone(),
            build,
            hardware,
            pod,
            samples: table_count(self.samples),
            requests: known(self.requests),
            value: known(self.value),
            functions: functions.iter().map(|(function, _)| *function).collect(),
            own,
            total,
            own_value: values(own_value),
            total_value: values(total_value),
        }
    }
}

/// Names and hashes of functions.
struct Hashes(BTreeMap<FunctionId, FunctionNameRow>);

impl Hashes {
    fn of(&self, id: FunctionId) -> i64 {
        self.0.get(&id).map_or(0, |named| named.function)
    }
}

/// A stable hash as the number of a table.
fn signed(hash: u64) -> i64 {
    i64::from_le_bytes(hash.to_le_bytes())
}

/// The rows of what is added to a cell at one hop.
pub(crate) fn archived(cell: &CellId, additions: &[Addition], span: Span, table: &FunctionTable) -> Archived {
    table.meet_paths(additions.iter().map(|addition| &*addition.paths));
    let mut pods: BTreeMap<(Build, Hardware, PodId), OfPod> = BTreeMap::new();
    let mut trees: BTreeMap<Build, BTreeMap<PathId, u64>> = BTreeMap::new();
    for addition in additions {
        let pod = (addition.build.clone(), addition.hardware.clone(), addition.pod.clone());
        pods.entry(pod).or_default().add(addition);
        for (path, count) in decode_paths(&addition.paths).filter(|(path, _)| *path != EMPTY) {
            let tree = trees.entry(addition.build.clone()).or_default();
            *tree.entry(path).or_default() += count;
        }
    }
    let trees: Vec<(Build, Tree)> = trees.into_iter().map(|(build, tree)| (build, Tree::of(tree, table))).collect();
    let of_pods = pods.values().flat_map(|pod| pod.functions.keys());
    let of_trees = trees.iter().flat_map(|(_, tree)| tree.0.iter().map(|node| &node.function));
    let ids: Vec<FunctionId> = of_pods.chain(of_trees).copied().collect::<BTreeSet<_>>().into_iter().collect();
    let named = table.entries(&ids).into_iter().zip(&ids);
    let named = named.map(|((hash, name), id)| (*id, FunctionNameRow { span, function: signed(hash), name }));
    let hashes = Hashes(named.collect());
    let place = (cell, span);
    Archived {
        counts: pods.into_iter().map(|(of, pod)| pod.row(place, of, &hashes)).collect(),
        call_trees: trees.into_iter().map(|(build, tree)| tree.row(place, build, &hashes)).collect(),
        functions: hashes.0.into_values().collect(),
    }
}

/// A node of a call tree.
struct Node {
    node: i64,
    parent: i64,
    function: FunctionId,
    samples: u64,
}

/// All nodes of a call tree.
struct Tree(Vec<Node>);

impl Tree {
    fn of(mut samples: BTreeMap<PathId, u64>, table: &FunctionTable) -> Self {
        let ends: Vec<PathId> = samples.keys().copied().collect();
        let beginnings = ends.iter().flat_map(|path| table.paths().beginnings(*path));
        for beginning in beginnings.filter(|path| *path != EMPTY).collect::<BTreeSet<_>>() {
            samples.entry(beginning).or_default();
        }
        let paths: Vec<PathId> = samples.keys().copied().collect();
        let hashes: BTreeMap<PathId, u64> = paths.iter().copied().zip(table.hashes_of_paths(&paths)).collect();
        let hash = |path: &PathId| hashes.get(path).copied().map_or(0, signed);
        let node = |(path, samples): (PathId, u64)| {
            let parent = table.paths().beginnings(path).get(1).copied().unwrap_or(EMPTY);
            let function = table.paths().frames(path).last().copied()?;
            Some(Node { node: hash(&path), parent: hash(&parent), function, samples })
        };
        let mut nodes: Vec<Node> = samples.into_iter().filter_map(node).collect();
        nodes.sort_unstable_by_key(|node| node.node);
        Self(nodes)
    }

    fn row(self, (cell, span): (&CellId, Span), build: Build, hashes: &Hashes) -> CallTreeRow {
        CallTreeRow {
            span,
            service: cell.service.clone(),
            profile_type: cell.profile_type,
            cell: cell.cell.clone(),
            build,
            nodes: self.0.iter().map(|node| node.node).collect(),
            parents: self.0.iter().map(|node| node.parent).collect(),
            functions: self.0.iter().map(|node| hashes.of(node.function)).collect(),
            samples: self.0.iter().map(|node| table_count(node.samples)).collect(),
        }
    }
}
