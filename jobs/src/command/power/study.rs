//! What is known about the arms before they run: pods, samples, variance between pods.

use std::collections::BTreeMap;
use std::path::Path;

use fleetdiff_connectors::parquet::read_table;
use fleetdiff_connectors::store::Place;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey, ComparisonRow};
use fleetdiff_schemas::verdict::BaseKind;
use fleetdiff_statistics::Arms;

use super::arguments::PowerArgs;
use crate::failure::Failure;

/// Two arms as they are expected to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Study {
    /// The source of the figures; `None` if they are given or guessed.
    pub(crate) source: Option<Source>,
    /// Pods of the new build.
    pub(crate) head_pods: u32,
    /// Pods of the old one.
    pub(crate) base_pods: u32,
    /// Samples per pod and second.
    pub(crate) rate: f64,
    /// Standard deviation of a log share between the pods of each arm; `None` if nothing was tested.
    pub(crate) tau: Option<Arms<f64>>,
}

/// A cell of an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// Which builds of what.
    pub(crate) comparison: ComparisonKey,
    /// Self or total.
    pub(crate) count_kind: CountKind,
    /// Which cell.
    pub(crate) cell: CellKey,
}

impl Study {
    /// A fleet of several hundred pods with a canary of a twentieth: *published* (the fleet of the method's article); a
    /// variation of 5 % is a *guess*.
    pub(crate) fn guessed() -> Self {
        Self { source: None, head_pods: 40, base_pods: 760, rate: 100.0, tau: Some(Arms { head: 0.05, base: 0.05 }) }
    }

    /// The study with the user's values.
    pub(crate) fn with(self, args: &PowerArgs) -> Self {
        Self {
            head_pods: args.head_pods.unwrap_or(self.head_pods),
            base_pods: args.base_pods.unwrap_or(self.base_pods),
            rate: args.samples_per_pod_second.unwrap_or(self.rate),
            tau: args.cv.map(|tau| Arms { head: tau, base: tau }).or(self.tau),
            ..self
        }
    }

    /// The study of a row of `comparisons`; `None` if an arm had no samples.
    fn of(row: &ComparisonRow) -> Option<Self> {
        let seconds = signed_float(row.window_end_at.since(row.window_start_at).0) / 1e9;
        let rate =
            signed_float(row.head_total + row.base_total) / signed_float(row.head_pods + row.base_pods) / seconds;
        let source = Source { comparison: row.comparison.clone(), count_kind: row.count_kind, cell: row.cell.clone() };
        let pods = |count: i64| u32::try_from(count).ok().filter(|&pods| pods > 0);
        let tau = row.head_pod_variance.zip(row.base_pod_variance);
        let (head_pods, base_pods) = (pods(row.head_pods)?, pods(row.base_pods)?);
        (rate.is_finite() && rate > 0.0).then(|| Self {
            source: Some(source),
            head_pods,
            base_pods,
            rate,
            tau: tau.map(|(head, base)| Arms { head: head.sqrt(), base: base.sqrt() }),
        })
    }
}

/// Each cell of each comparison at the last look of an earlier run: self counts if there are any.
///
/// # Errors
/// The output cannot be read, or no cell in it has samples of both builds.
pub(crate) fn studies_of(folder: &Path) -> Result<Vec<Study>, Failure> {
    let rows: Vec<ComparisonRow> = read_table(&Place::to_read(folder)?)?;
    let mut last: BTreeMap<(&ComparisonKey, CountKind), BTreeMap<&CellKey, &ComparisonRow>> = BTreeMap::new();
    // History gave its samples over another time than the window.
    for row in rows.iter().filter(|row| row.base_kind == BaseKind::Concurrent) {
        let seen = last.entry((&row.comparison, row.count_kind)).or_default().entry(&row.cell).or_insert(row);
        if row.window_end_at >= seen.window_end_at {
            *seen = row;
        }
    }
    let has_self = |key: &ComparisonKey| last.contains_key(&(key, CountKind::SelfCount));
    let shown = last.iter().filter(|((key, kind), _)| *kind == CountKind::SelfCount || !has_self(key));
    let cells = shown.flat_map(|(_, cells)| cells.values().filter(|row| cells.len() == 1 || !row.cell.is_over_all()));
    let studies: Vec<Study> = cells.filter_map(|row| Study::of(row)).collect();
    if studies.is_empty() {
        let hint = "--from takes the output of a run in which a comparison was open";
        return Err(Failure::with_hint(format!("no cell in {} has samples of two builds", folder.display()), hint));
    }
    Ok(studies)
}
