//! What is known about the cells of a report, one by one and together.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::CellBy;
use fleetdiff_schemas::identity::{Cohort, MERGED, Region};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::verdict::Support;

use super::{Judged, Report, is_under};
use crate::arms::kept_of;
use crate::counts::{Cell, HEAD};
use crate::evidence::{Evidence, Few, Using, judge};
use crate::rates::{Rate, are_known};
use crate::requests::rates;

/// Everything that is known at one report.
pub(super) struct Judgements {
    /// Of cells.
    pub evidence: Vec<Judged>,
    /// Over all of them.
    pub over_all: [Judged; 1],
    /// Over cohorts, and over regions.
    pub partly: [Vec<Judged>; 2],
}

impl Report<'_> {
    /// What is known about each cell with samples of the head, and about them together.
    pub(super) fn judge_all(&self, cells: &BTreeMap<CellKey, Cell>) -> Judgements {
        let few = if self.against_history { Few::Everywhere } else { Few::WithoutRequests };
        let judged = |chosen: &dyn Fn(&CellKey) -> bool| {
            let chosen: Vec<&Cell> = cells.iter().filter(|(cell, _)| chosen(cell)).map(|(_, counts)| counts).collect();
            judge(self.config, self.archive, &chosen, Using { few, ..Using::default() })
        };
        let with_requests = Using { requests: !self.against_history, few, ..Using::default() };
        let of_cell = |counts: &Cell| judge(self.config, self.archive, &[counts], with_requests);
        let evidence: Vec<(CellKey, Evidence)> =
            cells.iter().map(|(cell, counts)| (cell.clone(), of_cell(counts))).collect();
        let evidence: Vec<_> = evidence.into_iter().filter(|(_, evidence)| evidence.samples[HEAD] > 0).collect();
        let everywhere = CellKey { region: Region::from(MERGED), cohort: Cohort::from(MERGED) };
        let has_head = |cell: &CellKey| evidence.iter().any(|(one, _)| one == cell);
        let over_all = [(everywhere, judged(&has_head))];
        let partly = if self.config.cell_by == CellBy::RegionCohort && evidence.len() >= 2 {
            [merged_cohorts(cells), merged_regions(cells)].map(|keys| {
                let over = |key: &CellKey| judged(&|cell| has_head(cell) && is_under(cell, key));
                keys.into_iter().map(|key| (key.clone(), over(&key))).collect()
            })
        } else {
            [Vec::new(), Vec::new()]
        };
        Judgements { evidence, over_all, partly }
    }

    /// Costs per request over cells, where requests are known and nothing else says which of few functions moved.
    pub(super) fn rate_of_roll_up(&self, evidence: &Evidence, kind: CountKind, cells: &[&Cell]) -> Option<Rate> {
        let asks = !self.against_history
            && evidence.support != Support::Untestable
            && evidence.kinds[&kind].test.as_ref().is_some_and(|test| !test.scales.measured)
            && are_known(&kept_of(cells));
        asks.then(|| rates(self.archive, cells, evidence).remove(&kind)).flatten()
    }
}

/// The key of each region over its cohorts.
fn merged_cohorts(cells: &BTreeMap<CellKey, Cell>) -> BTreeSet<CellKey> {
    cells.keys().map(|cell| CellKey { region: cell.region.clone(), cohort: Cohort::from(MERGED) }).collect()
}

/// The key of each cohort over its regions.
fn merged_regions(cells: &BTreeMap<CellKey, Cell>) -> BTreeSet<CellKey> {
    cells.keys().map(|cell| CellKey { region: Region::from(MERGED), cohort: cell.cohort.clone() }).collect()
}
