//! What is said where a function costs more, where nothing is flagged, where nothing can be compared, and against history.

use comrak::nodes::NodeValue;
use comrak::{Arena, Options, parse_document};
use fleetdiff_report::{Document, markdown};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::verdict::ComparisonVerdict;
use fleetdiff_simulation::fleet::Fleet;

use super::fleets::{REGRESSED, ROLLED_OUT, UNCHANGED, UNDER_LOAD, doubled, renamed, report};

/// The Markdown of a report without marks.
fn plain(tables: &Tables) -> String {
    markdown(&report(tables)).replace('\\', "")
}

fn titles(report: &Document) -> Vec<&str> {
    report.parts.iter().flat_map(|part| &part.sections).filter_map(|section| section.title.as_deref()).collect()
}

#[test]
fn a_regression_is_told_from_verdict_to_ledger() {
    let document = report(&REGRESSED);
    assert_eq!(document.parts.len(), 1);
    assert_eq!(document.parts[0].verdict.word, "regressed");
    assert_eq!(
        titles(&document),
        [
            "Cell by cell",
            "Incidents",
            "What could not be decided",
            "What else differs between the builds",
            "Is the method right on this fleet?"
        ]
    );
    let text = plain(&REGRESSED);
    for part in [
        "**What happened**: serialize_video_chunk costs",
        "more (",
        "**What to do**: Roll back",
        "tests of functions (cpu samples, counted as self) in 4 cells",
        " looks from ",
        "## Data: what came in, and what was left out",
        "Every sample that came in is accounted for",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Each part has its own rows: figures of one comparison never stand under another.
#[test]
fn comparisons_of_one_folder_are_kept_apart() {
    let document = report(&doubled(&REGRESSED, "v43"));
    let titles: Vec<&str> = document.parts.iter().map(|part| part.title.as_str()).collect();
    assert_eq!(titles, ["video-delivery: v42 against v41", "video-delivery: v43 against v41"]);
    for (part, (own, other)) in document.parts.iter().zip([("v42", "v43"), ("v43", "v42")]) {
        let alone = Document { parts: vec![part.clone()], folder: Vec::new(), ..document.clone() };
        for figure in alone.figures() {
            let sql = &document.references[figure.citation.0 - 1].sql;
            assert!(sql.contains(own) && !sql.contains(other), "{own}: {sql}");
        }
    }
}

#[test]
fn where_nothing_is_flagged_the_report_says_what_was_tested() {
    assert!(UNCHANGED.flags.is_empty(), "choose a seed without a flag");
    let document = report(&UNCHANGED);
    assert!(!titles(&document).contains(&"Incidents"));
    let text = plain(&UNCHANGED);
    for part in [
        "No function was flagged",
        "tests of functions (cpu samples, counted as self) in 4 cells",
        "could not be decided",
        "A/A check",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("oll back"), "{text}");
}

#[test]
fn what_scales_worse_is_named_and_nothing_else() {
    let text = plain(&UNDER_LOAD);
    let (_, section) = text.split_once("## Under load").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    assert!(section.contains("cpu: 2 of 616 tested rows"), "{section}");
    let rows: Vec<&str> = section.lines().filter(|line| line.contains("elasticity ")).collect();
    let [function, all] = &rows[..] else { panic!("{section}") };
    assert!(function.starts_with("| `serialize_video_chunk` | all of tv | "), "{function}");
    assert!(all.starts_with("| all functions together | all of tv | "), "{all}");
    // Where load does not move, the section says what is missing.
    let flat = plain(&REGRESSED);
    assert!(!flat.contains("## Under load"), "no requests are counted there: {flat}");
}

#[test]
fn what_is_not_comparable_says_why() {
    let mut tables = UNCHANGED.clone();
    let why = "no time block and hardware has pods of both builds";
    for row in &mut tables.comparisons {
        row.verdict = ComparisonVerdict::NotComparable;
        row.sentence = format!("not comparable: {why}");
        row.equivalent_share = None;
    }
    tables.cells.clear();
    let document = report(&tables);
    assert_eq!(document.parts[0].verdict.word, "not comparable");
    let text = plain(&tables);
    assert!(text.contains("4 of 4 cells could not be decided") && text.contains(why), "{text}");
    assert!(!text.contains("no change"), "{text}");
}

#[test]
fn after_a_full_roll_out_the_incident_and_history_are_there() {
    let document = report(&ROLLED_OUT);
    assert!(titles(&document).contains(&"Against history"), "{:?}", titles(&document));
    let text = plain(&ROLLED_OUT);
    for part in [
        "No build of v41 runs any more",
        "cannot be separated from the build",
        "one of the builds has no pods any more",
        "base is the history of v41",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What was known while both ran is not forgotten because one of them is gone.
    assert_eq!(document.parts[0].verdict.word, "regressed");
    assert!(text.contains("serialize_video_chunk costs"), "{text}");
}

/// GitHub's parser finds no element, and every footnote that is cited.
#[test]
fn names_are_no_markup_in_markdown() {
    let hostile = "<script>hurt()</script> `a` | [x](http://127.0.0.1:9/) **b**";
    let text = markdown(&report(&renamed(&REGRESSED, hostile, "<b>north|*</b>")));
    let arena = Arena::new();
    let mut options = Options::default();
    (options.extension.table, options.extension.footnotes) = (true, true);
    let root = parse_document(&arena, &text, &options);
    let (mut cited, mut defined, mut code) = (0, 0, 0);
    for node in root.descendants() {
        match &node.data().value {
            NodeValue::HtmlBlock(_) | NodeValue::HtmlInline(_) | NodeValue::Link(_) => {
                panic!("{:?}", node.data().value)
            }
            NodeValue::FootnoteReference(_) => cited += 1,
            NodeValue::FootnoteDefinition(_) => defined += 1,
            NodeValue::Code(span) => code += usize::from(span.literal.contains("hurt()")),
            NodeValue::Text(text) => assert!(!text.contains("[^"), "a footnote is missing: {text}"),
            _ => {}
        }
    }
    assert!(cited > 80 && defined > 20 && code > 2, "{cited} cited, {defined} defined, {code} names");
    assert!(!text.contains(Fleet::DEMO_FUNCTION));
}
