//! Deploys, restarts, roll-outs; late and doubled profiles.

use super::*;

/// The range of the number of `n` things chosen with probability `p`.
fn assert_chosen(found: usize, n: usize, p: f64, what: &str) {
    let (found, mean) = (found as f64, n as f64 * p);
    assert!((found - mean).abs() < 5.0 * (mean * (1.0 - p)).sqrt(), "{found} {what} of {n}, expected about {mean}");
}

#[test]
fn fleet_duplicates_appear_as_asked_and_are_true_copies() {
    let builder = Fleet::seeded(21).pods_per_cell(2, 6).lasts(seconds(600));
    let once = profiles(&builder.clone().build());
    for builder in [builder.clone(), builder.unkeyed()] {
        let partitions = builder.duplicates(0.1).build().partitions(3);
        let twice = sorted(profiles_in(partitions.iter().flatten().cloned()));
        assert_chosen(twice.len() - once.len(), once.len(), 0.1, "copies");
        let mut distinct = twice;
        distinct.dedup();
        assert_eq!(distinct, once);
        assert!(once.len() > 4000);
    }
}

#[test]
fn fleet_unkeyed_copies_come_through_another_partition() {
    let builder = Fleet::seeded(22).pods_per_cell(1, 1).duplicates(0.2).lasts(seconds(200));
    let split = |builder: FleetBuilder| {
        let mut places: BTreeMap<(PodId, Nanos), BTreeSet<i32>> = BTreeMap::new();
        for record in builder.build().partitions(3).into_iter().flatten() {
            let partition = record.position.partition;
            for profile in profiles_in([record]) {
                places.entry((profile.identity.pod.clone(), profile.window.start)).or_default().insert(partition);
            }
        }
        places.values().filter(|partitions| partitions.len() == 2).count()
    };
    assert_eq!(split(builder.clone()), 0);
    assert!(split(builder.unkeyed()) > 20);
}

#[test]
fn fleet_late_profiles_come_as_late_as_asked() {
    let builder = Fleet::seeded(23).pods_per_cell(2, 6).lasts(seconds(600));
    let on_time = profiles(&builder.clone().build());
    let fleet = builder.late(0.05, seconds(200)).build();
    let (mut late, mut all) = (0, Vec::new());
    for partition in fleet.partitions(2) {
        let mut clock = Nanos(0);
        for record in partition {
            let sent_at = record.stamped.time().unwrap();
            assert!(sent_at >= clock, "a partition is in order of sending");
            clock = sent_at;
            for profile in profiles_in([record]) {
                let delay = sent_at.since(profile.window.end);
                // Transport takes 1 s, and groups of pods wait for their last one for less than a period of 10 s.
                if delay > seconds(11) {
                    assert!((seconds(90)..=seconds(222)).contains(&delay), "late by {delay:?}");
                    late += 1;
                } else {
                    assert!(delay >= seconds(1));
                }
                all.push(profile);
            }
        }
    }
    assert_chosen(late, all.len(), 0.05, "late profiles");
    assert_eq!(sorted(all), on_time);
}

#[test]
fn fleet_restarts_give_the_same_pod_a_new_process() {
    let fleet = Fleet::seeded(24).pods_per_cell(2, 6).restarts(10).build();
    let mut processes: BTreeMap<PodId, Vec<_>> = BTreeMap::new();
    for (identity, lived) in fleet.processes() {
        processes.entry(identity.pod.clone()).or_default().push((identity, lived));
    }
    let restarted: Vec<_> = processes.values().filter(|lives| lives.len() > 1).collect();
    assert_eq!((processes.len(), restarted.len()), (72, 10));
    for lives in restarted {
        let [(before, first), (after, second)] = lives.as_slice() else { panic!("one restart each") };
        assert_eq!(
            (&before.build, &before.region, second.start),
            (&after.build, &after.region, first.end.plus(seconds(5)))
        );
        assert_eq!(after.process_start, Some(second.start));
    }
    let mut reported = BTreeMap::new();
    for profile in profiles(&fleet) {
        let start = profile.identity.process_start.unwrap();
        assert!(start <= profile.window.start, "a window lies within its process");
        reported.entry(profile.identity.pod.clone()).or_insert_with(BTreeSet::new).insert(start);
    }
    assert_eq!(reported.values().filter(|starts| starts.len() == 2).count(), 10);
    let silent = Fleet::seeded(24).pods_per_cell(2, 6).restarts(10).without_process_start().build();
    assert!(profiles(&silent).iter().all(|profile| profile.identity.process_start.is_none()));
}

#[test]
fn fleet_head_starts_at_the_deploy_and_is_cold_at_first() {
    let builder = Fleet::seeded(25).pods_per_cell(4, 4).size_cv(0.0).deploy_after(seconds(120)).folded();
    let samples = |builder: FleetBuilder, cold: bool| {
        let fleet = builder.build();
        let head = profiles(&fleet).into_iter().filter(|profile| profile.identity.build == *fleet.head());
        let counts = head.filter_map(|profile| {
            let start = profile.identity.process_start.unwrap();
            assert!((seconds(120)..seconds(130)).contains(&start.since(fleet.time().start)));
            (cold == (profile.window.midpoint() < start.plus(seconds(60)))).then(|| profile.total() as f64)
        });
        moments(&counts.collect::<Vec<_>>()).0
    };
    let (cold, warm) = (samples(builder.clone(), true), samples(builder.clone(), false));
    assert!((warm - 1000.0).abs() < 15.0, "{warm} samples a profile once warm");
    assert!(cold > 1.2 * warm, "{cold} samples a profile while cold");
    let never_cold = samples(builder.warm_up(Nanos(0)), true);
    assert!((never_cold - 1000.0).abs() < 15.0, "{never_cold}");
}

#[test]
fn fleet_rollout_replaces_every_pod_once() {
    let fleet = Fleet::rollout(26).build();
    let (start, head, processes) = (fleet.time().start, fleet.head(), fleet.processes());
    let lived = |is_head: bool| {
        let of_build = processes.iter().filter(move |(identity, _)| (identity.build == *head) == is_head);
        of_build.map(|(_, lived)| *lived)
    };
    let sorted = |mut instants: Vec<Nanos>| {
        instants.sort();
        instants
    };
    let ends = sorted(lived(false).map(|lived| lived.end).collect());
    let starts = sorted(lived(true).map(|lived| lived.start).collect());
    assert_eq!((ends.len(), &ends), (100, &starts));
    assert_eq!((starts[0].since(start), starts[99].since(start)), (seconds(120), seconds(1920)));
    let gaps: Vec<i64> = starts.windows(2).map(|pair| pair[1].since(pair[0]).0 / 1_000_000_000).collect();
    assert!(gaps.iter().all(|gap| *gap == 18), "evenly: {gaps:?}");
    let running = profiles(&fleet);
    for profile in &running {
        let (_, lived) = processes.iter().find(|(identity, _)| identity.pod == profile.identity.pod).unwrap();
        assert!(lived.start <= profile.window.start && profile.window.end <= lived.end);
    }
    assert_eq!(u64::try_from(running.len()).unwrap(), fleet.profiles());
}

#[test]
fn fleet_kinds_of_machine_have_costs_of_their_own() {
    let fleet = Fleet::seeded(27)
        .calls(Calls::Zipf(50))
        .pods_per_cell(0, 20)
        .pod_cv(0.0)
        .samples_per_second(1000.0)
        .hardware(["old", "new"])
        .pods_per_node(5)
        .folded()
        .build();
    let profiles = profiles(&fleet);
    let shares = |kind: &str| {
        let (own, all) = own_counts(profiles.iter().filter(|profile| profile.identity.hardware.as_str() == kind));
        fleet.functions().into_iter().map(|(name, share)| (own[&name] / all / share).ln()).collect::<Vec<_>>()
    };
    let (old, new) = (moments(&shares("old")).1.sqrt(), moments(&shares("new")).1.sqrt());
    assert!(old < 0.02, "the first kind costs what functions cost: {old}");
    assert!((0.05..0.15).contains(&new), "the second differs by CV .1: {new}");
    let mut nodes: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for profile in &profiles {
        nodes.entry(profile.identity.node.clone().unwrap()).or_default().insert(profile.identity.pod.clone());
    }
    assert_eq!(nodes.len(), 36);
    assert!(nodes.values().all(|pods| pods.len() == 5));
}

#[test]
fn fleet_requests_follow_the_size_of_pods() {
    let fleet = Fleet::seeded(28).pods_per_cell(0, 10).requests_per_second(50.0).folded().build();
    let mut pods: BTreeMap<PodId, (f64, f64)> = BTreeMap::new();
    for profile in profiles(&fleet) {
        let requests = profile.requests.unwrap();
        assert_eq!(requests.window, profile.window);
        let pod = pods.entry(profile.identity.pod.clone()).or_default();
        *pod = (pod.0 + requests.count as f64, pod.1 + profile.total() as f64);
    }
    assert_eq!(pods.len(), 90);
    for (pod, (requests, samples)) in &pods {
        // Both are Poisson over 60 profiles.
        let error = samples / requests * (1.0 / requests + 1.0 / samples).sqrt();
        assert!((samples / requests - 2.0).abs() < 5.0 * error, "{pod}: {samples} samples for {requests} requests");
    }
    let (_, variance) = moments(&pods.values().map(|(requests, _)| *requests / 30_000.0).collect::<Vec<_>>());
    assert!(variance.sqrt() > 0.2, "pods differ in size");
}
