//! One case each of what the clocks of a partition's pods can show.

use std::collections::BTreeMap;

use fleetdiff_schemas::time::Nanos;

use super::waiting::{Fate, Queue};
use super::{Agreement, RECORDS, Sender};

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

fn seconds(at: i64) -> Nanos {
    Nanos::from_seconds(at)
}

fn sender(pod: &str) -> Sender {
    ("shop".into(), pod.into())
}

fn of_three() -> Agreement {
    Agreement::of(3)
}

/// Takes one record a pair of pod and event time, and gives the agreed time in seconds.
fn heard(agreement: &mut Agreement, records: &[(&str, i64)]) -> Option<i64> {
    for (pod, at) in records {
        agreement.hear(BTreeMap::from([(sender(pod), seconds(*at))]));
    }
    agreement.agreed().map(|at| at.0 / 1_000_000_000)
}

/// So many rounds in which each pod sends once, 10 s of event time apart; clocks are ahead by what stands with the pod.
fn rounds(agreement: &mut Agreement, pods: &[(&str, i64)], rounds: std::ops::Range<i64>) -> Option<i64> {
    let records: Vec<(&str, i64)> =
        rounds.flat_map(|round| pods.iter().map(move |(pod, ahead)| (*pod, round * 10 + ahead))).collect();
    heard(agreement, &records)
}

#[test]
fn three_pods_agree_on_what_the_slowest_of_them_has_reached() {
    let mut agreement = of_three();
    assert_eq!(
        heard(&mut agreement, &[("a", 1_000), ("b", 1_010)]),
        None,
        "it is not known yet that there are only two"
    );
    assert_eq!(heard(&mut agreement, &[("c", 1_020)]), Some(1_000));
    assert_eq!(heard(&mut agreement, &[("d", 1_015)]), Some(1_010));
}

#[test]
fn a_clock_that_is_ahead_moves_nothing_whoever_comes_first() {
    for ahead in [70, 59 * 60, 2 * HOUR, YEAR] {
        for first in [true, false] {
            let mut agreement = of_three();
            let fast = [("fast", 1_000 + ahead)];
            if first {
                heard(&mut agreement, &fast);
            }
            heard(&mut agreement, &[("a", 1_000), ("b", 1_001), ("c", 1_002)]);
            let agreed = heard(&mut agreement, &fast).unwrap();
            assert!(agreed <= 1_002, "{ahead} s ahead, first: {first}: {agreed}");
        }
    }
}

#[test]
fn of_three_pods_two_suffice_once_the_partition_is_known() {
    let mut agreement = of_three();
    let agreed = rounds(&mut agreement, &[("a", 0), ("b", 1), ("fast", YEAR)], 100..100 + 40);
    assert_eq!(agreed, Some(1_391), "the later of the two others");
}

#[test]
fn two_pods_must_both_have_reached_a_time_until_one_is_silent() {
    let mut agreement = of_three();
    rounds(&mut agreement, &[("a", 0), ("b", 3)], 100..140);
    assert_eq!(agreement.agreed(), Some(seconds(1_390)));
    let stalled = i64::try_from(RECORDS).unwrap() - 1;
    assert_eq!(rounds(&mut agreement, &[("a", 0)], 140..140 + stalled - 1), Some(1_393), "b is taken to be slow");
    let agreed = rounds(&mut agreement, &[("a", 0)], 140 + stalled - 1..140 + stalled + 1);
    assert_eq!(agreed, Some((140 + stalled) * 10), "b has stopped");
}

#[test]
fn a_pod_that_is_alone_agrees_with_itself_once_that_is_known() {
    let mut agreement = of_three();
    let many = i64::try_from(RECORDS).unwrap();
    assert_eq!(rounds(&mut agreement, &[("a", 0)], 100..100 + many - 1), None);
    assert_eq!(rounds(&mut agreement, &[("a", 0)], 100 + many - 1..100 + many), Some((100 + many - 1) * 10));
}

#[test]
fn of_two_groups_an_hour_apart_the_larger_is_followed_and_of_equal_ones_the_later() {
    let later = |at: i64| at + 2 * HOUR;
    let mut agreement = of_three();
    heard(&mut agreement, &[("a", 1_000), ("b", 1_000), ("c", 1_000), ("d", 1_000)]);
    let three = [("x", later(1_000)), ("y", later(1_001)), ("z", later(1_002))];
    assert_eq!(heard(&mut agreement, &three), Some(1_000), "three against four");
    assert_eq!(heard(&mut agreement, &[("w", later(1_003))]), Some(later(1_001)), "four against four");
}

#[test]
fn a_gap_of_hours_is_passed_once_half_of_the_pods_have() {
    let mut agreement = of_three();
    rounds(&mut agreement, &[("a", 0), ("b", 0), ("c", 0)], 100..140);
    let after = 1_390 + 5 * HOUR;
    assert_eq!(heard(&mut agreement, &[("a", after)]), Some(1_390));
    assert_eq!(heard(&mut agreement, &[("b", after + 1)]), Some(after));
}

#[test]
fn a_roll_out_never_holds_up_time() {
    let mut agreement = of_three();
    let names: Vec<String> = (0..60).map(|number| format!("pod-{number}")).collect();
    // Five pods at a time; every round the oldest is replaced.
    for round in 0..50 {
        let live = &names[round..round + 5];
        let at = 1_000 + 10 * i64::try_from(round).unwrap();
        let records: Vec<(&str, i64)> = live.iter().map(|name| (name.as_str(), at)).collect();
        assert_eq!(heard(&mut agreement, &records), Some(at), "round {round}");
    }
}

#[test]
fn a_slow_clock_holds_up_nobody() {
    for behind in [-100, -24 * HOUR, -YEAR] {
        let mut agreement = of_three();
        let agreed = rounds(&mut agreement, &[("slow", behind), ("a", 0), ("b", 0), ("c", 0)], 5_000_000..5_000_040);
        assert_eq!(agreed, Some(50_000_390), "{behind} s");
        let mut agreement = of_three();
        let agreed = rounds(&mut agreement, &[("slow", behind), ("a", 0), ("b", 1)], 5_000_000..5_000_040);
        assert_eq!(agreed, Some(50_000_390), "{behind} s, of three");
    }
}

#[test]
fn pods_of_one_record_each_are_forgotten_after_an_hour() {
    let mut agreement = of_three();
    for number in 0..20_000i64 {
        heard(&mut agreement, &[(&format!("job-{number}"), 10_000 + number * 10)]);
    }
    assert_eq!(agreement.agreed(), Some(seconds(10_000 + 19_997 * 10)));
    assert!(agreement.senders.len() <= 365, "{} pods are known", agreement.senders.len());
    assert_eq!(agreement.senders.len(), agreement.by_record.len());
    assert_eq!(agreement.senders.len(), agreement.by_time.len());
}

#[test]
fn silent_pods_are_forgotten_whatever_their_time() {
    let mut agreement = of_three();
    for number in 0..100 {
        heard(&mut agreement, &[(&format!("job-{number}"), 1_000 + YEAR)]);
        rounds(&mut agreement, &[("a", 0), ("b", 0), ("c", 0)], 100 + 20 * number..120 + 20 * number);
    }
    assert_eq!(agreement.agreed(), Some(seconds(20_990)));
    assert!(agreement.senders.len() <= 5, "{} pods are known", agreement.senders.len());
}

#[test]
fn the_agreed_time_never_goes_back_and_an_old_record_is_no_clock() {
    let mut agreement = of_three();
    heard(&mut agreement, &[("a", 1_000), ("b", 1_000), ("c", 1_000)]);
    assert_eq!(heard(&mut agreement, &[("a", 500), ("b", 500)]), Some(1_000));
    // A pod that was wrong once has the time of its last record.
    heard(&mut agreement, &[("a", YEAR)]);
    assert_eq!(heard(&mut agreement, &[("a", 1_010), ("b", 1_010), ("c", 1_010)]), Some(1_010));
}

#[test]
fn one_pod_suffices_where_one_is_asked_for() {
    let mut agreement = Agreement::of(1);
    assert_eq!(heard(&mut agreement, &[("a", 1_000)]), Some(1_000));
    assert_eq!(heard(&mut agreement, &[("b", 1_100)]), Some(1_100));
}

/// Three pods that are known, at this time.
fn known_at(at: i64) -> Agreement {
    let mut agreement = of_three();
    rounds(&mut agreement, &[("a", 0), ("b", 0), ("c", 0)], at / 10 - 40..at / 10 + 1);
    assert_eq!(agreement.agreed(), Some(seconds(at)));
    agreement
}

/// Takes a record and puts its profile of 30 s into the queue.
fn put(queue: &mut Queue<i64>, agreement: &mut Agreement, pod: &str, at: i64) {
    heard(agreement, &[(pod, at)]);
    queue.put(agreement, sender(pod), seconds(at), seconds(30), at);
}

/// What is decided once the three pods have this time.
fn decided_at(queue: &mut Queue<i64>, agreement: &mut Agreement, at: i64) -> Vec<(i64, Fate)> {
    heard(agreement, &[("a", at), ("b", at), ("c", at)]);
    queue.decided(agreement)
}

#[test]
fn what_waits_is_applied_in_its_order_when_its_time_has_come() {
    let mut agreement = of_three();
    let mut queue = Queue::default();
    for (pod, at) in [("a", 1_000), ("b", 1_030), ("c", 1_010)] {
        put(&mut queue, &mut agreement, pod, at);
    }
    let fate = Fate::Applied { lead: None };
    assert_eq!(queue.decided(&agreement), [(1_000, fate), (1_030, fate), (1_010, fate)]);
    assert!(queue.count() == 0);
}

#[test]
fn who_is_ahead_of_others_that_went_on_has_a_wrong_clock() {
    let mut agreement = known_at(1_000);
    let mut queue = Queue::default();
    put(&mut queue, &mut agreement, "minutes", 1_000 + 300);
    put(&mut queue, &mut agreement, "hours", 1_000 + 2 * HOUR);
    assert_eq!(decided_at(&mut queue, &mut agreement, 1_060), [], "the others have hardly moved");
    let lead = seconds(2 * HOUR - 61);
    assert_eq!(decided_at(&mut queue, &mut agreement, 1_061), [(1_000 + 2 * HOUR, Fate::Rejected { lead })]);
    assert_eq!(decided_at(&mut queue, &mut agreement, 1_239), []);
    let lead = Some(seconds(300 - 61));
    let fate = Fate::Applied { lead };
    assert_eq!(decided_at(&mut queue, &mut agreement, 1_240), [(1_300, fate)], "counted later, and named");
}

#[test]
fn no_clock_is_wrong_before_it_is_known_which_pods_there_are() {
    let mut agreement = of_three();
    let mut queue = Queue::default();
    let day = 24 * HOUR;
    for round in 0..20 {
        put(&mut queue, &mut agreement, "a", day + 10 * round);
        put(&mut queue, &mut agreement, "b", day + 10 * round);
        heard(&mut agreement, &[("slow", 10 * round)]);
        assert_eq!(queue.decided(&agreement), [], "round {round}: three pods agree on the time of the slow one");
    }
    for round in 20..30 {
        put(&mut queue, &mut agreement, "a", day + 10 * round);
        put(&mut queue, &mut agreement, "b", day + 10 * round);
    }
    let decided = queue.decided(&agreement);
    assert_eq!(decided.len(), 60);
    assert!(decided.iter().all(|(_, fate)| *fate == Fate::Applied { lead: None }), "{decided:?}");
}

#[test]
fn long_profiles_that_wait_for_each_other_are_no_wrong_clocks() {
    let mut agreement = known_at(1_000);
    let mut queue = Queue::default();
    heard(&mut agreement, &[("d", 1_300)]);
    queue.put(&agreement, sender("d"), seconds(1_300), seconds(300), 1_300);
    assert_eq!(decided_at(&mut queue, &mut agreement, 1_150), []);
    assert_eq!(decided_at(&mut queue, &mut agreement, 1_240), [(1_300, Fate::Applied { lead: None })]);
}

#[test]
fn at_the_end_what_nobody_contradicted_is_applied_and_a_wrong_clock_is_not() {
    let mut agreement = of_three();
    let mut queue = Queue::default();
    let mut send = |agreement: &mut Agreement, pod: &str, at: i64| {
        heard(agreement, &[(pod, at)]);
        queue.decided(agreement);
        if agreement.agreed().is_none_or(|agreed| seconds(at).since(agreed) > super::AHEAD) {
            queue.put(agreement, sender(pod), seconds(at), seconds(30), at);
        }
    };
    for round in 0..10 {
        for (pod, ahead) in [("fast", 600), ("a", 0), ("b", 1), ("c", 2)] {
            send(&mut agreement, pod, 1_000 + 30 * round + ahead);
        }
    }
    for round in 10..20 {
        send(&mut agreement, "a", 1_000 + 30 * round);
    }
    let moved_with = agreement.moved_with();
    agreement.conclude();
    let agreed = agreement.agreed().unwrap();
    assert_eq!(agreed, seconds(1_272));
    let fates = queue.concluded(agreed, moved_with);
    let of_a: Vec<i64> =
        fates.iter().filter(|(_, fate)| matches!(fate, Fate::Applied { .. })).map(|(at, _)| *at).collect();
    assert_eq!(of_a, (12..20).map(|round| 1_000 + 30 * round).collect::<Vec<_>>());
    assert_eq!(fates.len() - of_a.len(), 10, "all of the fast pod: {fates:?}");
}
