//! The comment: its contents, and what a parser of GitHub's Markdown reads.

use comrak::nodes::NodeValue;
use comrak::{Arena, Options, parse_document};
use fleetdiff_diff::answer::reach;
use fleetdiff_diff::compare::{Compared, Finding, Settings};
use fleetdiff_diff::export::markdown::{LONGEST, markdown};
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::verdict::Verdict;
use proptest::prelude::*;

use super::examples::{HEADLINE, export, found, hostile, run, sides};

/// The rows of the table, each the text of its cells; code spans as they are.
fn rows(comment: &str) -> Vec<Vec<String>> {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.autolink = true;
    let arena = Arena::new();
    let root = parse_document(&arena, comment, &options);
    let mut rows = Vec::new();
    for node in root.descendants().filter(|node| matches!(node.data().value, NodeValue::TableRow(false))) {
        let cells = node.children().map(|cell| {
            let texts = cell.descendants().filter_map(|inner| match &inner.data().value {
                NodeValue::Text(text) => Some(text.to_string()),
                NodeValue::Code(code) => Some(code.literal.clone()),
                _ => None,
            });
            texts.collect::<String>()
        });
        rows.push(cells.collect());
    }
    rows
}

#[test]
fn a_comment_has_headline_totals_and_what_is_significant() {
    let settings = Settings::default();
    let compared = found(&sides(), &settings);
    let comment = markdown(&export(&compared, &settings), 20);
    let expected = format!(
        "**{HEADLINE}**\n\ncpu, functions at the leaf of the stack (self): base 25,620 samples in 3 runs, head 27,120 samples in 3 runs. Three runs a side.\n\n{}\n\n\
         | function | base | head | ratio (95 % interval) | verdict |\n",
        reach(&compared).unwrap()
    );
    assert!(comment.starts_with(&expected), "{comment}");
    let significant: Vec<&Finding> = compared
        .of_kind(fleetdiff_schemas::profile::CountKind::SelfCount)
        .filter(|finding| finding.verdict.is_significant())
        .collect();
    let seen = rows(&comment);
    assert_eq!(
        seen.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
        significant.iter().map(|finding| &*finding.function).collect::<Vec<_>>()
    );
    let row = |name: &str| seen.iter().find(|row| row[0] == name).unwrap().join(" | ");
    assert!(row("encode").starts_with("encode | 11.71 % | 22.12 % | x "), "{comment}");
    assert!(row("encode").ends_with(") | regressed"), "{comment}");
    assert_eq!(row("legacy"), "legacy | 5.85 % | 0.00 % | gone | improved (only in base)");
    let others = compared.of_kind(fleetdiff_schemas::profile::CountKind::SelfCount).count() - significant.len();
    assert!(others >= 2 && comment.contains("\nNot significant: "), "{comment}");
}

#[test]
fn where_nothing_is_significant_it_says_what_was_tested() {
    let settings = Settings::default();
    let same = || vec![run("same", &[("main;work", 1_000), ("main;rest", 900), ("main;rare", 2), ("main;rarer", 1)])];
    let compared = found(&Sides { base: same(), head: same() }, &settings);
    let comment = markdown(&export(&compared, &settings), 20);
    assert!(comment.contains("\nNo function stands out: 2 of 3 rows were tested.\n"), "{comment}");
    assert!(rows(&comment).is_empty(), "{comment}");
    assert!(comment.ends_with("\nDo not stand out: 2 too rare, 2 inconclusive.\n"), "{comment}");
}

/// As many significant functions as there are names.
fn significant(names: &[String]) -> Compared {
    let settings = Settings::default();
    let mut compared = found(&sides(), &settings);
    let like = compared.findings.iter().find(|finding| finding.verdict.is_significant()).unwrap().clone();
    let one = |name: &String| Finding {
        function: name.as_str().into(),
        verdict: Verdict::Regressed,
        ratio: Some(Interval { value: 1.5, low: 1.4, high: 1.6 }),
        cause: Some(name.clone()),
        ..like.clone()
    };
    compared.findings = names.iter().map(one).collect();
    compared
}

#[test]
fn rows_are_limited_and_the_rest_is_counted() {
    let settings = Settings::default();
    let names: Vec<String> = (0..1_234).map(|number| format!("function_{number}")).collect();
    let compared = significant(&names);
    let some = markdown(&export(&compared, &settings), 20);
    assert_eq!(rows(&some).len(), 20);
    assert!(some.contains("\n... and 1,214 more significant functions.\n"), "{some}");
    let all = markdown(&export(&compared, &settings), 0);
    assert!(rows(&all).len() > 400 && all.chars().count() <= LONGEST, "{} characters", all.chars().count());
    let more = names.len() - rows(&all).len();
    assert!(all.contains(&format!("... and {more} more significant functions.")) || more == 0, "{all}");
}

#[test]
fn the_longest_names_stay_below_the_limit() {
    let settings = Settings::default();
    for name in ["a".repeat(5_000), "|".repeat(5_000), "`".repeat(5_000), "\\|".repeat(3_000), "🦀`|".repeat(900)] {
        let names: Vec<String> = (0..2_000).map(|number| format!("{number}{name}{number}")).collect();
        let comment = markdown(&export(&significant(&names), &settings), 0);
        let length = comment.chars().count();
        assert!(length <= LONGEST && length > LONGEST / 2, "{length}");
        assert!(comment.contains("more significant functions."));
        // The first limit is 20 rows.
        assert!(rows(&comment).len() >= 20, "{}", rows(&comment).len());
    }
}

proptest! {
    /// The law: a parser finds five cells per row, and the name in the first, except for what a code span cannot hold:
    /// line ends become blanks, blanks at the ends may be lost, and a backslash before a pipe may be doubled.
    #[test]
    fn oracle_names_come_back_from_the_parser(names in proptest::collection::vec(hostile(), 1..6)) {
        let settings = Settings::default();
        let comment = markdown(&export(&significant(&names), &settings), 20);
        let seen = rows(&comment);
        prop_assert_eq!(seen.len(), names.len(), "{}", comment);
        for (row, name) in seen.iter().zip(&names) {
            prop_assert_eq!(row.len(), 5, "{}", comment);
            prop_assert_eq!(plain(&row[0]), plain(name), "{}", comment);
            prop_assert!(row[4].starts_with("regressed (with "), "{}", comment);
        }
    }
}

fn plain(name: &str) -> String {
    let blank = |character: char| {
        if character.is_control() || "\u{2028}\u{2029}".contains(character) { ' ' } else { character }
    };
    let mut text: String = name.chars().map(blank).collect::<String>().trim().to_owned();
    while text.contains("\\|") {
        text = text.replace("\\|", "|");
    }
    if text.is_empty() { "(no name)".to_owned() } else { text }
}
