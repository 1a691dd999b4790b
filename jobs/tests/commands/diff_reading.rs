//! `diff` with the options of `perf diff` that say what is read from a file.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::program::{Run, recorded, run};

/// A sample of `perf script`, and how often it occurs in the text, a tenth of a second apart.
struct Block {
    thread: &'static str,
    cpu: u32,
    /// Function and file, leaf first.
    frames: &'static [(&'static str, &'static str)],
    times: u32,
}

const ENCODE: &[(&str, &str)] = &[("encode", "/srv/shop"), ("main", "/srv/shop")];
const SEND: &[(&str, &str)] = &[("send", "/usr/lib/libc.so.6"), ("main", "/srv/shop")];
const COLLECT: &[(&str, &str)] = &[("collect", "/srv/shop")];

fn blocks(encode: u32) -> [Block; 3] {
    [
        Block { thread: "shop 11/11", cpu: 0, frames: ENCODE, times: encode },
        Block { thread: "shop 11/12", cpu: 1, frames: SEND, times: 100 },
        Block { thread: "GC Thread 11/13", cpu: 1, frames: COLLECT, times: 100 },
    ]
}

/// The text, its samples in the order of the blocks.
fn text(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut tenths = 1_000;
    for Block { thread, cpu, frames, times } in blocks {
        for _ in 0..*times {
            writeln!(text, "{thread} [{cpu:03}] {}.{}00000:    1000 cycles:P: ", tenths / 10, tenths % 10).unwrap();
            for (function, file) in *frames {
                writeln!(text, "\t    55d010 {function}+0x10 ({file})").unwrap();
            }
            writeln!(text).unwrap();
            tenths += 1;
        }
    }
    text
}

/// Two files, of which the head has more of `encode`.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self::of(&text(&blocks(100)), &text(&blocks(300)), "perf_script")
    }

    fn of(base: &str, head: &str, ending: &str) -> Self {
        let files = Self { folder: TempDir::new().unwrap() };
        fs::write(files.folder.path().join(format!("base.{ending}")), base).unwrap();
        fs::write(files.folder.path().join(format!("head.{ending}")), head).unwrap();
        files
    }

    fn path(&self, name: &str) -> String {
        let found = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let starts = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with(name);
        found.into_iter().find(|path| starts(path)).unwrap().to_str().unwrap().to_owned()
    }

    fn diff(&self, options: &[&str]) -> Run {
        let (base, head) = (self.path("base"), self.path("head"));
        run(&[&["diff", "--base", &base, "--head", &head, "--top", "0", "--min-count", "1"], options].concat())
    }

    /// The rows of a run that succeeded.
    fn rows(&self, options: &[&str]) -> Rows {
        let run = self.diff(options);
        assert_eq!(run.code, 0, "{options:?}: {}", run.stderr);
        Rows(run.stdout)
    }

    /// The message of a run that failed.
    fn fault(&self, options: &[&str]) -> String {
        let run = self.diff(options);
        assert!(run.code != 0 && run.stdout.is_empty(), "{options:?}: {}", run.stdout);
        run.stderr
    }
}

struct Rows(String);

impl Rows {
    /// Shares of base and head in percent.
    fn shares(&self, function: &str) -> Option<[String; 2]> {
        let line = self.0.lines().find(|line| line.ends_with(&format!("  {function}")) && line.contains('%'))?;
        let mut numbers = line.split('%').map(|part| part.trim().to_owned());
        Some([numbers.next()?, numbers.next()?])
    }

    fn has(&self, function: &str, base: &str, head: &str) {
        assert_eq!(self.shares(function), Some([base.to_owned(), head.to_owned()]), "{function}:\n{}", self.0);
    }

    fn has_none(&self, function: &str) {
        assert_eq!(self.shares(function), None, "{}", self.0);
    }
}

#[test]
fn frames_are_named_by_the_keys_asked_for() {
    let files = Files::new();
    files.rows(&[]).has("encode", "33.33", "60.00");
    files.rows(&["-s", "dso"]).has("shop", "66.67", "80.00");
    files.rows(&["--sort", "comm,dso,symbol"]).has("shop  libc.so.6  send", "33.33", "20.00");
    files.rows(&["-s", "cpu"]).has("000", "33.33", "60.00");
    files.rows(&["-s", "tid"]).has("13:GC Thread", "33.33", "20.00");
    files.rows(&["-s", "parent,symbol", "--parent", "^main$"]).has("main  encode", "33.33", "60.00");
}

#[test]
fn filters_leave_out_and_shares_stay_what_they_were() {
    let files = Files::new();
    for filter in [["-S", "send"], ["-d", "libc.so.6"], ["--tid", "12"]] {
        let rows = files.rows(&filter);
        rows.has("send", "33.33", "20.00");
        rows.has_none("encode");
    }
    files.rows(&["-C", "GC Thread"]).has("collect", "33.33", "20.00");
    let relative = files.rows(&["--percentage", "relative", "-S", "send,encode"]);
    relative.has("send", "50.00", "25.00");
    relative.has("encode", "50.00", "75.00");
    files.rows(&["--pid", "11"]).has("encode", "33.33", "60.00");
    let cpu = files.rows(&["--cpu", "1-3"]);
    cpu.has("send", "50.00", "50.00");
    cpu.has_none("encode");
}

#[test]
fn a_list_may_be_in_a_file() {
    let files = Files::new();
    let list = files.folder.path().join("functions");
    fs::write(&list, "send\nencode\n").unwrap();
    let rows = files.rows(&["-S", &format!("file://{}", list.display())]);
    rows.has("encode", "33.33", "60.00");
    rows.has_none("collect");
}

#[test]
fn stretches_of_time_and_a_warm_up() {
    let files = Files::new();
    // The first 10 s of both are of encode alone.
    files.rows(&["--time", "110,"]).has("encode", "0.00", "50.00");
    files.rows(&["--time", "110,:130,"]).has("send", "50.00", "50.00");
    files.rows(&["--time", "50%-100%:80%-100%"]).has_none("encode");
    files.rows(&["--crop", "5s"]).has("encode", "20.00", "55.56");
    let fault = files.fault(&["--crop", "5m"]);
    assert!(fault.contains("base.perf_script holds no sample in the time asked for: its first is at 100.000000 s and its last at 129.900000 s"), "{fault}");
    let fault = files.fault(&["--time", "1,2:3,4:5,6"]);
    assert!(fault.contains("--time names 3 stretches separated by ':' for 2 files"), "{fault}");
}

/// pprof has the time of a profile, but not of its samples.
#[test]
fn files_that_lie_within_the_warm_up_of_their_side_are_left_out_whole() {
    let file = |pod: u32, number: u32| {
        recorded("kv-snapshot").join(format!("profiles/kv-{pod:02}/cpu-{number:03}.pb.gz")).to_str().unwrap().to_owned()
    };
    let side = |pod: u32| (0..4).map(|number| file(pod, number)).collect::<Vec<_>>();
    let (base, head) = (side(0), side(1));
    let diff = |crop: &str| {
        let paths = |side: &[String]| side.to_vec();
        let args = [
            vec!["diff".to_owned(), "--base".to_owned()],
            paths(&base),
            vec!["--head".to_owned()],
            paths(&head),
            vec!["--crop".to_owned(), crop.to_owned()],
        ]
        .concat();
        run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let whole = diff("0s");
    assert!(whole.code == 0 && whole.stdout.contains("in 4 runs, head"), "{}{}", whole.stdout, whole.stderr);
    let later = diff("15s");
    assert!(
        later.code == 0 && later.stdout.contains("in 2 runs, head") && later.stdout.contains("in 2 runs\n"),
        "{}{}",
        later.stdout,
        later.stderr
    );
    for side in ["base", "head"] {
        assert!(
            later.stderr.contains(&format!(
                "2 of 4 files of the {side} begin less than 15 s after its first and are left out whole"
            )),
            "{}",
            later.stderr
        );
    }
    let nothing = diff("1h");
    assert!(
        nothing.code != 0
            && nothing
                .stderr
                .contains("every file of the base begins less than 3600 s after its first: nothing is left"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn chains_of_calls_are_compared_whole() {
    let rows = Files::new().rows(&["--stream"]);
    rows.has("shop;main;encode", "33.33", "60.00");
    rows.has("GC_Thread;collect", "33.33", "20.00");
    Files::new().rows(&["--stream", "-s", "dso"]).has("shop;libc.so.6", "33.33", "20.00");
}

#[test]
fn counts_that_are_multiples_of_a_period_are_divided_with_a_note() {
    let folded = |encode: u64| {
        let lines = [("main;encode", encode), ("main;send", 99), ("main", 84)].into_iter();
        let single = std::iter::repeat_n(("main", 1), 17);
        let text = lines.chain(single).map(|(stack, count)| format!("{stack} {}\n", count * 10_101_010));
        text.collect::<String>()
    };
    let files = Files::of(&folded(100), &folded(300), "folded");
    let run = files.diff(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for file in ["base", "head"] {
        let note = format!(
            "{file}.folded is a multiple of 10,101,010, which is taken for the period: counts are divided by it"
        );
        assert!(run.stderr.contains(&note), "{}", run.stderr);
    }
    Rows(run.stdout).has("encode", "33.33", "60.00");
}

#[test]
fn what_a_file_does_not_say_is_reported_with_its_name_and_the_key() {
    let files = Files::of("main;work 7\nmain;wait 3\n", "main;work 9\nmain;wait 3\n", "folded");
    for (options, what) in [
        (["-s", "cpu"], "on which processor a sample was taken (cpu)"),
        (["-s", "dso"], "which program or library a frame is of (dso)"),
        (["--cpu", "0"], "on which processor a sample was taken (cpu)"),
        (["--pid", "1"], "of which process a sample was taken (pid)"),
        (["-C", "shop"], "the name of the thread that a sample was taken of (comm)"),
        (["-s", "srcline"], "of which line of the source a frame is (srcline)"),
        (["--time", "1,2"], "when its samples were taken"),
        (["--crop", "1s"], "when its samples were taken"),
    ] {
        let fault = files.fault(&options);
        assert!(
            fault.contains("base.folded does not say") && fault.contains(what) && fault.contains("hint:"),
            "{options:?}: {fault}"
        );
    }
}

#[test]
fn wrong_values_are_refused() {
    let files = Files::new();
    for (options, what) in [
        (["-s", "foo"], "expected some of comm, pid, tid, dso, symbol, cpu, parent, srcline"),
        (["--parent", "("], "unclosed group"),
        (["--cpu", "x"], "is no number, expected a list such as 0,2-3"),
        (["--pid", ""], "is no number"),
        (["--tid", "3-1"], "ends before it begins"),
        (["--time", "x"], "is no stretch of time"),
        (["--time", "20%/6"], "is no stretch of time"),
        (["--crop", "5"], "a duration"),
        (["--percentage", "half"], "possible values: relative, absolute"),
        (["-S", ""], "no name, expected some separated by commas"),
        (["-d", "file:///nowhere/at/all"], "cannot read /nowhere/at/all"),
        (["--q", "5"], "expected a rate between 0 and 1"),
        (["--q", "nan"], "expected a rate between 0 and 1"),
        (["--min-effect", "nan"], "expected a log ratio"),
        (["--min-effect", "inf"], "expected a log ratio"),
        (["--background", "-1"], "unexpected argument"),
        (["--name-rules-off", "jmv"], "\"jmv\" is no rule of names, did you mean \"jvm\"?"),
        (["--rewrites", "a -> b"], "expected PATTERN => REPLACEMENT"),
    ] {
        let run = files.diff(&options);
        assert!(run.code == 2 && run.stderr.contains(what), "{options:?}: {} {}", run.code, run.stderr);
    }
    let fault = files.fault(&["--percentage", "relative", "-S", "nothing"]);
    assert!(
        fault.contains("base.perf_script holds no sample that the filters leave")
            && fault.contains("--percentage absolute"),
        "{fault}"
    );
    let fault = files.fault(&["--cpu", "17"]);
    assert!(fault.contains("none is of the processors asked for"), "{fault}");
}
