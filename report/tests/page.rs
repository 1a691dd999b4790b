//! The report in a real Chromium: on a desktop, on a phone, on paper, light and dark, with hostile names.
#![expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test fails by panicking, and means whole numbers by floats"
)]

#[path = "../../diff/tests/support/browser.rs"]
#[expect(dead_code, reason = "other tests press keys and point")]
mod browser;
#[path = "support/fleets.rs"]
#[expect(dead_code, reason = "the tests of what is written use all of them")]
mod fleets;

use browser::Browser;
use fleetdiff_report::html;
use fleets::{MEMORY, REGRESSED, RINGS, ROLLED_OUT, UNCHANGED, WAITING, doubled, renamed, report, stretched};

/// A phone in portrait.
const PHONE: (u32, u32) = (390, 844);

fn opened(width: u32, height: u32) -> Browser {
    let mut browser = Browser::start(width, height, 1);
    browser.open(&html(&report(&REGRESSED)).unwrap(), "");
    browser
}

/// By how many pixels the page is wider than its window.
fn overflow(browser: &mut Browser) -> f64 {
    browser.number("document.documentElement.scrollWidth - window.innerWidth")
}

#[test]
fn nothing_is_fetched_and_nothing_complains() {
    let mut browser = opened(1200, 900);
    let requests = browser.requests();
    assert!(requests.len() == 1 && requests[0].starts_with("file:"), "{requests:?}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
    assert_eq!(browser.number("document.scripts.length"), 0.0);
}

/// The twin: what the page does not do is forbidden, and seen.
#[test]
fn the_policy_forbids_scripts_and_requests() {
    let mut browser = opened(1200, 900);
    let fetched = browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 'fetched', (fault) => fault.name)");
    assert_eq!(fetched, "TypeError");
    assert!(browser.complaints().join("\n").contains("Content Security Policy"));
}

#[test]
fn the_flame_graph_is_drawn_within_the_page_and_as_a_picture_on_paper() {
    let mut browser = opened(1200, 900);
    assert_eq!(browser.number("document.querySelectorAll('.flame').length"), 1.0);
    browser.evaluate("document.querySelector('.flame').scrollIntoView()");
    let frames = "document.querySelector('.flame iframe').contentWindow";
    browser.settle();
    let inner = |what: &str| format!("{frames}.{what}");
    let headline = browser.text(&inner("document.getElementById('headline').innerText"));
    assert!(headline.contains("pods as replicates"), "{headline}");
    let side = browser.text(&inner("document.getElementById('side-head').innerText"));
    assert!(side.contains(" pods"), "{side}");
    assert!(browser.number(&inner("document.getElementById('frames').height")) > 100.0);
    let still = "getComputedStyle(document.querySelector('.flame .still')).display";
    assert_eq!(browser.text(still), "none");
    browser.show_as("print");
    assert_eq!(browser.text(still), "block");
    assert!(browser.number("document.querySelectorAll('.flame .still rect').length") > 20.0);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
fn each_figure_leads_to_its_row() {
    let mut browser = opened(1200, 900);
    let lost = browser.evaluate(
        "[...document.querySelectorAll('a')].map((a) => a.getAttribute('href')).filter((to) => !document.querySelector(to))",
    );
    assert_eq!(lost.as_array().unwrap().len(), 0, "{lost}");
    let figures = browser.number("document.querySelectorAll('a.figure').length");
    assert!(figures > 60.0, "{figures} figures");
    let row = browser.text(
        "(() => { const a = document.querySelector('td a.figure'); a.click(); return document.querySelector(a.getAttribute('href')).innerText; })()",
    );
    assert!(row.contains("Table cells") && row.contains("SELECT * FROM read_parquet('cells/date="), "{row}");
    assert!(browser.number("document.querySelector('li:target').getBoundingClientRect().top") < 900.0);
}

#[test]
fn a_phone_needs_no_scrolling_aside_and_its_pictures_can_be_read() {
    for tables in [&*REGRESSED, &stretched(&REGRESSED), &*UNCHANGED, &*ROLLED_OUT, &*RINGS, &*MEMORY, &*WAITING] {
        let mut browser = Browser::start(PHONE.0, PHONE.1, 2);
        browser.open(&html(&report(tables)).unwrap(), "");
        assert!(overflow(&mut browser) <= 0.0, "the page is {} pixels too wide", overflow(&mut browser));
        let small = browser.evaluate(
            "[...document.querySelectorAll('.charts svg text')].map((text) => parseFloat(text.getAttribute('font-size')) * text.ownerSVGElement.getBoundingClientRect().width / text.ownerSVGElement.viewBox.baseVal.width).filter((size) => size < 11)",
        );
        assert_eq!(small.as_array().unwrap().len(), 0, "pixels of texts in pictures: {small}");
        let cut = browser.evaluate(
            "[...document.querySelectorAll('.charts svg text')].filter((text) => {
                const [own, all] = [text, text.ownerSVGElement].map((part) => part.getBoundingClientRect());
                return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 2 || own.bottom > all.bottom + 2;
            }).map((text) => text.textContent)",
        );
        assert_eq!(cut.as_array().unwrap().len(), 0, "{cut}");
    }
    assert!(opened(PHONE.0, PHONE.1).number("document.querySelectorAll('svg text').length") > 20.0);
}

#[test]
fn both_schemes_and_paper_can_be_read() {
    let mut browser = opened(1200, 900);
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.settle();
        check_contrasts(&mut browser, scheme);
        grounds.push(browser.text("getComputedStyle(document.documentElement).backgroundColor"));
    }
    assert_ne!(grounds[0], grounds[1]);
    browser.prefer("dark");
    browser.show_as("print");
    check_contrasts(&mut browser, "paper");
    assert_eq!(browser.text("getComputedStyle(document.documentElement).backgroundColor"), "rgb(255, 255, 255)");
}

/// Every text, of pictures too, stands out from what is behind it by 4.5 at least, as WCAG counts.
fn check_contrasts(browser: &mut Browser, scheme: &str) {
    let pale = browser.evaluate(
        "(() => {
            const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
            const light = (colour) => {
                const [r, g, b] = numbers(colour).map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = (node) => {
                for (let at = node; at; at = at.parentElement) {
                    const ground = getComputedStyle(at).backgroundColor;
                    if (numbers(ground)[3] !== 0) return ground;
                }
                return getComputedStyle(document.documentElement).backgroundColor;
            };
            const texts = [...document.querySelectorAll('h1, h2, h3, h4, p, dt, dd, td, th, b, a, figcaption, code, pre, svg text')];
            return texts.filter((node) => node.textContent.trim() && node.getClientRects().length).map((node) => {
                const style = getComputedStyle(node);
                const [front, back] = [node.ownerSVGElement ? style.fill : style.color, behind(node)].map(light).sort((a, b) => b - a);
                return [(front + 0.05) / (back + 0.05), node.textContent.trim().slice(0, 40)];
            }).filter(([contrast]) => contrast < 4.5);
        })()",
    );
    assert_eq!(pale.as_array().unwrap().len(), 0, "{scheme}: {pale}");
}

#[test]
fn paper_holds_the_whole_report() {
    let mut browser = opened(1200, 900);
    let pdf = browser.print();
    assert!(pdf.starts_with(b"%PDF-") && pdf.len() > 20_000, "{} bytes", pdf.len());
    // The text area of A4 between margins of 14 mm.
    browser.resize(688, 1000, 1);
    browser.show_as("print");
    assert!(overflow(&mut browser) <= 0.0, "the page is {} pixels wider than paper", overflow(&mut browser));
    let cut = browser.number(
        "[...document.querySelectorAll('.wide')].filter((table) => table.scrollWidth > table.clientWidth + 1).length",
    );
    assert_eq!(cut, 0.0, "tables are cut at the edge of the paper");
}

#[test]
fn names_stay_text() {
    let function = "</title><script>hurt()</script>\"'&lt;{{ report }}\u{2028}::a_very_long_name_that_goes_on_and_on_and_on_for_ever";
    let region = "<b onclick='hurt()'>north</b> with a name that is far too long for a picture";
    let mut browser = Browser::start(PHONE.0, PHONE.1, 1);
    browser.open(&html(&report(&renamed(&REGRESSED, function, region))).unwrap(), "");
    assert_eq!(browser.text("document.querySelector('h3 code').textContent"), function);
    assert_eq!(browser.number("document.scripts.length + document.querySelectorAll('b[onclick]').length"), 0.0);
    let titles = browser.evaluate("[...document.querySelectorAll('svg title')].map((title) => title.textContent)");
    let whole = format!("tv in {region}");
    assert!(titles.as_array().unwrap().iter().any(|title| *title == whole), "{titles}");
    let over = browser.evaluate(
        "[...document.querySelectorAll('svg')].flatMap((svg) => {
            const texts = [...svg.querySelectorAll('text')].map((text) => [text.getBoundingClientRect(), text.lastChild.textContent]);
            return texts.flatMap(([a, one], place) => texts.slice(place + 1)
                .filter(([b]) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)
                .map(([, other]) => [one, other]));
        })",
    );
    assert_eq!(over.as_array().unwrap().len(), 0, "texts of a picture over each other: {over}");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
    assert!(overflow(&mut browser) <= 0.0, "the page is {} pixels too wide", overflow(&mut browser));
}

#[test]
fn several_comparisons_begin_with_a_list_of_them() {
    let mut browser = Browser::start(PHONE.0, PHONE.1, 1);
    browser.open(&html(&report(&doubled(&REGRESSED, "v43"))).unwrap(), "");
    let list = browser.evaluate("[...document.querySelectorAll('.contents li')].map((item) => item.innerText)");
    assert_eq!(
        list,
        serde_json::json!(["video-delivery: v42 against v41 regressed", "video-delivery: v43 against v41 regressed"])
    );
    let second = browser.text(
        "(() => { const a = document.querySelectorAll('.contents a')[1]; a.click(); return document.querySelector(':target h1').innerText; })()",
    );
    assert!(second.starts_with("video-delivery: v43 against v41"), "{second}");
    assert!(overflow(&mut browser) <= 0.0);
}

/// What is cheaper, equivalent and open has words, not colours alone.
#[test]
fn verdicts_are_words() {
    let mut browser = opened(1200, 900);
    let cells = browser.evaluate(
        "[...document.querySelectorAll('table.grid tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()))",
    );
    assert_eq!(cells[0][0], "north");
    assert!(cells[0][1].as_str().unwrap().ends_with("regressed"), "{cells}");
    assert!(cells[0][1].as_str().unwrap().starts_with('+'), "{cells}");
}
