//! The laws of the merged call tree, on random stacks and on a few that can be drawn by hand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_diff::flame::{CallTree, Node, ROOT, Run, Sides};
use fleetdiff_schemas::profile::Stack;
use proptest::collection::vec;
use proptest::prelude::*;

fn stack(frames: &[u32], count: u64) -> Stack {
    Stack { frames: frames.to_vec(), count, cohort: None, value: 0 }
}

fn stacks() -> impl Strategy<Value = Vec<Stack>> {
    vec((vec(0u32..6, 0..6), 0u64..50).prop_map(|(frames, count)| stack(&frames, count)), 0..30)
}

/// The tree of runs whose frames are A to E and one with the name of the root.
fn merge(base: &[&[Stack]], head: &[&[Stack]]) -> CallTree {
    let names = ["A", "B", "C", "D", "E", ROOT].map(Arc::from);
    let base: Vec<_> = base.iter().map(|stacks| Run { names: &names, stacks }).collect();
    let head: Vec<_> = head.iter().map(|stacks| Run { names: &names, stacks }).collect();
    CallTree::merge(&base, &head)
}

/// The names from below the root to a node.
fn path(tree: &CallTree, node: &Node) -> String {
    let mut names = Vec::new();
    let mut at = *node;
    while at.depth > 0 {
        names.push(tree.name(&at).to_owned());
        at = tree.nodes()[usize::try_from(at.parent).unwrap()];
    }
    names.reverse();
    names.join(";")
}

/// Own counts of both sides by path, as in the tree, without empty paths.
fn counted(tree: &CallTree) -> BTreeMap<String, Sides<u64>> {
    let counted = tree.nodes().iter().filter(|node| node.own != Sides::default());
    counted.map(|node| (path(tree, node), node.own)).collect()
}

/// The same from the stacks themselves.
fn counted_by_hand(base: &[Stack], head: &[Stack]) -> BTreeMap<String, Sides<u64>> {
    let names = ["A", "B", "C", "D", "E", ROOT];
    let mut counts: BTreeMap<String, Sides<u64>> = BTreeMap::new();
    let path = |stack: &Stack| {
        let frames = stack.frames.iter().map(|&frame| names[usize::try_from(frame).unwrap()]);
        frames.collect::<Vec<_>>().join(";")
    };
    for stack in base.iter().filter(|stack| stack.count > 0) {
        counts.entry(path(stack)).or_default().base += stack.count;
    }
    for stack in head.iter().filter(|stack| stack.count > 0) {
        counts.entry(path(stack)).or_default().head += stack.count;
    }
    counts
}

/// The names of a node's children, from left to right.
fn children(tree: &CallTree, of: &str) -> String {
    let below = tree.nodes().iter().filter(|node| node.depth > 0);
    let children = below.filter(|node| path(tree, &tree.nodes()[usize::try_from(node.parent).unwrap()]) == of);
    children.map(|node| tree.name(node)).collect()
}

proptest! {
    /// No sample is lost or invented, and each side keeps its own.
    #[test]
    fn oracle_counts_are_those_of_the_stacks(base in stacks(), head in stacks()) {
        prop_assert_eq!(counted(&merge(&[&base], &[&head])), counted_by_hand(&base, &head));
    }

    #[test]
    fn a_total_is_the_own_count_and_the_totals_of_the_children(base in stacks(), head in stacks()) {
        let tree = merge(&[&base], &[&head]);
        let totals = tree.totals();
        let mut sums: Vec<_> = tree.nodes().iter().map(|node| node.own).collect();
        for (node, total) in tree.nodes().iter().zip(&totals).skip(1) {
            let sum = &mut sums[usize::try_from(node.parent).unwrap()];
            sum.base += total.base;
            sum.head += total.head;
        }
        prop_assert_eq!(&sums, &totals);
        let all = |stacks: &[Stack]| stacks.iter().map(|stack| stack.count).sum::<u64>();
        prop_assert_eq!(totals[0], Sides { base: all(&base), head: all(&head) });
    }

    /// Splitting a side into runs changes nothing, neither the sums nor the order.
    #[test]
    fn order_any_split_into_runs_gives_the_same_tree(base in stacks(), head in stacks(), cut in 0usize..30) {
        let whole = merge(&[&base], &[&head]);
        let (one, two) = base.split_at(cut.min(base.len()));
        let (three, four) = head.split_at(cut.min(head.len()));
        let split = merge(&[one, two], &[three, four]);
        prop_assert_eq!(whole.nodes(), split.nodes());
        prop_assert_eq!(whole.names(), split.names());
        prop_assert_eq!(split.runs(), Sides { base: 2, head: 2 });
    }

    /// Runs may come in any order: the order of siblings may change, the counts do not.
    #[test]
    fn order_of_runs_moves_no_count(one in stacks(), two in stacks(), head in stacks()) {
        prop_assert_eq!(counted(&merge(&[&one, &two], &[&head])), counted(&merge(&[&two, &one], &[&head])));
    }

    /// A node comes before all below it, and all below it before its right neighbour.
    #[test]
    fn nodes_are_in_the_order_of_the_picture(base in stacks(), head in stacks()) {
        let tree = merge(&[&base], &[&head]);
        let mut callers = vec![0u32];
        for (index, node) in (0u32..).zip(tree.nodes()).skip(1) {
            callers.truncate(usize::try_from(node.depth).unwrap());
            prop_assert_eq!(callers.last(), Some(&node.parent));
            callers.push(index);
        }
    }

    /// The nodes of the base are in the same order as without a head; additional nodes of the head do not move them.
    #[test]
    fn order_of_the_base_is_that_of_the_base_alone(base in stacks(), head in stacks()) {
        let alone = merge(&[&base], &[]);
        let both = merge(&[&base], &[&head]);
        let of_base = |tree: &CallTree| -> Vec<String> {
            let nodes = tree.nodes().iter().zip(tree.totals()).filter(|(_, total)| total.base > 0);
            nodes.map(|(node, _)| path(tree, node)).collect()
        };
        prop_assert_eq!(of_base(&alone), of_base(&both));
    }
}

#[test]
fn siblings_are_in_the_order_of_their_first_occurrence() {
    let tree = merge(&[&[stack(&[0, 2], 1), stack(&[0, 1], 1), stack(&[0, 2], 1)]], &[]);
    assert_eq!(children(&tree, "A"), "CB");
    let totals = tree.totals();
    assert_eq!((totals[2].base, totals[3].base), (2, 1));
}

#[test]
fn a_node_of_the_head_alone_comes_after_its_left_neighbour() {
    let base = [stack(&[2], 1), stack(&[0], 1)];
    let tree = merge(&[&base], &[&[stack(&[2], 1), stack(&[4], 1), stack(&[3], 1), stack(&[0], 1)]]);
    assert_eq!(children(&tree, ""), "CEDA");
    let tree = merge(&[&base], &[&[stack(&[1], 1), stack(&[0], 1), stack(&[3], 1), stack(&[2], 1), stack(&[4], 1)]]);
    assert_eq!(children(&tree, ""), "BCEAD");
}

#[test]
fn a_function_with_the_name_of_the_root_is_not_the_root() {
    let tree = merge(&[&[stack(&[5], 3)]], &[]);
    assert_eq!(tree.nodes().len(), 2);
    assert_eq!(tree.name(&tree.nodes()[1]), ROOT);
    assert_eq!(tree.nodes()[0].own, Sides::default());
}

#[test]
fn a_frame_beyond_the_names_has_no_symbol() {
    let tree = merge(&[&[stack(&[0, 99], 3)]], &[]);
    assert_eq!(counted(&tree), BTreeMap::from([("A;_unsymbolised".to_owned(), Sides { base: 3, head: 0 })]));
}

#[test]
fn deep_stacks_and_no_stacks() {
    let deep = merge(&[&[stack(&[0; 100_000], 1)]], &[]);
    assert_eq!(deep.nodes().len(), 100_001);
    assert_eq!(deep.totals()[0].base, 1);
    let none = merge(&[], &[]);
    assert_eq!((none.nodes().len(), none.totals()[0], none.runs()), (1, Sides::default(), Sides::default()));
}
