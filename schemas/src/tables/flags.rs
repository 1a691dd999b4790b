//! The columns of `flags`: all of `cells`, and what became of the flag. Alerts about incidents hold their flags with the same list.

use super::{Column, Columns, Holds, TableRow, cells::columns_of_cell, columns_of};
use crate::rows::{CellRow, FlagRow};
use crate::time::{Hop, Nanos};
use crate::verdict::{FlagState, Severity};

impl Holds<CellRow> for FlagRow {
    fn part(&self) -> &CellRow {
        &self.row
    }

    fn part_mut(&mut self) -> &mut CellRow {
        &mut self.row
    }
}

impl TableRow for FlagRow {
    const TABLE: &'static str = "flags";
    const SORTED_BY: &'static [&'static str] = &[
        "scope",
        "service",
        "profile_type",
        "measure",
        "count_kind",
        "base_build",
        "head_build",
        "region",
        "cohort",
        "function",
        "window_end_at",
        "state",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<FlagRow> = Columns::new(|| {
            let mut columns = columns_of_cell();
            columns.extend(columns_of!(FlagRow:
                "flag_id": flag_id =>
                    "Stable identity of the flag from raised to cleared: 16 hexadecimal digits, a hash of its key and \
                     of the hop at which it was raised.",
                "state": state => "What happened to the flag at `window_end_at`.",
                "severity": severity =>
                    "Who should look: `page` for a regression with `firm` support, `ticket` for one with `tentative` \
                     support, on young pods, or among pods that differ by something without a label, `info` for an \
                     improvement. A cleared flag keeps the severity that it had.",
                "raised_at": raised_at => "When the flag was raised, in event time.",
                "sequence" in "hops": sequence =>
                    "Number of the hop at whose close the change happened, counted from the Unix epoch; it grows from \
                     change to change of a flag.",
                "cleared_because": cleared_because =>
                    "Why the flag was cleared: `comparison_closed` (an arm is gone), `equivalent` (shown to be within \
                     5 % in a later epoch), `explained` (another flag explains the row), `faded` (its change is gone in \
                     three reports, ten minutes apart), `moved` (in the other build another function, the row's \
                     `cause`, has its cost), `not_significant` (method `article`: its row is not significant at this look), `reversed` (its change has turned to the other direction) or `warm_up` (a provisional flag that pods of the same age did not \
                     confirm). Null in the states `raised` and `updated`.",
                "explains": explains =>
                    "Rows that move only because this one does: `name (kind)` for callers, `name (share)` for \
                     functions whose share alone moved. They raise no flag of their own. May be empty, never null.",
            ));
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            row: CellRow::blank(),
            flag_id: String::new(),
            state: FlagState::Raised,
            raised_at: Nanos(0),
            sequence: Hop(0),
            severity: Severity::Info,
            cleared_because: None,
            explains: Vec::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.row.window_end_at
    }
}
