//! Other shapes of the same samples: leaves first, and runtime frames folded.

use fleetdiff_diff::page::page;
use fleetdiff_schemas::verdict::Verdict;

use super::{Browser, opened, reports};

/// All nodes of the tree that is shown: path, base, head.
fn nodes(browser: &mut Browser) -> Vec<(String, u64, u64)> {
    let found = browser.evaluate(
        "[...Array(state.tree.size).keys()].map((node) => [pathOf(state.tree, node).join(';'), state.tree.base[node], state.tree.head[node]])",
    );
    let count = |value: &serde_json::Value| value.as_u64().unwrap();
    let nodes = found.as_array().unwrap().iter();
    nodes.map(|node| (node[0].as_str().unwrap().to_owned(), count(&node[1]), count(&node[2]))).collect()
}

fn expected(nodes: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    nodes.iter().map(|&(path, base, head)| (path.to_owned(), base, head)).collect()
}

/// Leaves below the root, their callers below them, each level in alphabetical order.
#[test]
fn oracle_inverted() {
    let mut browser = opened("mode=inverted");
    assert_eq!(
        nodes(&mut browser),
        expected(&[
            ("", 1000, 1000),
            ("compress", 0, 50),
            ("compress;serve", 0, 50),
            ("compress;serve;main", 0, 50),
            ("encode", 100, 260),
            ("encode;serve", 100, 260),
            ("encode;serve;main", 100, 260),
            ("legacy", 100, 20),
            ("legacy;serve", 100, 20),
            ("legacy;serve;main", 100, 20),
            ("parse", 300, 300),
            ("parse;serve", 300, 300),
            ("parse;serve;main", 300, 300),
            ("poll", 400, 270),
            ("poll;main", 400, 270),
            ("runtime.sweep", 100, 100),
            ("runtime.sweep;runtime.alloc", 100, 100),
            ("runtime.sweep;runtime.alloc;encode", 40, 40),
            ("runtime.sweep;runtime.alloc;encode;serve", 40, 40),
            ("runtime.sweep;runtime.alloc;encode;serve;main", 40, 40),
            ("runtime.sweep;runtime.alloc;serve", 60, 60),
            ("runtime.sweep;runtime.alloc;serve;main", 60, 60),
        ])
    );
    assert!(browser.complaints().is_empty());
}

/// Frames of the runtime that follow one another are one; those of the program, and what is significant, stay.
#[test]
fn oracle_folded() {
    let mut browser = opened("collapse=1");
    assert_eq!(
        nodes(&mut browser),
        expected(&[
            ("", 1000, 1000),
            ("main", 1000, 1000),
            ("main;serve", 600, 730),
            ("main;serve;parse", 300, 300),
            ("main;serve;encode", 140, 300),
            ("main;serve;encode;runtime.alloc", 40, 40),
            ("main;serve;compress", 0, 50),
            ("main;serve;runtime.alloc", 60, 60),
            ("main;serve;legacy", 100, 20),
            ("main;poll", 400, 270),
        ])
    );
    browser.press("i");
    let inverted = nodes(&mut browser);
    assert!(inverted.contains(&("runtime.alloc;encode;serve;main".to_owned(), 40, 40)), "{inverted:?}");
    assert!(!inverted.iter().any(|(path, ..)| path.contains("sweep")), "{inverted:?}");
}

/// What is in colour is never folded away.
#[test]
fn significant_frames_of_the_runtime_stay() {
    let mut report = reports::small();
    for row in report.functions.iter_mut().filter(|row| &*row.name == "runtime.sweep") {
        (row.verdict, row.significant) = (Verdict::Regressed, true);
    }
    let mut browser = Browser::start(1200, 900, 1);
    browser.open(&page(&report).unwrap(), "collapse=1");
    let paths: Vec<_> = nodes(&mut browser).into_iter().map(|(path, ..)| path).collect();
    assert!(paths.iter().any(|path| path == "main;serve;encode;runtime.alloc;runtime.sweep"), "{paths:?}");
}

/// The frame that a reader looks at is found again in another shape.
#[test]
fn a_zoom_survives_a_change_of_shape() {
    let mut browser = opened("");
    browser.evaluate("show('encode')");
    browser.settle();
    browser.press("i");
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "encode");
    browser.press("i");
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "main;serve;encode");
}
