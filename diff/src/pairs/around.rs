//! What surrounds each function of a side: who calls it, what it calls, and how often each is seen.

use std::collections::{BTreeMap, HashMap};

use fleetdiff_formats::reading::FILTERED;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{Samples, UNSYMBOLISED};

use crate::compare::Recording;
use crate::flame::place;

/// The caller of a function that nothing calls, and the callee of a function that is a leaf.
pub(super) const NONE: &str = "";

/// Samples by the name of a neighbour.
pub(super) type Neighbours<'a> = BTreeMap<&'a str, u64>;

/// One function. A function that calls itself counts where it is first on a stack.
#[derive(Debug, Default)]
pub(super) struct Function<'a> {
    /// Samples with it anywhere on the stack.
    pub(super) total: u64,
    /// These, by caller; [`NONE`] if it is the root.
    pub(super) callers: Neighbours<'a>,
    /// These, by what it calls; [`NONE`] if it is the leaf.
    pub(super) callees: Neighbours<'a>,
}

/// All functions of a side that have a name.
#[derive(Debug, Default)]
pub(super) struct Around<'a> {
    whole: u64,
    functions: HashMap<&'a str, Function<'a>, foldhash::fast::FixedState>,
}

impl<'a> Around<'a> {
    pub(super) fn of(side: &'a [Recording]) -> Self {
        let mut around = Self::default();
        let mut seen = Vec::new();
        for run in side {
            let Samples::Stacks(stacks) = &run.profile.samples else { continue };
            let names = &run.profile.names;
            let name = |frame: &u32| names.get(place(*frame)).map_or(UNSYMBOLISED, |name| &**name);
            for stack in stacks {
                around.whole = around.whole.saturating_add(stack.count);
                seen.clear();
                for (depth, frame) in stack.frames.iter().enumerate() {
                    if seen.contains(frame) {
                        continue;
                    }
                    seen.push(*frame);
                    let caller = depth.checked_sub(1).and_then(|above| stack.frames.get(above)).map_or(NONE, name);
                    let callee = stack.frames.get(depth + 1).map_or(NONE, name);
                    around.functions.entry(name(frame)).or_default().add(caller, callee, stack.count);
                }
            }
        }
        around.functions.remove(UNSYMBOLISED);
        around.functions.remove(FILTERED);
        around
    }

    pub(super) fn get(&self, function: &str) -> Option<&Function<'a>> {
        self.functions.get(function)
    }

    pub(super) fn has(&self, function: &str) -> bool {
        self.functions.contains_key(function)
    }

    pub(super) fn functions(&self) -> impl Iterator<Item = (&'a str, &Function<'a>)> {
        self.functions.iter().map(|(name, function)| (*name, function))
    }

    /// The part of all samples.
    pub(super) fn share(&self, samples: u64) -> f64 {
        if self.whole == 0 { 0.0 } else { float(samples) / float(self.whole) }
    }

    /// Functions that `other` lacks with at least so many samples, the largest first.
    pub(super) fn alone(&self, other: &Self, least: u64) -> Vec<(&'a str, &Function<'a>)> {
        let mut alone: Vec<_> =
            self.functions().filter(|(name, function)| function.total >= least && !other.has(name)).collect();
        alone.sort_by(|(a, one), (b, another)| another.total.cmp(&one.total).then_with(|| a.cmp(b)));
        alone
    }
}

impl<'a> Function<'a> {
    fn add(&mut self, caller: &'a str, callee: &'a str, count: u64) {
        let add = |sum: &mut u64| *sum = sum.saturating_add(count);
        add(&mut self.total);
        add(self.callers.entry(caller).or_default());
        add(self.callees.entry(callee).or_default());
    }
}
