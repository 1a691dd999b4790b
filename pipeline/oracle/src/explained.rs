//! What a flag says about other rows: items 4 and 5 of section 11 of `docs/semantics.md`.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::CountKind;

use super::causes::Here;
use super::counts::{Archive, Tree};
use super::evidence::Evidence;
use super::family::{Live, RowId};
use super::statistics::families::bh;

/// How many compositional functions are named.
const NAMED: usize = 20;

/// The functions of a cell of which only the share moved, by their self rows, the largest change first.
pub(super) fn compositional(config: &Config, archive: &Archive, evidence: &Evidence) -> Vec<String> {
    let Some((kind, test)) =
        evidence.kinds.get(&CountKind::SelfCount).and_then(|kind| Some((kind, kind.test.as_ref()?)))
    else {
        return Vec::new();
    };
    let ln_normalization = test.scales.deciding();
    let (share, adjusted) = (&test.test.theta, &test.rows.theta);
    let moved = |place: usize, ln_q: f64| {
        ln_q <= config.q.ln()
            && ln_normalization.abs() >= config.min_effect
            && share[place] * ln_normalization > 0.0
            && adjusted[place].abs() < share[place].abs()
    };
    let ln_q = bh(&test.rows.ln_p_comp).into_iter().enumerate();
    // In order of the hash; a stable sort keeps this order among equal changes, which rounding must not separate.
    let size = |place: usize| (share[place].abs() * 1e9).round();
    let mut found: Vec<usize> = ln_q.filter(|(place, ln_q)| moved(*place, *ln_q)).map(|(place, _)| place).collect();
    found.sort_by(|a, b| size(*b).total_cmp(&size(*a)));
    found.into_iter().map(|place| archive.names[kind.functions[place]].to_string()).collect()
}

/// What a flag explains: rows, then functions of which only the share moved, if they are attributed to the flag's row.
pub(super) fn explains(live: &Live, flag: &RowId, compositional: &[String]) -> Vec<String> {
    let selected = &live.selected;
    let rows = selected.iter().filter(|(_, other)| other.by.as_ref() == Some(flag));
    let mut names: Vec<String> = rows.map(|(id, _)| format!("{} ({})", id.function, id.kind.name())).collect();
    let own = |id: &&RowId| {
        id.profile_type == flag.profile_type
            && id.cell == flag.cell
            && id.kind == CountKind::SelfCount
            && !id.is_of_all()
            && live.instead(id).is_none()
    };
    let size = |id: &RowId| selected[id].now.theta().map_or(0.0, f64::abs);
    let mut by_size: Vec<&RowId> = selected.keys().filter(own).collect();
    by_size.sort_by(|a, b| size(b).total_cmp(&size(a)));
    if by_size.first() == Some(&flag) {
        let others: Vec<&String> =
            compositional.iter().filter(|name| by_size.iter().all(|id| id.function != **name)).collect();
        names.extend(others.iter().take(NAMED).map(|name| format!("{name} (share)")));
        if others.len() > NAMED {
            names.push(format!("{} more (share)", others.len() - NAMED));
        }
    }
    names
}

/// From where, or to where, the work of self rows of a cell moved, in words.
pub(super) fn shifts(archive: &Archive, tree: &Tree, here: &[Here<'_>]) -> BTreeMap<RowId, String> {
    let up = |(_, selected): &Here<'_>| selected.now.theta().map(|theta| theta > 0.0);
    let own = here.iter().filter(|(id, _)| id.kind == CountKind::SelfCount);
    let (ups, downs): (Vec<&Here<'_>>, Vec<&Here<'_>>) = own.partition(|row| up(row) == Some(true));
    let mut pairs = Vec::new();
    for (to, gaining) in &ups {
        for (from, losing) in &downs {
            let [Some(gained), Some(lost)] = [gaining, losing].map(|selected| selected.now.row.share_delta) else {
                continue;
            };
            let [above, also] = [gaining, losing]
                .map(|selected| selected.now.function.and_then(|function| caller(archive, tree, function)));
            let left = (gained.value + lost.value).abs();
            let halves = [gained, lost].map(|delta| ((delta.high - delta.low) / 2.0).powi(2));
            if let Some(above) = above.filter(|above| Some(*above) == also && left <= (halves[0] + halves[1]).sqrt()) {
                pairs.push((left, *to, *from, above));
            }
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    let mut words = BTreeMap::new();
    for (_, to, from, above) in pairs {
        if !words.contains_key(to) && !words.contains_key(from) {
            let above = &archive.names[above];
            words.insert(to.clone(), format!("cost shift under {above}: work moved here from {}", from.function));
            words.insert(from.clone(), format!("cost shift under {above}: work moved to {}", to.function));
        }
    }
    words
}

/// The most frequent direct caller of a function where it is the leaf; in a tie, the one with the smallest hash. None where it mostly has
/// none.
fn caller(archive: &Archive, tree: &Tree, function: usize) -> Option<usize> {
    let [_, leaf] = callers(archive, tree, function);
    let most = leaf.values().max().copied();
    leaf.into_iter().find(|(_, samples)| Some(*samples) == most).and_then(|(caller, _)| caller)
}

/// Samples by the direct caller of a function: where it is first on a stack, and where it is the leaf. Without those of less than one in a
/// hundred.
pub(super) fn callers(archive: &Archive, tree: &Tree, function: usize) -> [BTreeMap<Option<usize>, u64>; 2] {
    let mut callers: [BTreeMap<Option<usize>, u64>; 2] = Default::default();
    for (path, samples) in tree.values().flatten() {
        let stack = archive.paths[*path].as_slice();
        let Some(first) = stack.iter().position(|frame| *frame == function) else { continue };
        let samples = samples[0] + samples[1];
        *callers[0].entry(stack[..first].last().copied()).or_default() += samples;
        if let [above @ .., leaf] = stack
            && *leaf == function
        {
            *callers[1].entry(above.last().copied()).or_default() += samples;
        }
    }
    for callers in &mut callers {
        let all: u64 = callers.values().sum();
        callers.retain(|_, samples| 100 * *samples >= all);
    }
    callers
}
