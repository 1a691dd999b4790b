//! The columns of `ledger`: what became of the records and samples applied in one hop.

use super::{Column, Columns, TableRow, columns_of};
use crate::rows::LedgerRow;
use crate::time::Nanos;

impl TableRow for LedgerRow {
    const TABLE: &'static str = "ledger";
    const SORTED_BY: &'static [&'static str] = &["hop_at", "profile_type"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<LedgerRow> = Columns::new(|| {
            columns_of!(LedgerRow:
                "hop_at": hop_at,
                "profile_type": profile_type,
                "records_consumed": records_consumed,
                "records_decoded": records_decoded,
                "records_rejected": records_rejected,
                "samples_received": samples_received,
                "samples_counted": samples_counted,
                "samples_late_counted": samples_late_counted,
                "samples_warm_up": samples_warm_up,
                "samples_drain": samples_drain,
                "samples_late_dropped": samples_late_dropped,
                "samples_duplicate": samples_duplicate,
                "samples_superseded": samples_superseded,
                "samples_baseline": samples_baseline,
                "samples_rejected": samples_rejected,
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
