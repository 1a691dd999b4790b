//! Which selected rows moved only because another did: section 11 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::{float, signed_float};
use fleetdiff_schemas::profile::CountKind;

use super::counts::Tree;
use super::family::{RowId, Selected};
use super::statistics::always_valid::ln_e;
use super::statistics::g::ln_p_iid;

/// What happens to a selected row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It has no other cause.
    Stands,
    /// It has its own cause, besides the selected rows under it.
    OfItsOwn,
    /// Another row explains it.
    By(RowId),
}

/// The thresholds that a change must reach to be selected by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    pub min_effect: f64,
    pub ln_e: f64,
}

/// Samples of head and base by block.
type Samples = Vec<[f64; 2]>;

/// A selected row of a cell.
pub(super) type Here<'a> = (&'a RowId, &'a Selected);

/// The cause of each selected row of a cell, in their order, from the stacks of the epoch, given by path.
pub(super) fn causes(
    paths: &[Vec<usize>],
    tree: &Tree,
    here: &[Here<'_>],
    threshold: Threshold,
    figures: impl Fn(&RowId) -> Option<(f64, [f64; 2])>,
) -> Vec<Cause> {
    let all = Samples::from_iter(
        tree.values().map(|block| [0, 1].map(|arm| block.values().map(|samples| float(samples[arm])).sum())),
    );
    let order = Order::of(paths, tree, here);
    let parts: Vec<Parts> = (0..here.len()).map(|row| Parts::of(paths, tree, &order, here, row)).collect();
    let has_its_own =
        |row: usize| rest_is_selected(&parts[row].rest, &all, here[row].1, figures(here[row].0), threshold);
    let explained: Vec<bool> = (0..here.len()).map(|row| !parts[row].under.is_empty() && !has_its_own(row)).collect();
    let cause = |row: usize| {
        let under = &parts[row].under;
        if under.is_empty() {
            return Cause::Stands;
        }
        if !explained[row] {
            return Cause::OfItsOwn;
        }
        let mut standing: Vec<(f64, &RowId)> = under
            .iter()
            .filter(|(other, _)| !explained[**other])
            .map(|(other, samples)| (moved(samples, &all), here[*other].0))
            .collect();
        standing.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1.kind, a.1.hash).cmp(&(b.1.kind, b.1.hash))));
        standing.first().map_or(Cause::Stands, |(_, by)| Cause::By((*by).clone()))
    };
    (0..here.len()).map(cause).collect()
}

/// The samples of a row, by the place of the row under it.
struct Parts {
    under: BTreeMap<usize, Samples>,
    rest: Samples,
}

impl Parts {
    fn of(paths: &[Vec<usize>], tree: &Tree, order: &Order, here: &[Here<'_>], row: usize) -> Self {
        let nothing = vec![[0.0; 2]; tree.len()];
        let mut parts = Self { under: BTreeMap::new(), rest: nothing.clone() };
        let (id, selected) = here[row];
        let Some(function) = selected.now.function.filter(|_| id.kind == CountKind::Total) else { return parts };
        let lies_over = |stack: &[usize]| -> Vec<usize> {
            let below = below(stack, function);
            let is_under = |(other, selected): &Here<'_>| match (other.kind, selected.now.function) {
                (CountKind::SelfCount, leaf) => stack.last().copied() == leaf,
                (CountKind::Total, callee) => {
                    callee.is_some_and(|callee| below.contains(&callee) && order.calls(function, callee))
                }
            };
            (0..here.len()).filter(|other| is_under(&here[*other])).collect()
        };
        for (block, samples_of) in tree.values().enumerate() {
            for (path, samples) in samples_of.iter().filter(|(path, _)| paths[**path].contains(&function)) {
                let rows = lies_over(&paths[*path]);
                for other in &rows {
                    add(&mut parts.under.entry(*other).or_insert_with(|| nothing.clone())[block], *samples);
                }
                if rows.is_empty() {
                    add(&mut parts.rest[block], *samples);
                }
            }
        }
        parts
    }
}

fn add(sums: &mut [f64; 2], samples: [u64; 2]) {
    for (sum, count) in sums.iter_mut().zip(samples) {
        *sum += float(count);
    }
}

/// The functions that first occur after a function, root first.
fn below(stack: &[usize], function: usize) -> BTreeSet<usize> {
    let mut above: BTreeSet<usize> = stack.iter().take_while(|frame| **frame != function).copied().collect();
    above.insert(function);
    stack.iter().skip_while(|frame| **frame != function).filter(|frame| !above.contains(frame)).copied().collect()
}

/// Samples in which the second of two functions first occurs below the first, by selected function and any other.
struct Order(BTreeMap<(usize, usize), u64>);

impl Order {
    fn of(paths: &[Vec<usize>], tree: &Tree, here: &[Here<'_>]) -> Self {
        let functions: BTreeSet<usize> = here.iter().filter_map(|(_, selected)| selected.now.function).collect();
        let mut order = BTreeMap::new();
        for (path, samples) in tree.values().flatten() {
            let stack = &paths[*path];
            for upper in functions.iter().filter(|function| stack.contains(function)) {
                for lower in below(stack, *upper) {
                    *order.entry((*upper, lower)).or_default() += samples[0] + samples[1];
                }
            }
        }
        Self(order)
    }

    /// Whether the second of two functions is the callee: in more samples than the other way round.
    fn calls(&self, caller: usize, callee: usize) -> bool {
        let samples = |pair| self.0.get(&pair).copied().unwrap_or(0);
        let (down, up) = (samples((caller, callee)), samples((callee, caller)));
        // Functions are numbered by their hash.
        down > up || (down == up && callee < caller)
    }
}

/// By how much the share of some samples differs between the arms.
fn moved(samples: &Samples, all: &Samples) -> f64 {
    let sum = |of: &Samples, arm: usize| of.iter().map(|pair| pair[arm]).sum::<f64>();
    let share = |arm: usize| sum(samples, arm) / sum(all, arm).max(1.0);
    (share(0) - share(1)).abs()
}

/// Whether the rest of a row's change would be selected by itself.
/// `figures` are those of the group for which the row stands.
fn rest_is_selected(
    rest: &Samples,
    all: &Samples,
    selected: &Selected,
    figures: Option<(f64, [f64; 2])>,
    threshold: Threshold,
) -> bool {
    let Some(tested) = &selected.now.tested else { return false };
    let (mut r, mut s, mut harmonic, mut n) = (0.0, 0.0, 0.0, 0.0);
    let mut counts = [0.0; 2];
    for ([r1, r0], [n1, n0]) in rest.iter().zip(all).filter(|(_, [n1, n0])| *n1 > 0.0 && *n0 > 0.0) {
        r += r1 * n0 / (n1 + n0);
        s += r0 * n1 / (n1 + n0);
        harmonic += n1 * n0 / (n1 + n0);
        n += n1 + n0;
        counts = [counts[0] + r1, counts[1] + r0];
    }
    let h = harmonic / (2.0 * n);
    let theta = ((r + h) / (s + h)).ln() - tested.ln_normalization;
    let row = &selected.now.row;
    let own = (tested.variance, [row.head.count, row.base.count].map(signed_float));
    let (variance, [a, b]) = figures.unwrap_or(own);
    let part = (counts[0] + counts[1] + 1.0) / (a + b);
    let dispersion = if a > 0.0 && b > 0.0 { (variance / (1.0 / a + 1.0 / b)).max(1.0) } else { 1.0 };
    let phi = 1.0 + (dispersion - 1.0) * part.min(1.0);
    let v = phi * (1.0 / (counts[0] + 0.5) + 1.0 / (counts[1] + 0.5)) + tested.normalization_variance;
    theta.abs() >= threshold.min_effect && ln_e(ln_p_iid(theta * theta / v), v) >= threshold.ln_e
}
