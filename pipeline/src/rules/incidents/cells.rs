//! What is known of the cells of a comparison besides its incidents: from the last look, and from the last report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::whole;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, ComparisonRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ComparisonVerdict, Scope, Verdict};
use serde::{Deserialize, Serialize};

use crate::rules::advice::{PodsNow, Standing, need};
use crate::rules::outlook::{Outlook, outlook};

/// The cells of one comparison, by type of profile.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Cells {
    known: BTreeMap<(ComparisonKey, CellKey), Known>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    /// At the last look.
    row: ComparisonRow,
    /// What an inconclusive cell needs, as of the last report that tested it.
    outlook: Option<(Outlook, Nanos)>,
    /// Pods that differ from the others in the window of the last report.
    outlying: BTreeSet<String>,
    /// What the last report warned of, each with its subject before the colon.
    warnings: Vec<String>,
}

impl Cells {
    /// Takes the rows of a look, and of a report if there is one at the same hop. Self counts decide if there are any.
    pub(super) fn learn(&mut self, comparisons: &[ComparisonRow], report: &[Arc<CellRow>], config: &Config) {
        let kind = decisive_kind(config);
        let comparisons = one_per_cell(comparisons.iter().filter(|row| row.count_kind == kind).cloned());
        let mut rows: BTreeMap<(&ComparisonKey, &CellKey), Vec<&CellRow>> = BTreeMap::new();
        for row in report.iter().map(Arc::as_ref).filter(|row| row.count_kind == kind) {
            rows.entry((&row.comparison, &row.cell)).or_default().push(row);
        }
        for row in comparisons {
            let key = (row.comparison.clone(), row.cell.clone());
            let before = self.known.remove(&key);
            let reported = rows.get(&(&row.comparison, &row.cell)).cloned();
            let known = match reported {
                Some(rows) => Known::reported(row, &rows, config),
                None => match before {
                    Some(known) => Known { row, ..known },
                    None => Known { row, outlook: None, outlying: BTreeSet::new(), warnings: Vec::new() },
                },
            };
            self.known.insert(key, known);
        }
    }

    /// Every cell.
    pub(super) fn keys(&self) -> BTreeSet<&CellKey> {
        self.known.keys().map(|(_, cell)| cell).collect()
    }

    /// What is known of each cell in which no cause costs more.
    pub(super) fn standings(&self) -> BTreeMap<CellKey, Standing> {
        let mut by_cell: BTreeMap<&CellKey, Vec<&Known>> = BTreeMap::new();
        for ((_, cell), known) in &self.known {
            by_cell.entry(cell).or_default().push(known);
        }
        by_cell.into_iter().map(|(cell, known)| (cell.clone(), standing(&known))).collect()
    }

    /// The subjects of which the last report warned, each with its cells.
    pub(super) fn warnings(&self) -> BTreeMap<&str, BTreeSet<&CellKey>> {
        let mut warnings: BTreeMap<&str, BTreeSet<&CellKey>> = BTreeMap::new();
        for ((_, cell), known) in &self.known {
            let subjects = known.warnings.iter().filter_map(|warning| warning.split_once(':'));
            subjects.for_each(|(subject, _)| {
                warnings.entry(subject).or_default().insert(cell);
            });
        }
        warnings
    }

    /// Pods of head and base in one cell, as of the last look at it.
    pub(super) fn pods(&self, comparison: &ComparisonKey, cell: &CellKey) -> Option<PodsNow> {
        let known = self.known.get(&(comparison.clone(), cell.clone()))?;
        let here = self.known.iter().filter(|((_, of), _)| of == cell).map(|(_, known)| known);
        Some(known.pods_now(here))
    }
}

/// The kind of count that decides what is known of a cell.
pub(super) fn decisive_kind(config: &Config) -> CountKind {
    let has_self = config.count_kinds.contains(&CountKind::SelfCount);
    if has_self { CountKind::SelfCount } else { CountKind::Total }
}

/// Without the rows over all cells, unless a comparison has a single one.
fn one_per_cell(rows: impl Iterator<Item = ComparisonRow>) -> Vec<ComparisonRow> {
    let mut by_key: BTreeMap<ComparisonKey, Vec<ComparisonRow>> = BTreeMap::new();
    for row in rows {
        by_key.entry(row.comparison.clone()).or_default().push(row);
    }
    for rows in by_key.values_mut() {
        if rows.len() > 1 {
            rows.retain(|row| !row.cell.is_over_all());
        }
    }
    by_key.into_values().flatten().collect()
}

impl Known {
    fn reported(row: ComparisonRow, report: &[&CellRow], config: &Config) -> Self {
        let of = |scope| report.iter().copied().filter(move |row| row.scope == scope);
        let epoch: Vec<&CellRow> = of(Scope::Epoch).collect();
        let uneven = of(Scope::Window).filter(|row| row.verdict == Verdict::SomePodsOutlying);
        let outlying = uneven.flat_map(|row| row.outlying_pods.iter().cloned()).collect();
        let warnings = row.warnings.clone();
        Self { outlook: Some((outlook(&row, &epoch, config), row.window_end_at)), row, outlying, warnings }
    }

    /// Whether it did not change, or is cheaper.
    fn is_settled(&self) -> bool {
        matches!(self.row.verdict, ComparisonVerdict::Clean | ComparisonVerdict::Improved)
    }

    /// Its pods, with the type of their profiles where those `here`, of the same cell, are not the same pods by number.
    fn pods_now<'a>(&self, mut here: impl Iterator<Item = &'a Self>) -> PodsNow {
        let (head, base) = (self.row.head_pods, self.row.base_pods);
        let differ = here.any(|other| (other.row.head_pods, other.row.base_pods) != (head, base));
        PodsNow { head, base, with: differ.then_some(self.row.comparison.profile_type) }
    }

    /// What would decide the cell, of which the others are `here`.
    fn open(&self, here: &[&Self]) -> Standing {
        let row = &self.row;
        let Some((outlook, at)) = self.outlook else {
            return Standing::Needs("the next report says what it needs".to_owned());
        };
        let gone = row.window_end_at.since(at).as_seconds();
        let needs_pods = outlook.head_pods + outlook.base_pods > 0;
        match outlook.seconds.map(|seconds| (seconds - gone).max(0.0)) {
            Some(left) if !needs_pods && left >= 1.0 => Standing::Wait(whole(left.ceil())),
            // With more pods the time begins once they are there.
            _ => {
                let pods = self.pods_now(here.iter().copied());
                Standing::Needs(need(outlook, pods, (&row.comparison.head_build, &row.comparison.base_build)))
            }
        }
    }
}

/// What is known of a cell over all types of profile, if no incident costs more in it.
fn standing(known: &[&Known]) -> Standing {
    let comparable = || known.iter().filter(|known| known.row.verdict != ComparisonVerdict::NotComparable);
    if comparable().count() == 0 {
        return Standing::NotComparable;
    }
    if let Some(open) = comparable().find(|known| !known.is_settled()) {
        return match open.row.verdict {
            ComparisonVerdict::Regressed => Standing::Needs("its cause is not settled yet".to_owned()),
            _ => open.open(known),
        };
    }
    let outlying: BTreeSet<&String> = comparable().flat_map(|known| &known.outlying).collect();
    if outlying.is_empty() { Standing::Keep } else { Standing::SomePods(outlying.into_iter().cloned().collect()) }
}
