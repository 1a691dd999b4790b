//! The verdict of a comparison in each cell and over all of them: section 9 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::CellBy;
use fleetdiff_schemas::identity::{Cohort, MERGED, Region};
use fleetdiff_schemas::number::{float, table_count};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, ComparisonRow};
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, Scope};

use super::counts::{BASE, HEAD};
use super::family::{Live, LookAt, Looked, RowId, Selected};
use super::imbalance::over_all;
use super::rates::Rate;
use super::row::range;
use super::statistics::normalization::Scales;

/// Share of the base's self samples that must be in equivalent functions.
const ENOUGH_EQUIVALENT: f64 = 0.7;

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
            is_roll_up: false,
            window_start_at,
            window_end_at,
            head_total: 0,
            base_total: 0,
            head_pods: 0,
            base_pods: 0,
            functions_tested: 0,
            normalization_factor: None,
            admissible_factors: Vec::new(),
            head_pod_variance: None,
            base_pod_variance: None,
            flags: 0,
            time_blocks: 0,
            strata_dropped: 0,
            equivalent_share: None,
            verdict: ComparisonVerdict::Inconclusive,
            sentence: String::new(),
            aa_check_tests: None,
            aa_check_flags: None,
            warnings: Vec::new(),
            action: None,
            base_kind: BaseKind::Concurrent,
        }
    }

    /// Selected rows of this type and kind.
    fn selected(&self) -> BTreeMap<&RowId, &Selected> {
        let here = |id: &RowId| id.profile_type == self.profile_type && id.kind == self.kind;
        self.live.selected.iter().filter(|(id, _)| here(id)).collect()
    }

    /// The row of one cell.
    pub fn of_cell(&self, looked: &Looked) -> ComparisonRow {
        let evidence = &looked.evidence;
        let test = evidence.kinds.get(&self.kind).filter(|kind| kind.tested() > 0);
        let test = test.and_then(|kind| kind.test.as_ref());
        let selected = self.selected();
        let raised: Vec<&Selected> =
            selected.iter().filter(|(id, _)| id.cell == looked.cell).map(|(_, selected)| *selected).collect();
        let checked = self.at.checked.get(&(self.profile_type, self.kind, looked.cell.clone()));
        let equivalent = self.equivalent_share_of(looked);
        let pod_variance = |arm: usize| test.map(|test| test.test.held.tau2[arm]);
        ComparisonRow {
            head_total: evidence.arms[HEAD].total,
            base_total: evidence.arms[BASE].total,
            head_pods: evidence.arms[HEAD].pods,
            base_pods: evidence.arms[BASE].pods,
            functions_tested: test.map_or(0, |test| table_count(test.test.tests)),
            normalization_factor: test.map(|test| test.scales.deciding().exp()),
            admissible_factors: test.map_or_else(Vec::new, |test| admissible(&test.scales)),
            head_pod_variance: pod_variance(HEAD),
            base_pod_variance: pod_variance(BASE),
            flags: table_count(raised.iter().filter(|selected| selected.flag.is_some()).count()),
            aa_check_tests: checked.map(|(tests, _)| *tests),
            aa_check_flags: checked.map(|(_, flags)| *flags),
            time_blocks: table_count(evidence.blocks.len()),
            strata_dropped: table_count(evidence.dropped),
            equivalent_share: equivalent,
            verdict: self.verdict(looked, equivalent),
            warnings: self.at.imbalance.get(&(self.profile_type, looked.cell.clone())).cloned().unwrap_or_default(),
            ..self.empty(looked.cell.clone())
        }
    }

    /// The verdict of one cell.
    fn verdict(&self, looked: &Looked, equivalent: Option<f64>) -> ComparisonVerdict {
        let here = |id: &RowId| id.profile_type == self.profile_type && id.cell == looked.cell;
        let raised = |of_all: bool, sign: f64| {
            self.live.selected.iter().filter(|(id, _)| here(id) && id.is_of_all() == of_all).any(|(id, selected)| {
                (of_all || id.kind == self.kind) && selected.now.theta().is_some_and(|theta| theta * sign > 0.0)
            })
        };
        let open = looked.evidence.all.as_ref().and_then(Rate::is_open) != Some(false);
        match () {
            () if looked.evidence.strata == 0 => ComparisonVerdict::NotComparable,
            () if raised(false, 1.0) || raised(true, 1.0) => ComparisonVerdict::Regressed,
            () if raised(true, -1.0) => ComparisonVerdict::Improved,
            () if open && equivalent.is_some_and(|share| share >= ENOUGH_EQUIVALENT) => ComparisonVerdict::Clean,
            () => ComparisonVerdict::Inconclusive,
        }
    }

    /// Share of the base's self samples in functions that this kind shows to be equivalent with firm support; `None`
    /// without kept strata.
    fn equivalent_share_of(&self, looked: &Looked) -> Option<f64> {
        let own = &looked.evidence.kinds.get(&CountKind::SelfCount)?.counts;
        let all: u64 = own.values().map(|counts| counts[BASE]).sum();
        let equivalent = looked.lines.get(&self.kind)?.iter().filter(|line| line.is_equivalent());
        let equivalent: u64 = equivalent.filter_map(|line| own.get(&line.function?)).map(|counts| counts[BASE]).sum();
        (looked.evidence.strata > 0 && all > 0).then(|| float(equivalent) / float(all))
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
            flags: table_count(self.selected().values().filter(|selected| selected.flag.is_some()).count()),
            aa_check_tests: sum(|row| row.aa_check_tests),
            aa_check_flags: sum(|row| row.aa_check_flags),
            time_blocks: table_count(u64::try_from(since).unwrap_or(u64::MAX)),
            strata_dropped: rows.iter().map(|row| row.strata_dropped).sum(),
            verdict,
            is_roll_up: true,
            warnings: over_all(self.at.imbalance, self.profile_type, cells.len()),
            ..self.empty(CellKey { region: Region::from(MERGED), cohort: Cohort::from(MERGED) })
        }
    }
}

/// The factors on which a change must hold, in words, if there are several.
fn admissible(scales: &Scales) -> Vec<String> {
    let word = |(ln_scale, mass): (&f64, &f64)| format!("x {:.3} ({:.0} % of cost)", ln_scale.exp(), mass * 100.0);
    let all = scales.ln_scales.iter().zip(&scales.masses).filter(|_| scales.ln_scales.len() > 1);
    all.map(word).collect()
}
