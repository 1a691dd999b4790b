//! Reports whose picture is known.

use std::sync::Arc;

use fleetdiff_diff::flame::{CallTree, Run};
use fleetdiff_diff::page::{FrameClass, Function, Ratio, Replicate, Report, ReportSide};
use fleetdiff_schemas::profile::{CountKind, Stack};
use fleetdiff_schemas::verdict::Verdict;

/// Stacks as text, `A;B;C`, with their counts.
pub type Counts<'a> = &'a [(&'a str, u64)];

/// Names and stacks of one run.
pub fn run_of(counts: Counts<'_>) -> (Vec<Arc<str>>, Vec<Stack>) {
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut stacks = Vec::new();
    for &(stack, count) in counts {
        let frames = stack.split(';').map(|name| {
            let known = names.iter().position(|known| **known == *name);
            let place = known.unwrap_or_else(|| {
                names.push(name.into());
                names.len() - 1
            });
            u32::try_from(place).unwrap()
        });
        let frames = frames.collect();
        stacks.push(Stack { frames, count, cohort: None, value: 0 });
    }
    (names, stacks)
}

pub fn function(name: &str, class: FrameClass, verdict: Verdict, counts: [u64; 2], of: [u64; 2]) -> Function {
    #[expect(clippy::as_conversions, reason = "counts of a test are small")]
    let [base, head] = [counts[0] as f64 / of[0].max(1) as f64, counts[1] as f64 / of[1].max(1) as f64];
    let ratio = (base > 0.0).then(|| Ratio { estimate: head / base, low: 0.9 * head / base, high: 1.1 * head / base });
    Function {
        name: name.into(),
        class,
        counted: CountKind::Total,
        verdict,
        reason: (base <= 0.0).then(|| "only_in_head".to_owned()),
        cause: None,
        significant: verdict.is_significant(),
        base_count: Some(counts[0]),
        head_count: Some(counts[1]),
        base_share: base,
        head_share: head,
        ratio,
        ln_p: Some(if verdict.is_significant() { -800.0 } else { -0.5 }),
        q_value: Some(if verdict.is_significant() { 1e-9 } else { 0.7 }),
    }
}

pub fn side(label: &str, samples: u64) -> ReportSide {
    ReportSide {
        replicate: Replicate::Run,
        label: label.to_owned(),
        runs: 1,
        samples: Some(samples),
        sample_type: "cpu".to_owned(),
        unit: "nanoseconds".to_owned(),
        total: 1e9,
    }
}

pub const BASE: Counts<'static> = &[
    ("main;serve;parse", 300),
    ("main;serve;encode", 100),
    ("main;serve;encode;runtime.alloc;runtime.sweep", 40),
    ("main;serve;runtime.alloc;runtime.sweep", 60),
    ("main;serve;legacy", 100),
    ("main;poll", 400),
];

pub const HEAD: Counts<'static> = &[
    ("main;serve;parse", 300),
    ("main;serve;encode", 260),
    ("main;serve;encode;runtime.alloc;runtime.sweep", 40),
    ("main;serve;compress", 50),
    ("main;serve;runtime.alloc;runtime.sweep", 60),
    ("main;serve;legacy", 20),
    ("main;poll", 270),
];

/// A thousand samples a side: `encode` and `compress` are significantly more expensive, `legacy` cheaper, `parse` and the
/// runtime equivalent, `poll` is inconclusive, and `main` and `serve` were not tested.
pub fn small() -> Report {
    use FrameClass::{Runtime, User};
    let (base, head) = (run_of(BASE), run_of(HEAD));
    let tree = CallTree::merge(&[Run { names: &base.0, stacks: &base.1 }], &[Run { names: &head.0, stacks: &head.1 }]);
    let row = |name, class, verdict, counts| function(name, class, verdict, counts, [1000, 1000]);
    Report {
        title: "encode </script><b> & 'friends'\u{2028}".to_owned(),
        headline: "encode is slower: 14 % of samples before, 30 % after.".to_owned(),
        caution: String::new(),
        base: side("v1", 1000),
        head: side("v2", 1000),
        head_weight: 1.0,
        functions: vec![
            row("encode", User, Verdict::Regressed, [140, 300]),
            row("compress", User, Verdict::Regressed, [0, 50]),
            row("legacy", User, Verdict::Improved, [100, 20]),
            row("parse", User, Verdict::Equivalent, [300, 300]),
            row("poll", User, Verdict::Inconclusive, [400, 270]),
            row("runtime.alloc", Runtime, Verdict::Equivalent, [100, 100]),
            row("runtime.sweep", Runtime, Verdict::Equivalent, [100, 100]),
        ],
        tree,
    }
}
