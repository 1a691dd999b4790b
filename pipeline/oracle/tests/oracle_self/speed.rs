//! A fleet of the size of oracle tests, and laws that hold for its rows in whatever order it is delivered.

use fleetdiff_oracle::{batch, compare};
use fleetdiff_schemas::rows::LedgerRow;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::{Cells, Fleet};

#[test]
fn oracle_rows_do_not_depend_on_how_records_are_spread() {
    let builder = Fleet::seeded(7).regions(["eu", "us"]).cohorts(["tv", "web"]).pods_per_cell(4, 7).restarts(3);
    let function = "serialize_video_chunk";
    let fleet = builder.regress(function, Cells::cohort("tv"), 1.6).lasts(Nanos::from_seconds(900)).build();
    let config = fleetdiff_schemas::config::Config::default();
    let expected = batch(&config, &fleet.partitions(1));
    let agreement = compare(&expected, &batch(&config, &fleet.partitions(4))).unwrap();
    eprintln!("{agreement:?}");
    assert!(agreement.flags >= 2 && agreement.selected >= 2 && agreement.tested >= 500, "{agreement:?}");
    assert!(expected.ledger.iter().all(LedgerRow::balances));
    let raised = expected.flags.iter().filter(|flag| flag.row.count_kind.name() == "self");
    assert!(raised.clone().count() > 0 && raised.into_iter().all(|flag| flag.row.function == function));
    let counted: i64 = expected.ledger.iter().map(|row| row.samples_counted).sum();
    assert!(counted > 0 && expected.ledger.iter().any(|row| row.samples_warm_up > 0));
}
