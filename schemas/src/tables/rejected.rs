//! The columns of `rejected`: one row per part that was not counted, with where it is and why.

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
                "hop_at": hop_at =>
                    "Start of the hop at which the rejection is booked in `ledger`, in event time. Null if its \
                     partition had no good record at all. Files are filed by it.",
                "source": position.source =>
                    "Where the record came from: the topic, or the folder of a recorded fleet.",
                "partition" in "partition": position.partition => "Partition of the topic, from 0; 0 for a folder.",
                "offset" in "records": position.offset =>
                    "Offset of the record in its partition; for a folder, the line of the manifest, counted from 1.",
                "file": position.file => "The file that the manifest names; null for a topic.",
                "part" in "parts": part => "Index of the rejected profile within its record, from 0.",
                "reason": rejection.reason => "Why it was rejected.",
                "detail": rejection.detail => "What was found and what was expected, in words.",
                "profile_type": rejection.profile_type =>
                    "What the profiler observed; null where it could not be read.",
                "samples" in "samples": rejection.samples =>
                    "Raw samples that are lost by it; 0 where they could not be counted.",
                "event_at": rejection.at => "Event time of what was rejected; null where it is not known.",
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
