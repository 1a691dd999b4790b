//! Twelve etcd pods as they were recorded: the page of a real pair.
//!
//! The significant functions here are those that fleets/README.md states to differ; the other figures come from counts
//! alone, without a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleetdiff_diff::compare::nobody;
use fleetdiff_diff::flame::{CallTree, Run};
use fleetdiff_diff::page::{FrameClass, Function, Report, page};
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;
use fleetdiff_formats::names::FrameClass as NameClass;
use fleetdiff_formats::{Format, Labels, Options};
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_schemas::verdict::Verdict;
use serde_json::Value;

use super::{Browser, reports};

/// A pair of builds of one cohort, and the functions that are known to differ, by the ends of their names.
struct Pair {
    fleet: &'static str,
    format: Format,
    cohort: &'static str,
    title: &'static str,
    /// Nanoseconds between samples.
    period: f64,
    slower: &'static [&'static str],
    faster: &'static [&'static str],
}

const ETCD: Pair = Pair {
    fleet: "kv-snapshot",
    format: Format::Pprof,
    cohort: "ingest",
    title: "etcd, cohort ingest: --snapshot-count 100 against 100000",
    period: 1e9 / 100.0,
    slower: &[],
    faster: &["etcdserver.(*EtcdServer).snapshot.func1", "runtime.gcBgMarkWorker", "runtime.scanobject"],
};

const REDIS: Pair = Pair {
    fleet: "rd-listpack",
    format: Format::Folded,
    cohort: "session",
    title: "redis, cohort session: hashes of 300 fields as hash tables against listpacks",
    period: 1e9 / 1999.0,
    slower: &["lpFind", "__memcmp_evex_movbe", "lpFirst"],
    faster: &["dictFind", "dictSdsKeyCompare"],
};

/// What a pod recorded: all its profiles, each with names of its own.
#[derive(Default)]
struct Pod {
    names: Vec<Arc<str>>,
    stacks: Vec<Stack>,
}

impl Pod {
    fn add(&mut self, profile: Profile) {
        let Samples::Stacks(stacks) = profile.samples else { panic!("a recorded profile is folded") };
        let first = u32::try_from(self.names.len()).unwrap();
        self.names.extend(profile.names.iter().cloned());
        self.stacks.extend(
            stacks
                .into_iter()
                .map(|stack| Stack { frames: stack.frames.iter().map(|frame| first + frame).collect(), ..stack }),
        );
    }

    fn run(&self) -> Run<'_> {
        Run { names: &self.names, stacks: &self.stacks }
    }
}

/// Pods of builds A and A2, and those of B.
fn pods(pair: &Pair) -> [Vec<Pod>; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleets").join(pair.fleet);
    let mut decoder = pair.format.decoder(&Options::default());
    let mut sides = [BTreeMap::new(), BTreeMap::new()];
    for line in cpu_profiles(&folder, pair.cohort) {
        let side = &mut sides[usize::from(line["build"] == "B")];
        let pod: &mut Pod = side.entry(line["pod"].as_str().unwrap().to_owned()).or_default();
        let bytes = fs::read(folder.join(line["file"].as_str().unwrap())).unwrap();
        for part in decoder.decode(&bytes, &Ok(labels())) {
            pod.add(part.unwrap());
        }
    }
    sides.map(|side| side.into_values().collect())
}

/// The lines of a fleet's manifest that name CPU profiles of a cohort, by the end of the profiles.
fn cpu_profiles(folder: &Path, cohort: &str) -> Vec<Value> {
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let lines = manifest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut lines: Vec<Value> =
        lines.filter(|line| line["profile_type"] == "cpu" && line["cohort"] == cohort).collect();
    lines.sort_by_key(|line| line["end_unix_nano"].as_i64().unwrap());
    lines
}

/// The same identity for all of them: it does not matter here.
fn labels() -> Labels {
    Labels {
        identity: Arc::new(nobody()),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: Some(TimeRange { start: Nanos(1), end: Nanos(2) }),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
        period: None,
        root_is_thread: false,
    }
}

/// Samples by function, anywhere on the stack, and the number of all samples.
fn counted(pods: &[Pod]) -> (BTreeMap<Arc<str>, u64>, u64) {
    let mut counts = BTreeMap::new();
    let mut all = 0;
    for stack in pods.iter().flat_map(|pod| pod.stacks.iter().map(move |stack| (pod, stack))) {
        let (pod, stack) = stack;
        all += stack.count;
        let on_stack: std::collections::BTreeSet<_> =
            stack.frames.iter().map(|&frame| &pod.names[usize::try_from(frame).unwrap()]).collect();
        for name in on_stack {
            *counts.entry(Arc::clone(name)).or_default() += stack.count;
        }
    }
    (counts, all)
}

fn class(name: &str) -> FrameClass {
    match NameClass::of(name) {
        NameClass::Program | NameClass::Unknown => FrameClass::User,
        NameClass::Runtime => FrameClass::Runtime,
        NameClass::Native | NameClass::Kernel => FrameClass::System,
    }
}

/// The interval is that of counts that differ by chance alone.
fn row(pair: &Pair, name: &Arc<str>, counts: [u64; 2], all: [u64; 2]) -> Function {
    let ends = |known: &[&str]| known.iter().any(|end| name.ends_with(end));
    let mut row = reports::function(name, class(name), Verdict::Inconclusive, counts, all);
    let spread = |ratio: f64| {
        1.96 * ratio * (counts.iter().map(|&count| 1.0 / f64::from(u32::try_from(count).unwrap()))).sum::<f64>().sqrt()
    };
    if let Some(ratio) = row.ratio.as_mut() {
        let wide = if counts[1] > 0 { spread(ratio.estimate) } else { 0.0 };
        ratio.low = (ratio.estimate - wide).max(0.0);
        ratio.high = ratio.estimate + wide;
    }
    let is_narrow = row.ratio.is_some_and(|ratio| ratio.low > 0.8 && ratio.high < 1.25 && counts[1] > 0);
    row.verdict = match () {
        () if ends(pair.slower) => Verdict::Regressed,
        () if ends(pair.faster) => Verdict::Improved,
        () if counts[0] + counts[1] < 30 => Verdict::TooRare,
        () if is_narrow => Verdict::Equivalent,
        () => Verdict::Inconclusive,
    };
    row.significant = row.verdict.is_significant();
    if row.significant {
        (row.ln_p, row.q_value) = (Some(-20.0), Some(1e-6));
    }
    row
}

fn report(pair: &Pair) -> Report {
    let [base, head] = pods(pair);
    let ((base_counts, base_all), (head_counts, head_all)) = (counted(&base), counted(&head));
    let names: std::collections::BTreeSet<_> = base_counts.keys().chain(head_counts.keys()).collect();
    let of = |counts: &BTreeMap<Arc<str>, u64>, name: &Arc<str>| counts.get(name).copied().unwrap_or(0);
    let functions = names
        .into_iter()
        .map(|name| row(pair, name, [of(&base_counts, name), of(&head_counts, name)], [base_all, head_all]))
        .collect();
    let runs = |pods: &[Pod]| u32::try_from(pods.len()).unwrap();
    let mut sides = [reports::side("builds A and A2", base_all), reports::side("build B", head_all)];
    sides[0].runs = runs(&base);
    sides[1].runs = runs(&head);
    let float = |count: u64| f64::from(u32::try_from(count).unwrap());
    sides.iter_mut().for_each(|side| side.total = float(side.samples.unwrap()) * pair.period);
    let whole = |all: u64, pods: &[Pod]| float(all) / f64::from(runs(pods));
    let [base_side, head_side] = sides;
    Report {
        title: pair.title.to_owned(),
        headline: format!("{} functions cost more in build B, {} less.", pair.slower.len(), pair.faster.len()),
        caution: String::new(),
        base: base_side,
        head: head_side,
        head_weight: whole(base_all, &base) / whole(head_all, &head),
        functions,
        tree: CallTree::merge(
            &base.iter().map(Pod::run).collect::<Vec<_>>(),
            &head.iter().map(Pod::run).collect::<Vec<_>>(),
        ),
    }
}

/// Where pictures are written on request, for people to look at.
fn pictures() -> Option<PathBuf> {
    std::env::var_os("FLEETDIFF_PICTURES").map(PathBuf::from)
}

fn picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = pictures() {
        browser.settle();
        browser.screenshot(&folder.join(format!("{name}.png")));
    }
}

fn look_at(pair: &Pair) {
    let report = report(pair);
    let html = page(&report).unwrap();
    if let Some(folder) = pictures() {
        std::fs::write(folder.join(format!("{}.html", pair.fleet)), &html).unwrap();
        std::fs::write(folder.join(format!("{}.svg", pair.fleet)), svg(&report, Palette::OrangeBlue)).unwrap();
    }
    let mut browser = Browser::start(1440, 1000, 1);
    browser.open(&html, "");
    // The page shows what was decoded.
    let totals = browser.evaluate("[recorded.base[0], recorded.head[0]]");
    assert_eq!(totals, serde_json::json!([report.base.samples, report.head.samples]));
    let coloured = browser.evaluate(
        "[...new Set([...Array(state.tree.size).keys()].filter((node) => state.paint[node] >= RAMPS).map((node) => names[state.tree.name[node]]))]",
    );
    let coloured: Vec<_> = coloured.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let known: Vec<_> = pair.slower.iter().chain(pair.faster).collect();
    assert!(coloured.iter().all(|name| known.iter().any(|end| name.ends_with(*end))), "{coloured:?}");
    assert!(known.iter().all(|end| coloured.iter().any(|name| name.ends_with(*end))), "{coloured:?}");
    let significant = browser.number("document.querySelectorAll('#significant tbody tr').length");
    assert_eq!(significant, report.functions.iter().filter(|row| row.significant).map(|_| 1.0).sum::<f64>());
    walk(&mut browser, pair);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

/// All shapes and schemes of one page, one after the other.
fn walk(browser: &mut Browser, pair: &Pair) {
    let name = |what: &str| format!("{}-{what}", pair.fleet);
    picture(browser, &name("light"));
    browser.evaluate("canvas.focus()");
    for _ in 0..3 {
        browser.press("ArrowDown");
    }
    picture(browser, &name("focus"));
    browser.evaluate("canvas.blur(); document.querySelector('#significant button').click()");
    picture(browser, &name("zoomed"));
    browser.evaluate("scrollTo(0, 100000)");
    picture(browser, &name("table"));
    browser.evaluate("scrollTo(0, 0)");
    browser.press("Escape");
    browser.press("Escape");
    browser.press("i");
    picture(browser, &name("inverted"));
    browser.press("i");
    browser.press("c");
    picture(browser, &name("folded"));
    browser.press("c");
    browser.prefer("dark");
    picture(browser, &name("dark"));
    browser.press("?");
    picture(browser, &name("keys"));
}

#[test]
fn recorded_etcd() {
    look_at(&ETCD);
}

#[test]
fn recorded_redis() {
    look_at(&REDIS);
}
