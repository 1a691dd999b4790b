//! `.heapprofile`, the JSON of V8's sampling heap profiler: what Node (`--heap-prof`) and the allocation sampling of Chrome's
//! developer tools write.
//!
//! A call tree below `head`, and the list `samples` of what the allocator drew: each entry is a sample of the node that allocated
//! it. V8 draws an allocation of size s with the chance 1 - exp(-s / interval) and scales the bytes up by it, in `samples` and in
//! the `selfSize` of a node alike, never the number of entries: entries are raw samples, `selfSize` the bytes that they stand for.
//!
//! What the garbage collector took before the end is in the file only if it was recorded so (`includeObjectsCollectedByMajorGC` and
//! `...ByMinorGC`), which the file does not say: whoever labels it `heap` says that it holds all that was allocated; without that it
//! is the memory in use.
//!
//! Samples that V8 draws of its own while it writes the file, of nodes with numbers after all of the tree, are left out.
//!
//! Checked against `sampling-heap-profiler.cc` and `v8-heap-profiler-agent-impl.cc` of V8 11.3 (Node 20): `ScaleSample`,
//! `BuildSamples`, `buildSampingHeapProfileNode`.

mod document;
mod tree;

use std::collections::HashMap;

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::document::Document;
use self::tree::Node;
use crate::budget::Budget;
use crate::json;
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};

/// What a node is counted as besides what the file says of it: its place by its id, its frame and its samples.
const NODE: usize = 64;

/// Gives the samples of a record, those of a node as one entry.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let unit = unit_of(record.measure.profile_type)?;
    let document: Document<'_> = json::read_nested("heapprofile", record.text, &record.budget)?;
    let nodes = document.head.nodes();
    record.budget.take(nodes.len() * NODE)?;
    let counts = counts(&document, nodes)?;
    let mut frames: Vec<u32> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let details = FrameDetails { symbol: Some(node.call_frame.name()), ..FrameDetails::default() };
        frames.push(sink.frame(&node.call_frame.full_name(), details)?);
    }
    for (place, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let weight = nodes.get(place).map(Node::bytes).transpose()?;
        let stack = Stack { frames: path(place, nodes, &frames, &record.budget)?, count, cohort: None, value: 0 };
        sink.sample(stack, SampleDetails { weight, ..SampleDetails::default() })?;
    }
    sink.weighed_in(unit);
    Ok(())
}

/// What the bytes of samples of a type are.
fn unit_of(kind: ProfileType) -> Result<&'static str, Rejection> {
    match kind {
        ProfileType::Heap => Ok("alloc_space/bytes"),
        ProfileType::LiveHeap => Ok("inuse_space/bytes"),
        _ => {
            let detail = format!("a heapprofile labelled {}, expected live_heap or heap", kind.name());
            Err(Rejection::new(Reason::UnsupportedType, detail))
        }
    }
}

/// How many samples each node has, by its place.
fn counts(document: &Document<'_>, nodes: &[Node<'_>]) -> Result<Vec<u64>, Rejection> {
    let Some(samples) = &document.samples else {
        let detail =
            "a heapprofile without \"samples\", as V8 wrote before 2019: bytes, and nobody knows of how many samples";
        return Err(Rejection::new(Reason::UnsupportedVersion, detail));
    };
    let mut places: HashMap<u32, usize, foldhash::fast::RandomState> = HashMap::default();
    places.reserve(nodes.len());
    for (place, node) in nodes.iter().enumerate() {
        if places.insert(node.id, place).is_some() {
            return Err(Rejection::new(Reason::Malformed, format!("two nodes with the id {}", node.id)));
        }
    }
    // Numbers of nodes grow, and V8 allocates while it writes the tree: what it drew then is of nodes that are not in it.
    let last = nodes.iter().map(|node| node.id).max().unwrap_or(0);
    let mut counts = vec![0u64; nodes.len()];
    for (sample, number) in samples.iter().zip(1u64..).filter(|(sample, _)| sample.node_id <= last) {
        match places.get(&sample.node_id).and_then(|place| counts.get_mut(*place)) {
            Some(count) => *count += 1,
            None => {
                let detail = format!("sample {number}: node {} is none of the {} nodes", sample.node_id, nodes.len());
                return Err(Rejection::new(Reason::IndexOutOfRange, detail));
            }
        }
    }
    Ok(counts)
}

/// The frames from the root, which is no frame itself, to a node.
fn path(leaf: usize, nodes: &[Node<'_>], frames: &[u32], budget: &Budget) -> Result<Vec<u32>, Rejection> {
    let mut path = Vec::new();
    let mut next = Some(leaf);
    while let Some((place, node)) = next.and_then(|place| Some((place, nodes.get(place)?))) {
        next = node.parent;
        let root = next.is_none() && node.call_frame.is_root();
        if let Some(frame) = frames.get(place).filter(|_| !root) {
            budget.push(&mut path, *frame)?;
        }
    }
    path.reverse();
    Ok(path)
}
