//! The verdict of a comparison in each cell and over all of them: section 9 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::CellBy;
use fleetdiff_schemas::identity::{Cohort, MERGED, Region};
use fleetdiff_schemas::number::{float, table_count};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, ComparisonRow};
use fleetdiff_schemas::verdict::{Baseline, ComparisonVerdict, Scope, Support};

use super::counts::{BASE, HEAD};
use super::family::{Called, Live, LookAt, Looked, RowId};
use super::row::range;
use super::unlike::over_all;

/// Share of the base's self samples that must be in functions shown to be alike.
const ENOUGH_ALIKE: f64 = 0.7;

/// The rows of all types and kinds at one look, after its flags.
pub(super) fn at_look(at: &LookAt<'_>, live: &Live, looked: &[Looked]) -> Vec<ComparisonRow> {
    let mut rows = Vec::new();
    for profile_type in looked.iter().map(|cell| cell.profile_type).collect::<BTreeSet<_>>() {
        let cells: Vec<&Looked> = looked.iter().filter(|cell| cell.profile_type == profile_type).collect();
        for kind in CountKind::ALL.into_iter().filter(|kind| at.config.count_kinds.contains(kind)) {
            let verdicts = Verdicts { at, live, profile_type, kind };
            let of_cells: Vec<ComparisonRow> = cells.iter().map(|cell| verdicts.of_cell(cell)).collect();
            if at.config.cell_by != CellBy::All {
                rows.push(verdicts.over_all(&cells, &of_cells));
            }
            rows.extend(of_cells);
        }
    }
    rows
}

/// What the rows of one comparison key and kind have in common.
pub(super) struct Verdicts<'a> {
    pub at: &'a LookAt<'a>,
    pub live: &'a Live,
    pub profile_type: ProfileType,
    pub kind: CountKind,
}

impl Verdicts<'_> {
    fn empty(&self, cell: CellKey) -> ComparisonRow {
        let (window_start_at, window_end_at) = range(self.at.config, self.at.open, Scope::Epoch, self.at.hop);
        ComparisonRow {
            comparison: self.live.key(self.profile_type),
            count_kind: self.kind,
            cell,
            window_start_at,
            window_end_at,
            head_total: 0,
            base_total: 0,
            head_pods: 0,
            base_pods: 0,
            functions_tested: 0,
            scale: None,
            tau2: None,
            d0: None,
            s02: None,
            flags: 0,
            time_blocks: 0,
            strata_dropped: 0,
            equivalent_share: None,
            verdict: ComparisonVerdict::Inconclusive,
            sentence: String::new(),
            self_check_tests: None,
            self_check_flags: None,
            warnings: Vec::new(),
            baseline: Baseline::Concurrent,
        }
    }

    /// Called rows of this type and kind.
    fn called(&self) -> BTreeMap<&RowId, &Called> {
        let here = |id: &RowId| id.profile_type == self.profile_type && id.kind == self.kind;
        self.live.called.iter().filter(|(id, _)| here(id)).collect()
    }

    /// The row of one cell.
    pub fn of_cell(&self, looked: &Looked) -> ComparisonRow {
        let evidence = &looked.evidence;
        let test = evidence.kinds.get(&self.kind).filter(|kind| kind.tested() > 0);
        let prior = test.and_then(|kind| kind.test.as_ref()).map(|test| (test.scale, test.share.prior));
        let called = self.called();
        let called: Vec<&Called> =
            called.iter().filter(|(id, _)| id.cell == looked.cell).map(|(_, called)| *called).collect();
        let any = |of: fn(f64) -> bool| called.iter().any(|called| called.now.tested.is_some_and(|now| of(now.theta)));
        let checked = self.at.checked.get(&(self.profile_type, self.kind, looked.cell.clone()));
        let alike = self.share_alike(looked);
        let verdict = match () {
            () if evidence.strata == 0 => ComparisonVerdict::NotComparable,
            () if any(|theta| theta > 0.0) => ComparisonVerdict::Regressed,
            () if any(|theta| theta < 0.0) => ComparisonVerdict::Improved,
            () if called.is_empty() && alike.is_some_and(|share| share >= ENOUGH_ALIKE) => ComparisonVerdict::Clean,
            () => ComparisonVerdict::Inconclusive,
        };
        ComparisonRow {
            head_total: evidence.arms[HEAD].total,
            base_total: evidence.arms[BASE].total,
            head_pods: evidence.arms[HEAD].pods,
            base_pods: evidence.arms[BASE].pods,
            functions_tested: test.map_or(0, |kind| table_count(kind.tested())),
            scale: prior.map(|(scale, _)| scale),
            tau2: prior.map(|(_, prior)| prior.tau2),
            d0: prior.map(|(_, prior)| prior.d0),
            s02: prior.map(|(_, prior)| prior.s02),
            flags: table_count(called.iter().filter(|called| called.flag.is_some()).count()),
            self_check_tests: checked.map(|(tests, _)| *tests),
            self_check_flags: checked.map(|(_, flags)| *flags),
            time_blocks: table_count(evidence.blocks.len()),
            strata_dropped: table_count(evidence.dropped),
            equivalent_share: alike,
            verdict,
            warnings: self.at.unlike.get(&(self.profile_type, looked.cell.clone())).cloned().unwrap_or_default(),
            ..self.empty(looked.cell.clone())
        }
    }

    /// Share of the base's self samples that are in functions which this kind shows to be alike, on firm support; `None`
    /// without kept strata.
    fn share_alike(&self, looked: &Looked) -> Option<f64> {
        let own = &looked.evidence.kinds.get(&CountKind::SelfCount)?.counts;
        let all: u64 = own.values().map(|counts| counts[BASE]).sum();
        let firm = looked.evidence.support == Support::Firm;
        let alike =
            looked.lines.get(&self.kind)?.iter().filter(|line| firm && line.tested.is_some_and(|now| now.alike));
        let alike: u64 = alike.filter_map(|line| own.get(&line.function?)).map(|counts| counts[BASE]).sum();
        (looked.evidence.strata > 0 && all > 0).then(|| float(alike) / float(all))
    }

    /// The row over all cells.
    pub fn over_all(&self, cells: &[&Looked], rows: &[ComparisonRow]) -> ComparisonRow {
        let pods = |arm: usize| {
            let distinct: BTreeSet<usize> =
                cells.iter().flat_map(|cell| cell.evidence.pods[arm].iter().copied()).collect();
            table_count(distinct.len())
        };
        let any = |verdict: ComparisonVerdict| rows.iter().any(|row| row.verdict == verdict);
        let all = |verdict: ComparisonVerdict| rows.iter().all(|row| row.verdict == verdict);
        let verdict = match () {
            () if all(ComparisonVerdict::NotComparable) => ComparisonVerdict::NotComparable,
            () if any(ComparisonVerdict::Regressed) => ComparisonVerdict::Regressed,
            () if any(ComparisonVerdict::Improved) => ComparisonVerdict::Improved,
            () if all(ComparisonVerdict::Clean) => ComparisonVerdict::Clean,
            () => ComparisonVerdict::Inconclusive,
        };
        let since =
            self.at.blocks.iter().filter(|block| **block >= self.at.open.epoch && **block <= self.at.hop).count();
        let sum = |of: fn(&ComparisonRow) -> Option<i64>| rows.iter().filter_map(of).reduce(|sum, one| sum + one);
        ComparisonRow {
            head_total: rows.iter().map(|row| row.head_total).sum(),
            base_total: rows.iter().map(|row| row.base_total).sum(),
            head_pods: pods(HEAD),
            base_pods: pods(BASE),
            functions_tested: rows.iter().map(|row| row.functions_tested).sum(),
            flags: table_count(self.called().values().filter(|called| called.flag.is_some()).count()),
            self_check_tests: sum(|row| row.self_check_tests),
            self_check_flags: sum(|row| row.self_check_flags),
            time_blocks: table_count(u64::try_from(since).unwrap_or(u64::MAX)),
            strata_dropped: rows.iter().map(|row| row.strata_dropped).sum(),
            verdict,
            warnings: over_all(self.at.unlike, self.profile_type, cells.len()),
            ..self.empty(CellKey { region: Region::from(MERGED), cohort: Cohort::from(MERGED) })
        }
    }
}
