//! One page, no network, nothing that a name can break; the table, the pointer and the address.

use fleetdiff_diff::page::page;

use super::{Browser, node, opened, reports};

#[test]
fn nothing_is_fetched_and_nothing_complains() {
    let mut browser = opened("");
    let requests = browser.requests();
    assert!(requests.len() == 1 && requests[0].starts_with("file:"), "{requests:?}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

/// The twin of the test above: if a page requests something, the test sees it, and the page's policy forbids it.
#[test]
fn the_policy_forbids_what_the_page_does_not_do() {
    let mut browser = opened("");
    let fetched = browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 'fetched', (fault) => fault.name)");
    assert_eq!(fetched, "TypeError");
    let complaints = browser.complaints().join("\n");
    assert!(complaints.contains("Content Security Policy"), "{complaints}");
    let ran = browser.evaluate(
        "(() => { const script = document.createElement('script'); script.textContent = 'window.ran = true'; document.body.append(script); return window.ran ?? false; })()",
    );
    assert_eq!(ran, false);
}

#[test]
fn names_and_titles_stay_text() {
    let mut report = reports::small();
    let (names, stacks) = reports::run_of(&[("</script ><script >hurt()</script >;{{data}};a\u{2029}<!--", 10)]);
    let run = fleetdiff_diff::flame::Run { names: &names, stacks: &stacks };
    report.tree = fleetdiff_diff::flame::CallTree::merge(&[run], &[run]);
    let html = page(&report).unwrap();
    assert_eq!(html, page(&report).unwrap(), "the same report gives the same bytes");
    let mut browser = Browser::start(900, 700, 1);
    browser.open(&html, "");
    assert_eq!(browser.text("names[1]"), "</script ><script >hurt()</script >");
    assert_eq!(browser.text("names[2] + names[3]"), "{{data}}a\u{2029}<!--");
    assert_eq!(browser.text("document.querySelector('h1').textContent"), report.title);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
fn the_table_holds_what_is_significant_and_leads_to_it() {
    let mut browser = opened("");
    let rows = browser.evaluate(
        "[...document.querySelectorAll('#significant tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' ').trim())",
    );
    assert_eq!(rows.as_array().unwrap().len(), 3, "{rows}");
    assert_eq!(
        rows[0],
        "encode ▲ significantly more expensive total 14.0 % 30.0 % ×2.14 ×1.93 to ×2.36 3.7e-348 1.0e-9"
    );
    assert!(
        rows[1]
            .as_str()
            .unwrap()
            .starts_with("compress ▲ significantly more expensive (only in the head) total 0.00 % 5.00 % new 3.7e-348"),
        "{rows}"
    );
    assert_eq!(rows[2], "legacy ▼ significantly cheaper total 10.0 % 2.00 % ×0.20 ×0.18 to ×0.22 3.7e-348 1.0e-9");
    // Ratios below ×1 are left of the middle, those above it right; each estimate is on its line.
    let places = browser.evaluate(
        "[...document.querySelectorAll('#significant .interval')].map((picture) => {
            const [low, wide, dot] = [['.line', 'left'], ['.line', 'width'], ['.dot', 'left']]
                .map(([part, what]) => parseFloat(picture.querySelector(part).style[what]));
            return [low, dot, low + wide];
        })",
    );
    let places: Vec<Vec<f64>> = serde_json::from_value(places).unwrap();
    assert_eq!(places.len(), 2, "compress has no ratio");
    assert!(places.iter().all(|place| place.is_sorted()), "{places:?}");
    assert!(places[0][0] > 50.0 && places[1][2] < 50.0, "{places:?}");
    browser.evaluate("document.querySelectorAll('#significant button')[2].click()");
    browser.settle();
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "main;serve;legacy");
    assert_eq!(browser.text("search.value"), "^legacy$");
    assert_eq!(
        browser.text("document.getElementById('others').textContent"),
        "Not significant: 3 equivalent; 1 inconclusive."
    );
}

#[test]
fn the_pointer_shows_a_frame_and_zooms_to_it() {
    let mut browser = opened("");
    let at = browser.evaluate(&format!(
        "(() => {{ const node = {}; const {{ left, top }} = canvas.getBoundingClientRect(); const at = span(node, windowNow());
            return [left + at.left + at.width / 2, top + state.tree.depth[node] * ROW + ROW / 2]; }})()",
        node("main;poll")
    ));
    let (x, y) = (at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    browser.point(x, y, false);
    let card = browser.text("card.hidden ? '' : card.innerText");
    for part in [
        "poll",
        "400 samples, 40.0 %",
        "270 samples, 27.0 %",
        "−13.0 % of the base’s total",
        "inconclusive",
        "×0.68, interval ×0.61 to ×0.74",
    ] {
        assert!(card.contains(part), "{part:?} is not in {card:?}");
    }
    browser.point(x, y, true);
    assert_eq!(browser.text("pathOf(state.tree, state.zoom).join(';')"), "main;poll");
    browser.evaluate("document.getElementById('reset').click()");
    assert_eq!(browser.number("state.zoom"), 0.0);
}

/// Hit testing of every pixel column of every row agrees with a plain walk over all frames.
#[test]
fn oracle_hit_test() {
    let mut browser = opened("");
    let wrong = browser.evaluate(
        "(() => {
            const view = windowNow();
            const wrong = [];
            let tested = 0;
            for (let level = 0; level < state.tree.deepest + 2; level++) {
                for (let x = 0.5; x < canvas.clientWidth; x += 1) {
                    const place = view.first + x / view.scale;
                    const slow = [...Array(state.tree.size).keys()].find((node) => state.tree.depth[node] === level
                        && state.layout.start[node] <= place && place < state.layout.start[node] + state.layout.width[node]) ?? -1;
                    if (frameUnder(x, level * ROW + 5) !== slow) wrong.push([level, x]);
                    tested++;
                }
            }
            return [tested, wrong];
        })()",
    );
    assert!(wrong[0].as_u64().unwrap() > 5_000, "{wrong}");
    assert_eq!(wrong[1], serde_json::json!([]));
}

#[test]
fn the_address_keeps_what_is_looked_at() {
    let mut browser = opened("");
    browser.evaluate("show('encode')");
    browser.settle();
    for key in ["h", "i"] {
        browser.press(key);
    }
    // Not the widest frame of its function, so that its path is needed.
    browser.evaluate(&format!("zoomTo({})", node("legacy;serve")));
    browser.settle();
    let look = "JSON.stringify([pathOf(state.tree, state.zoom), state.side, state.inverted, state.query])";
    let looked = browser.text(look);
    assert_eq!(looked, r#"[["legacy","serve"],"head",true,"^encode$"]"#);
    let fragment = browser.text("location.hash.slice(1)");
    let mut other = opened(&fragment);
    assert_eq!(other.text(look), looked, "{fragment}");
    assert_eq!(other.text("search.value"), "^encode$");
    // An address that is written into a page that is open is followed too.
    other.evaluate("location.hash = '#widths=base&frame=poll'");
    other.settle();
    assert_eq!(other.text(look), r#"[["main","poll"],"base",false,""]"#);
    other.evaluate("location.hash = '#widths=sideways&frame=nobody&mode=7'");
    other.settle();
    assert_eq!(other.text(look), r#"[[],"both",false,""]"#);
    assert!(other.complaints().is_empty());
}

/// Sides without counts of samples: all figures are times.
#[test]
fn times_are_shown_with_their_unit() {
    let mut report = reports::small();
    (report.base.samples, report.head.samples) = (None, None);
    for function in &mut report.functions {
        (function.base_count, function.head_count) = (None, None);
    }
    let mut browser = Browser::start(900, 700, 1);
    browser.open(&page(&report).unwrap(), "");
    assert_eq!(browser.text("document.querySelector('#side-base span:last-child').textContent"), "1 run, 1 s of cpu");
    browser.evaluate(&format!("fillCard({})", node("main;poll")));
    let card = browser.text("card.textContent");
    assert!(card.contains("400 ns, 40.0 %") && card.contains("40.0 % of base, 27.0 % of head"), "{card}");
    assert!(!card.contains("samples"), "{card}");
    assert_eq!(browser.text("spoken(0)"), "all: all time. Level 0.");
    let table = browser.text("document.getElementById('significant').innerText");
    assert!(table.contains("new"), "compress is new by its share: {table}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

/// Both sides empty, and one side empty: still a page, on which every key may be pressed.
#[test]
fn sides_without_samples_are_a_page() {
    let (names, stacks) = reports::run_of(reports::HEAD);
    let head = [fleetdiff_diff::flame::Run { names: &names, stacks: &stacks }];
    for (head, nodes) in [(&head[..0], 1.0), (&head[..], 12.0)] {
        let mut report = reports::small();
        report.functions.clear();
        report.tree = fleetdiff_diff::flame::CallTree::merge(&[], head);
        let mut browser = Browser::start(900, 700, 1);
        browser.open(&page(&report).unwrap(), "");
        assert_eq!(browser.number("state.tree.size"), nodes);
        browser.evaluate("canvas.focus()");
        for key in ["ArrowDown", "Enter", "ArrowRight", "b", "ArrowDown", "Enter", "i", "c", "h", "Escape", "n", "Home"]
        {
            browser.press(key);
        }
        assert_eq!(browser.evaluate("document.getElementById('none-significant').hidden"), false);
        assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
    }
}

#[test]
fn the_picture_follows_the_window() {
    let mut browser = opened("");
    let wide = browser.number("canvas.width");
    browser.resize(700, 900, 2);
    browser.settle();
    let [width, shown] = ["canvas.width", "canvas.clientWidth"].map(|what| browser.number(what));
    assert!(shown < wide && (width - 2.0 * shown).abs() < 1.5, "{wide} {width} {shown}");
    assert!(
        browser.number("document.documentElement.scrollWidth - innerWidth") <= 0.0,
        "the page is wider than its window"
    );
}

/// Threads whose names differ from side to side are said, since their frames cannot stand above each other.
#[test]
fn roots_of_one_side_alone_are_said() {
    let mut browser = opened("");
    assert_eq!(browser.evaluate("document.getElementById('roots').hidden"), true);
    let mut report = reports::small();
    let (base, head) = (
        reports::run_of(&[("pool-1;work", 10), ("main;rest", 10)]),
        reports::run_of(&[("pool-7;work", 10), ("main;rest", 10)]),
    );
    report.tree = fleetdiff_diff::flame::CallTree::merge(
        &[fleetdiff_diff::flame::Run { names: &base.0, stacks: &base.1 }],
        &[fleetdiff_diff::flame::Run { names: &head.0, stacks: &head.1 }],
    );
    browser.open(&page(&report).unwrap(), "");
    let said = browser.text("document.getElementById('roots').innerText");
    assert!(said.contains("only the base has pool-1, only the head pool-7."), "{said}");
}
