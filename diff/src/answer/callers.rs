//! Which callers differ only because a function below them does, and the order that follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, Samples};

use super::nested;
use crate::compare::{Compared, Finding, Recording};
use crate::flame::place;
use crate::sides::{Side, Sides};

/// The part of a caller's change that must lie in its culprits' own samples, so that these explain it.
const EXPLAINED: f64 = 0.5;

/// Names the culprit as the cause of each caller that it explains, and puts callers under their culprits.
///
/// A row of total samples is explained if at least half of the change of its share lies in samples, on stacks with it,
/// whose leaf is a culprit that moved in the same direction; the cause is the culprit with the most. A row that has a
/// cause keeps it, and a function that is a culprit itself needs none. What is left is explained by rows of total samples below it
/// ([`nested`]).
pub fn explain(compared: &mut Compared, sides: &Sides<Vec<Recording>>) {
    let culprits = culprits(&compared.findings);
    let callers: BTreeSet<Arc<str>> = compared
        .of_kind(CountKind::Total)
        .filter(|finding| finding.is_shown_first() && finding.cause.is_none())
        .filter(|finding| finding.functions.is_none() && !culprits.contains_key(&finding.function))
        .map(|finding| Arc::clone(&finding.function))
        .collect();
    if !culprits.is_empty() && !callers.is_empty() {
        let below = Below::of(sides, &culprits, &callers);
        let explained =
            |finding: &&mut Finding| finding.count_kind == CountKind::Total && callers.contains(&finding.function);
        for finding in compared.findings.iter_mut().filter(explained) {
            finding.cause = below.cause(finding, &culprits);
        }
    }
    nested::explain(compared, sides, |name| culprits.contains_key(name));
    arrange(&mut compared.findings, culprits);
}

/// The functions whose own samples differ, with their places in the order of findings.
fn culprits(findings: &[Finding]) -> BTreeMap<Arc<str>, usize> {
    let own = findings.iter().filter(|finding| finding.count_kind == CountKind::SelfCount && finding.is_shown_first());
    own.enumerate().map(|(place, finding)| (Arc::clone(&finding.function), place)).collect()
}

/// Puts rows of total samples that are shown first in the order of culprits: a culprit's own, then its callers; then
/// those without a culprit, each with what it explains.
fn arrange(findings: &mut [Finding], mut heads: BTreeMap<Arc<str>, usize>) {
    let first = findings.partition_point(|finding| finding.count_kind == CountKind::SelfCount);
    let totals = &mut findings[first..];
    let shown = totals.iter().take_while(|finding| finding.is_shown_first()).count();
    for finding in totals[..shown].iter().filter(|finding| finding.cause.is_none()) {
        let next = heads.len();
        heads.entry(Arc::clone(&finding.function)).or_insert(next);
    }
    let key = |finding: &Finding| {
        let cause = finding.cause.as_deref().filter(|cause| heads.contains_key(*cause) && **cause != *finding.function);
        let head = cause.or(Some(&finding.function)).and_then(|name| heads.get(name));
        (head.copied().unwrap_or(usize::MAX), cause.is_some())
    };
    totals[..shown].sort_by_key(key);
}

/// Samples on stacks with a caller whose leaf is a culprit, by caller, then by culprit; and all samples.
struct Below<'a> {
    samples: BTreeMap<&'a str, BTreeMap<&'a str, Sides<u64>>>,
    whole: Sides<u64>,
}

impl<'a> Below<'a> {
    fn of(
        sides: &'a Sides<Vec<Recording>>,
        culprits: &BTreeMap<Arc<str>, usize>,
        callers: &BTreeSet<Arc<str>>,
    ) -> Self {
        let mut below = Self { samples: BTreeMap::new(), whole: Sides::default() };
        for (side, runs) in [(Side::Base, &sides.base), (Side::Head, &sides.head)] {
            for run in runs {
                below.add(side, run, culprits, callers);
            }
        }
        below
    }

    fn add(
        &mut self,
        side: Side,
        run: &'a Recording,
        culprits: &BTreeMap<Arc<str>, usize>,
        callers: &BTreeSet<Arc<str>>,
    ) {
        let Samples::Stacks(stacks) = &run.profile.samples else { return };
        let names = &run.profile.names;
        let named =
            |is_wanted: &dyn Fn(&str) -> bool| -> Vec<bool> { names.iter().map(|name| is_wanted(name)).collect() };
        let (is_culprit, is_caller) =
            (named(&|name| culprits.contains_key(name)), named(&|name| callers.contains(name)));
        let has = |flags: &[bool], frame: u32| flags.get(place(frame)).copied().unwrap_or(false);
        for stack in stacks {
            let whole = self.whole.of(side);
            *whole = whole.saturating_add(stack.count);
            let Some((&leaf, above)) = stack.frames.split_last() else { continue };
            if !has(&is_culprit, leaf) {
                continue;
            }
            let on_stack: BTreeSet<u32> = above.iter().copied().filter(|&frame| has(&is_caller, frame)).collect();
            for frame in on_stack {
                let of_caller = self.samples.entry(&names[place(frame)]).or_default();
                let sum = of_caller.entry(&names[place(leaf)]).or_default().of(side);
                *sum = sum.saturating_add(stack.count);
            }
        }
    }

    /// The culprit that explains a caller.
    fn cause(&self, finding: &Finding, culprits: &BTreeMap<Arc<str>, usize>) -> Option<String> {
        let change = finding.share.head - finding.share.base;
        let share = |samples: &Sides<u64>| {
            let of = |samples: u64, whole: u64| if whole == 0 { 0.0 } else { float(samples) / float(whole) };
            of(samples.head, self.whole.head) - of(samples.base, self.whole.base)
        };
        let below = self.samples.get(&*finding.function)?;
        let moved: Vec<(&str, f64)> = below.iter().map(|(culprit, samples)| (*culprit, share(samples))).collect();
        let alike: Vec<(&str, f64)> = moved.into_iter().filter(|(_, moved)| moved * change > 0.0).collect();
        let together: f64 = alike.iter().map(|(_, moved)| moved.abs()).sum();
        if together < EXPLAINED * change.abs() {
            return None;
        }
        let rank = |name: &str| culprits.get(name).copied().unwrap_or(usize::MAX);
        let most = alike
            .into_iter()
            .max_by(|(a, by_a), (b, by_b)| by_a.abs().total_cmp(&by_b.abs()).then_with(|| rank(b).cmp(&rank(a))));
        most.map(|(culprit, _)| culprit.to_owned())
    }
}
