//! The rows of several shards as those of one run. Tests of other crates include this by `#[path]`.

use std::collections::BTreeMap;

use fleetdiff_pipeline::run::in_memory::Collected;
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::sink::Sink;
use fleetdiff_schemas::time::{Hop, Nanos};

/// All rows, sorted. Each row of one run is a row of one shard, except in the ledger: there the figures of shards are added.
pub fn together(shards: impl IntoIterator<Item = Tables>) -> Tables {
    let mut all = Collected::default();
    for shard in shards {
        assert!(shard.ledger.iter().all(LedgerRow::balances), "the ledger of each shard balances by itself");
        all.take(Hop(0), shard).unwrap();
    }
    let mut tables = all.tables();
    let mut ledger: BTreeMap<(Nanos, String), LedgerRow> = BTreeMap::new();
    for row in std::mem::take(&mut tables.ledger) {
        let key = (row.hop_at, row.profile_type.clone());
        ledger.entry(key).and_modify(|sum| add(sum, &row)).or_insert(row);
    }
    tables.ledger = ledger.into_values().collect();
    tables.sort();
    tables
}

fn add(sum: &mut LedgerRow, row: &LedgerRow) {
    // NB: a column that is new must be added here, or does not compile.
    let LedgerRow {
        hop_at: _,
        profile_type: _,
        records_consumed,
        records_decoded,
        records_rejected,
        samples_received,
        samples_counted,
        samples_late_counted,
        samples_warm_up,
        samples_drain,
        samples_idle,
        samples_late_dropped,
        samples_duplicate,
        samples_superseded,
        samples_carried_over,
        samples_rejected,
    } = row;
    sum.records_consumed += records_consumed;
    sum.records_decoded += records_decoded;
    sum.records_rejected += records_rejected;
    sum.samples_received += samples_received;
    sum.samples_counted += samples_counted;
    sum.samples_late_counted += samples_late_counted;
    sum.samples_warm_up += samples_warm_up;
    sum.samples_drain += samples_drain;
    sum.samples_idle += samples_idle;
    sum.samples_late_dropped += samples_late_dropped;
    sum.samples_duplicate += samples_duplicate;
    sum.samples_superseded += samples_superseded;
    sum.samples_carried_over += samples_carried_over;
    sum.samples_rejected += samples_rejected;
}

/// Panics at the first row that differs.
pub fn assert_same(got: &Tables, expected: &Tables, about: &str) {
    macro_rules! same {
        ($($table:ident),*) => {$({
            let (got, expected) = (&got.$table, &expected.$table);
            let first = got.iter().zip(expected).find(|(got, expected)| got != expected);
            assert!(first.is_none(), "{about}: the first rows of {} that differ: {first:?}", stringify!($table));
            assert_eq!(got.len(), expected.len(), "{about}: rows of {}", stringify!($table));
        })*};
    }
    same!(ledger, rejected, clocks, limits, comparisons, cells, flags, incidents, fan_out, verdicts);
    assert!(got == expected, "{about}: some other table");
}
