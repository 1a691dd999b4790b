//! The columns of `ledger`: what became of the records and samples that were applied at one hop.

use super::{Column, Columns, TableRow, columns_of};
use crate::rows::LedgerRow;
use crate::time::Nanos;

impl TableRow for LedgerRow {
    const TABLE: &'static str = "ledger";
    const SORTED_BY: &'static [&'static str] = &["hop_at", "profile_type"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<LedgerRow> = Columns::new(|| {
            columns_of!(LedgerRow:
                "hop_at": hop_at =>
                    "Start of the hop at which the records were applied, in event time. Files are filed by it.",
                "profile_type": profile_type =>
                    "What the profiler observed; `_unknown` for records that could not be decoded.",
                "records_consumed" in "profiles": records_consumed =>
                    "Profiles, or undecodable records, taken in: `records_decoded` + `records_rejected`.",
                "records_decoded" in "profiles": records_decoded => "Profiles that were decoded.",
                "records_rejected" in "profiles": records_rejected =>
                    "Profiles or records that were rejected; each has a row in `rejected`.",
                "samples_received" in "samples": samples_received =>
                    "Samples taken in: the sum of all other columns of samples but `samples_late_counted`.",
                "samples_counted" in "samples": samples_counted =>
                    "Samples added to the counts, those of late records included.",
                "samples_late_counted" in "samples": samples_late_counted =>
                    "Part of `samples_counted`: from records older than the watermark of their partition.",
                "samples_warm_up" in "samples": samples_warm_up =>
                    "Dropped: within the warm-up after a process start (`warm_up`, 1 minute by default).",
                "samples_drain" in "samples": samples_drain =>
                    "Dropped: within the last moments of a process (`drain`, 0 by default).",
                "samples_idle" in "samples": samples_idle =>
                    "Left out: waiting that is idle, of `off_cpu` and `wall` profiles (`idle_defaults`, `idle`).",
                "samples_late_dropped" in "samples": samples_late_dropped => "Dropped: older than the window.",
                "samples_duplicate" in "samples": samples_duplicate => "Dropped: of profiles seen before.",
                "samples_superseded" in "samples": samples_superseded =>
                    "Dropped: of cumulative snapshots that are not newer than the last one used.",
                "samples_carried_over" in "samples": samples_carried_over =>
                    "Not new: what a cumulative snapshot already held at the snapshot before it, and all of a first \
                     snapshot.",
                "samples_rejected" in "samples": samples_rejected => "Dropped: in rejected profiles.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self::default()
    }

    fn filed_at(&self) -> Nanos {
        self.hop_at
    }
}
