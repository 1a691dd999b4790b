//! Which functions do the same work: a plain search over all of a cell.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::{float, signed_float};
use fleetdiff_schemas::profile::{CountKind, Numbered};

use super::{Group, How};
use crate::counts::{Archive, Tree};
use crate::explained::callers;
use crate::family::RowId;
use crate::row::Line;
use crate::statistics::tails::t_quantile;
use crate::waiting::split;

/// How many new and gone functions are compared.
const MOST: usize = 200;

/// A row that may be one of a group: share in head and base, and the standard error of the difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) head: f64,
    pub(super) base: f64,
    pub(super) counts: [f64; 2],
    pub(super) se: f64,
    pub(super) ln_f: f64,
    pub(super) v: f64,
}

impl<'a> Row<'a> {
    pub(super) fn of(id: &'a RowId, line: &Line) -> Option<Self> {
        let (row, tested) = (&line.row, line.tested.as_ref()?);
        let delta = row.share_delta?;
        Some(Self {
            name: &id.function,
            head: row.head.share?,
            base: row.base.share?,
            counts: [row.head.count, row.base.count].map(signed_float),
            se: (delta.high - delta.low) / (2.0 * t_quantile(0.95, row.df?)),
            ln_f: tested.ln_normalization,
            v: tested.normalization_variance,
        })
    }

    pub(super) fn delta(&self) -> f64 {
        self.head - self.base
    }
}

/// A row of a group, and how much of it belongs to it.
pub(super) struct Weighted<'a> {
    pub(super) row: Row<'a>,
    pub(super) weight: f64,
    pub(super) kinds: Vec<CountKind>,
    /// What it is inlined in.
    pub(super) into: Option<&'a str>,
}

/// |ln| of the ratio of two changes, if that is about 2 at most.
fn apart(one: (f64, f64), other: (f64, f64)) -> Option<f64> {
    let ln = (one.0.abs().ln() - other.0.abs().ln()).abs();
    let se = ((one.1 / one.0).powi(2) + (other.1 / other.0).powi(2)).sqrt();
    (ln <= 2.0_f64.ln() + 2.0 * se).then_some(ln)
}

/// What is known of a function of a cell.
pub(super) struct Known<'a> {
    name: &'a str,
    /// Self and total.
    rows: [Option<Row<'a>>; 2],
    is_new: bool,
    is_gone: bool,
    /// Parts of its samples, and of its own, by the name of the caller; `None` where it has none.
    callers: [BTreeMap<Option<&'a str>, f64>; 2],
}

impl Known<'_> {
    fn is_alone(&self) -> bool {
        self.is_new || self.is_gone
    }
}

/// A pair: the row of the base, and that of the head.
type Pair<'a> = (Row<'a>, Row<'a>);

/// The functions with candidates, ascending by their stable hash.
pub(super) fn known<'a>(archive: &'a Archive, tree: &Tree, candidates: &[(&'a RowId, &'a Line)]) -> Vec<Known<'a>> {
    let mut rows: BTreeMap<(u64, &str), [Option<Row<'a>>; 2]> = BTreeMap::new();
    for (id, line) in candidates {
        if let Some(row) = Row::of(id, line) {
            rows.entry((id.hash, &id.function)).or_default()[usize::from(id.kind == CountKind::Total)] = Some(row);
        }
    }
    let one = |((_, name), rows): ((u64, &'a str), [Option<Row<'a>>; 2])| {
        let function = archive.names.iter().position(|known| **known == *name)?;
        let mut seen = [0; 2];
        for (_, samples) in tree.values().flatten().filter(|(path, _)| archive.paths[**path].contains(&function)) {
            seen = [seen[0] + samples[0], seen[1] + samples[1]];
        }
        let callers = callers(archive, tree, function).map(|callers| {
            let all = float(callers.values().sum::<u64>().max(1));
            let part = |(caller, samples): (Option<usize>, u64)| {
                (caller.map(|caller| &*archive.names[caller]), float(samples) / all)
            };
            callers.into_iter().map(part).collect()
        });
        Some(Known { name, rows, is_new: seen[1] == 0, is_gone: seen[0] == 0, callers })
    };
    rows.into_iter().filter_map(one).collect()
}

/// The groups of a cell at a look; `before` are the pairs known so far, base and head.
pub(super) fn found(functions: Vec<Known<'_>>, before: &[(String, String)]) -> Vec<Group> {
    let renumbered = renumbered(&functions);
    let is_free = |one: &Known<'_>| !renumbered.iter().any(|group| group.names().contains(&one.name));
    let functions: Vec<Known<'_>> = functions.into_iter().filter(is_free).collect();
    let functions = functions.as_slice();
    let named = |name: &str| functions.iter().find(|function| function.name == name);
    let still = |(base, head): &(String, String)| {
        let (base, head) = (named(base)?, named(head)?);
        if base.is_gone && head.is_new { comparable(base, head).map(|(pair, _)| pair) } else { None }
    };
    let mut pairs: Vec<Pair<'_>> = before.iter().filter_map(still).collect();
    loop {
        let more = more_pairs(functions, &pairs);
        if more.is_empty() {
            break;
        }
        pairs.extend(more);
    }
    let of_pair = |(base, head): &Pair<'_>| {
        let both: Vec<&Known<'_>> = [base.name, head.name].into_iter().filter_map(named).collect();
        by_kind(How::Renamed, &both)
    };
    let inlined = inlined(functions, &pairs);
    let holds =
        |group: &Group| inlined.iter().any(|other| other.names().iter().any(|name| group.names().contains(name)));
    let is_own = |group: &Group| group.members.iter().any(|one| one.kinds.contains(&CountKind::SelfCount));
    let of_pairs = pairs.iter().flat_map(of_pair).filter(|group| !is_own(group) || !holds(group));
    let of_pairs: Vec<Group> = of_pairs.collect();
    renumbered.into_iter().chain(of_pairs).chain(inlined).collect()
}

/// The rows by which two functions are compared, and how far they are apart, if their costs are similar.
fn comparable<'a>(base: &Known<'a>, head: &Known<'a>) -> Option<(Pair<'a>, f64)> {
    let pair = (0..2).rev().find_map(|kind| base.rows[kind].zip(head.rows[kind]))?;
    if split(base.name).1 != split(head.name).1 {
        return None;
    }
    let apart = apart((pair.0.delta(), pair.0.se), (pair.1.delta(), pair.1.se))?;
    Some((pair, apart))
}

fn more_pairs<'a>(functions: &[Known<'a>], pairs: &[Pair<'a>]) -> Vec<Pair<'a>> {
    let is_paired = |name: &str| pairs.iter().any(|(base, head)| base.name == name || head.name == name);
    let largest = |is: fn(&Known<'_>) -> bool| {
        let mut largest: Vec<&Known<'a>> = functions.iter().filter(|one| is(one) && !is_paired(one.name)).collect();
        let size = |one: &Known<'_>| one.rows[1].or(one.rows[0]).map_or(0.0, |row| row.delta().abs());
        largest.sort_by(|a, b| size(b).total_cmp(&size(a)));
        largest.truncate(MOST);
        largest
    };
    // The nearest callers that both builds have, a pair under the name of the head.
    let above = |one: &Known<'a>| {
        let mut found = BTreeMap::<Option<&str>, f64>::new();
        let mut open: Vec<(&Known<'a>, f64, usize)> = vec![(one, 1.0, 0)];
        while let Some((one, part, depth)) = open.pop() {
            for (caller, of_one) in one.callers[0].iter().filter(|_| depth < 4) {
                let other = functions.iter().find(|other| Some(other.name) == *caller && other.is_alone());
                if let Some(other) = other.filter(|other| !is_paired(other.name)) {
                    open.push((other, part * of_one, depth + 1));
                } else {
                    let pair = pairs.iter().find(|(base, _)| Some(base.name) == *caller);
                    *found.entry(pair.map(|(_, head)| head.name).or(*caller)).or_default() += part * of_one;
                }
            }
        }
        found
    };
    let mut fits = Vec::new();
    let new: Vec<_> = largest(|one| one.is_new).into_iter().map(|one| (one, above(one))).collect();
    for base in largest(|one| one.is_gone) {
        let of_base = above(base);
        for (head, of_head) in &new {
            let part = |caller: &Option<&str>| of_head.get(caller).copied().unwrap_or(0.0);
            let alike: f64 = of_base.iter().map(|(caller, of_base)| of_base.min(part(caller))).sum();
            if let Some((pair, apart)) = comparable(base, head)
                && alike >= 0.5
            {
                fits.push((strsim::sorensen_dice(base.name, head.name), apart, pair));
            }
        }
    }
    let hash = |row: &Row<'_>| stable_hash(row.name.as_bytes());
    let hashes = |(base, head): &Pair<'_>| (hash(base), hash(head));
    fits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)).then_with(|| hashes(&a.2).cmp(&hashes(&b.2))));
    let mut more: Vec<Pair<'a>> = Vec::new();
    for (.., (base, head)) in fits {
        if !more.iter().any(|(was, is)| was.name == base.name || is.name == head.name) {
            more.push((base, head));
        }
    }
    more
}

/// A group of the self rows of some functions and one of their total rows; or one of both, if those of one kind do not rise and fall.
fn by_kind(how: How, functions: &[&Known<'_>]) -> Vec<Group> {
    let of_kind = |kind: usize| -> Vec<Row<'_>> { functions.iter().filter_map(|one| one.rows[kind]).collect() };
    let moves = |kind: usize| {
        let rows = of_kind(kind);
        rows.iter().any(|row| row.delta() > 0.0) && rows.iter().any(|row| row.delta() < 0.0)
    };
    let each = [CountKind::SelfCount, CountKind::Total];
    let kinds = |kind: usize| if moves(0) && moves(1) { vec![each[kind]] } else { each.to_vec() };
    let group = |kind: usize| {
        let weighted = |row| Weighted { row, weight: 1.0, kinds: kinds(kind), into: None };
        let rows: Vec<Weighted<'_>> = of_kind(kind).into_iter().map(weighted).collect();
        Group::of(how, &rows)
    };
    (0..2).filter(|kind| moves(*kind)).map(group).collect()
}

/// Functions that a compiler numbered, of which one is new or gone.
fn renumbered(functions: &[Known<'_>]) -> Vec<Group> {
    let mut families: BTreeMap<String, Vec<&Known<'_>>> = BTreeMap::new();
    for one in functions {
        families.entry(Numbered::of(one.name).map_or_else(String::new, |name| name.family)).or_default().push(one);
    }
    families.remove("");
    families.retain(|_, family| family.iter().any(|one| one.is_alone()));
    let mut groups = Vec::new();
    for family in families.values() {
        let rows: Vec<Row<'_>> = family.iter().filter_map(|one| one.rows[1].or(one.rows[0])).collect();
        let sum = |rises: bool| {
            let meant = rows.iter().filter(|row| (row.delta() > 0.0) == rises);
            let (delta, variance) = meant.fold((0.0, 0.0), |(delta, variance): (f64, f64), row| {
                (delta + row.delta(), variance + row.se.powi(2))
            });
            (delta, variance.sqrt())
        };
        if sum(true).0 > 0.0 && sum(false).0 < 0.0 && apart(sum(true), sum(false)).is_some() {
            groups.extend(by_kind(How::Renumbered, family));
        }
    }
    groups
}

/// A function that one build lacks: its row, and the callers that changed the other way, the most frequent first, each with its part of the
/// function's own samples.
struct Alone<'a> {
    own: Row<'a>,
    callers: Vec<(Row<'a>, f64)>,
}

impl Alone<'_> {
    fn weight(&self) -> f64 {
        self.callers.iter().map(|(_, part)| part).sum()
    }
}

fn own<'a>(functions: &[Known<'a>], name: &str) -> Option<Row<'a>> {
    functions.iter().find(|one| one.name == name)?.rows[0]
}

/// What both builds have: a function with a row of its own samples, or a pair under the name of the head.
fn in_both<'a>(functions: &[Known<'a>], pairs: &[Pair<'a>], name: &str) -> Option<Row<'a>> {
    if let Some((base, head)) = pairs.iter().find(|(base, head)| base.name == name || head.name == name) {
        let (base, head) = (own(functions, base.name)?, own(functions, head.name)?);
        let se = head.se.hypot(base.se);
        let counts = [0, 1].map(|arm| head.counts[arm] + base.counts[arm]);
        return Some(Row { head: head.head + base.head, base: head.base + base.base, counts, se, ..head });
    }
    functions.iter().find(|one| one.name == name && !one.is_alone())?.rows[0]
}

/// Functions of one build whose callers have their samples in the other.
fn inlined(functions: &[Known<'_>], pairs: &[Pair<'_>]) -> Vec<Group> {
    let is_paired = |name: &str| pairs.iter().any(|(base, head)| base.name == name || head.name == name);
    let mut alone = Vec::new();
    for one in functions.iter().filter(|one| one.is_alone() && !is_paired(one.name)) {
        let Some(own) = one.rows[0] else { continue };
        let mut parts: BTreeMap<(u64, &str), (Row<'_>, f64)> = BTreeMap::new();
        for (caller, part) in &one.callers[1] {
            let row = caller.and_then(|caller| in_both(functions, pairs, caller));
            let Some(row) = row.filter(|row| row.delta() * own.delta() < 0.0) else { continue };
            parts.entry((stable_hash(row.name.as_bytes()), row.name)).or_insert((row, 0.0)).1 += part;
        }
        let mut callers: Vec<(Row<'_>, f64)> = parts.into_values().filter(|(_, part)| *part >= 0.1).collect();
        callers.sort_by(|a, b| b.1.total_cmp(&a.1));
        let one = Alone { own, callers };
        alone.extend((one.weight() >= 0.5).then_some(one));
    }
    let mut groups = Vec::new();
    let mut done: BTreeSet<usize> = BTreeSet::new();
    for first in 0..alone.len() {
        if done.contains(&first) {
            continue;
        }
        // All that share a caller with one of them.
        let (mut of_group, mut held) = (BTreeSet::from([first]), BTreeSet::new());
        loop {
            held.extend(of_group.iter().flat_map(|one| alone[*one].callers.iter().map(|(caller, _)| caller.name)));
            let shares = |one: &usize| alone[*one].callers.iter().any(|(caller, _)| held.contains(caller.name));
            let all: BTreeSet<usize> = (0..alone.len()).filter(shares).collect();
            if all == of_group {
                break;
            }
            of_group = all;
        }
        done.extend(&of_group);
        let of_group: Vec<&Alone<'_>> = of_group.iter().map(|one| &alone[*one]).collect();
        groups.extend(group_of(&of_group, &held, functions, pairs));
    }
    groups
}

/// The group of some functions and of the callers that are held, if these changed by about as much the other way.
fn group_of(alone: &[&Alone<'_>], held: &BTreeSet<&str>, functions: &[Known<'_>], pairs: &[Pair<'_>]) -> Option<Group> {
    let by_hash = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        let names: BTreeMap<u64, String> = names.map(|name| (stable_hash(name.as_bytes()), name.to_owned())).collect();
        names.into_values().collect()
    };
    let callers = by_hash(&mut held.iter().copied());
    let callers: Vec<Row<'_>> = callers.iter().filter_map(|name| in_both(functions, pairs, name)).collect();
    // Of a pair, the row of the head stands for both.
    let of_pairs = pairs.iter().filter(|(_, head)| held.contains(head.name));
    let of_base = by_hash(&mut of_pairs.map(|(base, _)| base.name));
    let of_base: Vec<Row<'_>> = of_base.iter().filter_map(|name| own(functions, name)).collect();
    let mut rows: Vec<Weighted<'_>> = alone
        .iter()
        .map(|one| Weighted {
            row: one.own,
            weight: one.weight(),
            kinds: CountKind::ALL.to_vec(),
            into: one.callers.first().map(|(caller, _)| caller.name),
        })
        .collect();
    let other = |(weight, row)| Weighted { row, weight, kinds: vec![CountKind::SelfCount], into: None };
    rows.extend(callers.into_iter().map(|row| (1.0, row)).chain(of_base.into_iter().map(|row| (0.0, row))).map(other));
    let sum = |of_alone: bool| {
        let rows = rows.iter().filter(|weighted| weighted.into.is_some() == of_alone);
        let sum = rows.fold((0.0, 0.0), |(delta, variance), Weighted { row, weight, .. }| {
            (delta + weight * row.delta(), variance + weight * row.se.powi(2))
        });
        (sum.0, sum.1.sqrt())
    };
    let (one, other) = (sum(true), sum(false));
    let fits = one.0 * other.0 < 0.0 && apart(one, other).is_some();
    fits.then(|| Group::of(How::Inlined, &rows))
}
