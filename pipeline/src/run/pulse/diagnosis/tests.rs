//! A table of states and what is said about each.

use std::sync::Arc;

use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::source::Health;

use super::*;
use crate::run::pulse::{Given, Refusal};

/// The moment of every diagnosis is 100 s after the start.
const AGE: u64 = 100;

struct Case {
    vitals: Vitals,
    start: Instant,
}

impl Case {
    fn new() -> Self {
        let start = Instant::now();
        Self { vitals: Vitals::at_start(start), start }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    /// A partition of `t` that has read `next` of `end` records, the last of them at second `last`.
    fn with(mut self, number: i32, state: PartitionState, next: i64, end: i64, last: u64) -> Self {
        let records = u64::try_from(next).unwrap();
        let given = Given { records, taken: records, last_at: Some(self.at(last)), ..Given::default() };
        let partition = PartitionVitals { state, next_offset: next, end: Some(end), held_back: false, early: 0, given };
        self.vitals.partitions.insert((Arc::from("t"), number), partition);
        self
    }

    /// The broker has not told where a partition ends.
    fn untold(mut self, number: i32) -> Self {
        self.vitals.partitions.get_mut(&(Arc::from("t"), number)).unwrap().end = None;
        self
    }

    /// All records of a partition were refused.
    fn refused(mut self, number: i32, detail: &str) -> Self {
        let given = &mut self.vitals.partitions.get_mut(&(Arc::from("t"), number)).unwrap().given;
        given.taken = 0;
        given.refused.insert(Reason::Malformed, given.records);
        let offset = i64::try_from(given.records).unwrap() - 1;
        given.last_refusal = Some(Refusal { offset, reason: Reason::Malformed, detail: detail.to_owned() });
        self
    }

    fn closed(mut self, hop: u64, second: u64) -> Self {
        self.vitals.output.closed = Some(Closed { hop: Hop(hop), at: self.at(second) });
        (self.vitals.open_from, self.vitals.evaluated_before) = (Hop(hop + 1), Hop(hop + 1));
        self
    }

    fn trouble(mut self, second: u64, detail: &str) -> Self {
        let trouble = Trouble { since: self.at(second), detail: detail.to_owned() };
        let health = Health { trouble: Some(trouble), ..Health::default() };
        self.vitals.transports.insert((Arc::from("t"), 0), health);
        self
    }

    fn early(mut self, partition: i32, parts: usize) -> Self {
        let found = self.vitals.partitions.get_mut(&(Arc::from("t"), partition)).unwrap();
        (found.early, found.given.taken) = (parts, 0);
        self
    }

    fn retried(mut self, what: &'static str, second: u64, detail: &str) -> Self {
        let trouble = Trouble { since: self.at(second), detail: detail.to_owned() };
        self.vitals.output.waiting.insert(what, trouble);
        self
    }

    fn writing(mut self, hop: u64, second: u64) -> Self {
        self.vitals.output.writing = Some(Writing { hop: Hop(hop), since: self.at(second), evaluation: None });
        self
    }

    fn says(&self, condition: Condition, parts: &[&str]) {
        let now = Now {
            instant: self.at(AGE),
            wall: Nanos::from_seconds(1_000_000),
            clock: HopClock::new(Nanos::from_seconds(10)),
            idle_after: Some(Duration::from_secs(60)),
        };
        let said = diagnose(&self.vitals, &now);
        assert_eq!(said.condition, condition, "{}", said.reason);
        for part in parts {
            assert!(said.reason.contains(part), "{part:?} is missing in {:?}", said.reason);
        }
        assert!(!said.reason.contains('\n'), "one line: {:?}", said.reason);
    }
}

fn watermark(hop: u64) -> PartitionState {
    PartitionState::Watermark(Hop(hop))
}

#[test]
fn every_state_has_its_reason_in_words() {
    let silent = PartitionState::Silent;
    Case::new().says(Condition::Starting, &["since 1970-01-12T13:45:00Z (100 s)"]);
    Case::new()
        .with(0, silent, 0, 0, 0)
        .with(1, silent, 0, 0, 0)
        .says(Condition::NoRecords, &["no record has come since 1970-01-12T13:45:00Z (100 s) from t (2 partitions)"]);
    Case::new().with(0, silent, 0, 7, 0).says(Condition::NoRecords, &["7 are waiting"]);
    Case::new().with(0, silent, 9, 9, 90).refused(0, "bad\nmagic").says(
        Condition::AllRefused,
        &["all 9 records were refused: 9 malformed", "offset 8 of partition 0 of t: malformed: bad magic"],
    );
    Case::new()
        .with(0, watermark(50), 9, 9, 99)
        .with(1, silent, 0, 0, 0)
        .with(2, silent, 0, 0, 0)
        .says(Condition::PartitionSilent, &["waits for partition 1 of t, which has given no record"]);
    Case::new()
        .with(0, watermark(50), 9, 9, 99)
        .with(1, silent, 0, 0, 0)
        .untold(1)
        .says(Condition::PartitionSilent, &["given no record and whose end the broker has not told"]);
    Case::new().with(0, watermark(50), 9, 9, 99).with(1, silent, 4, 4, 70).refused(1, "x").says(
        Condition::PartitionSilent,
        &["partition 1 of t, all of whose 4 records were refused; without it from about 30 s on"],
    );
    Case::new().with(0, silent, 4, 4, 99).early(0, 4).says(
        Condition::PodsDisagree,
        &["waits for partition 0 of t: 4 profiles wait until several of its pods agree on the time"],
    );
    Case::new()
        .with(0, watermark(50), 9, 9, 99)
        .with(1, silent, 4, 4, 70)
        .early(1, 4)
        .says(Condition::PodsDisagree, &["waits for partition 1 of t"]);
    Case::new().with(0, watermark(50), 9, 9, 99).with(1, watermark(20), 4, 4, 60).says(
        Condition::PartitionBehind,
        &["partition 1 of t, which is at 1970-01-01T00:03:20Z and has given nothing for 40 s, while others are at 1970-01-01T00:08:20Z"],
    );
    Case::new().with(0, watermark(50), 9, 20, 99).closed(40, 10).says(Condition::CatchingUp, &["11 records"]);
    Case::new()
        .with(0, watermark(50), 9, 9, 50)
        .closed(49, 50)
        .says(Condition::CaughtUp, &["begins at 1970-01-01T00:08:20Z closes once later ones come"]);
    Case::new().with(0, PartitionState::Idle, 9, 9, 9).closed(49, 9).says(Condition::AllIdle, &["t (1 partition)"]);
    Case::new()
        .with(0, watermark(50), 9, 9, 99)
        .closed(49, 90)
        .says(Condition::Closing, &["closed through 1970-01-01T00:08:20Z"]);
}

#[test]
fn what_keeps_a_run_from_the_outside_is_said_first() {
    let closing = || Case::new().with(0, watermark(50), 9, 9, 99).closed(49, 90);
    closing().trouble(75, "1 request unanswered").says(
        Condition::BrokerUnreachable,
        &["no broker has answered for topic t since 1970-01-12T13:46:15Z (25 s): 1 request unanswered"],
    );
    closing().writing(50, 97).says(Condition::Closing, &[]);
    closing().writing(50, 97).retried("tables", 98, "the disk is full").says(
        Condition::SinkBlocked,
        &["tables cannot be written since 1970-01-12T13:46:38Z (2 s)", "the disk is full"],
    );
    closing().writing(50, 90).trouble(75, "x").says(
        Condition::SinkBlocked,
        &["interval that ends at 1970-01-01T00:08:30Z since 1970-01-12T13:46:30Z (10 s)"],
    );
}

#[test]
fn what_is_announced_and_not_delivered_is_being_evaluated() {
    let mut case = Case::new().with(0, watermark(50), 9, 9, 99).closed(39, 10);
    case.vitals.open_from = Hop(50);
    case.says(Condition::Evaluating, &["up to 1970-01-01T00:08:20Z"]);
}

#[test]
fn a_closing_run_does_not_name_the_partition_that_is_a_little_behind() {
    Case::new()
        .with(0, watermark(60), 9, 9, 99)
        .with(1, watermark(50), 4, 4, 60)
        .closed(49, 90)
        .says(Condition::Closing, &[]);
}

#[test]
fn a_long_detail_is_cut() {
    let long = "x".repeat(5_000);
    let case = Case::new().with(0, PartitionState::Silent, 9, 9, 90).refused(0, &long);
    assert!(refusals(&case.vitals).len() < 400);
}

#[test]
fn conditions_have_names_of_their_own() {
    let names: std::collections::BTreeSet<_> = Condition::ALL.iter().map(|condition| condition.name()).collect();
    assert_eq!(names.len(), Condition::ALL.len());
}
