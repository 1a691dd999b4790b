//! What the samples of each function stand for: bytes, nanoseconds, periods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::profile::{CountKind, Profile, Samples, UNSYMBOLISED};
use fleetdiff_schemas::rows::RARE;

use super::{Finding, NotCompared, Recording, Weighed, Weights};
use crate::flame::{Sides, place};

/// Gives every named finding its weight, and says what weights are and how much each side has; nothing where a run has none.
pub(super) fn weigh(findings: &mut [Finding], sides: &Sides<Vec<Recording>>) -> Result<Option<Weighed>, NotCompared> {
    let all = || sides.base.iter().chain(&sides.head);
    let Some((first, unit)) = all().find_map(|run| Some((run, &run.weights.as_ref()?.unit))) else { return Ok(None) };
    for other in all() {
        match &other.weights {
            None => return Ok(None),
            Some(weights) if weights.unit != *unit => {
                let (first_unit, other_unit) = (Arc::clone(unit), Arc::clone(&weights.unit));
                return Err(NotCompared::Units { first: first.label.clone(), first_unit, other: other.label.clone(), other_unit });
            }
            Some(_) => {}
        }
    }
    let (base, head) = (Sums::of(&sides.base), Sums::of(&sides.head));
    for finding in findings.iter_mut().filter(|finding| &*finding.function != RARE) {
        let of = |sums: &Sums| sums.functions.get(&(finding.count_kind, &*finding.function)).copied().unwrap_or(0);
        finding.weight = Some(Sides { base: of(&base), head: of(&head) });
    }
    Ok(Some(Weighed { unit: Arc::clone(unit), totals: Sides { base: base.whole, head: head.whole } }))
}

/// The weights of one side.
#[derive(Default)]
struct Sums<'a> {
    whole: u64,
    functions: BTreeMap<(CountKind, &'a str), u64>,
}

impl<'a> Sums<'a> {
    fn of(side: &'a [Recording]) -> Self {
        let mut sums = Self::default();
        for Weights { profile, .. } in side.iter().filter_map(|run| run.weights.as_ref()) {
            sums.add(profile);
        }
        sums
    }

    /// A function that recurs on a stack is weighed once, and a stack without frames ends in one without a symbol.
    fn add(&mut self, profile: &'a Profile) {
        let Samples::Stacks(stacks) = &profile.samples else { return };
        let name = |frame: &u32| profile.names.get(place(*frame)).map_or(UNSYMBOLISED, |name| name);
        for stack in stacks {
            self.whole = self.whole.saturating_add(stack.count);
            let leaf = stack.frames.last().map_or(UNSYMBOLISED, name);
            self.give(CountKind::SelfCount, leaf, stack.count);
            let on_stack: BTreeSet<&str> = stack.frames.iter().map(name).chain([leaf]).collect();
            on_stack.into_iter().for_each(|function| self.give(CountKind::Total, function, stack.count));
        }
    }

    fn give(&mut self, kind: CountKind, function: &'a str, weight: u64) {
        let sum = self.functions.entry((kind, function)).or_default();
        *sum = sum.saturating_add(weight);
    }
}
