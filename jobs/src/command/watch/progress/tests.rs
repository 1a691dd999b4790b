use std::sync::Arc;

use fleetdiff_pipeline::run::pulse::diagnosis::{Now, diagnose};
use fleetdiff_pipeline::run::pulse::{Closed, Given, PartitionState, PartitionVitals, Refusal, Vitals};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use super::*;
use crate::command::watch::console::InUse;
use crate::command::watch::done::Done;

/// A run of one partition, looked at every five seconds.
struct Run {
    start: Instant,
    progress: Progress,
    vitals: Vitals,
    done: Done,
}

impl Run {
    fn new() -> Self {
        let start = Instant::now();
        let mut vitals = Vitals::at_start(start);
        let given = Given::default();
        let partition = PartitionVitals {
            state: PartitionState::Silent,
            next_offset: 0,
            end: Some(0),
            held_back: false,
            early: 0,
            given,
        };
        vitals.partitions.insert((Arc::from("t"), 0), partition);
        Self { start, progress: Progress::new(start), vitals, done: Done::default() }
    }

    fn given(&mut self) -> &mut Given {
        &mut self.vitals.partitions.get_mut(&(Arc::from("t"), 0)).unwrap().given
    }

    fn refuse(&mut self, records: u64) {
        let given = self.given();
        given.records += records;
        *given.refused.entry(Reason::Malformed).or_default() += records;
        given.last_refusal = Some(Refusal { offset: 7, reason: Reason::Malformed, detail: "no pprof".to_owned() });
    }

    fn close(&mut self, hop: u64, second: u64) {
        self.given().records += 1;
        self.given().taken += 1;
        self.vitals.partitions.values_mut().for_each(|partition| partition.state = PartitionState::Watermark(Hop(hop)));
        self.vitals.output.closed = Some(Closed { hop: Hop(hop), at: self.start + Duration::from_secs(second) });
        (self.done.hops, self.done.through) = (self.done.hops + 1, Hop(hop));
    }

    /// The lines from one second up to another, each with its second.
    fn lines(&mut self, seconds: std::ops::Range<u64>) -> Vec<(u64, Line)> {
        let mut lines = Vec::new();
        for second in seconds.step_by(5) {
            let instant = self.start + Duration::from_secs(second);
            let wall = Nanos::from_seconds(i64::try_from(second).unwrap());
            let now = Now { instant, wall, clock: HopClock::new(Nanos::from_seconds(10)), idle_after: None };
            let diagnosis = diagnose(&self.vitals, &now);
            let (vitals, done) = (self.vitals.clone(), self.done.clone());
            let (receivers, in_use) = (Vec::new(), InUse::default());
            let overview = Overview { vitals, done, now, diagnosis, receivers, in_use, resident_bytes: None };
            lines.extend(self.progress.lines(&overview).into_iter().map(|line| (second, line)));
        }
        lines
    }
}

#[test]
fn what_lasts_is_said_at_once_and_then_ever_more_rarely() {
    let lines = Run::new().lines(5..3600);
    let seconds: Vec<u64> = lines.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds, [5, 15, 35, 75, 155, 315, 635, 1235, 1835, 2435, 3035]);
    for (_, line) in &lines {
        assert_eq!((line.level, line.condition), (Level::Warn, "no_records"));
        assert!(line.text.starts_with("nothing has closed yet: no record has come since"), "{}", line.text);
    }
}

#[test]
fn refusals_are_said_at_the_next_look_with_the_last_detail() {
    let mut run = Run::new();
    run.lines(5..20);
    run.refuse(22_420);
    let lines = run.lines(20..25);
    let [(20, line)] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((line.level, line.condition), (Level::Warn, "all_refused"));
    assert!(line.text.contains("all 22420 records were refused: 22420 malformed") && line.text.contains("no pprof"));
}

#[test]
fn progress_is_a_line_each_ten_seconds_and_refusals_beside_it_become_rare() {
    let mut run = Run::new();
    let (mut closed, mut rejected) = (0, 0);
    for step in 1..=60 {
        run.close(step, step * 10);
        run.refuse(1);
        for (_, line) in run.lines(step * 10..step * 10 + 10) {
            closed += u32::from(line.level == Level::Info && line.text.starts_with("closed through"));
            rejected += u32::from(line.level == Level::Warn && line.text.starts_with("rejected so far"));
        }
    }
    assert_eq!((closed, rejected), (60, 6), "600 s");
}

#[test]
fn an_end_of_closing_is_said_once_it_has_lasted() {
    let mut run = Run::new();
    run.close(1, 10);
    assert_eq!(run.lines(10..25).len(), 1, "that it was closed");
    let lines = run.lines(25..30);
    let [(25, line)] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((line.level, line.condition), (Level::Info, "caught_up"));
    assert!(line.text.starts_with("nothing has closed for 15 s: all records are read"), "{}", line.text);
}
