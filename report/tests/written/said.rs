//! What is said where a function costs more, where nothing is flagged, where nothing can be compared, and against history.

use comrak::nodes::NodeValue;
use comrak::{Arena, Options, parse_document};
use fleetdiff_report::{Document, markdown};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::rows::{IncidentRow, Interval, Tables};
use fleetdiff_schemas::verdict::{ComparisonVerdict, IncidentState};
use fleetdiff_simulation::fleet::Fleet;

use super::fleets::{MEMORY, REGRESSED, RINGS, ROLLED_OUT, UNCHANGED, UNDER_LOAD, WAITING, doubled, renamed, report};

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
            "Where the time goes",
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

/// A ratio of one cell stood beside several; a long list stood above what explains it; cells of no verdict were counted.
#[test]
fn regression_many_incidents_are_folded_and_say_where_they_were_measured() {
    let mut tables = REGRESSED.clone();
    let last = REGRESSED.incidents.last().unwrap();
    let more = (1..=20).map(|number| IncidentRow {
        cause: format!("function_{number:02}"),
        incident_id: format!("{number}"),
        flags: Vec::new(),
        share_delta: Some(Interval { value: 0.0002, low: 0.0001, high: 0.0003 }),
        ..last.clone()
    });
    tables.incidents.extend(more);
    let text = plain(&tables);
    let (top, section) = text.split_once("## Incidents").unwrap();
    assert!(top.contains("18 more incidents of the same cells are below."), "{top}");
    assert!(top.contains("2 of 4 cells regressed, ") && !top.contains(" 0 improved"), "{top}");
    let (section, after) = section.split_once("\n## ").unwrap();
    let line = section.lines().find(|line| line.starts_with("| `serialize_video_chunk`")).unwrap();
    assert!(line.contains(" | all of tv | x 1.") && line.contains(" in tv in "), "{line}");
    assert!(section.contains("9 smaller incidents: see All other incidents, below."), "{section}");
    assert_eq!(section.matches("\n### ").count(), 6, "{section}");
    let (_, others) = after.split_once("## All other incidents").unwrap();
    assert_eq!(others.matches("| `function_").count(), 9, "{others}");
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
    let (top, section) = text.split_once("## Under load").unwrap();
    let said = top.lines().find(|line| line.contains("**Under load**")).unwrap();
    assert!(said.contains("In all of tv, serialize_video_chunk at twice the load costs a request "), "{said}");
    assert!(said.contains(" meets peak load, compare it with v41 there, or add pods"), "{said}");
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
fn rings_are_one_path_and_one_incident() {
    let text = plain(&RINGS);
    let (_, section) = text.split_once("## Rings: from build to build").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap_or((section, ""));
    assert!(section.contains("the builds v41, then v42, then v43, then v44 run side by side"), "{section}");
    let paths: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(
        !paths.is_empty() && paths.iter().all(|line| line.starts_with("| `serialize_video_chunk` | all of tv | ")),
        "{section}"
    );
    let [_, _, v41, v42, v43, v44] = paths[0].trim_matches('|').split(" | ").collect::<Vec<_>>()[..] else {
        panic!("{section}")
    };
    assert!(v41.ends_with(" pods"), "{v41}");
    assert!(v42.contains(" against v41, regressed"), "{v42}");
    assert!(
        v43.contains(" against v42, ")
            && !v43.contains("against v42, regressed")
            && v43.contains(" against v41, regressed"),
        "{v43}"
    );
    assert!(v44.contains(" against v43, improved") && !v44.contains("against v41, regressed"), "{v44}");
    // What v42 introduced is one incident, whose sentence names v43; v44 has one of its own.
    let raised: Vec<&IncidentRow> = RINGS.incidents.iter().filter(|row| row.state == IncidentState::Raised).collect();
    let of: Vec<(&str, &str)> = raised.iter().map(|row| (row.base_build.as_str(), row.head_build.as_str())).collect();
    assert!(of.starts_with(&[("v41", "v42")]) && of[1..].iter().all(|(_, head)| *head == "v44"), "{of:?}");
    let last = RINGS.incidents.iter().rfind(|row| row.head_build.as_str() == "v42").unwrap();
    assert_eq!(
        (last.introduced_by.as_ref().map(Build::as_str), last.found_in.join(",")),
        (Some("v42"), "v42,v43".to_owned())
    );
    assert!(last.summary.ends_with("v42 introduced it, v43 has it too."), "{}", last.summary);
    // Two builds have no such section.
    assert!(!plain(&REGRESSED).contains("## Rings"));
}

#[test]
fn memory_is_judged_by_what_is_allocated_and_what_stays() {
    let text = plain(&MEMORY);
    let (_, section) = text.split_once("## Memory").unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    assert!(section.contains("Something changed in 1 of 2 cells."), "{section}");
    let line = |place: &str| section.lines().find(|line| line.starts_with(place)).unwrap();
    let tv = line("| all of tv");
    for part in ["less allocated", "more in use", "grows faster", "A hidden leak"] {
        assert!(tv.contains(part), "{part}: {tv}");
    }
    assert!(!line("| all of web").contains("eak"), "{section}");
    // Who reads only the top sees it too.
    let (top, _) = text.split_once("## Cell by cell").unwrap();
    assert!(
        top.contains("**Memory**: In all of tv, allocated per request x 0.80")
            && top.contains("A hidden leak: more is kept"),
        "{top}"
    );
    assert!(!top.contains("no cost is known to have changed"), "{top}");
    // A fleet without profiles of memory has no such section.
    assert!(!plain(&REGRESSED).contains("## Memory"));
}

#[test]
fn waiting_is_said_by_thread() {
    let text = plain(&WAITING);
    let (_, section) = text.split_once("## Waiting").unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let lines: Vec<&str> =
        section.lines().filter(|line| line.contains("all of threads") && line.contains("all of tv")).collect();
    assert!(lines.iter().any(|line| line.contains("helper-*") && line.contains("shorter: x 0.50")), "{section}");
    assert!(lines.iter().any(|line| line.contains("request-*") && line.contains("longer: x 1.5")), "{section}");
    let of_web: Vec<&str> = section.lines().filter(|line| line.contains("all of web")).collect();
    assert!(of_web.len() == 2 && of_web.iter().all(|line| line.contains("all functions together")), "{section}");
    let (top, _) = text.split_once("## Cell by cell").unwrap();
    assert!(top.contains("**Waiting**: In all of tv, all of threads request-"), "{top}");
    assert!(!plain(&REGRESSED).contains("## Waiting"));
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
