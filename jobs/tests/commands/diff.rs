//! `diff`: the article's example and recorded runs as files, plain differences in columns, and what cannot be compared.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::program::{Run, command, recorded, run};

/// Files of folded stacks in a folder of their own.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Writes a file and gives its path.
    fn with(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Counts of canary and control as in the article's first program, as folded stacks: base, then head.
fn article(files: &Files) -> [String; 2] {
    let figures = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipeline/statistics/testdata/g_2x2.csv"),
    )
    .unwrap();
    let names = [
        "_other",
        "deserialize_request",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "slower",
        "tenth",
        "eleventh",
        "faster",
    ];
    let rows: Vec<Vec<&str>> =
        figures.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[0] == "article1").collect();
    assert_eq!(rows.len(), names.len());
    let side = |column: usize| {
        rows.iter().zip(names).fold(String::new(), |mut text, (row, name)| {
            writeln!(text, "main;{name} {}", row[column]).unwrap();
            text
        })
    };
    [files.with("base.folded", side(3)), files.with("head.folded", side(1))]
}

fn diff(base: &[&str], head: &[&str], more: &[&str]) -> Run {
    run(&[&["diff", "--base"], base, &["--head"], head, more].concat())
}

/// The function and verdict of each row, of a table with tabs between columns.
fn verdicts(run: &Run) -> Vec<(String, String)> {
    assert_eq!(run.code, 0, "{}", run.stderr);
    let rows = run.stdout.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[row.len() - 1].to_owned(), row[row.len() - 2].to_owned())).collect()
}

fn significant(run: &Run) -> Vec<String> {
    let significant =
        |verdict: &str| ["regressed", "improved", "stands_out"].iter().any(|name| verdict.starts_with(name));
    verdicts(run).into_iter().filter(|(_, verdict)| significant(verdict)).map(|(function, _)| function).collect()
}

/// The rules of names, and rewrites after them, hold for files as for fleets.
#[test]
fn names_of_two_builds_become_one() {
    let files = Files::new();
    let base = files.with("base.folded", "main;shop.Cart$$Lambda$4/52.run 500\nmain;v1.total 500\n");
    let head = files.with("head.folded", "main;shop.Cart$$Lambda$9/77.run 500\nmain;v2.total 500\n");
    let functions = |more: &[&str]| {
        let found =
            verdicts(&diff(&[&base], &[&head], &[&["-q", "-t", "\t", "--top", "0", "--no-pairs"], more].concat()));
        let mut functions: Vec<String> = found.into_iter().map(|(function, _)| function).collect();
        functions.sort();
        functions
    };
    let [rewrites, off] = [["--rewrites", "^v[0-9]+ => v"], ["--name-rules-off", "jvm"]];
    assert_eq!(functions(&rewrites), ["shop.Cart$$Lambda.run", "v.total"]);
    assert_eq!(functions(&[]).len(), 3);
    assert_eq!(functions(&off).len(), 4);
    let unknown = diff(&[&base], &[&head], &["--name-rules-off", "jvm-lamda"]);
    assert_ne!(unknown.code, 0);
    assert!(unknown.stderr.contains("\"jvm-lambda\""), "{}", unknown.stderr);
}

#[test]
fn published_the_articles_example_as_files() {
    let files = Files::new();
    let [base, head] = article(&files);
    let plain = diff(&[&base], &[&head], &[]);
    let first = plain.stdout.lines().next().unwrap();
    assert!(first.starts_with("faster stands out: x 0.") && first.ends_with(" points of CPU (self)"), "{first}");
    assert!(plain.stdout.contains("base 720,000 samples in 1 run, head 748,000 samples in 1 run"), "{}", plain.stdout);
    assert!(plain.stdout.contains("One run a side: run-to-run variation is unknown"), "{}", plain.stdout);
    let rows = diff(&[&base], &[&head], &["-q", "-t", "\t"]);
    assert_eq!(significant(&rows), ["faster"]);
    let alone = diff(&[&base], &[&head], &["-q", "-t", "\t", "--background", "0"]);
    assert_eq!(significant(&alone), ["slower", "faster"]);
    let verdicts = verdicts(&alone);
    let of = |name: &str| verdicts.iter().find(|(function, _)| function == name).unwrap().1.clone();
    assert_eq!((of("_other"), of("deserialize_request")), ("compositional".to_owned(), "compositional".to_owned()));
    let mut article = significant(&diff(&[&base], &[&head], &["-q", "-t", "\t", "--method", "article"]));
    article.sort();
    assert_eq!(article, ["_other", "deserialize_request", "faster", "slower"]);
    let said = diff(&[&base], &[&head], &["--method", "article"]).stdout;
    assert!(
        said.lines()
            .next()
            .unwrap()
            .ends_with("; 3 more functions are significant; by the article's rule, which is not calibrated"),
        "{said}"
    );
}

/// The CPU profiles of a recorded fleet's pods of these builds and this cohort, of every hop, merged into one run per
/// pod.
fn runs(fleet: &str, files: &Files, builds: &[&str], cohort: &str) -> Vec<String> {
    let folder = recorded(fleet);
    let manifest = std::fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let mut pods: std::collections::BTreeMap<String, Vec<PathBuf>> = std::collections::BTreeMap::new();
    for line in manifest.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        if text("profile_type") == "cpu" && text("cohort") == cohort && builds.contains(&text("build").as_str()) {
            pods.entry(text("pod")).or_default().push(folder.join(text("file")));
        }
    }
    let merged = |(pod, paths): (String, Vec<PathBuf>)| {
        // Concatenated gzip members decompress to the concatenated text.
        let bytes: Vec<u8> = paths.iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
        files.with(&format!("{pod}.folded.gz"), bytes)
    };
    pods.into_iter().map(merged).collect()
}

fn borrowed(paths: &[String]) -> Vec<&str> {
    paths.iter().map(String::as_str).collect()
}

/// Redis with another limit for hashes as lists: `session` searches lists now, `cache` has none. Pods are the runs.
#[test]
fn null_recorded_runs_and_their_twin() {
    let files = Files::new();
    let of = |builds: &[&str], cohort: &str| runs("rd-listpack", &files, builds, cohort);
    let (base, head) = (of(&["A", "A2"], "session"), of(&["B"], "session"));
    let changed = significant(&diff(&borrowed(&base), &borrowed(&head), &["-q", "-t", "\t", "--top", "0"]));
    assert!(["lpFind", "lpFirst", "dictFind"].iter().all(|name| changed.contains(&(*name).to_owned())), "{changed:?}");
    let (base, head) = (of(&["A", "A2"], "cache"), of(&["B"], "cache"));
    let same = diff(&borrowed(&base), &borrowed(&head), &["-q", "-t", "\t", "--top", "0"]);
    println!(
        "{} rows of {} v {} runs in which nothing changed, significant {:?}",
        verdicts(&same).len(),
        base.len(),
        head.len(),
        significant(&same)
    );
    assert!(significant(&same).is_empty() && verdicts(&same).len() > 20, "{:?}", significant(&same));
    let (base, head) = (of(&["A"], "session"), of(&["A2"], "session"));
    let same = diff(&borrowed(&base), &borrowed(&head), &["-q", "-t", "\t", "--top", "0"]);
    assert!(significant(&same).is_empty() && verdicts(&same).len() > 20, "{:?}", significant(&same));
}

/// Pods of redis, one a side: of pairs of pods that do the same something stands out in a tenth, give or take three standard errors, where samples alone
/// say so in half.
#[test]
fn regression_one_run_a_side_is_never_real() {
    let files = Files::new();
    let of = |builds: &[&str], cohort: &str| runs("rd-listpack", &files, builds, cohort);
    let standing = |base: &str, head: &str, more: &[&str]| {
        let kinds = ["self", "total"].map(|kind| {
            let flags = ["-q", "-t", "\t", "--top", "0", "--count-kind", kind];
            let found = diff(&[base], &[head], &[&flags[..], more].concat());
            let is_real = |verdict: &str| ["regressed", "improved"].iter().any(|name| verdict.starts_with(name));
            assert!(!verdicts(&found).iter().any(|(_, verdict)| is_real(verdict)), "{}", found.stdout);
            significant(&found)
        });
        kinds.concat()
    };
    let (mut pairs, mut any, mut alone) = (0, Vec::new(), 0);
    for cohort in ["session", "cache"] {
        let pods = of(&["A", "A2"], cohort);
        for (number, base) in pods.iter().enumerate() {
            for head in &pods[number + 1..] {
                pairs += 1;
                any.extend(Some(standing(base, head, &[])).filter(|found| !found.is_empty()));
                alone += usize::from(!standing(base, head, &["--background", "0"]).is_empty());
            }
        }
    }
    println!("{pairs} pairs in which nothing changed: {} with {any:?}, by samples alone {alone}", any.len());
    assert!(pairs >= 12 && any.len() * 3 <= pairs && alone * 2 >= pairs, "{any:?} in {pairs} pairs, {alone}");
    // What is new and a twentieth of all samples stands out between any two pods of the builds that differ.
    for (base, head) in of(&["A", "A2"], "session").iter().zip(of(&["B"], "session").iter().cycle()) {
        let found = standing(base, head, &[]);
        assert!(found.contains(&"lpFind".to_owned()), "{found:?}");
    }
}

#[test]
fn plain_differences_in_columns() {
    let files = Files::new();
    let base = files.with("a.folded", "main;work 60\nmain;rest 40\n");
    let (first, second) =
        (files.with("b.folded", "main;work 50\nmain;rest 50\n"), files.with("c.folded", "main;rest 30\nmain;new 70\n"));
    let delta = diff(&[&base], &[&first], &["-c", "delta", "-t", ",", "-q"]);
    assert_eq!(
        delta.stdout, "40.00%,+10.00%,inconclusive,rest\n60.00%,-10.00%,inconclusive,work\n",
        "{}",
        delta.stderr
    );
    let all = diff(&[&base], &[&first], &["-c", "wdiff:1,2", "-p", "-F", "-t", ",", "-q", "-o", "0"]);
    assert_eq!(
        all.stdout,
        "60.00%,60,40,(50 * 2) - (60 * 1),50,inconclusive,work\n40.00%,40,60,(50 * 2) - (40 * 1),50,inconclusive,rest\n"
    );
    let each = diff(&[&base], &[&first, &second], &["--columns", "-c", "ratio", "-q", "-t", ",", "-o", "2"]);
    assert_eq!(each.stdout.lines().next().unwrap().split(',').next().unwrap(), "40.00%");
    assert!(
        each.stdout.contains("40.00%,1.250000,inconclusive,0.750000,") && each.stdout.contains(",N/A,too_rare,N/A,"),
        "{}",
        each.stdout
    );
    let said = diff(&[&base], &[&first, &second], &["--columns"]).stdout;
    let columns: Vec<&str> = said.lines().filter(|line| line.starts_with("Column ")).collect();
    assert_eq!(columns, ["Column 1: b.folded", "Column 2: c.folded"], "{said}");
    let both = diff(&[&base], &[&second], &["-c", "delta-abs", "-b", "-q", "-t", ","]);
    assert_eq!(both.stdout.lines().map(|line| line.rsplit(',').next().unwrap()).collect::<Vec<_>>(), ["work", "rest"]);
    let spread = diff(&[&base, &first], &[&first, &second], &["-c", "spread", "-q", "-t", ","]);
    assert!(spread.stdout.contains("55.00%,± 7.07 \u{2588}\u{2587},"), "{}", spread.stdout);
    let dotted = diff(&[&base], &[&first], &["-q", "-t", "k"]);
    assert!(dotted.stdout.contains("kwor.\n") && !dotted.stdout.contains("work"), "{}", dotted.stdout);
}

#[test]
fn samples_without_symbols_are_said() {
    let files = Files::new();
    let named = files.with("named.folded", "main;work 60\nmain;[libshop.so] 40\n");
    let unnamed = files.with("unnamed.folded", "main;work 40\nmain;[libshop.so] 30\nmain;0x7f3a00c4 30\n");
    let said = diff(&[&named], &[&unnamed], &[]).stderr;
    assert!(
        said.contains("40 % of the samples of the base and 60 % of those of the head are in functions without symbols"),
        "{said}"
    );
    // The twin.
    let said = diff(&[&named], &[&named], &[]).stderr;
    assert!(!said.contains("without symbols"), "{said}");
}

#[test]
fn what_cannot_be_compared_says_why() {
    let files = Files::new();
    let good = files.with("good.folded", "main;work 60\nmain;rest 40\n");
    let fails = |base: &str, head: &str, more: &[&str], said: &[&str]| {
        let run = diff(&[base], &[head], more);
        assert_ne!(run.code, 0, "{}", run.stdout);
        assert!(run.stdout.is_empty(), "a table of nonsense: {}", run.stdout);
        for text in said {
            assert!(run.stderr.contains(text), "{text:?} is not in {}", run.stderr);
        }
    };
    fails(&good, &files.with("empty.folded", ""), &[], &["no sample", "empty.folded"]);
    fails(
        &good,
        &files.with("other.folded", "start;a 60\nstart;b 40\n"),
        &[],
        &["0 of 3 functions in common", "different programs", "same program"],
    );
    fails(
        &good,
        &files.with("two.folded", "main;a 1 2\nmain;b 3 4\n"),
        &[],
        &["two.folded", "difference of two profiles"],
    );
    fails(&good, &files.with("bad.folded", "main;a x\n"), &[], &["bad.folded", "line 1"]);
    fails(
        &good,
        &files.with("perf.data", b"PERFILE2\0\0"),
        &[],
        &["a recording of perf (perf.data) that was cut", "perf script -F"],
    );
    fails(&good, "/nowhere/x.pb.gz", &[], &["cannot read /nowhere/x.pb.gz"]);
    let kv = recorded("kv-snapshot");
    let pprof = |kind: &str| {
        let pod = std::fs::read_dir(kv.join("profiles")).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
        let found = std::fs::read_dir(pod).unwrap().map(|entry| entry.unwrap().path());
        let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(kind);
        found.filter(named).max().unwrap().to_str().unwrap().to_owned()
    };
    fails(
        &pprof("cpu"),
        &pprof("heap"),
        &[],
        &["base (", ") is cpu, head (", ") is heap", "alloc_space/bytes", "--profile-type"],
    );
    fails(&good, &good, &["-c", "sum"], &["delta-abs", "wdiff:W1,W2"]);
    fails(&good, &good, &["-o", "report.html"], &["--output"]);
    fails(&good, &good, &["-o", "2"], &["--order 2", "--columns"]);
    fails(&good, &good, &["-c", "delta", "--format", "html"], &["need --format table"]);
}

#[test]
fn help_shows_how() {
    let help = run(&["diff", "--help"]).stdout;
    for text in [
        "fleetdiff diff before.pb.gz after.pb.gz",
        "--output diff.html",
        "3, they were",
        "--columns",
        "-c, --compute",
        "--background",
    ] {
        assert!(help.contains(text), "{text:?} is not in {help}");
    }
}

/// From two files to the guilty function: it is the first row, and it is on the page too.
#[test]
fn two_profiles_and_one_command() {
    let files = Files::new();
    let [base, head] = article(&files);
    let page = files.0.path().join("diff.html");
    let made = diff(&[&base], &[&head], &["--format", "html", "--output", page.to_str().unwrap()]);
    assert_eq!((made.code, made.stdout.as_str()), (0, ""), "{}", made.stderr);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<p id=\"headline\">faster stands out: x 0.") && page.contains("One run a side"),
        "no headline"
    );
    assert!(!page.contains("http://") && !page.contains("https://"), "the page asks for something of the network");
    let table = diff(&[&base], &[&head], &["-q", "-t", "\t"]).stdout;
    assert!(table.lines().next().unwrap().ends_with("\tfaster"), "{table}");
}

/// Whoever reads may stop, as `head` does: nothing is said, and the code is that of SIGPIPE.
#[test]
fn nothing_is_said_where_nobody_reads() {
    let files = Files::new();
    let [base, head] = article(&files);
    let mut diff = command(&["diff", "--base", &base, "--head", &head, "--format", "json"]);
    let mut child = diff.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(141) && !said.contains("error") && !said.contains("pipe"), "{said}");
}
