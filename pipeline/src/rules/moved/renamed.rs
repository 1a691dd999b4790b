//! Pairs of functions of which each build has one.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::function_and_thread;

use super::{Function, Functions, Part, apart};
use crate::evidence::callers::CallerCounts;

/// How many new and gone functions are compared, the largest changes first.
const MOST: usize = 200;

/// The least part of the samples of both that must have the same callers.
const ALIKE: f64 = 0.5;

/// Through how many callers that one build lacks one looks at the callers of those.
const DEEPEST: usize = 4;

/// The rows of each pair, that of the base first. With some pairs known, others may be: their callers are the same then.
pub(super) fn found<'a>(functions: &Functions<'a>, callers: &CallerCounts, known: &[[u64; 2]]) -> Vec<[Part<'a>; 2]> {
    let fits = |pair: &[u64; 2]| {
        let [base, head] = pair.map(|hash| functions.0.get(&hash).copied().unwrap_or_default());
        let rows = rows(&base, &head).filter(|_| base.is_gone() && head.is_new())?;
        apart(rows.map(|part| (part.change(), part.se))).map(|_| rows)
    };
    let mut pairs: Vec<[Part<'a>; 2]> = known.iter().filter_map(fits).collect();
    loop {
        let more = more(functions, callers, &pairs);
        if more.is_empty() {
            return pairs;
        }
        pairs.extend(more);
    }
}

/// The rows by which two functions are compared: of all samples, if both have one. What another thread does is not the same: a wait that moves from a
/// helper to the thread that answers is a finding.
fn rows<'a>(base: &Function<'a>, head: &Function<'a>) -> Option<[Part<'a>; 2]> {
    let rows = base.total.zip(head.total).or_else(|| base.own.zip(head.own));
    let thread = |part: &Part<'a>| function_and_thread(part.name).1;
    rows.map(|(base, head)| [base, head]).filter(|[base, head]| thread(base) == thread(head))
}

/// Pairs that can be told now: the most similar names first, then the most similar costs.
fn more<'a>(functions: &Functions<'a>, callers: &CallerCounts, pairs: &[[Part<'a>; 2]]) -> Vec<[Part<'a>; 2]> {
    let names: BTreeMap<u64, u64> = pairs.iter().map(|[base, head]| (base.function, head.function)).collect();
    let mut taken: BTreeSet<u64> = names.iter().flat_map(|(base, head)| [*base, *head]).collect();
    let alone = |is: fn(&Function<'a>) -> bool| {
        let size = |function: &Function<'a>| function.widest().map_or(0.0, |part| part.change()).abs();
        let mut alone: Vec<(u64, Function<'a>)> = functions
            .0
            .iter()
            .filter(|(hash, function)| is(function) && !taken.contains(hash))
            .map(|(hash, function)| (*hash, *function))
            .collect();
        alone.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
        alone.truncate(MOST);
        alone
    };
    let known = Known { functions, callers, names: &names, paired: &taken };
    let above = |(hash, function): (u64, Function<'a>)| (Above::of(hash, &known), function);
    let gone: Vec<(Above, Function<'a>)> = alone(Function::is_gone).into_iter().map(above).collect();
    let new: Vec<(Above, Function<'a>)> = alone(Function::is_new).into_iter().map(above).collect();
    let mut fits = Vec::new();
    for (under, was) in &gone {
        for (also, is) in &new {
            let Some(rows) = rows(was, is) else { continue };
            let apart = apart(rows.map(|part| (part.change(), part.se)));
            if let Some(apart) = apart.filter(|_| under.alike(also) >= ALIKE) {
                let [base, head] = rows;
                fits.push((strsim::sorensen_dice(base.name, head.name), apart, rows));
            }
        }
    }
    let hashes = |rows: &[Part<'_>; 2]| rows.map(|part| part.function);
    fits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)).then_with(|| hashes(&a.2).cmp(&hashes(&b.2))));
    let mut more = Vec::new();
    for (.., rows) in fits {
        let [base, head] = hashes(&rows);
        if !taken.contains(&base) && !taken.contains(&head) {
            taken.extend([base, head]);
            more.push(rows);
        }
    }
    more
}

/// The nearest callers of a function that both builds have, as parts of its samples. A pair is such, by the name of the head; 0 stands for none.
struct Above(BTreeMap<u64, f64>);

/// What is known of callers.
struct Known<'k, 'a> {
    functions: &'k Functions<'a>,
    callers: &'k CallerCounts,
    /// Pairs: the function of the head by that of the base.
    names: &'k BTreeMap<u64, u64>,
    /// The functions of both builds that are in a pair.
    paired: &'k BTreeSet<u64>,
}

impl Above {
    fn of(function: u64, known: &Known<'_, '_>) -> Self {
        let mut above = Self(BTreeMap::new());
        above.add(function, 1.0, known, 0);
        above
    }

    /// Adds the callers of a function that has a part of the samples.
    fn add(&mut self, function: u64, part: f64, known: &Known<'_, '_>, depth: usize) {
        let Some(callers) = known.callers.callers.get(&function).filter(|_| depth < DEEPEST) else { return };
        let whole = float(callers.first.values().sum::<u64>().max(1));
        for (caller, samples) in &callers.first {
            let part = part * float(*samples) / whole;
            if !known.paired.contains(caller) && known.functions.0.get(caller).is_some_and(Function::is_alone) {
                self.add(*caller, part, known, depth + 1);
            } else {
                *self.0.entry(known.names.get(caller).copied().unwrap_or(*caller)).or_default() += part;
            }
        }
    }

    fn alike(&self, other: &Self) -> f64 {
        self.0.iter().map(|(caller, part)| part.min(other.0.get(caller).copied().unwrap_or(0.0))).sum()
    }
}
