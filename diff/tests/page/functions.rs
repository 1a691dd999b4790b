//! The rows that matter, and the table of all functions.

use std::fmt::Write;

use fleetdiff_diff::page::{FrameClass, page};
use fleetdiff_schemas::verdict::Verdict;

use super::{Browser, opened, reports};

fn rows(browser: &mut Browser, table: &str) -> Vec<String> {
    let rows = browser.evaluate(&format!(
        "[...document.querySelectorAll('{table} tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' ').trim())"
    ));
    serde_json::from_value(rows).unwrap()
}

#[test]
fn few_rows_are_shown_until_all_are_asked_for() {
    let mut report = reports::small();
    for number in 0..30 {
        let mut name = String::new();
        write!(name, "more{number}").unwrap();
        let mut row = reports::function(&name, FrameClass::User, Verdict::Regressed, [10, 20], [1000, 1000]);
        row.cause = Some("encode".to_owned());
        report.functions.insert(1, row);
    }
    let mut browser = Browser::start(1200, 900, 1);
    browser.open(&page(&report).unwrap(), "");
    let first = rows(&mut browser, "#significant");
    assert_eq!(first.len(), 10);
    assert!(first[0].starts_with("encode ") && first[1].starts_with("more29 "), "{first:?}");
    assert_eq!(browser.number("document.querySelectorAll('#significant .follows').length"), 9.0);
    let button = "document.getElementById('more-significant')";
    assert_eq!(browser.text(&format!("{button}.textContent")), "Show all 33");
    browser.evaluate(&format!("{button}.click()"));
    assert_eq!(rows(&mut browser, "#significant").len(), 33);
    assert_eq!(browser.evaluate(&format!("{button}.hidden")), true);
}

#[test]
fn all_functions_are_sorted_and_filtered() {
    let mut browser = opened("");
    browser.evaluate("document.getElementById('every-box').open = true");
    browser.settle();
    let all = rows(&mut browser, "#every");
    assert_eq!(all.len(), 9);
    // By the change of total samples at first: encode has 16 points more, of which all are its own.
    assert_eq!(all[0], "encode 10.0 % 26.0 % +16.0 % 14.0 % 30.0 % +16.0 % significantly more expensive");
    browser.evaluate("document.querySelector('#every th[data-by=function] button').click()");
    let names: Vec<String> =
        rows(&mut browser, "#every").iter().map(|row| row.split(' ').next().unwrap().to_owned()).collect();
    assert!(names.is_sorted(), "{names:?}");
    browser.evaluate("everyFilter.focus()");
    browser.write("runtime");
    assert_eq!(rows(&mut browser, "#every").len(), 2);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
fn a_function_stands_between_its_callers_and_callees() {
    let mut browser = opened("");
    browser.evaluate("showSandwich(names.indexOf('runtime.alloc'))");
    let tables = browser.evaluate(
        "[...sandwich.querySelectorAll('table')].map((table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(' ')))",
    );
    assert_eq!(
        tables,
        serde_json::json!([
            ["serve 6.00 % 6.00 % 0.00 %", "encode 4.00 % 4.00 % 0.00 %"],
            ["runtime.sweep 10.0 % 10.0 % 0.00 %"]
        ])
    );
    browser.evaluate("sandwich.querySelector('table button').click()");
    assert_eq!(browser.text("sandwich.querySelector('h3').textContent"), "serve");
}
