//! The base against itself: "A/A check" in section 6 of `docs/semantics.md`.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::{float, signed_float, table_count};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Scope;

use super::arms::kept_or_all;
use super::counts::{Archive, ArmCounts, BASE, Cell, HEAD};
use super::evidence::{Evidence, Using, judge};
use super::statistics::families::two_level;
use super::timeline::Open;

/// Rows tested and rows significant, by type, kind and cell; cells whose halves cannot be tested are missing.
pub(super) type Checked = BTreeMap<(ProfileType, CountKind, CellKey), (i64, i64)>;

/// The A/A check of a comparison at a report.
pub(super) fn at_report(config: &Config, archive: &Archive, open: &Open, hop: Hop) -> Checked {
    let mut by_type: BTreeMap<ProfileType, Vec<(CellKey, Cell)>> = BTreeMap::new();
    for ((profile_type, key), cell) in archive.cells(config, open, Scope::Window, hop) {
        let has_head = cell.strata.values().any(|stratum| stratum[HEAD].samples > 0);
        let halves = halves(&cell, |bucket| bucket % 2 == 0);
        if has_head && !halves.strata.is_empty() {
            by_type.entry(profile_type).or_default().push((key, halves));
        }
    }
    let mut checked = Checked::new();
    for (profile_type, cells) in by_type {
        let strata_detail: Vec<Evidence> =
            cells.iter().map(|(_, halves)| judge(config, archive, &[halves], Using::default())).collect();
        let all: Vec<&Cell> = cells.iter().map(|(_, halves)| halves).collect();
        let together = judge(config, archive, &all, Using::default());
        for kind in CountKind::ALL.into_iter().filter(|kind| config.count_kinds.contains(kind)) {
            let column = |evidence: &Evidence| ln_p_row(evidence, kind, archive.names.len());
            let shares = shares(&together, kind, archive.names.len());
            let by_cell: Vec<Vec<f64>> = strata_detail.iter().map(column).collect();
            let ln_q = two_level(&by_cell, &column(&together), &shares).ln_q_value;
            for (((key, _), evidence), ln_q) in cells.iter().zip(&strata_detail).zip(ln_q) {
                if evidence.kinds.get(&kind).is_some_and(|found| found.test.is_some()) {
                    let count = |of: &dyn Fn(f64) -> bool| table_count(ln_q.iter().filter(|ln_q| of(**ln_q)).count());
                    checked.insert(
                        (profile_type, kind, key.clone()),
                        (count(&|ln_q| !ln_q.is_nan()), count(&|ln_q| ln_q <= config.q.ln())),
                    );
                }
            }
        }
    }
    checked
}

/// Some of the base's buckets as head and the others as base, in strata that have both.
pub(super) fn halves(cell: &Cell, is_head: impl Fn(u8) -> bool) -> Cell {
    let kept = kept_or_all(cell);
    let of_stratum = |base: &ArmCounts, head: bool| {
        let buckets: BTreeMap<_, _> = base
            .buckets
            .iter()
            .filter(|(bucket, _)| is_head(**bucket) == head)
            .map(|(bucket, counts)| (*bucket, counts.clone()))
            .collect();
        ArmCounts { samples: buckets.values().map(|bucket| bucket.samples).sum(), buckets, ..ArmCounts::default() }
    };
    let all = cell.strata.iter().filter(|(_, stratum)| kept.iter().any(|one| std::ptr::eq(*one, *stratum)));
    let all =
        all.map(|(key, stratum)| (key.clone(), [of_stratum(&stratum[BASE], true), of_stratum(&stratum[BASE], false)]));
    let strata = all.filter(|(_, arms)| arms.iter().all(|arm| arm.samples > 0)).collect();
    Cell { strata, ..Cell::default() }
}

/// By function number; NaN where it was not tested.
fn ln_p_row(evidence: &Evidence, kind: CountKind, functions: usize) -> Vec<f64> {
    let mut column = vec![f64::NAN; functions];
    let Some(found) = evidence.kinds.get(&kind) else { return column };
    for function in &found.functions {
        if let Some((place, test)) = found.place(*function) {
            column[*function] = test.rows.ln_p_row[place];
        }
    }
    column
}

/// Share of cost by function number.
fn shares(together: &Evidence, kind: CountKind, functions: usize) -> Vec<f64> {
    let total: i64 = together.arms.iter().map(|arm| arm.total).sum();
    let mut shares = vec![0.0; functions];
    let Some(found) = together.kinds.get(&kind) else { return shares };
    for (function, counts) in &found.counts {
        shares[*function] = float(counts[HEAD] + counts[BASE]) / signed_float(total);
    }
    shares
}
