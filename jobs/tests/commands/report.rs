//! `report`: what it writes and where, the same each time, and what it says when it cannot.

use std::fs;

use tempfile::TempDir;

use super::demo::demo;
use super::program::{done, recorded, run};

#[test]
fn the_report_of_the_demo_says_what_to_do() {
    let folder = demo().folder.path().to_str().unwrap();
    let place = TempDir::new().unwrap();
    let [first, second, markdown] = ["first.html", "second.html", "report.md"].map(|name| place.path().join(name));
    for file in [&first, &second, &markdown] {
        let run = run(&["report", folder, "--output", file.to_str().unwrap()]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(
            run.stdout.starts_with("video-delivery: v42 against v41: regressed\nthe report is in "),
            "{}",
            run.stdout
        );
    }
    let page = fs::read(&first).unwrap();
    assert!(page.starts_with(b"<!doctype html>"));
    assert_eq!(page, fs::read(&second).unwrap(), "the same tables give the same bytes");
    let text = fs::read_to_string(&markdown).unwrap().replace('\\', "");
    for part in [
        "# video-delivery: v42 against v41: **regressed**",
        "Roll back v42 in Android-TV in ap-south-1 and ap-southeast-1.",
        "1 of 9 cells could not be decided",
        "20 more pods of v42 (3 now)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let printed = run(&["report", folder, "--comparison", "v42:v41", "--output", "-", "--format", "markdown"]);
    assert_eq!(printed.stdout, fs::read_to_string(&markdown).unwrap());
}

#[test]
fn replay_writes_the_report_that_the_command_writes_and_replaces_later() {
    let fleet = recorded("rd-listpack");
    let options = ["--warm-up", "0s", "--cell", "cohort", "--base", "A,A2", "--head", "B", "--count-kind", "self"];
    let done = done(&[&["replay", fleet.to_str().unwrap(), "--report"], &options[..]].concat());
    let [page, text] = ["report.html", "report.md"].map(|name| done.folder.path().join(name));
    for file in [&page, &text] {
        assert!(done.run.stdout.contains(&format!("the report is in {}", file.display())), "{}", done.run.stdout);
    }
    let by_replay = fs::read(&page).unwrap();
    fs::write(&page, "an older report").unwrap();
    let again = run(&["report", done.folder.path().to_str().unwrap()]);
    assert_eq!((again.code, fs::read(&page).unwrap() == by_replay), (0, true), "{}", again.stderr);
    let text = fs::read_to_string(&text).unwrap().replace('\\', "");
    assert!(text.contains("B against A,A2"), "{text}");
}

#[test]
fn what_cannot_be_reported_says_why() {
    let place = TempDir::new().unwrap();
    let empty = place.path().to_str().unwrap();
    let missing = place.path().join("missing");
    let folder = demo().folder.path().to_str().unwrap();
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (&["report", missing.to_str().unwrap()], 1, &["cannot read", "missing"]),
        (&["report", empty], 1, &["it holds none of fleetdiff's tables", "name a folder that fleetdiff wrote"]),
        (&["report", folder, "--comparison", "v43"], 2, &["no comparison v43", "it has v42:v41 (video-delivery)"]),
        (&["report", folder, "--output", "x.txt"], 2, &["the ending of x.txt", "--format html"]),
        (&["report", folder, "--output", "-"], 2, &["does not say which format", "--format markdown"]),
        (&["demo", "--report"], 2, &["--output"]),
    ];
    for (args, code, parts) in cases {
        let run = run(args);
        assert_eq!(run.code, code, "{args:?}: {}", run.stderr);
        assert!(parts.iter().all(|part| run.stderr.contains(part)), "{args:?}: {}", run.stderr);
    }
    let into_nothing = missing.join("report.html");
    let run = run(&["report", folder, "--output", into_nothing.to_str().unwrap()]);
    assert!(run.code == 1 && run.stderr.contains("in a folder that exists"), "{}", run.stderr);
}
