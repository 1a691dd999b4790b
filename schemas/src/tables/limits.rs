//! The columns of `limits`: one row per service and exceeded limit, at each hop at which something was counted together.

use super::{Column, Columns, TableRow, columns_of};
use crate::rows::LimitRow;
use crate::time::Nanos;
use crate::verdict::Limited;

impl TableRow for LimitRow {
    const TABLE: &'static str = "limits";
    const SORTED_BY: &'static [&'static str] = &["hop_at", "service", "what"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<LimitRow> = Columns::new(|| {
            columns_of!(LimitRow:
                "hop_at": hop_at => "Start of the hop at which the profiles were counted, in event time. Files are filed by it.",
                "service": service => "The service that exceeds its limit.",
                "what": what => "What it has too much of; `bytes`: counts within the window.",
                "limit": limit => "How much it may have: the setting `limits` of that name.",
                "profiles" in "profiles": profiles =>
                    "Parts of profiles, one a cell, in which something was counted as `_overflow`, in the order of first sight.",
                "samples" in "samples": samples =>
                    "Their samples that were counted as `_overflow`; of functions, the samples that have one at the leaf.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self { hop_at: Nanos(0), service: "".into(), what: Limited::Functions, limit: 0, profiles: 0, samples: 0 }
    }

    fn filed_at(&self) -> Nanos {
        self.hop_at
    }
}
