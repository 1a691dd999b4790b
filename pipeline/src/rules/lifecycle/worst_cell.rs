//! In which cell a comparison changed most.

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey};

use super::{FlagKey, LiveRule, Selected, State};

impl LiveRule {
    /// The cell with the flag whose share changed most, among those of self counts if there are any; the first such cell. None
    /// without a flag of a function.
    pub fn worst_cell(&self, comparison: &ComparisonKey) -> Option<CellKey> {
        let size = |(key, selected): (&FlagKey, &Selected)| {
            let delta = selected.now.row.share_delta?;
            Some((key.2 == CountKind::SelfCount, delta.value.abs(), key.1.clone()))
        };
        let flagged = self.selected.iter().filter(|(key, selected)| {
            key.0 == *comparison && matches!(selected.state, State::Raised(_)) && !selected.now.of_all
        });
        let worst =
            flagged.filter_map(size).min_by(|a, b| (b.0.cmp(&a.0)).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        worst.map(|(.., cell)| cell)
    }
}
