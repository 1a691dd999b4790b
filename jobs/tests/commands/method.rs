//! `replay --method`: the methods for comparison do what they are known to do, state that they are not calibrated, and
//! send no alert.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use fleetdiff_pipeline::rules::article::significant_by_first_program;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow};
use fleetdiff_schemas::verdict::{Scope, Severity, Verdict};
use fleetdiff_statistics::tails::ln_chi1_tail;
use tempfile::TempDir;

use super::program::{Done, cell, done, is_cell, run};

const CHANGED: &str = "serialize_video_chunk";

/// The rows of the article's figures with this tag: function, head count and total, base count and total, G, ln p.
fn published(tag: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipeline/statistics/testdata/g_2x2.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    rows.filter(|row| row[0] == tag).collect()
}

/// The article's figures as a recorded fleet: a service for each program, a cell for each pair of totals, a pod for each arm.
fn the_articles_fleet() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut manifest = String::new();
    for tag in ["article1", "article2"] {
        let mut cells: BTreeMap<(String, String), Vec<Vec<String>>> = BTreeMap::new();
        for row in published(tag) {
            cells.entry((row[2].clone(), row[4].clone())).or_default().push(row);
        }
        for ((head, base), rows) in cells {
            for (build, total, column) in [("new", &head, 1), ("old", &base, 3)] {
                let stacks: Vec<String> =
                    rows.iter().enumerate().map(|(function, row)| format!("f{function:02} {}", row[column])).collect();
                let sum: u64 = rows.iter().map(|row| row[column].parse::<u64>().unwrap()).sum();
                assert_eq!(&sum.to_string(), total, "the functions of a cell are all its samples");
                let file = format!("{tag}-{head}-{build}.folded");
                std::fs::write(folder.path().join(&file), stacks.join("\n") + "\n").unwrap();
                writeln!(
                    manifest,
                    r#"{{"file":"{file}","profile_type":"cpu","service":"{tag}","build":"{build}","region":"r","cohort":"{head}","hardware":"h","pod":"{tag}-{head}-{build}","start_unix_nano":1700000000000000000,"end_unix_nano":1700000010000000000}}"#
                )
                .unwrap();
            }
        }
    }
    std::fs::write(folder.path().join("manifest.jsonl"), manifest).unwrap();
    folder
}

fn replay(fleet: &Path, more: &[&str]) -> Done {
    done(&[&["replay", fleet.to_str().unwrap()], more].concat())
}

/// Rows of the window of a service.
fn rows<'a>(done: &'a Done, service: &str) -> Vec<&'a CellRow> {
    let rows = done
        .rows(Scope::Window, CountKind::SelfCount)
        .into_iter()
        .filter(|row| row.comparison.service.as_str() == service);
    rows.collect()
}

fn significant<'a>(rows: &[&'a CellRow]) -> Vec<&'a CellRow> {
    rows.iter().filter(|row| row.verdict.is_significant()).copied().collect()
}

/// Benjamini and Hochberg's step-up as published: the largest k with p_(k) <= k q / m, and all up to it.
fn step_up(ln_p: &[f64], q: f64) -> usize {
    let mut p: Vec<f64> = ln_p.iter().map(|ln_p| ln_p.exp()).collect();
    p.sort_by(f64::total_cmp);
    let m = f64::from(u32::try_from(p.len()).unwrap());
    (1u32..)
        .zip(&p)
        .filter(|(k, p)| **p <= f64::from(*k) * q / m)
        .map(|(k, _)| usize::try_from(k).unwrap())
        .max()
        .unwrap_or(0)
}

const NAMED: [&str; 8] = ["--warm-up", "0s", "--count-kind", "self", "--base", "old", "--head", "new"];

#[test]
fn the_articles_programs_find_four_and_five_significant_rows_and_honest_none() {
    let fleet = the_articles_fleet();
    let article = replay(fleet.path(), &[&NAMED[..], &["--method", "article"]].concat());
    for (service, members) in [("article1", 12), ("article2", 45)] {
        let (rows, published) = (rows(&article, service), published(service));
        assert_eq!((rows.len(), published.len()), (members, members));
        for expected in &published {
            let is_same = |row: &&&CellRow| {
                row.head.count.to_string() == expected[1] && row.base.count.to_string() == expected[3]
            };
            let row = rows.iter().find(is_same).unwrap();
            let (g, ln_p): (f64, f64) = (expected[5].parse().unwrap(), expected[7].parse().unwrap());
            assert!(
                (row.g.unwrap() - g).abs() <= 1e-12 * g && (row.ln_p_iid.unwrap() - ln_p).abs() <= 1e-11 * ln_p.abs(),
                "{row:?}"
            );
        }
        let ln_p: Vec<f64> = rows.iter().map(|row| row.ln_p_iid.unwrap()).collect();
        assert_eq!(significant(&rows).len(), step_up(&ln_p, 0.05), "{service}");
    }
    let first = rows(&article, "article1");
    assert_eq!(first.iter().filter(|row| significant_by_first_program(row.ln_p_iid.unwrap())).count(), 4);
    let second = rows(&article, "article2");
    assert_eq!(significant(&second).len(), 5);
    let cells: BTreeSet<&CellKey> = second.iter().map(|row| &row.cell).collect();
    assert_eq!(cells.len(), 9);
    // With one pod per arm, merging changes nothing.
    for method in ["article-b", "article-b-stouffer"] {
        let merged = replay(fleet.path(), &[&NAMED[..], &["--method", method]].concat());
        let rows = self::rows(&merged, "article2");
        assert_eq!(significant(&rows).len(), 5, "{method}");
        for (one, other) in rows.iter().zip(&second) {
            assert!((one.q_value.unwrap() - other.q_value.unwrap()).abs() <= 1e-9 * other.q_value.unwrap(), "{method}");
        }
        assert!(
            merged.tables.cells.iter().all(|row| row.scope == Scope::Window),
            "pods are known within the window alone"
        );
        wakes_nobody(&merged, method);
    }
    // The twin: one pod per arm is not a replicate.
    let honest = replay(fleet.path(), &NAMED);
    assert!(honest.tables.cells.iter().all(|row| !row.verdict.is_significant()));
    assert!(
        rows(&honest, "article2")
            .iter()
            .filter(|row| row.cell.cohort.as_str() != "*")
            .all(|row| row.verdict == Verdict::Untestable)
    );
}

/// The root of G of function `f` in one pod against the merged base, with the sign of the change of its share.
fn signed_root(pod: &[f64], merged: &[f64], f: usize) -> f64 {
    let (a, n) = (pod[f], pod.iter().sum::<f64>());
    let (b, all) = (merged[f], merged.iter().sum::<f64>());
    let share = (a + b) / (n + all);
    let term = |observed: f64, expected: f64| observed * (observed / expected).ln();
    let g = 2.0
        * (term(a, n * share)
            + term(n - a, n * (1.0 - share))
            + term(b, all * share)
            + term(all - b, all * (1.0 - share)));
    g.sqrt().copysign(a / n - b / all)
}

/// Three pods against two, four functions: each pod's G by the textbook formula, Fisher's sum with its tail in closed
/// form.
#[test]
fn pods_are_tested_one_by_one_and_merged() {
    let head: [[f64; 4]; 3] = [[400.0, 300.0, 200.0, 100.0], [500.0, 200.0, 210.0, 90.0], [300.0, 405.0, 190.0, 105.0]];
    let base: [[f64; 4]; 2] = [[800.0, 620.0, 390.0, 190.0], [790.0, 600.0, 400.0, 210.0]];
    let fleet = TempDir::new().unwrap();
    let mut manifest = String::new();
    let pods = head.iter().map(|counts| ("new", counts)).chain(base.iter().map(|counts| ("old", counts)));
    for (pod, (build, counts)) in pods.enumerate() {
        let stacks: Vec<String> =
            counts.iter().enumerate().map(|(function, count)| format!("f{function} {count}")).collect();
        std::fs::write(fleet.path().join(format!("{pod}.folded")), stacks.join("\n") + "\n").unwrap();
        writeln!(
            manifest,
            r#"{{"file":"{pod}.folded","profile_type":"cpu","service":"s","build":"{build}","region":"r","cohort":"c","hardware":"h","pod":"p{pod}","start_unix_nano":1700000000000000000,"end_unix_nano":1700000010000000000}}"#
        )
        .unwrap();
    }
    std::fs::write(fleet.path().join("manifest.jsonl"), manifest).unwrap();
    let merged: Vec<f64> = (0..4).map(|f| base.iter().map(|pod| pod[f]).sum()).collect();
    let roots = |f: usize| head.iter().map(|pod| signed_root(pod, &merged, f)).collect::<Vec<_>>();
    let fisher = |f: usize| {
        let half = -roots(f).iter().map(|z| ln_chi1_tail(z * z)).sum::<f64>();
        (-half).exp() * (1.0 + half + half * half / 2.0)
    };
    let stouffer = |f: usize| ln_chi1_tail(roots(f).iter().sum::<f64>().powi(2) / 3.0).exp();
    for (method, p) in
        [("article-b", (0..4).map(fisher).collect::<Vec<_>>()), ("article-b-stouffer", (0..4).map(stouffer).collect())]
    {
        let done = replay(fleet.path(), &[&NAMED[..], &["--method", method]].concat());
        let rows = rows(&done, "s");
        assert_eq!(rows.len(), 4);
        let mut ranked = p.clone();
        ranked.sort_by(f64::total_cmp);
        let q_value = |p: f64| {
            (1u32..)
                .zip(&ranked)
                .filter(|(_, other)| **other >= p)
                .map(|(k, other)| other * 4.0 / f64::from(k))
                .fold(1.0, f64::min)
        };
        for (row, p) in rows.iter().zip(&p) {
            let expected = q_value(*p);
            assert!(
                (row.q_value.unwrap() - expected).abs() <= 1e-8 * expected,
                "{method} {}: {:?}, not {expected}",
                row.function,
                row.q_value
            );
            assert_eq!(row.verdict.is_significant(), expected <= 0.05, "{method} {}", row.function);
        }
        // f0 goes up in one pod and down in another: it is significant by Fisher, not by Stouffer.
        assert_eq!(rows[0].verdict.is_significant(), method == "article-b");
    }
}

/// One function of the demo's fleet costs 60 % more in two of its cells; self counts only.
static FLEET: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    let generated = run(&[
        "generate",
        "--output",
        fleet.to_str().unwrap(),
        "--seed",
        "7",
        "--factor",
        "1.6",
        "--pods",
        "5:20",
        "--duration",
        "6m",
    ]);
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    folder
});

fn of_demo(method: &str) -> Done {
    replay(&FLEET.path().join("fleet"), &["--count-kind", "self", "--method", method])
}

/// Whether something changed there.
fn is_truly_changed(row: &CellRow) -> bool {
    row.function == CHANGED
        && [cell("ap-south-1", "Android-TV"), cell("ap-southeast-1", "Android-TV")].contains(&row.cell)
}

/// Rows of cells, without roll-ups.
fn of_window(done: &Done) -> Vec<&CellRow> {
    done.rows(Scope::Window, CountKind::SelfCount).into_iter().filter(|row| is_cell(row)).collect()
}

#[test]
fn the_article_finds_innocent_rows_significant_where_honest_finds_none() {
    let (honest, article) = (of_demo("honest"), of_demo("article"));
    let (by_honest, by_article) = (significant(&of_window(&honest)), significant(&of_window(&article)));
    let innocent = |rows: &[&CellRow]| rows.iter().filter(|row| !is_truly_changed(row)).count();
    eprintln!(
        "innocent rows significant: honest {} of {}, article {} of {}",
        innocent(&by_honest),
        by_honest.len(),
        innocent(&by_article),
        by_article.len()
    );
    assert_eq!((innocent(&by_honest), by_honest.len()), (0, 2));
    assert!(innocent(&by_article) > 20, "{}", innocent(&by_article));
    assert_eq!(by_article.len() - innocent(&by_article), 2);
    // The family is all rows of all cells: the significant rows are those of the step-up, and q-values are ordered as
    // p-values.
    let members: Vec<&CellRow> = of_window(&article).into_iter().filter(|row| row.q_value.is_some()).collect();
    let ln_p: Vec<f64> = members.iter().map(|row| row.ln_p_iid.unwrap()).collect();
    assert!(members.len() > 9 * 250 && members.iter().all(|row| row.head.count + row.base.count >= 30));
    assert_eq!(by_article.len(), step_up(&ln_p, 0.05));
    let least_left = members
        .iter()
        .filter(|row| !row.verdict.is_significant())
        .map(|row| row.ln_p_iid.unwrap())
        .fold(f64::INFINITY, f64::min);
    assert!(by_article.iter().all(|row| row.ln_p_iid.unwrap() <= least_left));
    wakes_nobody(&article, "article");
    let (by_pod, by_stouffer) = (of_demo("article-b"), of_demo("article-b-stouffer"));
    let (by_pod, by_stouffer) = (significant(&of_window(&by_pod)), significant(&of_window(&by_stouffer)));
    eprintln!(
        "innocent rows significant: article-b {} of {}, article-b-stouffer {} of {}",
        innocent(&by_pod),
        by_pod.len(),
        innocent(&by_stouffer),
        by_stouffer.len()
    );
    assert!(innocent(&by_stouffer) > 20, "{}", innocent(&by_stouffer));
    assert_eq!((by_pod.len() - innocent(&by_pod), by_stouffer.len() - innocent(&by_stouffer)), (2, 2));
}

#[test]
fn naive_finds_whatever_moved_significant() {
    let naive = of_demo("naive");
    let rows = of_window(&naive);
    let moved = |row: &&&CellRow| row.head.share != row.base.share;
    let tested: Vec<_> = rows.iter().filter(|row| row.verdict != Verdict::TooRare).collect();
    assert!(tested.len() > 9 * 250);
    assert_eq!(significant(&rows).len(), tested.iter().filter(|row| moved(row)).count());
    assert!(rows.iter().all(|row| row.q_value.is_none()));
    for row in significant(&rows) {
        assert_eq!(row.verdict == Verdict::Regressed, row.head.share > row.base.share);
    }
    let changes: Vec<f64> = naive
        .run
        .stdout
        .lines()
        .filter_map(|line| line.split(" pp ").next()?.split(' ').next_back()?.parse::<f64>().ok())
        .map(f64::abs)
        .collect();
    assert!(changes.len() == 20 && changes.is_sorted_by(|a, b| a >= b), "{}", naive.run.stdout);
    wakes_nobody(&naive, "naive");
}

fn wakes_nobody(done: &Done, method: &str) {
    assert!(done.run.stdout.starts_with(&format!("NOT CALIBRATED (method {method}): ")), "{}", done.run.stdout);
    assert_eq!(done.tables.flags.is_empty(), method != "article", "of these, only it decides at looks");
    assert!(done.tables.flags.iter().all(|flag| flag.severity == Severity::Info));
    assert!(done.tables.incidents.is_empty());
    assert!(!done.folder.path().join("alerts.jsonl").exists());
    let start = format!("not calibrated (method {method}): ");
    assert!(
        !done.tables.comparisons.is_empty()
            && done.tables.comparisons.iter().all(|row| row.flags == 0 && row.sentence.starts_with(&start))
    );
    assert!(
        done.tables.cells.iter().all(|row| row.cause.is_none()
            && row.verdict != Verdict::Equivalent
            && row.verdict != Verdict::Compositional)
    );
    assert!(done.tables.cells.iter().all(|row| row.cell.region.as_str() != "*"), "a roll-up is in no family");
    let files = std::fs::read_dir(done.folder.path().join("cells")).unwrap();
    let date = files.flatten().next().unwrap().path();
    let hour = std::fs::read_dir(date).unwrap().flatten().next().unwrap().path();
    let file = std::fs::read(std::fs::read_dir(hour).unwrap().flatten().next().unwrap().path()).unwrap();
    let written = format!("\"method\":\"{method}\"");
    assert!(file.windows(written.len()).any(|bytes| bytes == written.as_bytes()), "the file does not say its method");
}

#[test]
fn watch_refuses_what_is_not_calibrated() {
    for method in ["article", "article-b", "article-b-stouffer", "naive"] {
        let refused = run(&["watch", "--method", method, "--brokers", "127.0.0.1:1", "--connect-timeout", "100ms"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains(&format!("watch does not take the method {method}: it is not calibrated")),
            "{}",
            refused.stderr
        );
    }
    let unknown = run(&["replay", "nowhere", "--output", "nowhere", "--method", "best"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains(
            "\"best\" is not one of \"honest\", \"article\", \"article-b\", \"article-b-stouffer\" and \"naive\""
        ),
        "{}",
        unknown.stderr
    );
}

#[test]
fn watch_states_how_many_false_alerts_to_expect() {
    let folder = TempDir::new().unwrap();
    let tried = run(&[
        "watch",
        "--brokers",
        "127.0.0.1:1",
        "--connect-timeout",
        "100ms",
        "--output",
        folder.path().to_str().unwrap(),
        "--q",
        "0.1",
        "--epoch",
        "12h",
    ]);
    assert_eq!(tried.code, 1, "no broker is there: {}", tried.stderr);
    assert!(tried.stderr.contains("false alerts expected where nothing changed: at most 1.4 a week for each comparison that is open all week, 0.1 for each deploy that is over within 12h"), "{}", tried.stderr);
}
