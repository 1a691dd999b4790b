//! Sections 1 and 2 of `docs/semantics.md`, by hand.

use fleetdiff_oracle::batch;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Stamped;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::LedgerRow;
use fleetdiff_schemas::time::Nanos;

use crate::fleets::{at, config, ledger, partition, pod, profile, record};

fn one_of(samples: u64, at: i64) -> fleetdiff_schemas::profile::Profile {
    profile(&pod("A", &format!("pod-{samples}")), at, &[("main", samples)])
}

#[test]
fn oracle_late_profiles_are_counted_within_the_window_and_dropped_after() {
    let config = Config { window: Nanos::from_seconds(60), lateness: Nanos::from_seconds(10), ..config() };
    // After the first the watermark is hop 9, after the third hop 19; the window has 6 hops.
    let records =
        vec![partition(0, vec![one_of(100, 105), one_of(7, 85), one_of(200, 205), one_of(11, 135), one_of(13, 145)])];
    let tables = batch(&config, &records);
    let row = |records, received, counted, late_counted, late_dropped| LedgerRow {
        records_consumed: records,
        records_decoded: records,
        samples_received: received,
        samples_counted: counted,
        samples_late_counted: late_counted,
        samples_late_dropped: late_dropped,
        profile_type: "cpu".to_owned(),
        ..LedgerRow::default()
    };
    let expected = [
        (9, row(1, 7, 7, 7, 0)),
        (10, row(1, 100, 100, 0, 0)),
        (19, row(2, 24, 13, 13, 11)),
        (20, row(1, 200, 200, 0, 0)),
    ];
    let expected: Vec<LedgerRow> = expected.map(|(hop, row)| LedgerRow { hop_at: at(hop * 10), ..row }).into();
    assert_eq!(tables.ledger, expected);
    assert!(tables.ledger.iter().all(LedgerRow::balances));
}

#[test]
fn oracle_parts_of_a_record_see_one_watermark() {
    let config = Config { window: Nanos::from_seconds(60), lateness: Nanos::from_seconds(10), ..config() };
    let first = record(0, 0, None, vec![Ok(one_of(100, 205)), Ok(one_of(7, 85))]);
    let tables = batch(&config, &[vec![first, record(0, 1, None, vec![Ok(one_of(9, 85))])]]);
    assert_eq!(ledger(&tables, 8).samples_counted, 7);
    assert_eq!(ledger(&tables, 8).samples_late_counted, 0);
    assert_eq!(ledger(&tables, 19).samples_late_dropped, 9);
}

#[test]
fn oracle_a_profile_seen_in_another_partition_is_a_duplicate_at_its_later_hop() {
    let whole = profile(&pod("A", "p"), 105, &[("main;a", 3), ("main", 2)]);
    let split = profile(&pod("A", "p"), 105, &[("main", 2), ("main;a", 1), ("main;a", 2)]);
    let mut restarted = pod("A", "p");
    restarted.process_start = Some(at(50));
    let other_process = profile(&restarted, 105, &[("main;a", 3), ("main", 2)]);
    // 30 s of lateness: the watermark of partition 1 is hop 12 when the copy comes.
    let records = vec![partition(0, vec![whole]), partition(1, vec![one_of(50, 155), split, other_process])];
    let tables = batch(&config(), &records);
    assert_eq!(ledger(&tables, 10).samples_counted, 5);
    assert_eq!(ledger(&tables, 12).samples_duplicate, 5);
    assert_eq!(ledger(&tables, 12).samples_late_counted, 5, "another process start is another profile");
    assert_eq!(ledger(&tables, 12).samples_received, 10);
}

#[test]
fn oracle_warm_up_counts_from_the_process_start_or_from_first_sight() {
    let config = Config { warm_up: Nanos::from_seconds(60), ..Config::default() };
    let mut known = pod("A", "known");
    known.process_start = Some(at(0));
    let mut unknown = pod("A", "unknown");
    unknown.process_start = None;
    let records = vec![
        partition(0, vec![profile(&known, 55, &[("main", 1)]), profile(&known, 65, &[("main", 2)])]),
        // First seen in a window that begins at 100: warm until 160.
        partition(1, [105, 155, 165].map(|at| profile(&unknown, at, &[("main", 4)])).to_vec()),
    ];
    let tables = batch(&config, &records);
    let of = |hop| (ledger(&tables, hop).samples_warm_up, ledger(&tables, hop).samples_counted);
    assert_eq!([5, 6, 10, 15, 16].map(of), [(1, 0), (0, 2), (4, 0), (4, 0), (0, 4)]);
}

#[test]
fn oracle_rejected_parts_are_booked_at_the_watermark_or_at_their_own_time() {
    let rejected = |at| Err(Rejection { at, samples: 3, ..Rejection::new(Reason::Malformed, "") });
    let records = vec![
        record(0, 0, None, vec![rejected(None)]),
        record(0, 1, None, vec![Ok(one_of(100, 105)), rejected(Some(at(15)))]),
        record(0, 2, None, vec![rejected(Some(at(205)))]),
        record(0, 3, None, vec![rejected(Some(at(15)))]),
        record(0, 4, Some(at(305)), vec![rejected(None)]),
        record(0, 5, Some(at(405)), vec![Ok(one_of(9, 470)), Ok(one_of(8, 465))]),
        record(0, 6, None, vec![rejected(None)]),
    ];
    let tables = batch(&config(), &[records, vec![record(1, 0, None, vec![rejected(None)])]]);
    let booked: Vec<_> =
        tables.rejected.iter().map(|row| (row.position.partition, row.position.offset, row.part, row.hop_at)).collect();
    let expected = [
        (1, 0, 0, None),
        // Not yet a watermark: its own time.
        (0, 1, 1, Some(at(10))),
        // Waited for the first watermark, 75 s.
        (0, 0, 0, Some(at(70))),
        (0, 3, 0, Some(at(70))),
        (0, 2, 0, Some(at(200))),
        (0, 4, 0, Some(at(300))),
        // After the broker's time of 405 s, less the lateness: the part before, 60 s ahead of it, was good.
        (0, 6, 0, Some(at(370))),
        // 65 s after the broker's time.
        (0, 5, 0, Some(at(400))),
    ];
    assert_eq!(booked, expected);
    let future = tables.rejected.iter().find(|row| row.position.offset == 5).unwrap();
    assert_eq!((future.rejection.reason, future.rejection.samples), (Reason::FromFuture, 9));
    assert_eq!(ledger(&tables, 40).samples_rejected, 9);
    assert_eq!(ledger(&tables, 46).samples_counted, 8);
    let unknown: Vec<_> = tables.ledger.iter().filter(|row| row.profile_type == "_unknown").collect();
    assert_eq!((unknown[0].hop_at, unknown[0].samples_rejected), (Nanos(0), 3));
    assert_eq!(unknown.iter().map(|row| row.records_rejected).sum::<i64>(), 7);
    assert!(tables.ledger.iter().all(LedgerRow::balances));
}

#[test]
fn oracle_a_clock_that_is_59_minutes_ahead_makes_no_other_pod_late() {
    // Three pods have reached 105 s with the third record, then 106 and 107 s, and 205 s with the last one.
    let sent =
        [one_of(100, 105), one_of(7, 3645), one_of(101, 106), one_of(102, 107), one_of(100, 205), one_of(101, 206)];
    let mut records = partition(0, sent.to_vec());
    records.iter_mut().for_each(|record| record.stamped = Stamped::BySender(None));
    let tables = batch(&config(), &[records]);
    assert_eq!(ledger(&tables, 10).samples_counted, 303);
    let last = ledger(&tables, 20);
    assert_eq!((last.samples_counted, last.samples_rejected), (201, 7));
    assert!(tables.ledger.iter().all(|row| row.samples_late_counted + row.samples_late_dropped == 0 && row.balances()));
    let [row] = &tables.clocks[..] else { panic!("{:?}", tables.clocks) };
    assert_eq!((row.hop_at, row.pod.as_str(), row.ahead), (at(200), "pod-7", 3_440_000_000_000));
    assert_eq!((row.profiles, row.samples, row.samples_rejected), (1, 7, 7));
    assert_eq!(tables.rejected[0].rejection.reason, Reason::FromFuture);
}
