//! Which selected rows are so no longer: what they were selected for is not there any more.

use std::collections::BTreeSet;

use super::{FlagKey, LiveRule, Selected, may_be_raised};

impl LiveRule {
    /// Rows whose change has turned to the other direction. What was significant is gone; if the other direction is, a later look
    /// selects the row again.
    pub(super) fn reversed(&self) -> BTreeSet<FlagKey> {
        let has_turned = |selected: &Selected| {
            selected.is_tested && selected.provisional.is_none() && selected.theta * selected.now.theta < 0.0
        };
        self.selected.iter().filter(|(_, selected)| has_turned(selected)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether a row that nothing explains any more is not significant by itself now. It was selected while its cause stood, and what
    /// it showed then says nothing of what it is without.
    pub(super) fn has_lapsed(&self, key: &FlagKey, selected: &Selected, rejected: &BTreeSet<FlagKey>) -> bool {
        !(rejected.contains(key) && may_be_raised(&selected.now, self.min_effect))
    }
}
