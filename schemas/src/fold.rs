//! Stacks to counts by function: self where the function is the leaf, total once per stack, however often it recurs.
//!
//! Everything downstream relies on this law: folding depends neither on the order of the stacks nor on how equal stacks
//! are split into entries, and for each cohort `sum(own) <= samples`, `own <= total <= samples`.

use std::sync::Arc;

use crate::identity::Cohort;
use crate::profile::{Folded, FoldedFunction, Stack};

/// Folds stacks to counts by function, one entry per cohort, cohorts ascending.
///
/// Samples without a cohort of their own belong to `default_cohort`. An empty stack counts to `samples` and to no
/// function. Entries with a count of 0 leave no trace. Sums saturate at `u64::MAX`.
///
/// Assumes that frames are indexes into `names`, as decoders give them; a frame beyond its end belongs to no function.
///
/// ```
/// use fleetdiff_schemas::{fold::fold_stacks, profile::Stack};
/// let names = ["main".into(), "fib".into()];
/// let stacks = [Stack { frames: vec![0, 1, 1], count: 3, cohort: None, value: 0 }];
/// let folded = fold_stacks(&names, &stacks, &"all".into());
/// assert_eq!((folded[0].samples, folded[0].functions[1].own, folded[0].functions[1].total), (3, 3, 3));
/// ```
pub fn fold_stacks(names: &[Arc<str>], stacks: &[Stack], default_cohort: &Cohort) -> Vec<Folded> {
    fold_by(names, stacks, default_cohort, |stack| stack.count)
}

/// Folds the values of stacks as [`fold_stacks`] folds their counts: what it gives as samples are values. Empty if no stack
/// has a value.
///
/// ```
/// use fleetdiff_schemas::{fold::fold_values, profile::Stack};
/// let names = ["main".into(), "read".into()];
/// let stacks = [Stack { frames: vec![0, 1], count: 3, cohort: None, value: 4096 }];
/// let folded = fold_values(&names, &stacks, &"all".into());
/// assert_eq!((folded[0].samples, folded[0].functions[0].own, folded[0].functions[0].total), (4096, 0, 4096));
/// ```
pub fn fold_values(names: &[Arc<str>], stacks: &[Stack], default_cohort: &Cohort) -> Vec<Folded> {
    fold_by(names, stacks, default_cohort, |stack| stack.value)
}

/// What is folded of a stack.
type OfStack = fn(&Stack) -> u64;

fn fold_by(names: &[Arc<str>], stacks: &[Stack], default_cohort: &Cohort, of: OfStack) -> Vec<Folded> {
    let mut order: Vec<&Stack> = stacks.iter().filter(|stack| of(stack) > 0).collect();
    if order.is_empty() {
        return Vec::new();
    }
    if order.iter().any(|stack| stack.cohort.is_some()) {
        order.sort_by(|a, b| cohort_of(a, default_cohort).cmp(cohort_of(b, default_cohort)));
    }
    let mut columns = Columns::new(names.len(), of);
    order
        .chunk_by(|a, b| cohort_of(a, default_cohort) == cohort_of(b, default_cohort))
        .filter_map(|group| group.first().map(|first| (cohort_of(first, default_cohort), group)))
        .map(|(cohort, group)| columns.fold(cohort, group))
        .collect()
}

fn cohort_of<'a>(stack: &'a Stack, default_cohort: &'a Cohort) -> &'a Cohort {
    stack.cohort.as_ref().unwrap_or(default_cohort)
}

/// One slot per name, reused from cohort to cohort.
struct Columns {
    slots: Vec<Slot>,
    /// Names with samples in this cohort.
    touched: Vec<u32>,
    /// Number of the current stack, from 1; a slot with this number has already been counted for the stack.
    stack: u64,
    of: OfStack,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    own: u64,
    total: u64,
    counted_in: u64,
}

impl Columns {
    fn new(names: usize, of: OfStack) -> Self {
        Self { slots: vec![Slot::default(); names], touched: Vec::new(), stack: 0, of }
    }

    fn fold(&mut self, cohort: &Cohort, stacks: &[&Stack]) -> Folded {
        let mut samples = 0u64;
        for stack in stacks {
            samples = samples.saturating_add((self.of)(stack));
            self.add(stack);
        }
        Folded { cohort: cohort.clone(), samples, functions: self.take() }
    }

    fn add(&mut self, stack: &Stack) {
        let weight = (self.of)(stack);
        self.stack += 1;
        for &frame in &stack.frames {
            let Some(slot) = slot_of(&mut self.slots, frame) else { continue };
            if slot.counted_in == self.stack {
                continue;
            }
            slot.counted_in = self.stack;
            if slot.total == 0 {
                self.touched.push(frame);
            }
            slot.total = slot.total.saturating_add(weight);
        }
        if let Some(leaf) = stack.frames.last().and_then(|&leaf| slot_of(&mut self.slots, leaf)) {
            leaf.own = leaf.own.saturating_add(weight);
        }
    }

    /// Gives the functions of this cohort, ascending by name, and clears their slots for the next.
    fn take(&mut self) -> Vec<FoldedFunction> {
        self.touched.sort_unstable();
        let mut functions = Vec::with_capacity(self.touched.len());
        for name in self.touched.drain(..) {
            if let Some(slot) = slot_of(&mut self.slots, name) {
                functions.push(FoldedFunction { name, own: slot.own, total: slot.total });
                slot.own = 0;
                slot.total = 0;
            }
        }
        functions
    }
}

fn slot_of(slots: &mut [Slot], name: u32) -> Option<&mut Slot> {
    usize::try_from(name).ok().and_then(|index| slots.get_mut(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn names() -> Vec<Arc<str>> {
        ["a", "b", "c", "d", "e"].map(Arc::from).to_vec()
    }

    fn stacks() -> impl Strategy<Value = Vec<Stack>> {
        let cohort = prop_oneof![Just(None), Just(Some("x".into())), Just(Some("y".into()))];
        let stack = (proptest::collection::vec(0u32..5, 0..8), 0u64..50, cohort, 0u64..1 << 40);
        let stack = stack.prop_map(|(frames, count, cohort, value)| Stack { frames, count, cohort, value });
        proptest::collection::vec(stack, 0..40)
    }

    /// (own, total) by function, and samples, of each cohort.
    type Truth = BTreeMap<String, (BTreeMap<u32, (u64, u64)>, u64)>;

    /// The same counts, computed with sets and maps, one stack after the other.
    fn slow(stacks: &[Stack]) -> Truth {
        let mut truth = Truth::new();
        for stack in stacks.iter().filter(|stack| stack.count > 0) {
            let cohort = stack.cohort.as_ref().map_or("default", Cohort::as_str).to_owned();
            let (functions, samples) = truth.entry(cohort).or_default();
            *samples += stack.count;
            for frame in stack.frames.iter().copied().collect::<BTreeSet<_>>() {
                functions.entry(frame).or_default().1 += stack.count;
            }
            if let Some(leaf) = stack.frames.last() {
                functions.entry(*leaf).or_default().0 += stack.count;
            }
        }
        truth
    }

    fn as_truth(folded: &[Folded]) -> Truth {
        let functions = |part: &Folded| part.functions.iter().map(|f| (f.name, (f.own, f.total))).collect();
        folded.iter().map(|part| (part.cohort.to_string(), (functions(part), part.samples))).collect()
    }

    proptest! {
        #[test]
        fn oracle_fold_equals_sets_and_maps(stacks in stacks()) {
            let folded = fold_stacks(&names(), &stacks, &"default".into());
            prop_assert_eq!(as_truth(&folded), slow(&stacks));
            prop_assert!(folded.is_sorted_by(|a, b| a.cohort < b.cohort));
            prop_assert!(folded.iter().all(|part| part.functions.is_sorted_by(|a, b| a.name < b.name)));
        }

        /// Law: values fold as counts do.
        #[test]
        fn oracle_fold_of_values_equals_fold_of_counts(stacks in stacks()) {
            let as_counts: Vec<Stack> =
                stacks.iter().map(|stack| Stack { count: stack.value, ..stack.clone() }).collect();
            let folded = fold_values(&names(), &stacks, &"default".into());
            prop_assert_eq!(as_truth(&folded), slow(&as_counts));
        }

        #[test]
        fn order_and_splitting_do_not_matter(stacks in stacks()) {
            let mut split: Vec<Stack> = Vec::new();
            for stack in stacks.iter().rev() {
                let half = stack.count / 2;
                split.push(Stack { count: half, ..stack.clone() });
                split.insert(0, Stack { count: stack.count - half, ..stack.clone() });
            }
            prop_assert_eq!(fold_stacks(&names(), &stacks, &"x".into()), fold_stacks(&names(), &split, &"x".into()));
        }

        #[test]
        fn own_total_and_samples_are_nested(stacks in stacks()) {
            for part in fold_stacks(&names(), &stacks, &"x".into()) {
                prop_assert!(part.functions.iter().map(|f| f.own).sum::<u64>() <= part.samples);
                prop_assert!(part.functions.iter().all(|f| f.own <= f.total && f.total <= part.samples && f.total > 0));
            }
        }
    }

    #[test]
    fn empty_stacks_count_to_samples_only() {
        let stacks = [
            Stack { frames: vec![], count: 7, cohort: None, value: 0 },
            Stack { frames: vec![9], count: 1, cohort: None, value: 0 },
        ];
        let folded = fold_stacks(&names(), &stacks, &"x".into());
        assert_eq!(folded, vec![Folded { cohort: "x".into(), samples: 8, functions: vec![] }]);
    }
}
