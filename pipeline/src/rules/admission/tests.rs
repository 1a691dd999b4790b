//! One pod's clock never costs another pod a sample.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::profile::{Position, Samples, Stack};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;

const DAY: i64 = 86_400;
const YEAR: i64 = 365 * DAY;
/// Profiles are sent up to this long after their window: with half of a profile of 30 s, as long as the lateness.
const DELAY: i64 = 15;

/// How the clock of a pod is wrong, in seconds.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Constant(i64),
    /// In each record with this probability.
    Jumping(i64, f64),
    /// Gained in each hour.
    Drifting(i64),
}

impl Fault {
    fn drawn(draws: &mut Xoshiro256PlusPlus) -> Self {
        let ahead = [10, 20, 45, 61, 75, 130, 600, 59 * 60, 3_700, 7_300, DAY, YEAR];
        let behind = [-DAY, -30 * DAY, -YEAR];
        let all: Vec<i64> = ahead.into_iter().chain(behind).collect();
        let by = all[draws.random_range(0..all.len())];
        match draws.random_range(0..3) {
            0 => Self::Constant(by),
            1 => Self::Jumping(by, draws.random_range(0.02..0.9)),
            _ => Self::Drifting(by),
        }
    }

    fn at(self, elapsed: i64, draws: &mut Xoshiro256PlusPlus) -> i64 {
        match self {
            Self::Constant(by) => by,
            Self::Jumping(by, often) => {
                if draws.random_bool(often) {
                    by
                } else {
                    0
                }
            }
            Self::Drifting(by) => by / 3_600 * elapsed + by % 3_600 * elapsed / 3_600,
        }
    }
}

/// One profile of one pod.
#[derive(Clone, Debug)]
struct Sent {
    pod: usize,
    /// The middle of its window, in seconds.
    at: i64,
    /// The same by the clock of its pod.
    shown: i64,
    sent_at: i64,
}

/// A partition in which pod 0 has this fault.
fn drawn(draws: &mut Xoshiro256PlusPlus, fault: Fault) -> Vec<Sent> {
    let pods = draws.random_range(3..=8);
    let period = [10, 15, 30][draws.random_range(0..3)];
    let rounds = draws.random_range(10..=120);
    let start = 1_800_000_000 + draws.random_range(0..3_600);
    let mut all = Vec::new();
    for pod in 0..pods {
        let phase = draws.random_range(0..period);
        for round in 0..rounds {
            let at = start + round * period + phase;
            let shown = if pod == 0 { at + fault.at(at - start, draws) } else { at };
            all.push(Sent { pod, at, shown, sent_at: at + period / 2 + draws.random_range(0..=DELAY) });
        }
    }
    all.sort_by_key(|one| one.sent_at);
    all
}

fn name(pod: usize) -> String {
    format!("pod-{pod}")
}

fn record(offset: i64, sent: &Sent, shown: i64, stamped: Stamped) -> Decoded {
    let identity = Identity {
        service: "shop".into(),
        build: "v1".into(),
        region: "east".into(),
        cohort: "web".into(),
        hardware: "m".into(),
        node: None,
        pod: name(sent.pod).as_str().into(),
        process_start: None,
    };
    let half = Nanos::from_seconds(5);
    let at = Nanos::from_seconds(shown);
    let profile = Profile {
        identity: Arc::new(identity),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: TimeRange { start: at.since(half), end: at.plus(half) },
        requests: None,
        names: Arc::from(["work".into()]),
        samples: Samples::Stacks(vec![Stack { frames: vec![0], count: 10, cohort: None, value: 0 }]),
    };
    let position = Position { source: "profiles".into(), partition: 0, offset, file: None };
    Decoded { position, stamped, parts: vec![Ok(profile)], points: Vec::new() }
}

/// What became of a partition.
#[derive(Debug, Default)]
struct Became {
    /// By pod and number of its record: the hop, and whether that was in time.
    applied: BTreeMap<(String, i64), (Hop, Arrival)>,
    rejected: usize,
    named: BTreeSet<String>,
}

fn became(partition: &[Sent], by_broker: bool, is_wrong: bool) -> Became {
    let (mut admission, table) = (Admission::new(&Config::default()), FunctionTable::default());
    let mut became = Became::default();
    let mut take = |admitted: Vec<Admitted>, not_before: Option<Hop>| {
        for one in admitted {
            match one {
                Admitted::OfPod(hop, OfPod::Profile(profile)) => {
                    assert!(not_before.is_none_or(|closed| hop >= closed), "applied before the watermark");
                    let key = (profile.identity.pod.to_string(), profile.offset);
                    assert!(became.applied.insert(key, (hop, profile.arrival)).is_none(), "applied twice");
                }
                Admitted::OfPod(..) | Admitted::Elsewhere(..) => panic!("only profiles were sent, to one shard"),
                Admitted::Rejected(..) => became.rejected += 1,
                Admitted::Clock(_, row) => drop(became.named.insert(row.pod.to_string())),
            }
        }
    };
    for (offset, sent) in (0..).zip(partition) {
        let shown = if is_wrong { sent.shown } else { sent.at };
        let sent_at = Nanos::from_seconds(sent.sent_at);
        let stamped = if by_broker { Stamped::ByBroker(sent_at) } else { Stamped::BySender(Some(sent_at)) };
        let closed = admission.watermark(0);
        take(admission.admit(record(offset, sent, shown, stamped), Hop(0), &table), closed);
    }
    let closed = admission.watermark(0);
    take(admission.end(0, Hop(0), &table), closed);
    assert!(admission.early(0) == 0, "something still waits");
    became
}

#[test]
fn property_one_wrong_clock_costs_no_other_pod_a_sample() {
    let (mut named, mut rejected, mut late) = (0, 0, 0);
    for seed in 0..1_500 {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
        let fault = Fault::drawn(&mut draws);
        let partition = drawn(&mut draws, fault);
        let by_broker = seed % 3 == 0;
        let right = became(&partition, by_broker, false);
        let wrong = became(&partition, by_broker, true);
        let place = format!("seed {seed}, {fault:?}, by broker: {by_broker}");
        assert!(right.named.is_empty() && right.rejected == 0, "{place}: {right:?}");
        assert_eq!(right.applied.len(), partition.len(), "{place}");
        let faulty = name(0);
        let of_others = |became: &Became| -> Vec<_> {
            became
                .applied
                .iter()
                .filter(|((pod, _), _)| *pod != faulty)
                .map(|(key, fate)| (key.clone(), *fate))
                .collect()
        };
        let expected: Vec<_> = (0..)
            .zip(&partition)
            .filter(|(_, sent)| sent.pod != 0)
            .map(|(offset, sent)| {
                let own = Config::default().clock().hop_of(Nanos::from_seconds(sent.at));
                ((name(sent.pod), offset), (own, Arrival::InTime))
            })
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .collect();
        for (became, which) in [(&right, "without the fault"), (&wrong, "with it")] {
            let got = of_others(became);
            let differs = got.iter().zip(&expected).find(|(got, expected)| got != expected);
            assert!(differs.is_none() && got.len() == expected.len(), "{place}, {which}: {differs:?}");
        }
        assert!(wrong.named.iter().all(|pod| *pod == faulty), "{place}: {:?}", wrong.named);
        assert_eq!(wrong.applied.len() + wrong.rejected, partition.len(), "{place}");
        let rounds = partition.iter().filter(|sent| sent.pod == 0).count();
        if rounds > 60 && matches!(fault, Fault::Constant(by) if by.abs() > 130) {
            assert!(wrong.named.contains(&faulty), "{place}: not named");
        }
        named += usize::from(!wrong.named.is_empty());
        rejected += wrong.rejected;
        late += wrong.applied.values().filter(|(_, arrival)| *arrival != Arrival::InTime).count();
    }
    println!("named in {named} of 1500 partitions; {rejected} profiles rejected, {late} late");
    assert!(named > 500 && rejected > 1_000 && late > 1_000, "{named} {rejected} {late}");
}

#[test]
fn regression_one_record_59_minutes_ahead_makes_nothing_late() {
    let mut partition: Vec<Sent> = (0..100)
        .flat_map(|round| (0..4).map(move |pod| (pod, 1_800_000_000 + 10 * round)))
        .map(|(pod, at)| Sent { pod, at, shown: at, sent_at: at + 5 })
        .collect();
    partition[120].shown += 59 * 60;
    for by_broker in [false, true] {
        let became = became(&partition, by_broker, true);
        let late = became.applied.values().filter(|(_, arrival)| *arrival != Arrival::InTime).count();
        assert_eq!((late, became.rejected), (0, 1), "by broker: {by_broker}");
        assert_eq!(became.named, BTreeSet::from([name(0)]));
    }
}

#[test]
fn what_waits_in_a_partition_that_was_idle_is_applied_when_it_comes_back() {
    let (mut admission, table) = (Admission::new(&Config::default()), FunctionTable::default());
    let at = 1_800_000_000;
    let send = |admission: &mut Admission, offset: i64, not_before: Hop| {
        let sent = Sent { pod: 0, at: at + 10 * offset, shown: at + 10 * offset, sent_at: at };
        admission.admit(record(offset, &sent, sent.shown, Stamped::BySender(None)), not_before, &table)
    };
    assert!(send(&mut admission, 0, Hop(0)).is_empty(), "one pod alone, not known yet");
    assert_eq!(admission.watermark(0), None, "it holds up event time, as if it were silent");
    let back = Config::default().clock().hop_of(Nanos::from_seconds(at + 300));
    assert!(send(&mut admission, 1, back).is_empty());
    assert_eq!(admission.watermark(0), Some(back));
    let hops: Vec<Hop> = admission.end(0, Hop(0), &table).iter().map(Admitted::hop).collect();
    assert_eq!(hops, [back, back]);
}
