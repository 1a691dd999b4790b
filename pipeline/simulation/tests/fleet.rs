//! The synthetic fleets have the requested properties, and no others.
//!
//! For random numbers the tests allow five standard errors; seeds are fixed and printed.

#![expect(
    clippy::as_conversions,
    clippy::unwrap_used,
    reason = "small counts become floats; a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::identity::{Cohort, PodId};
use fleetdiff_schemas::profile::{Decoded, Folded, Profile, Samples, content_hash};
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::{Calls, Cells, Fleet, FleetBuilder, Ring};

#[path = "fleet/events.rs"]
mod events;
#[path = "fleet/presets.rs"]
mod presets;

const HIT: &str = "serialize_video_chunk";

fn seconds(seconds: i64) -> Nanos {
    Nanos::from_seconds(seconds)
}

fn profiles_in(records: impl IntoIterator<Item = Decoded>) -> Vec<Profile> {
    records.into_iter().flat_map(|record| record.parts).map(|part| part.expect("a fleet rejects nothing")).collect()
}

/// Samples of a cohort, and self and total counts by name.
type Expected = (u64, BTreeMap<u32, (u64, u64)>);

/// Every profile that is delivered, in an order that does not depend on how.
fn profiles(fleet: &Fleet) -> Vec<Profile> {
    sorted(profiles_in(fleet.partitions(1).into_iter().flatten()))
}

fn sorted(mut profiles: Vec<Profile>) -> Vec<Profile> {
    profiles.sort_by(|a, b| (&a.identity, a.window.start, a.total()).cmp(&(&b.identity, b.window.start, b.total())));
    profiles
}

fn folded(profile: &Profile) -> &[Folded] {
    match &profile.samples {
        Samples::Folded { cohorts, .. } => cohorts,
        Samples::Stacks(_) => panic!("not folded"),
    }
}

/// Self samples by function name, and the number of all samples.
fn own_counts<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> (BTreeMap<Arc<str>, f64>, f64) {
    let (mut own, mut all) = (BTreeMap::new(), 0.0);
    for profile in profiles {
        for part in folded(profile) {
            all += part.samples as f64;
            for function in &part.functions {
                *own.entry(Arc::clone(&profile.names[function.name as usize])).or_insert(0.0) += function.own as f64;
            }
        }
    }
    (own, all)
}

/// Mean and (n - 1) variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// A fleet in which everything that can happen does.
fn eventful(seed: u64) -> FleetBuilder {
    events(Fleet::seeded(seed)).cell("eu-west-1", "iOS-iPad", 1, 2)
}

/// The same, but its pods serve all cohorts.
fn labelled(seed: u64) -> FleetBuilder {
    events(Fleet::seeded(seed).cohorts_by_request())
}

fn events(builder: FleetBuilder) -> FleetBuilder {
    builder
        .pods_per_cell(2, 3)
        .ring(Ring::new("v40", 1))
        .hardware(["c7i.2xlarge", "c8g.2xlarge"])
        .pods_per_node(4)
        .requests_per_second(40.0)
        .unknown_frames(0.02)
        .hop_noise(0.05, 0.7)
        .drift(0.05)
        .regress(HIT, Cells::cohort("Android-TV"), 1.3)
        .late(0.05, seconds(120))
        .duplicates(0.05)
        .restarts(4)
        .lasts(seconds(240))
        .pods_per_record(7)
}

#[test]
fn fleet_same_seed_gives_the_same_records() {
    let once = eventful(5).build().partitions(3);
    assert_eq!(once, eventful(5).build().partitions(3));
    assert_ne!(once, eventful(6).build().partitions(3));
    for (partition, records) in once.iter().enumerate() {
        let offsets = records.iter().map(|record| (record.position.partition as usize, record.position.offset));
        assert!(offsets.eq((0..).map(|offset| (partition, offset)).take(records.len())));
    }
}

#[test]
fn fleet_profiles_do_not_depend_on_how_they_are_delivered() {
    let whole = profiles(&eventful(7).build());
    assert!(whole.len() > 900, "{} profiles", whole.len());
    for builder in [eventful(7), eventful(7).unkeyed(), eventful(7).unkeyed().pods_per_record(3)] {
        let fleet = builder.partition_count(5).build();
        for workers in [1, 2, 4] {
            let mut read = Vec::new();
            for mut source in (0..workers).map(|worker| fleet.source(worker, workers)) {
                let (records, ended) = read_to_end(&mut source);
                assert!(ended.into_iter().eq(source.partitions()));
                read.extend(records);
            }
            assert_eq!(whole, sorted(profiles_in(read)), "{workers} workers");
        }
    }
}

#[test]
fn fleet_pods_keep_their_profiles_whoever_else_there_is() {
    let quiet = |builder: FleetBuilder| builder.late(0.0, Nanos(0)).duplicates(0.0).restarts(0);
    let small = profiles(&quiet(eventful(8)).build());
    let large = profiles(&quiet(eventful(8)).pods_per_cell(4, 9).pods_per_node(9).build());
    let counts = |profiles: &[Profile]| -> BTreeMap<(PodId, Nanos), (u64, Samples)> {
        let entry = |p: &Profile| ((p.identity.pod.clone(), p.window.start), (p.total(), p.samples.clone()));
        profiles.iter().map(entry).collect()
    };
    let (small, large) = (counts(&small), counts(&large));
    assert!(large.len() > 2 * small.len());
    assert!(small.iter().all(|(key, samples)| large.get(key) == Some(samples)));
}

/// What is left to read, and which partitions have ended.
fn read_to_end(source: &mut impl Source) -> (Vec<Decoded>, BTreeSet<i32>) {
    let (mut records, mut ended) = (Vec::new(), BTreeSet::new());
    loop {
        match source.poll().unwrap() {
            Polled::Record(record) => records.push(*record),
            Polled::PartitionEnd(partition) => assert!(ended.insert(partition), "{partition} ends once"),
            Polled::End => return (records, ended),
            other => panic!("nothing is paused, added or lost: {other:?}"),
        }
    }
}

#[test]
fn fleet_source_holds_back_a_paused_partition() {
    let fleet = eventful(9).partition_count(4).build();
    let mut source = fleet.source(1, 2);
    assert_eq!(source.partitions(), [1, 3]);
    assert_eq!(source.name(), "synthetic-9");
    source.set_paused(3, true);
    let mut seen = BTreeSet::new();
    while let Polled::Record(record) = source.poll().unwrap() {
        seen.insert(record.position.partition);
    }
    assert!(matches!(source.poll().unwrap(), Polled::Idle));
    assert_eq!(seen, BTreeSet::from([1]));
    source.set_paused(3, false);
    assert_eq!(read_to_end(&mut source), (fleet.partition(3, 4).collect(), BTreeSet::from([3])));
    assert!(matches!(fleet.source(4, 5).poll().unwrap(), Polled::End));
}

#[test]
fn fleet_effect_changes_one_function_by_the_factor() {
    let fleet = Fleet::seeded(11)
        .pods_per_cell(4, 4)
        .already_deployed()
        .pod_cv(0.0)
        .size_cv(0.0)
        .regress(HIT, "ap-south-1:Android-TV,eu-west-1:*".parse().unwrap(), 1.5)
        .folded()
        .build();
    let profiles = profiles(&fleet);
    let share = fleet.functions().iter().find(|(name, _)| **name == *HIT).unwrap().1;
    let mut hits = 0;
    for region in Fleet::REGIONS {
        for cohort in Fleet::COHORTS {
            for build in [fleet.base(), fleet.head()] {
                let here = |p: &&Profile| {
                    (p.identity.region.as_str(), p.identity.cohort.as_str(), &p.identity.build)
                        == (region, cohort, build)
                };
                let (own, all) = own_counts(profiles.iter().filter(here));
                let is_hit = build == fleet.head()
                    && (region == "eu-west-1" || (region, cohort) == ("ap-south-1", "Android-TV"));
                let factor = if is_hit { 1.5 } else { 1.0 };
                hits += u32::from(is_hit);
                // 4 clone pods x 60 profiles of 1,000 samples: self counts and the rest are Poisson.
                for (count, mean) in
                    [(own[HIT], 240_000.0 * share * factor), (all - own[HIT], 240_000.0 * (1.0 - share))]
                {
                    assert!((count - mean).abs() < 5.0 * mean.sqrt(), "{region} {cohort} {build}: {count} for {mean}");
                }
            }
        }
    }
    assert_eq!(hits, 4);
}

#[test]
fn fleet_effect_hits_everything_or_some_pods() {
    let clones = Fleet::seeded(13)
        .regions(["a"])
        .cohorts(["c"])
        .pods_per_cell(40, 40)
        .already_deployed()
        .pod_cv(0.0)
        .size_cv(0.0);
    let fleet = clones
        .regress_all(Cells::all(), 1.2)
        .regress_some(HIT, Cells::all(), 2.0, 0.25)
        .unknown_frames(0.1)
        .folded()
        .build();
    let share = fleet.functions().iter().find(|(name, _)| **name == *HIT).unwrap().1;
    let mut pods: BTreeMap<PodId, Vec<Profile>> = BTreeMap::new();
    for profile in profiles(&fleet) {
        pods.entry(profile.identity.pod.clone()).or_default().push(profile);
    }
    let mut hit = 0;
    for of_pod in pods.values() {
        let (own, all) = own_counts(of_pod);
        let factor = if of_pod[0].identity.build == *fleet.head() { 1.2 } else { 1.0 };
        // 60 profiles of 1,000 samples: an affected pod is 70 standard errors from an unaffected one.
        let mean = 60_000.0 * share * factor;
        let is_hit = own[HIT] > 1.5 * mean;
        hit += u32::from(is_hit);
        assert!(!is_hit || factor > 1.0, "a pod of the base is hit");
        for (count, mean) in
            [(own[HIT], mean * if is_hit { 2.0 } else { 1.0 }), (all - own[HIT], 60_000.0 * (1.0 - share) * factor)]
        {
            assert!((count - mean).abs() < 5.0 * mean.sqrt(), "{count} for {mean}");
        }
    }
    assert!((4..=17).contains(&hit), "{hit} of 40 pods hit with chance 1/4");
}

#[test]
fn fleet_pods_differ_by_the_spread_asked_for() {
    let fleet = Fleet::seeded(12)
        .regions(["a"])
        .cohorts(["c"])
        .pods_per_cell(0, 400)
        .calls(Calls::Zipf(500))
        .pod_cv(0.2)
        .samples_per_second(600.0)
        .folded()
        .build();
    let mut pods: BTreeMap<PodId, Vec<Profile>> = BTreeMap::new();
    for profile in profiles(&fleet) {
        pods.entry(profile.identity.pod.clone()).or_default().push(profile);
    }
    let pods: Vec<_> = pods.values().map(own_counts).collect();
    let functions = fleet.functions();
    let squares: f64 = functions.iter().map(|(_, share)| share * share).sum();
    // Variance of a share between pods beyond Poisson, relative to cv^2; composition takes and gives a little.
    let excess = functions[..100].iter().map(|(name, share)| {
        let ratio = |(own, all): &(BTreeMap<Arc<str>, f64>, f64)| own.get(name).map_or(0.0, |count| count / all);
        let (mean, variance) = moments(&pods.iter().map(ratio).collect::<Vec<_>>());
        let poisson = pods.iter().map(|(_, all)| mean / all).sum::<f64>() / pods.len() as f64;
        (variance - poisson) / (mean * mean) / (0.04 * (1.0 - 2.0 * share + squares))
    });
    let (mean, _) = moments(&excess.collect::<Vec<_>>());
    // One variance from 400 pods has a relative error of .08 (the log-normal's fourth moment included), 100 of them .008.
    assert!((mean - 1.0).abs() < 0.04, "{mean} times the variance asked for");
    let (size, variance) = moments(&pods.iter().map(|(_, all)| *all).collect::<Vec<_>>());
    let cv = variance.sqrt() / size;
    assert!((cv - 0.3).abs() < 5.0 * 0.3 / (2.0f64 * 400.0).sqrt() * 1.3, "sizes differ by {cv}");
}

/// Self counts of every function in each profile of one pod.
fn series(builder: FleetBuilder, functions: u32, hours: i64) -> Vec<Vec<f64>> {
    let one = builder.regions(["a"]).cohorts(["c"]).pods_per_cell(0, 1).size_cv(0.0).pod_cv(0.0);
    let fleet = one.calls(Calls::Zipf(functions)).lasts(seconds(3600 * hours)).folded().build();
    let names: Vec<_> = fleet.functions().into_iter().map(|(name, _)| name).collect();
    let rows = profiles(&fleet).into_iter().map(|profile| {
        let (own, _) = own_counts([&profile]);
        names.iter().map(|name| own.get(name).copied().unwrap_or(0.0)).collect()
    });
    rows.collect()
}

fn column(series: &[Vec<f64>], function: usize) -> Vec<f64> {
    series.iter().map(|row| row[function]).collect()
}

/// Correlation of each value with the one after it.
fn serial_correlation(values: &[f64]) -> f64 {
    let (mean, variance) = moments(values);
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    products / variance / values.len() as f64
}

#[test]
fn fleet_clone_pod_gives_independent_poisson_counts() {
    let series = series(Fleet::seeded(13), 500, 4);
    let n = series.len() as f64;
    assert_eq!(series.len(), 1440);
    let dispersions: Vec<f64> = (0..500)
        .map(|function| {
            let (mean, variance) = moments(&column(&series, function));
            variance / mean
        })
        .collect();
    let (mean, _) = moments(&dispersions);
    assert!((mean - 1.0).abs() < 5.0 * (2.0 / (n * 500.0)).sqrt(), "mean dispersion {mean}");
    // Rare functions (mean .3) have somewhat wider tails than a normal's.
    assert!(dispersions.iter().all(|d| (d - 1.0).abs() < 6.5 * (2.0 / n).sqrt()), "{dispersions:?}");
    let totals: Vec<f64> = series.iter().map(|row| row.iter().sum()).collect();
    let (mean, variance) = moments(&totals);
    assert!((mean - 1000.0).abs() < 5.0 * (1000.0 / n).sqrt(), "{mean} samples a profile");
    assert!((variance / mean - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "dispersion of totals {}", variance / mean);
    assert!(serial_correlation(&totals).abs() < 5.0 / n.sqrt());
}

#[test]
fn fleet_hop_noise_wanders_as_asked() {
    let series = series(Fleet::seeded(14).hop_noise(0.2, 0.8).samples_per_second(10_000.0), 8, 8);
    for function in 0..8 {
        let values = column(&series, function);
        let (mean, variance) = moments(&values);
        let cv = ((variance - mean) / (mean * mean)).sqrt();
        // 2,880 values with correlation .8 are worth some 630 for a variance.
        assert!((cv - 0.2).abs() < 5.0 * 0.2 / (2.0f64 * 630.0).sqrt() * 1.2, "function {function}: cv {cv}");
        let lag = serial_correlation(&values);
        assert!((lag - 0.8).abs() < 0.06, "function {function}: correlation {lag}");
    }
}

#[test]
fn fleet_costs_of_each_build_sway_for_all_its_pods() {
    let fleet = Fleet::seeded(17)
        .calls(Calls::Zipf(8))
        .regions(["a"])
        .cohorts(["c"])
        .pods_per_cell(2, 2)
        .already_deployed()
        .pod_cv(0.0)
        .size_cv(0.0)
        .swaying(0.2, seconds(45))
        .samples_per_second(10_000.0)
        .lasts(seconds(28_800))
        .folded()
        .build();
    let of_pod = |is_head: bool, pod: &str| -> Vec<f64> {
        let is_it =
            |p: &Profile| (p.identity.build == *fleet.head()) == is_head && p.identity.pod.as_str().ends_with(pod);
        let of = |p: Profile| own_counts([&p]).0[&fleet.functions()[3].0];
        profiles(&fleet).into_iter().filter(is_it).map(of).collect()
    };
    let correlation = |one: &[f64], other: &[f64]| {
        let ((m1, v1), (m2, v2)) = (moments(one), moments(other));
        let products = one.iter().zip(other).map(|(a, b)| (a - m1) * (b - m2)).sum::<f64>();
        products / one.len() as f64 / (v1 * v2).sqrt()
    };
    let (head, beside, base) = (of_pod(true, "000"), of_pod(true, "001"), of_pod(false, "000"));
    for values in [&head, &base] {
        let (mean, variance) = moments(values);
        let cv = ((variance - mean) / (mean * mean)).sqrt();
        // 2,880 values with correlation exp(-10/45) = .8 are worth some 630 for a variance.
        assert!((cv - 0.2).abs() < 5.0 * 0.2 / (2.0f64 * 630.0).sqrt() * 1.2, "cv {cv}");
        let lag = serial_correlation(values);
        assert!((lag - 0.8).abs() < 0.06, "correlation {lag}");
    }
    assert!(correlation(&head, &beside) > 0.99, "pods of a build sway together");
    // Of two such series the correlation has a standard deviation of .04.
    assert!(correlation(&head, &base).abs() < 0.2, "builds sway apart");
}

#[test]
fn fleet_drift_moves_all_pods_by_the_same_factor() {
    let fleet = Fleet::seeded(15)
        .calls(Calls::Zipf(40))
        .pods_per_cell(20, 20)
        .already_deployed()
        .pod_cv(0.1)
        .size_cv(0.0)
        .drift(0.2)
        .samples_per_second(2000.0)
        .lasts(seconds(1000))
        .folded()
        .build();
    let profiles = profiles(&fleet);
    let (from, middle) = (fleet.time().start, fleet.time().start.plus(seconds(500)));
    let change = |is_head: bool| -> Vec<f64> {
        let arm = |p: &&Profile| (p.identity.build == *fleet.head()) == is_head;
        let early = own_counts(profiles.iter().filter(arm).filter(|p| p.window.end <= from.plus(seconds(100))));
        let late = own_counts(profiles.iter().filter(arm).filter(|p| p.window.start >= middle.plus(seconds(400))));
        let names: Vec<_> = fleet.functions().into_iter().map(|(name, _)| name).collect();
        names.iter().map(|name| (late.0[name] / early.0[name]).ln()).collect()
    };
    let (head, base) = (change(true), change(false));
    let (_, variance) = moments(&head);
    // Between the means of the first and the last tenth lie nine tenths of the way.
    let (deviation, error) = (variance.sqrt(), 0.18 / (2.0f64 * 40.0).sqrt());
    assert!((deviation - 0.18).abs() < 5.0 * error, "functions drift by {deviation}");
    let distance = head.iter().zip(&base).map(|(head, base)| (head - base).abs()).fold(0.0, f64::max);
    assert!(distance < 0.01, "head and base drift apart by {distance}");
}

#[test]
fn fleet_folded_profiles_are_its_stacks_folded() {
    for builder in [eventful(16), labelled(16)] {
        let stacks = profiles(&builder.clone().build());
        let folds = profiles(&builder.folded().build());
        assert_eq!(stacks.len(), folds.len());
        for (stacked, fold) in stacks.iter().zip(&folds) {
            let (Samples::Stacks(stacks), Samples::Folded { content, cohorts }) = (&stacked.samples, &fold.samples)
            else {
                panic!("one form was asked for twice")
            };
            assert_eq!((&stacked.identity, stacked.window), (&fold.identity, fold.window));
            assert_eq!(*content, content_hash(&stacked.names, stacks));
            let mut expected: BTreeMap<Cohort, Expected> = BTreeMap::new();
            for stack in stacks {
                let cohort = stack.cohort.clone().unwrap_or_else(|| stacked.identity.cohort.clone());
                let (samples, functions) = expected.entry(cohort).or_default();
                *samples += stack.count;
                for frame in stack.frames.iter().collect::<BTreeSet<_>>() {
                    functions.entry(*frame).or_default().1 += stack.count;
                }
                if let Some(leaf) = stack.frames.last() {
                    functions.entry(*leaf).or_default().0 += stack.count;
                }
            }
            let found = cohorts.iter().map(|part| {
                let functions = part.functions.iter().map(|f| (f.name, (f.own, f.total)));
                (part.cohort.clone(), (part.samples, functions.collect()))
            });
            assert_eq!(expected, found.collect());
            for part in cohorts {
                assert!(part.functions.iter().all(|f| f.own <= f.total && 0 < f.total && f.total <= part.samples));
                assert!(part.functions.iter().map(|f| f.own).sum::<u64>() <= part.samples);
            }
        }
    }
}
