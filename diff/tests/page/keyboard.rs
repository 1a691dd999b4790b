//! The whole page by keyboard alone, and what a screen reader announces.

use super::{Browser, node, opened};

/// The path of the focused frame.
fn focused(browser: &mut Browser) -> String {
    browser.text("pathOf(state.tree, state.focus).join(';')")
}

#[test]
fn arrows_walk_enter_zooms_escape_resets() {
    let mut browser = opened("");
    browser.evaluate("canvas.focus()");
    for (key, path) in [
        ("ArrowDown", "main"),
        // The widest callee first.
        ("ArrowDown", "main;serve"),
        ("ArrowDown", "main;serve;parse"),
        ("ArrowRight", "main;serve;encode"),
        ("ArrowRight", "main;serve;compress"),
        ("ArrowLeft", "main;serve;encode"),
        ("ArrowLeft", "main;serve;parse"),
        // There is none further left.
        ("ArrowLeft", "main;serve;parse"),
        ("ArrowRight", "main;serve;encode"),
        ("ArrowDown", "main;serve;encode;runtime.alloc"),
        // The next on this level has another caller.
        ("ArrowRight", "main;serve;encode;runtime.alloc"),
        ("ArrowUp", "main;serve;encode"),
    ] {
        browser.press(key);
        assert_eq!(focused(&mut browser), path, "after {key}");
    }
    let said = browser.text("live.textContent");
    for part in [
        "encode. Level 3.",
        "base 14.0 %, head 30.0 %",
        "significantly more expensive",
        "×2.14, interval ×1.93 to ×2.36",
        "p: 3.7e-348",
        "q: 1.0e-9",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    assert_eq!(browser.text("card.querySelector('strong').textContent"), "encode");
    browser.press("Enter");
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "main;serve;encode");
    let width = browser.number(&format!("span({}, windowNow()).width / canvas.clientWidth", node("main;serve;encode")));
    assert!((width - 1.0).abs() < 1e-9, "zoomed to {width} of the picture");
    // A neighbour outside of the zoom is brought into view.
    browser.press("ArrowLeft");
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "main;serve");
    browser.press("Escape");
    assert_eq!(browser.number("state.zoom"), 0.0);
    assert!(browser.complaints().is_empty());
}

#[test]
fn slash_searches_and_the_share_is_announced() {
    let mut browser = opened("");
    browser.evaluate("canvas.focus()");
    browser.press("/");
    assert_eq!(browser.text("document.activeElement.id"), "search");
    browser.write("^(encode|RUNTIME)");
    // A capital letter is meant.
    assert_eq!(
        browser.text("document.getElementById('found').textContent"),
        "1 function: 14.0 % of base, 30.0 % of head"
    );
    browser.evaluate("search.value = ''; search.focus()");
    browser.write("^(encode|runtime)");
    // Samples below both are counted once: 140 and 60 of 1000, 300 and 60 of 1000.
    assert_eq!(
        browser.text("document.getElementById('found').textContent"),
        "3 functions: 20.0 % of base, 36.0 % of head"
    );
    browser.press("Enter");
    assert_eq!(focused(&mut browser), "main;serve;encode");
    browser.press("n");
    assert_eq!(focused(&mut browser), "main;serve;encode;runtime.alloc");
    browser.press("N");
    assert_eq!(focused(&mut browser), "main;serve;encode");
    browser.press("Escape");
    assert_eq!(browser.text("search.value"), "");
}

#[test]
fn an_invalid_pattern_is_announced_and_matches_nothing() {
    let mut browser = opened("");
    browser.evaluate("search.focus()");
    browser.write("encode(");
    let found = browser.text("document.getElementById('found').textContent");
    assert!(found.starts_with("not a pattern: "), "{found}");
    assert_eq!(browser.text("search.getAttribute('aria-invalid')"), "true");
    assert!(browser.complaints().is_empty());
}

#[test]
fn the_question_mark_shows_the_keys() {
    let mut browser = opened("");
    browser.press("?");
    assert_eq!(browser.evaluate("help.open"), true);
    // The picture does not move behind them.
    browser.press("i");
    assert_eq!(browser.evaluate("state.inverted"), false);
    browser.evaluate("help.close()");
    browser.press("i");
    assert_eq!(browser.evaluate("state.inverted && document.getElementById('inverted').checked"), true);
}

#[test]
fn the_picture_says_what_it_is_and_takes_the_focus() {
    let mut browser = opened("");
    assert_eq!(browser.text("canvas.getAttribute('role')"), "application");
    assert_eq!(browser.text("live.getAttribute('aria-live')"), "polite");
    assert_eq!(browser.evaluate("canvas.tabIndex"), 0);
    let described = browser.text("document.getElementById(canvas.getAttribute('aria-describedby')).textContent");
    assert!(described.contains("Arrow keys"), "{described}");
}
