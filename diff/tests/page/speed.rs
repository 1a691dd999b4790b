//! A tree of more than 100,000 nodes. The time that it takes is printed, and not asserted.

use std::sync::Arc;

use fleetdiff_diff::flame::{CallTree, Run};
use fleetdiff_diff::page::{FrameClass, Report, page};
use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::verdict::Verdict;

use super::{Browser, reports};

const REDRAWS: &str = include_str!("../support/redraws.js");

#[test]
fn a_bushy_tree_is_drawn() {
    // Up to six children per node, eight levels deep: most frames are too narrow to be seen.
    let leaves = 0..90_000u32;
    drawn(
        "bushy",
        leaves.map(|leaf| (0..8).map(|level| (leaf / 6u32.pow(7 - level) * 31 + level * 197) % 2_000).collect()),
    );
}

#[test]
fn a_tree_of_chains_is_drawn() {
    // A thousand frames side by side on each of 105 levels: as many as fit into the window are visible.
    drawn("chains", (0..1_000).map(|chain| (0..105).map(|level| (chain + level * 197) % 2_000).collect()));
}

/// While a tree of 230,000 nodes is turned round, the page answers: frames go on, and what is asked for last is shown.
#[test]
fn a_large_tree_is_turned_round_beside_the_page() {
    let leaves = 0..200_000u32;
    let report =
        large(leaves.map(|leaf| (0..8).map(|level| (leaf / 6u32.pow(7 - level) * 31 + level * 197) % 2_000).collect()));
    let nodes = report.tree.nodes().len();
    assert!(nodes > 230_000, "{nodes}");
    let mut browser = Browser::start(1920, 1080, 1);
    browser.open(&page(&report).unwrap(), "");
    let turned = browser.evaluate(include_str!("../support/turning.js"));
    println!(
        "{nodes} nodes turned round in {} ms, longest gap between frames {} ms, progress seen {}",
        turned[0], turned[1], turned[2]
    );
    // In the page itself no frame would come before the tree is there.
    assert!(turned[3].as_u64().unwrap() > 5, "only {} frames while it was turned round", turned[3]);
    assert!(turned[2].as_f64().unwrap() > 0.0, "no progress was shown");
    assert_eq!(
        browser.evaluate("[state.inverted, turningBar.hidden, current === null]"),
        serde_json::json!([true, true, true])
    );
    // Two requests, one after the other: the first is given up.
    browser.evaluate("(async () => { reshape({ inverted: false, collapsed: true }); await reshape({ inverted: false, collapsed: false }); })()");
    assert_eq!(browser.number("state.tree.size - recorded.size"), 0.0);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

fn drawn(shape: &str, stacks: impl Iterator<Item = Vec<u32>>) {
    let report = large(stacks);
    let nodes = report.tree.nodes().len();
    assert!(nodes > 100_000, "{nodes}");
    let mut browser = Browser::start(1920, 1080, 1);
    browser.open(&page(&report).unwrap(), "");
    for order in ["callers first", "leaves first"] {
        let made = browser.number(
            "(async () => { const start = performance.now(); await reshape({}); return performance.now() - start; })()",
        );
        let size = browser.number("state.tree.size");
        let times = browser.evaluate(REDRAWS);
        let [median, worst] = [50, 99].map(|at: usize| times[at].as_f64().unwrap());
        println!(
            "{shape}, {order}: {size} nodes made in {made:.0} ms; 100 redraws: median {median:.1} ms, worst {worst:.1} ms"
        );
        // The second row is covered from left to right.
        let covered =
            browser.number("[...Array(canvas.clientWidth).keys()].filter((x) => frameUnder(x, 1.5 * ROW) > 0).length");
        assert!((covered - browser.number("canvas.clientWidth")).abs() < 1.5, "{covered}");
        browser.evaluate("state.inverted = true");
    }
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

/// A report of both sides with these stacks, no two counts equal.
fn large(stacks: impl Iterator<Item = Vec<u32>>) -> Report {
    let names: Vec<Arc<str>> =
        (0..2_000).map(|number| format!("package{}/module.function{number}", number % 40).into()).collect();
    let counted = |count: fn(u64) -> u64, stacks: &[Vec<u32>]| -> Vec<Stack> {
        let numbered = (0u64..).zip(stacks);
        numbered
            .map(|(number, frames)| Stack { frames: frames.clone(), count: count(number), cohort: None, value: 0 })
            .collect()
    };
    let stacks: Vec<_> = stacks.collect();
    let base = counted(|number| number * 7 % 90 + 1, &stacks);
    let head = counted(|number| (number * 7 + 41) % 90 + 1, &stacks);
    let tree = CallTree::merge(&[Run { names: &names, stacks: &base }], &[Run { names: &names, stacks: &head }]);
    let verdicts =
        [Verdict::Regressed, Verdict::Improved, Verdict::Equivalent, Verdict::Inconclusive, Verdict::TooRare];
    let rows = names.iter().zip(verdicts.iter().cycle());
    let functions = rows
        .map(|(name, &verdict)| reports::function(name, FrameClass::User, verdict, [10, 11], [1000, 1000]))
        .collect();
    Report {
        title: "large".to_owned(),
        headline: "A large tree.".to_owned(),
        caution: String::new(),
        base: reports::side("v1", 1),
        head: reports::side("v2", 1),
        head_weight: 1.0,
        functions,
        tree,
    }
}
