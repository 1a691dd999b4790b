//! The ledger: everything taken in is counted, dropped for a reason, or rejected.
//!
//! Incoming samples are counted where records are decoded, counted samples where the counters are. The two ends are
//! independent, so that their balance is a real check.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{LedgerRow, RejectedRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;

use super::at_close::AtClose;
use crate::rules::admission::PodProfile;
use crate::rules::pods::Dropped;

/// What one step of the dataflow did with some records or samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    hop: Hop,
    kind: Option<ProfileType>,
    entry: Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Entry {
    Received { samples: u64 },
    Rejected { samples: u64 },
    Dropped(Dropped),
    Counted { samples: u64, late: u64 },
}

impl Term {
    /// A profile was decoded.
    pub fn received(hop: Hop, profile: &PodProfile) -> Self {
        Self { hop, kind: Some(profile.profile_type), entry: Entry::Received { samples: profile.samples() } }
    }

    /// A part was rejected.
    pub fn rejected(hop: Hop, row: &RejectedRow) -> Self {
        Self { hop, kind: row.rejection.profile_type, entry: Entry::Rejected { samples: row.rejection.samples } }
    }

    /// Samples of a pod were not counted.
    pub fn dropped(hop: Hop, kind: ProfileType, dropped: Dropped) -> Self {
        Self { hop, kind: Some(kind), entry: Entry::Dropped(dropped) }
    }

    /// Samples were added to counters, `late` of them from late records.
    pub fn counted(hop: Hop, kind: ProfileType, samples: u64, late: u64) -> Self {
        Self { hop, kind: Some(kind), entry: Entry::Counted { samples, late } }
    }

    fn add_to(self, row: &mut LedgerRow) {
        match self.entry {
            Entry::Received { samples } => {
                row.records_consumed += 1;
                row.records_decoded += 1;
                row.samples_received += table_count(samples);
            }
            Entry::Rejected { samples } => {
                row.records_consumed += 1;
                row.records_rejected += 1;
                row.samples_received += table_count(samples);
                row.samples_rejected += table_count(samples);
            }
            Entry::Dropped(dropped) => {
                row.samples_warm_up += table_count(dropped.warm_up);
                row.samples_drain += table_count(dropped.drain);
                row.samples_idle += table_count(dropped.idle);
                row.samples_duplicate += table_count(dropped.duplicate);
                row.samples_late_dropped += table_count(dropped.late_dropped);
                row.samples_superseded += table_count(dropped.superseded);
                row.samples_carried_over += table_count(dropped.carried_over);
            }
            Entry::Counted { samples, late } => {
                row.samples_counted += table_count(samples);
                row.samples_late_counted += table_count(late);
            }
        }
    }
}

/// See [`Balance::balance`].
pub trait Balance<'scope> {
    /// Sums the terms of each hop and profile type into one row, and logs an error if a row does not balance.
    fn balance(self, clock: HopClock) -> StreamVec<'scope, u64, LedgerRow>;
}

impl<'scope> Balance<'scope> for StreamVec<'scope, u64, Term> {
    fn balance(self, clock: HopClock) -> StreamVec<'scope, u64, LedgerRow> {
        self.at_close("Ledger", |_| 0, move |closed| add_up(closed.items, clock))
    }
}

/// The name for records whose profile type could not be determined.
const UNKNOWN: &str = "_unknown";

fn add_up(terms: Vec<Term>, clock: HopClock) -> Vec<LedgerRow> {
    let mut rows: BTreeMap<(Hop, &str), LedgerRow> = BTreeMap::new();
    for term in terms {
        let kind = term.kind.map_or(UNKNOWN, ProfileType::name);
        let row = rows.entry((term.hop, kind)).or_insert_with(|| LedgerRow {
            hop_at: clock.start_of(term.hop),
            profile_type: kind.to_owned(),
            ..LedgerRow::default()
        });
        term.add_to(row);
    }
    for row in rows.values().filter(|row| !row.balances()) {
        tracing::error!(?row, "samples are unaccounted for: the ledger does not balance");
    }
    rows.into_values().collect()
}
