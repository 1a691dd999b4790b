//! How long a real Chromium takes to open and redraw the page of a comparison, against the limit of 50 ms.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench redraw`; see README.md of this folder. Needs Chromium, as the tests of the page do.
#![expect(clippy::unwrap_used, reason = "the driver is that of the tests, which fail by panicking")]

#[path = "../../diff/tests/support/browser.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod browser;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use browser::Browser;
use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::pair::{Program, report, stacks, tree};
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_diff::compare::{Settings, compare};
use fleetdiff_diff::flame::{CallTree, Run};
use fleetdiff_diff::page::{Report, page};
use fleetdiff_schemas::profile::Stack;

/// Milliseconds within which a redraw must be done.
const LIMIT: f64 = 50.0;
const REDRAWS: &str = include_str!("../../diff/tests/support/redraws.js");

fn main() -> ExitCode {
    if Asked::given(&[]).is_none() {
        return ExitCode::from(2);
    }
    let sides = Program::seeded(1).sides(1);
    let compared = compare(&sides, &Settings::default()).unwrap();
    let pair = report(&compared, tree(&sides));
    measure("a pair of runs: most frames are too narrow to be drawn", &pair);
    let names = &sides.base[0].profile.names;
    assert!(!stacks(&sides.base[0]).is_empty());
    let run = [Run { names, stacks: &chains() }];
    measure(
        "chains: 1,000 frames a row, each wide enough to be drawn",
        &Report { tree: CallTree::merge(&run, &run), ..pair },
    );
    ExitCode::SUCCESS
}

/// Separate stacks, 105 frames deep.
fn chains() -> Vec<Stack> {
    let chain = |number: u32| Stack {
        frames: (0..105).map(|level| (number + level * 197) % 2_000).collect(),
        count: u64::from(number % 90) + 1,
        cohort: None,
        value: 0,
    };
    (0..1_000).map(chain).collect()
}

fn measure(shape: &str, report: &Report) {
    let nodes = report.tree.nodes().len();
    assert!(nodes > 100_000, "{nodes}");
    let html = page(report).unwrap();
    let mut browser = Browser::start(1920, 1080, 1);
    let start = Instant::now();
    browser.open(&html, "");
    let opened = milliseconds(start);
    for order in ["callers first", "leaves first"] {
        let size = browser.number("state.tree.size");
        let times: Vec<f64> =
            browser.evaluate(REDRAWS).as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert_eq!(times.len(), 100);
        let worst = times.last().copied().unwrap();
        let over = times.iter().filter(|time| **time > LIMIT).count();
        let spread = Spread::of(times);
        let verdict = if spread.median <= LIMIT { "within" } else { "over" };
        say(&format!(
            "{shape}, {order}: {size} nodes; redraw {spread} ms, worst {worst:.1} ms; the median is {verdict} {LIMIT} ms, {over} of 100 redraws are over it"
        ));
        browser.evaluate("reshape({ inverted: true })");
    }
    say(&format!("  {} bytes of page, opened in {opened:.0} ms, with two frames of the screen", html.len()));
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
