//! What a log says about the partitions of a source.

use fleetdiff_schemas::time::{Hop, Nanos};

use super::{Beginning, Gone, History};
use crate::rules::decisions::Decision;

fn begun(partition: i32, offset: i64, hop: u64) -> Decision {
    Decision::Begun { source: "t".to_owned(), partition, offset, from_hop: Hop(hop) }
}

fn first(partition: i32, offset: i64, stamp: i64) -> Decision {
    Decision::First { source: "t".to_owned(), partition, offset, stamped_at: Some(Nanos(stamp)) }
}

fn idle(offset: Option<i64>) -> Decision {
    Decision::Idle { source: "t".to_owned(), partition: 0, from_hop: Hop(3), offset }
}

fn back(offset: i64) -> Decision {
    Decision::Back { source: "t".to_owned(), partition: 0, offset, applied_from: Hop(4) }
}

fn refused(offset: i64) -> Decision {
    Decision::Refused { source: "t".to_owned(), partition: 0, offset, applied_from: Hop(4) }
}

#[test]
fn a_partition_is_new_only_to_a_log_that_knows_others() {
    let history = History::of("t", &[], Hop(9));
    assert_eq!(history.begin(0, &(5..8)), Ok(Beginning::New(Hop(0))), "the log of a first run, or of an older version");
    let history = History::of("t", &[begun(0, 5, 0)], Hop(9));
    assert_eq!(history.begin(0, &(5..8)), Ok(Beginning::Known));
    assert_eq!(history.begin(1, &(0..0)), Ok(Beginning::New(Hop(9))));
    assert_eq!(History::of("other", &[begun(0, 5, 0)], Hop(9)).begin(1, &(0..0)), Ok(Beginning::New(Hop(0))));
}

#[test]
fn what_is_deleted_before_it_was_read_is_lost_and_what_was_read_is_missed() {
    let history = History::of("t", &[begun(0, 5, 0)], Hop(9));
    assert_eq!(history.begin(0, &(7..8)), Ok(Beginning::Lost(5..7)));
    let log = [begun(0, 5, 0), first(0, 6, 60)];
    let history = History::of("t", &log, Hop(9));
    assert_eq!(history.begin(0, &(6..8)), Ok(Beginning::Known), "offset 5 held no record");
    assert_eq!(history.begin(0, &(7..8)), Err(Gone::Deleted { partition: 0, was: 6, is: 7 }));
    assert!(matches!(history.begin(0, &(0..6)), Err(Gone::Replaced { .. })), "it ends before what was read");
    let unwritten = History::of("t", &log, Hop(0));
    assert_eq!(unwritten.begin(0, &(7..8)), Ok(Beginning::New(Hop(0))), "no rows can become others");
}

#[test]
fn a_partition_that_rests_after_what_was_lost_rests_where_that_never_was() {
    let lost = |offset, next_offset| Decision::Lost { source: "t".to_owned(), partition: 0, offset, next_offset };
    let history = History::of("t", &[begun(0, 0, 0), lost(5, 8), lost(8, 9), idle(Some(9))], Hop(9));
    let next = |offset| history.after_lost(0, offset);
    assert_eq!((next(4), next(5), next(6), next(8), next(9)), (4, 9, 6, 9, 9));
    assert_eq!((history.after_lost(1, 5), history.rests(0, next(5)), history.rests(0, 5)), (5, true, false));
}

#[test]
fn the_first_record_must_be_the_one_that_was_first() {
    let history = History::of("t", &[begun(0, 5, 0), first(0, 6, 60)], Hop(9));
    assert_eq!(history.take_first(0, 6, Some(Nanos(60))), Ok(false));
    assert_eq!(history.take_first(1, 6, Some(Nanos(60))), Ok(true), "nothing is known of it");
    assert_eq!(history.take_first(0, 7, Some(Nanos(70))), Err(Gone::Deleted { partition: 0, was: 6, is: 7 }));
    let replaced = history.take_first(0, 6, Some(Nanos(61))).unwrap_err().to_string();
    assert!(replaced.contains("at offset 6, stamped 1970-01-01T00:00:00"), "{replaced}");
    assert!(matches!(history.take_first(0, 5, Some(Nanos(60))), Err(Gone::Replaced { .. })));
    let begun_anew = History::of("t", &[begun(0, 5, 0), first(0, 6, 60), begun(0, 7, 0)], Hop(9));
    assert_eq!(begun_anew.take_first(0, 7, None), Ok(true));
}

#[test]
fn a_partition_rests_from_its_last_idle_decision_until_it_returns() {
    let rests = |log: &[Decision], at: i64| History::of("t", log, Hop(9)).rests(0, at);
    assert!(rests(&[idle(Some(7))], 7) && rests(&[idle(Some(7))], 8) && !rests(&[idle(Some(7))], 6));
    assert!(!rests(&[idle(None)], 7), "a log of an older version does not say where");
    assert!(!rests(&[idle(Some(7)), back(7)], 9));
    assert!(!rests(&[idle(Some(7)), back(7), idle(Some(9))], 8));
    assert!(rests(&[idle(Some(7)), refused(9)], 9) && !rests(&[idle(Some(7)), refused(9)], 8));
    assert!(rests(&[begun(0, 2, 5)], 2) && !rests(&[begun(0, 2, 0)], 2), "an added one has not been waited for");
}
