//! `calibrate`: it prints what it measured, with any number of threads, and its exit code says whether bounds were
//! kept.

use serde_json::Value;

use super::program::run;

/// The most important rows.
const SOME: [&str; 16] = [
    "aa",
    "aa-3v16-cv50",
    "aa-sizes",
    "aa-head-cv25",
    "aa-deranged-of-2",
    "aa-hour",
    "hidden-nodes",
    "aa-shared-pods",
    "aa-per-request",
    "aa-rare",
    "aa-alloc-bytes",
    "fan-out",
    "looks",
    "found",
    "rollout",
    "demo",
];

#[test]
fn figures_depend_on_seed_and_runs_and_not_on_threads() {
    let measured = |threads: &str, seed: &str| {
        run(&["calibrate", "--runs", "6", "--row", "aa", "effects-cv10", "--seed", seed, "--threads", threads])
    };
    let (one, other) = (measured("1", "4"), measured("3", "4"));
    assert_eq!((one.code, other.code), (0, 0), "{}", one.stderr);
    assert_eq!(one.stdout, other.stdout);
    assert_ne!(one.stdout, measured("1", "5").stdout.replace("seed 5", "seed 4"));
    assert!(one.stdout.contains("aa: 12 v 60 pods, CV 10 % (6 runs)"), "{}", one.stdout);
    assert!(
        one.stdout.contains("seed 4, 6 runs of a row: 6 of 6 required figures are within their bounds"),
        "{}",
        one.stdout
    );
    assert!(!one.stdout.contains("effects-cv5"), "only the rows that were asked for: {}", one.stdout);
}

#[test]
fn bounds_that_are_missed_are_named_and_exit_with_1() {
    let plain = run(&["calibrate", "--runs", "20", "--row", "aa", "--method", "article"]);
    assert_eq!(plain.code, 1, "{}", plain.stderr);
    assert!(plain.stderr.contains("outside what is required: aa: P(any row significant)"), "{}", plain.stderr);
    assert!(plain.stdout.contains("OUTSIDE") && plain.stdout.contains("0 of 1 required figures"), "{}", plain.stdout);
    let honest = run(&["calibrate", "--runs", "20", "--row", "aa"]);
    assert_eq!(honest.code, 0, "{}", honest.stderr);
    assert!(honest.stdout.contains(" ok ") && !honest.stdout.contains("OUTSIDE"), "{}", honest.stdout);
}

#[test]
fn json_holds_what_is_required_and_what_was_measured() {
    let done = run(&["calibrate", "--runs", "20", "--row", "aa-restless-3v6", "found-12v60", "--format", "json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let rows: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        rows.iter().map(|row| row["row"].as_str().unwrap()).collect::<Vec<_>>(),
        ["aa-restless-3v6", "found-12v60"]
    );
    let any = &rows[0]["figures"][0];
    assert_eq!(
        (any["figure"].as_str(), any["required"]["at_most"].as_f64(), any["measured"]["trials"].as_u64()),
        (Some("P(any row significant)"), Some(0.1), Some(20))
    );
    assert!(any["measured"]["value"].as_f64() < any["plain"]["value"].as_f64(), "{any}");
    let (low, high) = (&any["measured"]["interval"][0], &any["measured"]["interval"][1]);
    assert!(
        low.as_f64().unwrap() <= any["measured"]["value"].as_f64().unwrap() && high.as_f64().unwrap() > 0.1,
        "{any}"
    );
    let seconds = &rows[1]["figures"][0];
    assert_eq!(
        (seconds["statistic"].as_str(), seconds["within"].as_bool(), seconds["measured"]["trials"].as_u64()),
        (Some("median"), None, Some(20)),
        "a figure without a bound is within none"
    );
}

#[test]
fn the_list_names_every_row_and_another_name_is_a_usage_error() {
    let list = run(&["calibrate", "--list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    for name in SOME {
        assert!(list.stdout.lines().any(|line| line == name), "{name} is missing");
    }
    let wrong = run(&["calibrate", "--row", "no-such-row"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("aa-3v16-cv50"), "it says which there are: {}", wrong.stderr);
    assert_eq!(run(&["calibrate", "--runs", "0"]).code, 2);
}
