//! The columns of `rejected`: one thing that was not counted, where it stands and why.

use super::{Column, Columns, TableRow, columns_of};
use crate::profile::Position;
use crate::rejected::{Reason, Rejection};
use crate::rows::RejectedRow;
use crate::time::Nanos;

impl TableRow for RejectedRow {
    const TABLE: &'static str = "rejected";
    const SORTED_BY: &'static [&'static str] = &["source", "partition", "offset", "part"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<RejectedRow> = Columns::new(|| {
            columns_of!(RejectedRow:
                "hop_at": hop_at,
                "source": position.source,
                "partition": position.partition,
                "offset": position.offset,
                "file": position.file,
                "part": part,
                "reason": rejection.reason,
                "detail": rejection.detail,
                "profile_type": rejection.profile_type,
                "samples": rejection.samples,
                "event_at": rejection.at,
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        let position = Position { source: "".into(), partition: 0, offset: 0, file: None };
        Self { hop_at: None, position, part: 0, rejection: Rejection::new(Reason::Malformed, "") }
    }

    fn filed_at(&self) -> Nanos {
        self.hop_at.unwrap_or_default()
    }
}
