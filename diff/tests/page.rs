//! The page in a real Chromium: what is drawn, what the keyboard does, what is announced, what the address keeps.
#![expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::print_stdout,
    reason = "a test fails by panicking, means whole numbers by floats, and prints what it saw"
)]

#[path = "page/colours.rs"]
mod colours;
#[path = "page/functions.rs"]
mod functions;
#[path = "page/keyboard.rs"]
mod keyboard;
#[path = "page/moving.rs"]
mod moving;
#[path = "page/recorded.rs"]
mod recorded;
#[path = "page/shapes.rs"]
mod shapes;
#[path = "page/speed.rs"]
mod speed;
#[path = "page/whole.rs"]
mod whole;

#[path = "support/browser.rs"]
#[expect(dead_code, reason = "reports are also printed")]
mod browser;
#[path = "support/reports.rs"]
mod reports;

use browser::Browser;
use fleetdiff_diff::page::page;

/// The small report in a window of 1200 x 900.
fn opened(fragment: &str) -> Browser {
    let mut browser = Browser::start(1200, 900, 1);
    browser.open(&page(&reports::small()).unwrap(), fragment);
    browser
}

/// JavaScript for the node of a path in the tree that is shown.
fn node(path: &str) -> String {
    format!("[...Array(state.tree.size).keys()].find((node) => pathOf(state.tree, node).join(';') === '{path}')")
}
