//! The splits of one arm by which a cell checks itself: pods of one build, divided as a change of the build never would be.
//!
//! Each split is tested like head and base. Rows that are rejected say that the property by which pods were divided changes profiles,
//! and an arm that differs in it (older pods, larger pods) would differ for that alone.

use std::collections::BTreeSet;

/// What a pod is divided by.
#[derive(Clone, Debug)]
pub struct SplitPod<'a> {
    /// Stable hash of the pod.
    pub hash: u64,
    /// The node that it runs on, where it is known.
    pub node: Option<&'a str>,
    /// Start of its process, in any unit.
    pub started: i64,
    /// Its samples.
    pub samples: u64,
}

/// By what the pods of an arm are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SplitBy {
    /// The last bit of the hash: by nothing.
    Hash,
    /// The half that started first.
    Age,
    /// The half with fewer samples.
    Size,
    /// The half of the nodes whose names come first.
    Node,
}

/// Every split of one arm that leaves at least two pods on each side, as the indices of one side; none with fewer than four pods,
/// by node only with four nodes.
#[must_use]
pub fn splits(pods: &[SplitPod<'_>]) -> Vec<(SplitBy, BTreeSet<usize>)> {
    if pods.len() < 4 {
        return Vec::new();
    }
    let all = || pods.iter().enumerate();
    let odd = all().filter(|(_, pod)| pod.hash & 1 == 1).map(|(index, _)| index).collect();
    let age = half(pods, |pod| (i128::from(pod.started), pod.hash));
    let size = half(pods, |pod| (i128::from(pod.samples), pod.hash));
    let nodes: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.node).collect();
    let first: BTreeSet<&str> =
        if nodes.len() >= 4 { nodes.iter().take(nodes.len() / 2).copied().collect() } else { BTreeSet::new() };
    let node =
        all().filter(|(_, pod)| pod.node.is_some_and(|node| first.contains(node))).map(|(index, _)| index).collect();
    let each = [(SplitBy::Hash, odd), (SplitBy::Age, age), (SplitBy::Size, size), (SplitBy::Node, node)];
    let enough = |side: &BTreeSet<usize>| side.len() >= 2 && side.len() + 2 <= pods.len();
    each.into_iter().filter(|(_, side)| enough(side)).collect()
}

fn half(pods: &[SplitPod<'_>], key: impl Fn(&SplitPod<'_>) -> (i128, u64)) -> BTreeSet<usize> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_key(|&index| key(&pods[index]));
    order.into_iter().take(pods.len() / 2).collect()
}
