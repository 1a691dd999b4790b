//! One cause, one flag: which selected rows moved only because another selected row did.
//!
//! If a function becomes more expensive, so does everything that calls it. The samples under a caller's selected
//! callees are subtracted from the caller, and the rest of its change is tested: if the rest is not selected, the
//! caller is explained. Work that moved from one function to another under the same caller shows as two selected rows
//! that cancel.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::CountKind;

use fleetdiff_statistics::evalue::ln_e_of;

use crate::evidence::callers::{CallerCounts, Pair};

/// A selected row.
#[derive(Clone, Copy, Debug)]
pub struct SelectedRow {
    /// Self or total.
    pub kind: CountKind,
    /// Stable hash of the function.
    pub function: u64,
    /// ln of the adjusted ratio.
    pub theta: f64,
    /// ln of the cell's normalization factor.
    pub ln_normalization: f64,
    /// Variance of that.
    pub normalization_variance: f64,
    /// Variance of its change over that of two Poisson counts, at least 1.
    pub dispersion: f64,
    /// Samples of the function in both arms.
    pub count: f64,
}

/// The thresholds that a change must reach to be selected by itself.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// Smallest |theta|.
    pub min_effect: f64,
    /// Smallest ln of the e-value.
    pub ln_e: f64,
}

/// What causes the change of a selected row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<R> {
    /// No selected row lies under it.
    Nothing,
    /// Itself: the rest, without the selected rows under it, is selected too.
    Itself,
    /// Another selected row.
    Row(R),
}

impl<R> Cause<R> {
    /// The same cause with another name for the row.
    pub fn map<S>(self, name: impl FnOnce(R) -> S) -> Cause<S> {
        match self {
            Self::Nothing => Cause::Nothing,
            Self::Itself => Cause::Itself,
            Self::Row(row) => Cause::Row(name(row)),
        }
    }
}

/// The cause of each row, by place in `selected`.
///
/// A self row is never explained. A total row is explained by its own self row or by rows of functions under it: by the
/// unexplained row whose samples under it changed most.
pub fn causes(selected: &[SelectedRow], callers: &CallerCounts, threshold: Threshold) -> Vec<Cause<usize>> {
    let below = Below::of(selected, callers);
    let parts: Vec<Parts> = (0..selected.len()).map(|row| callers.parts(row, selected, &below)).collect();
    let rests: Vec<Option<Rest>> = parts.iter().zip(selected).map(|(parts, row)| parts.rest(row, callers)).collect();
    let explained = |row: usize| rests[row].as_ref().is_some_and(|rest| !rest.is_significant(threshold));
    let cause = |row: usize| match &rests[row] {
        None => Cause::Nothing,
        Some(rest) if rest.is_significant(threshold) => Cause::Itself,
        Some(_) => {
            let standing = parts[row].under.iter().filter(|(row, _)| !explained(**row));
            let most = standing.max_by(|(a, under_a), (b, under_b)| {
                let by = callers.moved(under_a).abs().total_cmp(&callers.moved(under_b).abs());
                by.then_with(|| {
                    (selected[**b].kind, selected[**b].function).cmp(&(selected[**a].kind, selected[**a].function))
                })
            });
            most.map_or(Cause::Nothing, |(row, _)| Cause::Row(*row))
        }
    };
    (0..selected.len()).map(cause).collect()
}

/// Decides which of two functions calls the other, if each may call the other: samples in which the first frame of the
/// second is below the first frame of the first.
struct Below(BTreeMap<(u64, u64), u64>);

impl Below {
    fn of(selected: &[SelectedRow], callers: &CallerCounts) -> Self {
        let functions: BTreeSet<u64> = selected.iter().map(|row| row.function).collect();
        let mut below = BTreeMap::new();
        for stack in &callers.stacks {
            let samples: u64 = stack.samples.iter().flatten().sum();
            for &function in &functions {
                for callee in under(&stack.functions, function) {
                    *below.entry((function, callee)).or_insert(0) += samples;
                }
            }
        }
        Self(below)
    }

    /// Whether `callee` is the lower of the two functions; if they call each other equally often, the one with the
    /// smaller hash is the lower.
    fn holds(&self, caller: u64, callee: u64) -> bool {
        let samples = |pair| self.0.get(&pair).copied().unwrap_or(0);
        let (down, up) = (samples((caller, callee)), samples((callee, caller)));
        down > up || (down == up && callee < caller)
    }
}

/// The functions whose first frame is below the first frame of `function`.
fn under(stack: &[u64], function: u64) -> BTreeSet<u64> {
    let Some(at) = stack.iter().position(|&frame| frame == function) else { return BTreeSet::new() };
    let (above, below) = stack.split_at(at);
    below[1..].iter().copied().filter(|callee| *callee != function && !above.contains(callee)).collect()
}

/// The samples of a caller: under each selected row, and under none.
struct Parts {
    under: BTreeMap<usize, Vec<Pair>>,
    rest: Vec<Pair>,
}

/// The rest of a caller's change.
struct Rest {
    theta: f64,
    se: f64,
}

impl CallerCounts {
    fn parts(&self, caller: usize, selected: &[SelectedRow], below: &Below) -> Parts {
        let none = vec![[0, 0]; self.blocks.len()];
        let mut parts = Parts { under: BTreeMap::new(), rest: none.clone() };
        let SelectedRow { kind: CountKind::Total, function, .. } = selected[caller] else { return parts };
        let row_of: BTreeMap<(CountKind, u64), usize> =
            selected.iter().zip(0..).map(|(row, place)| ((row.kind, row.function), place)).collect();
        for stack in self.stacks.iter().filter(|stack| stack.functions.contains(&function)) {
            let callees = under(&stack.functions, function).into_iter().filter(|&callee| below.holds(function, callee));
            let leaf = stack.functions.last().filter(|_| stack.own).map(|&leaf| (CountKind::SelfCount, leaf));
            let rows = callees
                .map(|callee| (CountKind::Total, callee))
                .chain(leaf)
                .filter_map(|row| row_of.get(&row).copied());
            let rows: BTreeSet<usize> = rows.collect();
            for row in &rows {
                add(parts.under.entry(*row).or_insert_with(|| none.clone()), &stack.samples);
            }
            if rows.is_empty() {
                add(&mut parts.rest, &stack.samples);
            }
        }
        parts
    }

    /// By how much the share of some samples differs between the arms, over all blocks.
    fn moved(&self, samples: &[Pair]) -> f64 {
        let sum = |pairs: &[Pair], arm: usize| pairs.iter().map(|pair| float(pair[arm])).sum::<f64>();
        let share = |arm: usize| sum(samples, arm) / sum(&self.blocks, arm).max(1.0);
        share(0) - share(1)
    }
}

impl Parts {
    /// The change of the samples under no selected row; `None` if no samples are under one, so that nothing is
    /// explained.
    ///
    /// The ratio is Mantel and Haenszel's over time blocks, half a sample added to each arm; the variance that of two Poisson counts
    /// times the caller's dispersion, which falls with the count as far as the caller's exceeds 1, and that of the normalization.
    fn rest(&self, caller: &SelectedRow, callers: &CallerCounts) -> Option<Rest> {
        if self.under.is_empty() {
            return None;
        }
        let (mut head, mut base) = (0.0, 0.0);
        let (mut in_head, mut in_base) = (0.5, 0.5);
        let (mut harmonic, mut both) = (0.0, 0.0);
        for (rest, all) in self.rest.iter().zip(&callers.blocks) {
            let [n1, n0] = all.map(float);
            if n1 + n0 > 0.0 && n1 * n0 > 0.0 {
                head += float(rest[0]) * n0 / (n1 + n0);
                base += float(rest[1]) * n1 / (n1 + n0);
                in_head += float(rest[0]);
                in_base += float(rest[1]);
                harmonic += n1 * n0 / (n1 + n0);
                both += n1 + n0;
            }
        }
        let half = 0.5 * harmonic / both;
        let theta = libm::log((head + half) / (base + half)) - caller.ln_normalization;
        let dispersion =
            1.0 + (caller.dispersion - 1.0).max(0.0) * ((in_head + in_base) / caller.count.max(1.0)).min(1.0);
        let variance = dispersion * (1.0 / in_head + 1.0 / in_base) + caller.normalization_variance;
        Some(Rest { theta, se: libm::sqrt(variance) })
    }
}

impl Rest {
    fn is_significant(&self, threshold: Threshold) -> bool {
        self.theta.abs() >= threshold.min_effect && ln_e_of(self.theta, self.se) >= threshold.ln_e
    }
}

/// A self row whose work came from, or went to, another under the same caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Place of the row that became more expensive.
    pub to: usize,
    /// Place of the row that became cheaper.
    pub from: usize,
    /// Name of the caller of both.
    pub caller: String,
}

/// Pairs of selected self rows, one more expensive and one cheaper, with the same main caller, whose changes cancel.
/// `moved` gives the change of a row's share and half the width of its interval. A row is in at most one pair; the pair
/// that cancels best comes first.
pub fn shifts(
    selected: &[SelectedRow],
    callers: &CallerCounts,
    moved: impl Fn(usize) -> Option<(f64, f64)>,
) -> Vec<Shift> {
    let own = || (0..selected.len()).filter(|&row| selected[row].kind == CountKind::SelfCount);
    let mut pairs = Vec::new();
    for to in own().filter(|&row| selected[row].theta > 0.0) {
        for from in own().filter(|&row| selected[row].theta < 0.0) {
            let caller = |row: usize| callers.callers.get(&selected[row].function)?.most();
            let (Some(above), Some(also)) = (caller(to), caller(from)) else { continue };
            let (Some((gained, half_gained)), Some((lost, half_lost))) = (moved(to), moved(from)) else { continue };
            let left = (gained + lost).abs();
            if above.0 == also.0 && left <= libm::sqrt(half_gained * half_gained + half_lost * half_lost) {
                pairs.push((left, to, from, above.1.to_owned()));
            }
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut taken = BTreeSet::new();
    let free = pairs.into_iter().filter(|(_, to, from, _)| {
        let free = !taken.contains(to) && !taken.contains(from);
        if free {
            taken.extend([*to, *from]);
        }
        free
    });
    free.map(|(_, to, from, caller)| Shift { to, from, caller }).collect()
}

fn add(sums: &mut [Pair], more: &[Pair]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        sum[0] += more[0];
        sum[1] += more[1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::callers::{CallerCount, Callers};

    const MAIN: u64 = 1;
    const HANDLE: u64 = 2;
    const SERIALIZE: u64 = 3;
    const ENCODE: u64 = 4;
    const THRESHOLD: Threshold = Threshold { min_effect: 0.01, ln_e: 9.0 };

    fn row(kind: CountKind, function: u64, ratio: f64, count: f64) -> SelectedRow {
        SelectedRow {
            kind,
            function,
            theta: f64::ln(ratio),
            ln_normalization: 0.0,
            normalization_variance: 0.0,
            dispersion: 2.0,
            count,
        }
    }

    fn calling(functions: &[u64], own: bool, head: u64, base: u64) -> CallerCount {
        CallerCount { functions: functions.to_vec(), own, samples: vec![[head, base]] }
    }

    /// `serialize` costs 50 % more; `handle` calls it and has as many samples of its own.
    fn callers(own_of_handle: u64) -> CallerCounts {
        let stacks = vec![
            calling(&[HANDLE, SERIALIZE], true, 15_000, 100_000),
            calling(&[HANDLE], true, own_of_handle, 100_000),
            calling(&[], false, 75_000, 800_000),
        ];
        CallerCounts { blocks: vec![[100_000, 1_000_000]], stacks, callers: BTreeMap::new() }
    }

    fn selected() -> Vec<SelectedRow> {
        vec![
            row(CountKind::Total, HANDLE, 1.25, 225_000.0),
            row(CountKind::SelfCount, SERIALIZE, 1.5, 115_000.0),
            row(CountKind::Total, SERIALIZE, 1.5, 115_000.0),
        ]
    }

    #[test]
    fn a_caller_is_explained_unless_it_became_more_expensive_by_itself() {
        let [row, alone] = [Cause::Row(1), Cause::Nothing];
        assert_eq!(causes(&selected(), &callers(10_000), THRESHOLD), [row, alone, row]);
        assert_eq!(
            causes(&selected(), &callers(15_000), THRESHOLD),
            [Cause::Itself, alone, row],
            "its own samples grew by half too"
        );
    }

    #[test]
    fn a_function_that_calls_itself_is_explained_by_its_own_samples_alone() {
        let stacks = vec![
            calling(&[MAIN, HANDLE, MAIN, SERIALIZE], true, 15_000, 100_000),
            calling(&[MAIN], true, 10_000, 100_000),
        ];
        let callers = CallerCounts { blocks: vec![[100_000, 1_000_000]], stacks, callers: BTreeMap::new() };
        let rows = [row(CountKind::Total, MAIN, 1.25, 225_000.0), row(CountKind::Total, HANDLE, 1.5, 115_000.0)];
        assert_eq!(causes(&rows, &callers, THRESHOLD), [Cause::Row(1), Cause::Nothing]);
        assert_eq!(causes(&rows[..1], &callers, THRESHOLD), [Cause::Nothing], "no row under it is selected");
    }

    #[test]
    fn changes_that_cancel_under_one_caller_are_a_shift() {
        let called = |caller: u64, name: &str| Callers {
            leaf: [(caller, 1)].into(),
            name: Some(name.to_owned()),
            ..Callers::default()
        };
        let callers = BTreeMap::from([(SERIALIZE, called(HANDLE, "handle")), (ENCODE, called(HANDLE, "handle"))]);
        let rows = [row(CountKind::SelfCount, SERIALIZE, 2.0, 3e4), row(CountKind::SelfCount, ENCODE, 0.5, 3e4)];
        let mut callers = CallerCounts { callers, ..CallerCounts::default() };
        let found = |callers: &CallerCounts, lost: f64| {
            shifts(&rows, callers, |row| Some((if row == 0 { 0.01 } else { lost }, 0.001)))
        };
        let expected = Shift { to: 0, from: 1, caller: "handle".to_owned() };
        assert_eq!(found(&callers, -0.0095), [expected]);
        assert_eq!(found(&callers, -0.005), [], "half of it is new");
        callers.callers.insert(ENCODE, called(MAIN, "main"));
        assert_eq!(found(&callers, -0.0095), [], "another caller");
    }
}
