//! Only what is significant is saturated, and the same frame has the same colour in both sides' widths.

use fleetdiff_diff::page::page;
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;
use fleetdiff_schemas::verdict::Verdict;

use super::{Browser, node, opened, reports};

/// The colour on the screen near the right end of a frame, where no name is written.
fn colour(browser: &mut Browser, path: &str) -> [i64; 3] {
    let found = browser.evaluate(&format!(
        "(() => {{
            draw();
            const node = {};
            const {{ left, width }} = span(node, windowNow());
            const ratio = devicePixelRatio;
            const x = Math.round((left + width - 4) * ratio);
            const y = Math.round((state.tree.depth[node] * ROW + 2) * ratio);
            return [...context.getImageData(x, y, 1, 1).data.slice(0, 3)];
        }})()",
        node(path)
    ));
    [0, 1, 2].map(|channel| found[channel].as_i64().unwrap())
}

/// Largest less smallest channel: 0 is grey.
fn saturation([red, green, blue]: [i64; 3]) -> i64 {
    red.max(green).max(blue) - red.min(green).min(blue)
}

#[test]
fn only_what_is_significant_is_saturated() {
    let mut browser = opened("");
    let slower = colour(&mut browser, "main;serve;encode");
    assert!(slower[0] > 200 && slower[0] > slower[1] + 60 && slower[1] > slower[2], "{slower:?} is not orange");
    let new = colour(&mut browser, "main;serve;compress");
    assert!(new[0] > new[2] + 30, "{new:?} is not a fainter orange");
    assert!(saturation(new) < saturation(slower), "{new:?} {slower:?}");
    let faster = colour(&mut browser, "main;serve;legacy");
    assert!(faster[2] > faster[0] + 60, "{faster:?} is not blue");
    for grey in ["main;serve;parse", "main;poll", "main", "main;serve;runtime.alloc", "main;serve;encode;runtime.alloc"]
    {
        let found = colour(&mut browser, grey);
        assert_eq!(saturation(found), 0, "{grey} is {found:?}, though it is not significant");
    }
}

#[test]
fn only_replicates_that_disagree_are_hatched() {
    let mut report = reports::small();
    for row in report.functions.iter_mut().filter(|row| &*row.name == "parse") {
        row.verdict = Verdict::SomePodsOutlying;
    }
    let mut browser = Browser::start(1200, 900, 1);
    browser.open(&page(&report).unwrap(), "");
    let mut tones = |path: &str| {
        browser.number(&format!(
            "(() => {{
                const node = {};
                const {{ left }} = span(node, windowNow());
                const pixels = context.getImageData(left + 100, state.tree.depth[node] * ROW + 3, 40, 12).data;
                return new Set(pixels.filter((_, at) => at % 4 === 0)).size;
            }})()",
            node(path)
        ))
    };
    assert!((tones("main;poll") - 1.0).abs() < 0.5, "an inconclusive frame has lines");
    assert!(tones("main;serve;parse") > 1.5, "a frame whose replicates disagree has no lines");
}

#[test]
fn a_frame_keeps_its_colour_in_both_sides_widths() {
    let mut browser = opened("");
    let path = "main;serve;encode";
    let both = colour(&mut browser, path);
    let mut widths = Vec::new();
    for key in ["b", "h"] {
        browser.press(key);
        assert_eq!(colour(&mut browser, path), both, "after {key}");
        widths.push(browser.number(&format!("span({}, windowNow()).width / canvas.clientWidth", node(path))));
    }
    assert!((widths[0] - 0.14).abs() < 1e-6 && (widths[1] - 0.30).abs() < 1e-6, "{widths:?}");
    // A frame that the base does not have has no width there, and is not drawn.
    browser.press("b");
    assert!(browser.number(&format!("span({}, windowNow()).width", node("main;serve;compress"))) <= 0.0);
}

#[test]
fn red_and_green_are_offered() {
    let mut browser = opened("");
    browser.evaluate("document.querySelector('input[value=redgreen]').click()");
    let slower = colour(&mut browser, "main;serve;encode");
    assert!(slower[0] > slower[1] + 100 && slower[0] > slower[2] + 100, "{slower:?} is not red");
    let faster = colour(&mut browser, "main;serve;legacy");
    assert!(faster[1] > faster[0] + 30 && faster[1] > faster[2] + 10, "{faster:?} is not green");
}

#[test]
fn colours_hold_in_the_dark_and_on_a_dense_screen() {
    let mut browser = Browser::start(1200, 900, 2);
    browser.prefer("dark");
    browser.open(&page(&reports::small()).unwrap(), "");
    let slower = colour(&mut browser, "main;serve;encode");
    assert!(slower[0] > slower[2] + 100, "{slower:?} is not orange");
    let grey = colour(&mut browser, "main;serve;parse");
    assert!(saturation(grey) == 0 && grey[0] < 128, "{grey:?} is not a dark grey");
    assert!((browser.number("canvas.width / canvas.clientWidth") - 2.0).abs() < 0.01);
}

/// The static picture has the colours that the page has on the screen.
#[test]
fn the_static_picture_has_the_same_colours() {
    let picture = svg(&reports::small(), Palette::OrangeBlue);
    let mut browser = opened("");
    for (path, name) in [
        ("main;serve;encode", "encode"),
        ("main;serve;compress", "compress"),
        ("main;serve;legacy", "legacy"),
        ("main;serve;parse", "parse"),
    ] {
        let [red, green, blue] = colour(&mut browser, path);
        let frame = picture.lines().find(|line| line.contains(&format!("<title>{name}: "))).unwrap();
        assert!(frame.contains(&format!("fill=\"#{red:02x}{green:02x}{blue:02x}\"")), "{name}: {frame}");
    }
}
