//! A comparison of two sides on a laptop: the tests, the call tree, the page and the picture, compared with a plain
//! merge by function.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench diff -- [--quick]`; see README.md of this folder.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use fleetdiff_benches::pair::{Program, report, stacks, tree};
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_diff::compare::{Compared, Finding, Recording, Settings, compare};
use fleetdiff_diff::flame::Sides;
use fleetdiff_diff::page::page;
use fleetdiff_diff::paint::Palette;
use fleetdiff_diff::svg::svg;
use fleetdiff_schemas::profile::CountKind;
use tikv_jemallocator::Jemalloc;

// The program's allocator.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Passes of each; `--quick` has fewer.
const WHOLE: usize = 21;
const QUICK: usize = 5;

fn main() -> ExitCode {
    let options: Vec<String> = std::env::args().skip(1).filter(|option| option != "--bench").collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let passes = match options.as_slice() {
        [] => WHOLE,
        ["--quick"] => QUICK,
        unknown => {
            let _ = writeln!(std::io::stderr(), "unknown options {unknown:?}; there is --quick");
            return ExitCode::from(2);
        }
    };
    let program = Program::seeded(1);
    for runs in [1, 8] {
        measure(&program.sides(runs), &program.slower(), passes);
    }
    ExitCode::SUCCESS
}

fn measure(sides: &Sides<Vec<Recording>>, slower: &[&str], passes: usize) {
    let settings = Settings::default();
    let compared = compare(sides, &settings).unwrap_or_else(|fault| panic!("{fault}"));
    agree(&compared, &merge(sides));
    let report = report(&compared, tree(sides));
    let html = page(&report).unwrap_or_else(|fault| panic!("{fault}"));
    let picture = svg(&report, Palette::OrangeBlue);
    let significant = |kind| compared.of_kind(kind).filter(|finding| finding.is_shown_first()).count();
    let found = compared
        .of_kind(CountKind::SelfCount)
        .filter(|finding| finding.is_shown_first() && slower.contains(&&*finding.function))
        .count();
    say(&format!(
        "\n{} runs a side, {} stacks in {} and {} samples; {} functions, {} called by self counts ({found} of the {} that cost more) and {} by total; {} nodes",
        compared.runs.base,
        sides.base.iter().chain(&sides.head).map(|run| stacks(run).len()).sum::<usize>(),
        compared.totals().base,
        compared.totals().head,
        compared.of_kind(CountKind::SelfCount).count(),
        significant(CountKind::SelfCount),
        slower.len(),
        significant(CountKind::Total),
        report.tree.nodes().len(),
    ));
    let mut times: [Vec<f64>; 5] = std::array::from_fn(|_| Vec::with_capacity(passes));
    // In turn, so that a disturbance of the machine affects all equally; the first pass of each warms it up.
    for pass in 0..=passes {
        let spent = [
            clocked(|| merge(sides)),
            clocked(|| compare(sides, &settings)),
            clocked(|| tree(sides)),
            clocked(|| page(&report)),
            clocked(|| svg(&report, Palette::OrangeBlue)),
        ];
        if pass > 0 {
            times.iter_mut().zip(spent).for_each(|(times, spent)| times.push(spent));
        }
    }
    let [plain, whole, merged, html_ms, svg_ms] = times.map(Spread::of);
    let line = |what: &str, spread: Spread, more: String| say(&format!("  {what:36} {spread} ms{more}"));
    line("plain merge by function, the peer", plain, String::new());
    line("compare", whole, format!(": x {:.1} of the peer", whole.median / plain.median));
    line("call tree of both sides", merged, String::new());
    line("page", html_ms, format!(": {} bytes", html.len()));
    line("svg", svg_ms, format!(": {} bytes", picture.len()));
}

/// Milliseconds of one call, including the time to drop its output.
fn clocked<T>(call: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    drop(black_box(call()));
    milliseconds(start)
}

/// Self and total counts of each function on both sides.
type Counts<'a> = HashMap<&'a str, [Sides<u64>; 2]>;

/// The least that any comparison has to do: all stacks, once, into one map.
fn merge(sides: &Sides<Vec<Recording>>) -> Counts<'_> {
    let mut counts: Counts<'_> = HashMap::new();
    let mut on_stack: Vec<u32> = Vec::new();
    for (is_head, side) in [(false, &sides.base), (true, &sides.head)] {
        for run in side {
            for stack in stacks(run) {
                on_stack.clone_from(&stack.frames);
                on_stack.sort_unstable();
                on_stack.dedup();
                let mut add = |frame: u32, kind: usize| {
                    let name = usize::try_from(frame).ok().and_then(|frame| run.profile.names.get(frame));
                    let sum = &mut counts.entry(name.map_or("", |name| name)).or_default()[kind];
                    *(if is_head { &mut sum.head } else { &mut sum.base }) += stack.count;
                };
                on_stack.iter().for_each(|frame| add(*frame, 1));
                stack.frames.last().into_iter().for_each(|leaf| add(*leaf, 0));
            }
        }
    }
    counts
}

/// Panics unless both have the same counts: otherwise the comparison would be meaningless.
fn agree(compared: &Compared, plain: &Counts<'_>) {
    for (place, kind) in [CountKind::SelfCount, CountKind::Total].into_iter().enumerate() {
        let findings: Vec<&Finding> = compared.of_kind(kind).filter(|finding| finding.functions.is_none()).collect();
        assert!(findings.len() > 3_000, "{} functions", findings.len());
        for finding in findings {
            assert_eq!(
                plain.get(&*finding.function).map(|counts| counts[place]),
                finding.count,
                "{}",
                finding.function
            );
        }
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
