//! The columns of `clocks`: one row per pod with a wrong clock and hop.

use super::{Column, Columns, TableRow, columns_of};
use crate::rows::ClockRow;
use crate::time::Nanos;

impl TableRow for ClockRow {
    const TABLE: &'static str = "clocks";
    const SORTED_BY: &'static [&'static str] = &["hop_at", "source", "partition", "service", "build", "pod"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<ClockRow> = Columns::new(|| {
            columns_of!(ClockRow:
                "hop_at": hop_at =>
                    "Start of the hop at which the profiles are booked in `ledger`, in event time. Files are filed by it.",
                "source": source => "The topic that the profiles came from.",
                "partition" in "partition": partition => "Partition of the topic, from 0.",
                "service": service => "The service that the pod is of.",
                "build": build => "The build that it runs.",
                "pod": pod => "The pod whose clock is wrong.",
                "ahead" in "ns": ahead =>
                    "How far its clock is ahead, negative if behind; the largest in size of these profiles. If the broker stamps records, \
                     against the broker's clock; otherwise against the time on which the pods of the partition agree. A pod whose profiles \
                     come an hour late, though its clock is right, is behind too.",
                "profiles" in "profiles": profiles =>
                    "Profiles more than 60 s ahead (of senders' time stamps 60 s and their own length), or more than an hour behind.",
                "samples" in "samples": samples => "Their samples.",
                "samples_waited" in "samples": samples_waited =>
                    "Part of `samples`: applied only once the other pods had reached their time.",
                "samples_rejected" in "samples": samples_rejected =>
                    "Part of `samples`: rejected; each profile has a row in `rejected`.",
                "samples_late_dropped" in "samples": samples_late_dropped =>
                    "Part of `samples`: dropped because they are older than the window.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            hop_at: Nanos(0),
            source: "".into(),
            partition: 0,
            service: "".into(),
            build: "".into(),
            pod: "".into(),
            ahead: 0,
            profiles: 0,
            samples: 0,
            samples_waited: 0,
            samples_rejected: 0,
            samples_late_dropped: 0,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.hop_at
    }
}
