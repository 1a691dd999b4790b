//! Closures whose numbers moved because another was added or removed above them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::Numbered;

use super::around::Around;
use crate::sides::Sides;

/// Families with more members are compared by name.
const MOST: usize = 200;

/// How much better costs must fit after numbers moved: what differs is at most this part of what differs by name.
const BETTER: f64 = 0.5;

/// By how many standard errors members must differ by name before anything else is tried.
const ERRORS: f64 = 3.0;

/// Members of a family in the order of their numbers.
type Members<'a> = BTreeMap<Vec<u64>, Member<'a>>;

#[derive(Clone, Copy, Default)]
struct Member<'a> {
    name: &'a str,
    share: f64,
    variance: f64,
}

/// The names of the head, by those of the base, of closures that have another number there. A closure of the base that the head lacks
/// is called so, if the head has another under its number.
pub(super) fn found(around: &Sides<Around<'_>>) -> BTreeMap<Arc<str>, Arc<str>> {
    let (base, head) = (families(&around.base), families(&around.head));
    let both = base.iter().filter_map(|(family, base)| Some((base, head.get(family)?)));
    both.filter(|(base, head)| base.len().max(head.len()) <= MOST).flat_map(|(base, head)| moved(base, head)).collect()
}

fn families<'a>(around: &Around<'a>) -> BTreeMap<String, Members<'a>> {
    let mut families: BTreeMap<String, Members<'a>> = BTreeMap::new();
    for (name, function) in around.functions() {
        if let Some(Numbered { family, numbers }) = Numbered::of(name) {
            let share = around.share(function.total);
            let variance = share * share / float(function.total.max(1));
            families.entry(family).or_default().insert(numbers, Member { name, share, variance });
        }
    }
    families
}

/// What moved within one family.
fn moved(base: &Members<'_>, head: &Members<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    let share = |members: &Members<'_>, numbers| members.get(numbers).map_or(0.0, |member: &Member<'_>| member.share);
    let of_base = base.iter().map(|(numbers, member)| (member.share - share(head, numbers)).abs());
    let of_head = head.iter().filter(|(numbers, _)| !base.contains_key(*numbers)).map(|(_, member)| member.share);
    let by_name: f64 = of_base.chain(of_head).sum();
    let variance: f64 = base.values().chain(head.values()).map(|member| member.variance).sum();
    let (left, right): (Vec<&Member<'_>>, Vec<&Member<'_>>) = (base.values().collect(), head.values().collect());
    let (in_order, pairs) = aligned(&left, &right);
    if by_name <= ERRORS * libm::sqrt(variance) || in_order > BETTER * by_name {
        return Vec::new();
    }
    let partner: BTreeMap<&str, &str> =
        pairs.into_iter().map(|(one, other)| (left[one].name, right[other].name)).collect();
    let named = left.iter().filter_map(|member| match partner.get(member.name) {
        Some(now) if *now == member.name => None,
        Some(now) => Some((member.name.into(), (*now).into())),
        None if right.iter().any(|other| other.name == member.name) => {
            Some((member.name.into(), format!("{} (of the base)", member.name).into()))
        }
        None => None,
    });
    named.collect()
}

/// Members of both sides in their orders, so aligned that the shares of pairs, and of those without, differ least in sum: that sum, and the pairs.
fn aligned(left: &[&Member<'_>], right: &[&Member<'_>]) -> (f64, Vec<(usize, usize)>) {
    let width = right.len() + 1;
    let at = |row: usize, column: usize| row * width + column;
    // The least sum of what comes after each place.
    let mut rest = vec![0.0; (left.len() + 1) * width];
    let skipped = |member: Option<&&Member<'_>>| member.map_or(f64::INFINITY, |member| member.share);
    for row in (0..=left.len()).rev() {
        for column in (0..=right.len()).rev() {
            let (one, other) = (left.get(row), right.get(column));
            let mut least = f64::INFINITY;
            if one.is_some() {
                least = least.min(skipped(one) + rest[at(row + 1, column)]);
            }
            if other.is_some() {
                least = least.min(skipped(other) + rest[at(row, column + 1)]);
            }
            if let (Some(one), Some(other)) = (one, other) {
                least = least.min((one.share - other.share).abs() + rest[at(row + 1, column + 1)]);
            }
            if least.is_finite() {
                rest[at(row, column)] = least;
            }
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while let (Some(one), Some(other)) = (left.get(row), right.get(column)) {
        let paired = (one.share - other.share).abs() + rest[at(row + 1, column + 1)];
        let without_one = one.share + rest[at(row + 1, column)];
        let without_other = other.share + rest[at(row, column + 1)];
        if paired <= without_one && paired <= without_other {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if without_one <= without_other {
            row += 1;
        } else {
            column += 1;
        }
    }
    (rest.first().copied().unwrap_or(0.0), pairs)
}
