//! The columns of `flags`: all of `cells`, and what became of the flag. The data of a flag's alert is the same list.

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
                "flag_id": flag_id,
                "state": state,
                "severity": severity,
                "raised_at": raised_at,
                "sequence": sequence,
                "cleared_because": cleared_because,
                "explains": explains,
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
