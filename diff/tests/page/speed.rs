//! A tree of more than 100,000 nodes. What it takes is printed, and nothing is asserted of it.

use fleetdiff_diff::page::page;

use super::{Browser, reports};

/// Draws a hundred times, each with another zoom, and waits until the pixels are there.
const REDRAWS: &str = "(() => {
    const times = [];
    const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const widest = [...Array(state.tree.size).keys()].sort((a, b) => state.layout.width[b] - state.layout.width[a]);
    for (let turn = 0; turn < 100; turn++) {
        state.zoom = turn % 2 === 0 ? 0 : widest[turn];
        const start = performance.now();
        draw();
        pixel.drawImage(canvas, 0, 0, 1, 1);
        pixel.getImageData(0, 0, 1, 1);
        times.push(performance.now() - start);
    }
    state.zoom = 0;
    const first = times[0];
    times.sort((a, b) => a - b);
    return [times[50], times[99], first];
})()";

#[test]
fn a_large_tree_is_drawn() {
    let report = reports::huge();
    let nodes = report.tree.nodes().len();
    assert!(nodes > 100_000, "{nodes}");
    let mut browser = Browser::start(1920, 1080, 1);
    browser.open(&page(&report).unwrap(), "");
    for fragment in ["upright", "inverted"] {
        let shaped = browser.number("(() => { const start = performance.now(); reshape({}); return performance.now() - start; })()");
        let times = browser.evaluate(REDRAWS);
        println!(
            "{nodes} nodes, {fragment} ({} nodes): shape and layout {shaped:.1} ms; 100 redraws: median {:.2} ms, worst {:.2} ms, first {:.2} ms",
            browser.number("state.tree.size"),
            times[0].as_f64().unwrap(),
            times[1].as_f64().unwrap(),
            times[2].as_f64().unwrap()
        );
        // The whole width of the second row is covered, and the frames there are those of the tree.
        let drawn = browser.number("[...Array(canvas.clientWidth).keys()].filter((x) => frameUnder(x, 1.5 * ROW) > 0).length");
        assert!((drawn - browser.number("canvas.clientWidth")).abs() < 1.5, "{drawn}");
        browser.evaluate("state.inverted = true");
    }
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}
