//! Callers of functions that differ by total samples alone, without a culprit among leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{CountKind, Samples};

use crate::compare::{Compared, Finding, Recording};
use crate::flame::place;
use crate::sides::Sides;

/// The part of a caller's samples that must be those of the function below it, so that the two are one finding.
const SAME: f64 = 0.9;

/// Names the lowest function as the cause of callers that hardly have other samples than it and moved in the same direction.
pub(super) fn explain(compared: &mut Compared, sides: &Sides<Vec<Recording>>, is_culprit: impl Fn(&str) -> bool) {
    let stands = |finding: &Finding| {
        let is_total = finding.count_kind == CountKind::Total && finding.functions.is_none();
        is_total && finding.is_shown_first() && finding.cause.is_none() && !is_culprit(&finding.function)
    };
    let standing: Vec<(Arc<str>, bool)> = compared
        .findings
        .iter()
        .filter(|finding| stands(finding))
        .map(|finding| (Arc::clone(&finding.function), finding.costs_more()))
        .collect();
    if standing.len() < 2 {
        return;
    }
    let nested = Nested::of(sides, &standing);
    let lowest = nested.unexplained(&standing);
    let causes: BTreeMap<&Arc<str>, Arc<str>> = (0..standing.len())
        .filter_map(|caller| {
            Some((&standing[caller].0, Arc::clone(&standing[nested.cause(caller, &standing, &lowest)?].0)))
        })
        .collect();
    for finding in compared.findings.iter_mut().filter(|finding| stands(finding)) {
        finding.cause = causes.get(&finding.function).map(|cause| cause.to_string());
    }
}

/// Samples of both sides: of each function, and of each pair of which the second is below the first.
struct Nested {
    own: Vec<u64>,
    pairs: BTreeMap<(usize, usize), u64>,
}

impl Nested {
    fn of(sides: &Sides<Vec<Recording>>, standing: &[(Arc<str>, bool)]) -> Self {
        let numbers: BTreeMap<&str, usize> = standing.iter().zip(0..).map(|((name, _), at)| (&**name, at)).collect();
        let mut nested = Self { own: vec![0; standing.len()], pairs: BTreeMap::new() };
        for run in sides.base.iter().chain(&sides.head) {
            let Samples::Stacks(stacks) = &run.profile.samples else { continue };
            let of_names: Vec<Option<usize>> =
                run.profile.names.iter().map(|name| numbers.get(&**name).copied()).collect();
            for stack in stacks {
                let mut met: Vec<usize> = Vec::new();
                for number in stack.frames.iter().filter_map(|&frame| of_names.get(place(frame)).copied().flatten()) {
                    if !met.contains(&number) {
                        met.push(number);
                    }
                }
                nested.add(&met, stack.count);
            }
        }
        nested
    }

    /// Adds a stack with these functions, callers first.
    fn add(&mut self, met: &[usize], count: u64) {
        for (at, &caller) in met.iter().enumerate() {
            self.own[caller] = self.own[caller].saturating_add(count);
            for &callee in &met[at + 1..] {
                let sum = self.pairs.entry((caller, callee)).or_insert(0);
                *sum = sum.saturating_add(count);
            }
        }
    }

    fn under(&self, caller: usize, callee: usize) -> u64 {
        self.pairs.get(&(caller, callee)).copied().unwrap_or(0)
    }

    fn explains(&self, callee: usize, caller: usize, standing: &[(Arc<str>, bool)]) -> bool {
        let below = self.under(caller, callee);
        standing[caller].1 == standing[callee].1
            && below > self.under(callee, caller)
            && float(below) >= SAME * float(self.own[caller])
    }

    /// The functions that none explains.
    fn unexplained(&self, standing: &[(Arc<str>, bool)]) -> Vec<usize> {
        let all = || 0..standing.len();
        all().filter(|&callee| !all().any(|other| self.explains(other, callee, standing))).collect()
    }

    /// Of the functions that none explains, that which explains a caller and has the most samples below it.
    fn cause(&self, caller: usize, standing: &[(Arc<str>, bool)], lowest: &[usize]) -> Option<usize> {
        let found = lowest.iter().copied().filter(|&callee| self.explains(callee, caller, standing));
        found.max_by(|&a, &b| self.under(caller, a).cmp(&self.under(caller, b)).then(b.cmp(&a)))
    }
}
