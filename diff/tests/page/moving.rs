//! Wheel, drag, map and finger.

use super::{Browser, node, opened};

/// The middle of the frame with this path, in the window.
fn middle(browser: &mut Browser, path: &str) -> (f64, f64) {
    let at = browser.evaluate(&format!(
        "(() => {{ const node = {}; const {{ left, top }} = canvas.getBoundingClientRect(); const at = span(node, windowNow());
            return [left + at.left + at.width / 2, top + state.tree.depth[node] * ROW + ROW / 2]; }})()",
        node(path)
    ));
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
}

/// The part of the picture that is looked at, 0 to 1.
fn looked_at(browser: &mut Browser) -> f64 {
    browser.number("windowNow().wide / windowNow().scale / state.layout.width[0]")
}

#[test]
fn the_wheel_zooms_around_the_pointer() {
    let mut browser = opened("");
    let at = middle(&mut browser, "main;serve;encode");
    browser.wheel(at, -300.0);
    assert!((looked_at(&mut browser) - (-1.0f64).exp()).abs() < 1e-6, "{}", looked_at(&mut browser));
    let (x, _) = middle(&mut browser, "main;serve;encode");
    assert!((x - at.0).abs() < 1.0, "the frame moved from {} to {x}", at.0);
    for _ in 0..3 {
        browser.wheel(at, 300.0);
    }
    assert_eq!(browser.evaluate("state.window"), serde_json::Value::Null);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
fn a_drag_zooms_to_what_it_covers_and_the_map_moves() {
    let mut browser = opened("");
    let (left, right) = (middle(&mut browser, "main;serve;parse"), middle(&mut browser, "main;poll"));
    browser.drag(left, right);
    let part = looked_at(&mut browser);
    assert!((part - (right.0 - left.0) / browser.number("canvas.clientWidth")).abs() < 1e-3, "{part}");
    // The click that ends the drag zooms to no frame.
    assert_eq!(browser.number("state.zoom"), 0.0);
    let map = browser
        .evaluate("(() => { const { left, right, top } = map.getBoundingClientRect(); return [left, right, top]; })()");
    let [first, last, top] = [0, 1, 2].map(|at: usize| map[at].as_f64().unwrap());
    browser.point(last - 1.0, top + 5.0, true);
    let end = browser.number("(state.window.first + state.window.width) / state.layout.width[0]");
    assert!((end - 1.0).abs() < 1e-6, "{end}");
    browser.point(first + 1.0, top + 5.0, true);
    assert_eq!(browser.number("state.window.first"), 0.0);
    browser.press("Escape");
    assert_eq!(browser.evaluate("state.window"), serde_json::Value::Null);
}

#[test]
fn a_tap_shows_the_card_and_a_second_zooms() {
    let mut browser = opened("");
    let (x, y) = middle(&mut browser, "main;poll");
    browser.tap(x, y);
    assert!(browser.text("card.hidden ? '' : card.innerText").contains("poll"), "the first tap shows no card");
    assert_eq!(browser.number("state.zoom"), 0.0);
    browser.tap(x, y);
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "main;poll");
}
