//! Functions that one build lacks because their callers have their work there.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::CountKind;

use super::{Functions, Group, How, Part, Weighted, apart, sum};
use crate::evidence::callers::CallerCounts;

/// A caller with a smaller part of a function's samples says nothing of it.
const LEAST: f64 = 0.1;

/// The least part of the samples of a function that must be under the callers in which it is inlined.
const FOUND: f64 = 0.5;

/// A function that one build lacks, and the callers that may have its work in the other.
struct Alone<'a> {
    own: Part<'a>,
    /// Each with the part of the function's own samples under it, the largest first.
    callers: Vec<(u64, f64)>,
}

/// The groups of functions that are alone without being one of a pair, each with its callers. Several functions may be inlined in one caller, and one in
/// several. `names` are the pairs: the function of the head by that of the base.
pub(super) fn found<'a>(
    functions: &Functions<'a>,
    callers: &CallerCounts,
    names: &'a BTreeMap<u64, u64>,
) -> Vec<Group> {
    let whole = Whole::of(functions, names);
    let is_pair = |hash: &u64| names.contains_key(hash) || whole.heads.contains_key(hash);
    let alone = functions.0.iter().filter(|(hash, function)| function.is_alone() && !is_pair(hash));
    let mut alone: Vec<Alone<'_>> = alone
        .filter_map(|(hash, function)| Alone::of(function.own?, &callers.callers.get(hash)?.leaf, &whole))
        .collect();
    let mut groups = Vec::new();
    while let Some(first) = alone.pop() {
        let mut group = vec![first];
        // All that share a caller with one of them.
        loop {
            let held = held(&group);
            let shares = |one: &mut Alone<'_>| one.callers.iter().any(|(caller, _)| held.contains(caller));
            let more: Vec<Alone<'_>> = alone.extract_if(.., shares).collect();
            if more.is_empty() {
                break;
            }
            group.extend(more);
        }
        groups.extend(joined(group, functions, &whole));
    }
    groups
}

/// Functions that both builds have, with the row of their own samples; pairs are such, under the name of the head.
struct Whole<'a> {
    own: BTreeMap<u64, Part<'a>>,
    names: &'a BTreeMap<u64, u64>,
    /// Pairs the other way: the function of the base by that of the head.
    heads: BTreeMap<u64, u64>,
}

impl<'a> Whole<'a> {
    fn of(functions: &Functions<'a>, names: &'a BTreeMap<u64, u64>) -> Self {
        let heads: BTreeMap<u64, u64> = names.iter().map(|(base, head)| (*head, *base)).collect();
        let own = |hash: &u64| functions.0.get(hash).and_then(|function| function.own);
        let mut whole = BTreeMap::new();
        for (hash, function) in &functions.0 {
            let own = match heads.get(hash) {
                Some(base) => own(hash).zip(own(base)).map(|(head, base)| head.with(&base)),
                None if function.is_alone() => None,
                None => function.own,
            };
            whole.extend(own.map(|own| (*hash, own)));
        }
        Self { own: whole, names, heads }
    }

    /// A caller as one of them.
    fn get(&self, caller: u64) -> Option<(u64, &Part<'a>)> {
        let hash = self.names.get(&caller).copied().unwrap_or(caller);
        Some((hash, self.own.get(&hash)?))
    }
}

impl Part<'_> {
    /// Of two functions as one.
    fn with(&self, base: &Self) -> Self {
        Self {
            head: self.head + base.head,
            base: self.base + base.base,
            counts: [self.counts[0] + base.counts[0], self.counts[1] + base.counts[1]],
            se: libm::hypot(self.se, base.se),
            ..*self
        }
    }
}

impl<'a> Alone<'a> {
    fn of(own: Part<'a>, above: &BTreeMap<u64, u64>, whole: &Whole<'_>) -> Option<Self> {
        let samples = float(above.values().sum::<u64>().max(1));
        let mut callers: BTreeMap<u64, f64> = BTreeMap::new();
        for (caller, under) in above {
            if let Some((hash, part)) = whole.get(*caller)
                && part.change() * own.change() < 0.0
            {
                *callers.entry(hash).or_default() += float(*under) / samples;
            }
        }
        let mut callers: Vec<(u64, f64)> = callers.into_iter().filter(|(_, part)| *part >= LEAST).collect();
        callers.sort_by(|a, b| b.1.total_cmp(&a.1));
        let alone = Self { own, callers };
        (alone.weight() >= FOUND).then_some(alone)
    }

    /// The part of its samples under these callers.
    fn weight(&self) -> f64 {
        self.callers.iter().map(|(_, part)| part).sum()
    }
}

fn held(alone: &[Alone<'_>]) -> BTreeSet<u64> {
    alone.iter().flat_map(|one| &one.callers).map(|(caller, _)| *caller).collect()
}

/// The group of some functions and their callers, if these changed by about as much the other way.
fn joined(mut alone: Vec<Alone<'_>>, functions: &Functions<'_>, whole: &Whole<'_>) -> Option<Group> {
    alone.sort_by_key(|one| one.own.function);
    let held = held(&alone);
    let callers: Vec<Part<'_>> = held.iter().filter_map(|caller| whole.own.get(caller)).copied().collect();
    // Of a pair, the row of the head stands for both.
    let of_base = whole.names.iter().filter(|(_, head)| held.contains(head));
    let of_base: Vec<Part<'_>> = of_base.filter_map(|(base, _)| functions.0.get(base)?.own).collect();
    let of_alone = sum(alone.iter().map(|one| (one.weight(), one.own)));
    let of_callers = sum(callers.iter().map(|part| (1.0, *part)));
    let fits = of_alone.0 * of_callers.0 < 0.0 && apart([of_alone, of_callers]).is_some();
    let rows = alone.iter().map(|one| Weighted {
        part: one.own,
        weight: one.weight(),
        kinds: &CountKind::ALL,
        into: one.callers.first().map(|(caller, _)| *caller),
    });
    let callers = callers.iter().map(|part| (1.0, *part)).chain(of_base.iter().map(|part| (0.0, *part)));
    let callers = callers.map(|(weight, part)| Weighted { part, weight, kinds: &[CountKind::SelfCount], into: None });
    fits.then(|| Group::of(How::Inlined, &rows.chain(callers).collect::<Vec<_>>()))
}
