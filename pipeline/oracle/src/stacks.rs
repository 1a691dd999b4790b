//! The table `stacks`: section 21 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, RARE_STACKS, StackRow};
use fleetdiff_schemas::time::Hop;

use super::counts::{Archive, HEAD, Tree};
use super::family::{Live, RowId};
use super::timeline::Open;

/// The rows of one report of a comparison.
pub(super) fn rows(config: &Config, archive: &Archive, open: &Open, live: &Live, hop: Hop) -> Vec<StackRow> {
    let types: BTreeSet<ProfileType> = live.selected.keys().map(|id| id.profile_type).collect();
    let mut rows = Vec::new();
    for profile_type in types {
        let Some(cell) = worst_cell(live, profile_type) else { continue };
        let tree = archive.tree(open, hop, profile_type, &cell);
        let counted = listed(archive, &tree);
        rows.extend(counted.into_iter().map(|(stack, samples)| StackRow {
            comparison: live.key(profile_type),
            cell: cell.clone(),
            window_start_at: config.clock().start_of(open.epoch),
            window_end_at: config.clock().end_of(hop),
            stack,
            head_samples: table_count(samples[HEAD]),
            base_samples: table_count(samples[1 - HEAD]),
        }));
    }
    rows
}

fn worst_cell(live: &Live, profile_type: ProfileType) -> Option<CellKey> {
    let size = |id: &RowId| live.selected[id].now.row.share_delta.map(|delta| delta.value.abs());
    let flagged = |kind| {
        let of_kind = live.selected.iter().filter(move |(id, one)| {
            id.profile_type == profile_type && id.kind == kind && !id.is_of_all() && one.flag.is_some()
        });
        let sized = of_kind.filter_map(|(id, _)| Some((size(id)?, &id.cell)));
        // In order of cells, so that the first stays.
        sized.reduce(|worst, next| if next.0 > worst.0 { next } else { worst })
    };
    flagged(CountKind::SelfCount).or_else(|| flagged(CountKind::Total)).map(|(_, cell)| cell.clone())
}

/// Stacks as names, each kept as far down as a thousandth of an arm's samples goes through it.
fn listed(archive: &Archive, tree: &Tree) -> BTreeMap<Vec<String>, [u64; 2]> {
    let mut through: BTreeMap<&[usize], [u64; 2]> = BTreeMap::new();
    for (path, samples) in tree.values().flatten() {
        let frames = &archive.paths[*path];
        for depth in 0..=frames.len() {
            let sum = through.entry(&frames[..depth]).or_default();
            *sum = [sum[0] + samples[0], sum[1] + samples[1]];
        }
    }
    let all = through.get(&[][..]).copied().unwrap_or_default();
    let is_frequent = |frames: &[usize]| (0..2).any(|arm| all[arm] > 0 && 1000 * through[frames][arm] >= all[arm]);
    let mut listed: BTreeMap<Vec<String>, [u64; 2]> = BTreeMap::new();
    for (path, samples) in tree.values().flatten() {
        let frames = &archive.paths[*path];
        let depth = (0..=frames.len()).rev().find(|&depth| depth == 0 || is_frequent(&frames[..depth]));
        let depth = depth.unwrap_or(0);
        let mut stack: Vec<String> = frames[..depth].iter().map(|&name| archive.names[name].to_string()).collect();
        if depth < frames.len() {
            stack.push(RARE_STACKS.to_owned());
        }
        let sum = listed.entry(stack).or_default();
        *sum = [sum[0] + samples[0], sum[1] + samples[1]];
    }
    listed
}
