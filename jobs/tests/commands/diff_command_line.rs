//! The command line of `diff`: which files, in which format, and the exit code.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use super::program::{Run, command, run, run_with};

/// A program of 41 functions, of which one has this many samples.
fn folded(costly: u64) -> String {
    let others = (0..40).map(|number| format!("main;quiet_{number} {}\n", 10_000 + number));
    others.chain([format!("main;costly {costly}\n")]).collect()
}

struct Sides {
    folder: TempDir,
    base: String,
    head: String,
}

impl Sides {
    fn of(base: &str, head: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (base, head) = (write("base.folded", base), write("head.folded", head));
        Self { folder, base, head }
    }

    /// One function costs twice as much in the head.
    fn changed() -> Self {
        Self::of(&folded(10_000), &folded(20_000))
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn diff(&self, more: &[&str]) -> Run {
        run(&[&["diff", &self.base, &self.head], more].concat())
    }
}

#[test]
fn two_files_are_base_and_head() {
    let sides = Sides::changed();
    let named = run(&["diff", "--base", &sides.base, "--head", &sides.head]);
    let found = sides.diff(&[]);
    assert_eq!((found.code, &found.stdout), (0, &named.stdout), "{}", found.stderr);
    assert!(found.stdout.contains("costly"), "{}", found.stdout);
    let (base, head) = (sides.base.as_str(), sides.head.as_str());
    for (files, said) in [
        (vec![base], "expected two"),
        (vec![base, head, head], "3 files without a side"),
        (vec![base, head, "--base", base], "others with --base or --head"),
        (vec!["--base", base], "no file of the canary"),
        (vec!["--head", head], "no file of the baseline"),
        (vec![], "no file of the baseline, and none of the canary"),
        (vec!["-", "-"], "which can be read once"),
        (vec!["--base", "-", base, "--head", "-"], "which can be read once"),
    ] {
        let refused = run(&[&["diff"], &files[..]].concat());
        let has_hint =
            refused.stderr.contains("fleetdiff diff BASE HEAD") || refused.stderr.contains("to a file first");
        assert!(refused.code == 2 && refused.stderr.contains(said) && has_hint, "{files:?}: {}", refused.stderr);
    }
}

#[test]
fn standard_input_is_known_by_its_bytes() {
    let sides = Sides::changed();
    let expected = sides.diff(&["-q"]).stdout;
    let packed = sides.path("packed");
    let gzip = std::process::Command::new("gzip").args(["-c", &sides.head]).output().unwrap();
    std::fs::write(&packed, gzip.stdout).unwrap();
    for file in [sides.head.as_str(), &packed] {
        let found =
            command(&["diff", "-q", &sides.base, "-"]).stdin(Stdio::from(File::open(file).unwrap())).output().unwrap();
        let said = String::from_utf8_lossy(&found.stderr);
        assert_eq!(String::from_utf8_lossy(&found.stdout), expected, "{said}");
    }
    let empty = run(&["diff", &sides.base, "-"]);
    assert!(empty.code == 1 && empty.stderr.contains("standard input"), "{}", empty.stderr);
}

#[test]
fn the_ending_of_the_file_names_the_format() {
    let sides = Sides::changed();
    let written = |name: &str, more: &[&str]| {
        let path = sides.path(name);
        let run = sides.diff(&[&["--output", &path], more].concat());
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        std::fs::read(path).unwrap()
    };
    for (name, format) in [
        ("a.txt", "table"),
        ("a.html", "html"),
        ("a.svg", "svg"),
        ("a.json", "json"),
        ("A.CSV", "csv"),
        ("a.parquet", "parquet"),
        ("a.md", "markdown"),
        ("a.folded", "difffolded"),
        ("a.difffolded", "difffolded"),
        ("a.speedscope.json", "speedscope"),
    ] {
        assert!(written(name, &[]) == written("asked", &["--format", format]), "{name} is not {format}");
    }
    assert!(written("b.json", &["--format", "csv"]) == written("b.csv", &[]), "--format does not decide");
    assert_eq!(sides.diff(&["--output", &sides.path("pair.pb.gz")]).code, 0);
    assert!(Path::new(&sides.path("pair.head.pb.gz")).exists());
    for name in ["a.pdf", "nothing"] {
        let refused = sides.diff(&["--output", &sides.path(name)]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let listed =
            [".txt", ".speedscope.json", ".pb.gz", "--format"].iter().all(|text| refused.stderr.contains(text));
        assert!(listed && !Path::new(&sides.path(name)).exists(), "{}", refused.stderr);
    }
}

#[test]
fn what_to_fail_on_has_a_code_of_its_own_and_the_result_is_written() {
    let sides = Sides::changed();
    let output = sides.path("found.json");
    let found = sides.diff(&["--fail-on", "stands-out", "--output", &output]);
    assert!(found.code == 3 && found.stderr.contains("--fail-on stands-out: costly"), "{}", found.stderr);
    assert!(std::fs::read_to_string(&output).unwrap().contains("stands_out"));
    // With one run a side nothing is known to have regressed, and what is cheaper is no failure.
    assert_eq!(sides.diff(&["--fail-on", "regressed"]).code, 0);
    let cheaper = Sides::of(&folded(20_000), &folded(10_000)).diff(&["--fail-on", "regressed,stands-out"]);
    assert!(cheaper.code == 0 && cheaper.stdout.contains("stands_out"), "{}", cheaper.stdout);
    let same = Sides::of(&folded(10_000), &folded(10_010)).diff(&["--fail-on", "stands-out"]);
    assert_eq!(same.code, 0, "{}", same.stdout);
    // The article's rule calls it regressed, and stands-out includes that.
    for what in ["regressed", "stands-out", "regressed,stands-out"] {
        assert_eq!(sides.diff(&["--method", "article", "--fail-on", what]).code, 3);
    }
    assert_eq!(sides.diff(&["--columns", "--method", "article", "--fail-on", "regressed"]).code, 3);
}

#[test]
fn colours_are_for_terminals() {
    let sides = Sides::changed();
    let arguments = ["diff", &sides.base, &sides.head];
    let bold = |stdout: &str| stdout.lines().any(|line| line.starts_with("\u{1b}[1m") && line.contains("costly"));
    let narrow = [("COLUMNS", "20")];
    assert_eq!(run_with(&arguments, &narrow).stdout, run(&arguments).stdout);
    assert!(!run(&arguments).stdout.contains('\u{1b}'));
    let forced = run_with(&arguments, &[("CLICOLOR_FORCE", "1")]);
    assert!(bold(&forced.stdout), "{}", forced.stdout);
    assert!(!run_with(&arguments, &[("NO_COLOR", "1")]).stdout.contains('\u{1b}'));
    let file = sides.path("table.txt");
    run_with(&[&arguments[..], &["--output", &file]].concat(), &[("CLICOLOR_FORCE", "1")]);
    assert!(!std::fs::read_to_string(file).unwrap().contains('\u{1b}'));
}

#[test]
fn the_same_file_on_both_sides_is_noted() {
    let sides = Sides::of(&folded(10_000), &folded(10_000));
    let noted = sides.diff(&[]);
    assert!(noted.code == 0 && noted.stderr.contains("hold the same bytes"), "{}", noted.stderr);
    let other = format!("{}/./base.folded", sides.folder.path().display());
    let noted = run(&["diff", &sides.base, &other]);
    assert!(noted.stderr.contains("is on both sides"), "{}", noted.stderr);
    let differ = Sides::of(&folded(10_000), &folded(10_001)).diff(&[]);
    assert!(!differ.stderr.contains("both sides") && !differ.stderr.contains("same bytes"), "{}", differ.stderr);
}

#[test]
fn a_filter_that_leaves_nothing_is_an_error() {
    let sides = Sides::of("main;a 600\nmain;b 500\n", "main;a 600\nmain;c 500\n");
    let said = |names: &str| sides.diff(&["--symbols", names]).stderr;
    assert!(said("c").contains("the base does not have a single sample that passes --symbols"), "{}", said("c"));
    assert!(said("b").contains("the head does not have a single sample that passes --symbols"), "{}", said("b"));
    assert!(
        said("none").contains("neither base nor head has a single sample that passes --symbols"),
        "{}",
        said("none")
    );
    assert!(!said("a").contains("single sample"), "{}", said("a"));
}
