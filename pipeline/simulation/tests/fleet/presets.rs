//! The fleets on which fleetdiff is evaluated, and which properties are refused.

use fleetdiff_simulation::fleet::FleetError;

use super::*;

/// Pods of a build by cell.
fn pods_by_cell(fleet: &Fleet, is_head: bool) -> BTreeMap<(String, String), usize> {
    let mut cells = BTreeMap::new();
    for (identity, _) in fleet.processes() {
        if (identity.build == *fleet.head()) == is_head {
            *cells.entry((identity.region.to_string(), identity.cohort.to_string())).or_insert(0) += 1;
        }
    }
    cells
}

#[test]
fn fleet_demo_is_that_of_the_article() {
    let fleet = Fleet::demo(1).build();
    assert_eq!(fleet.pods(), 8 * 200 + 23);
    for (is_head, usual, odd) in [(true, 20, 3), (false, 180, 20)] {
        let cells = pods_by_cell(&fleet, is_head);
        assert_eq!(cells.len(), 9);
        for ((region, cohort), pods) in cells {
            let is_odd = (region.as_str(), cohort.as_str()) == ("eu-west-1", "iOS-iPad");
            assert_eq!(pods, if is_odd { odd } else { usual }, "{region} {cohort}");
        }
    }
    let time = fleet.time();
    assert_eq!(time.start.0 / 3_600_000_000_000, time.end.0 / 3_600_000_000_000, "within one UTC hour");
    let cells: Cells = Fleet::DEMO_CELLS.parse().unwrap();
    assert_eq!(cells.to_string(), Fleet::DEMO_CELLS);
    let again = Fleet::demo(1).unchanged().regress(Fleet::DEMO_FUNCTION, cells, Fleet::DEMO_FACTOR).build();
    let first = |fleet: &Fleet| fleet.partition(0, 16).take(80).collect::<Vec<_>>();
    assert_eq!(first(&fleet), first(&again));
    let unchanged = Fleet::demo(1).unchanged().build();
    assert_ne!(first(&fleet), first(&unchanged));
    let by_one = Fleet::demo(1).unchanged().regress(Fleet::DEMO_FUNCTION, Cells::all(), 1.0).build();
    assert_eq!(first(&unchanged), first(&by_one));
}

#[test]
fn fleet_demo_raises_the_function_in_its_cells_alone() {
    let fleet = Fleet::demo(2).build();
    let mut cells: BTreeMap<_, Vec<Profile>> = BTreeMap::new();
    for profile in one_by_one(&fleet).filter(|p| p.window.start > fleet.time().start.plus(seconds(1500))) {
        let identity = &profile.identity;
        let key = (identity.region.to_string(), identity.cohort.to_string(), identity.build == *fleet.head());
        cells.entry(key).or_default().push(profile);
    }
    for ((region, cohort, _), head) in cells.iter().filter(|((_, _, is_head), _)| *is_head) {
        let rest = |(own, all): (BTreeMap<Arc<str>, f64>, f64)| own[HIT] / (all - own[HIT]);
        let ratio = rest(own_counts(head)) / rest(own_counts(&cells[&(region.clone(), cohort.clone(), false)]));
        let is_hit = cohort == "Android-TV" && region.starts_with("ap-");
        let pods = if (region.as_str(), cohort.as_str()) == ("eu-west-1", "iOS-iPad") { 3.0 } else { 20.0 };
        // Pods differ by CV 3 % in either build; samples are many.
        let (expected, error) = (if is_hit { 1.1 } else { 1.0 }, 0.033 / f64::sqrt(pods));
        assert!((ratio - expected).abs() < 5.0 * error, "{region} {cohort}: {ratio}");
    }
    assert_eq!(cells.len(), 18);
}

/// Profiles are read one after the other, never all at once.
fn one_by_one(fleet: &Fleet) -> impl Iterator<Item = Profile> + use<> {
    fleet.partition(0, 1).flat_map(|record| profiles_in([record]))
}

#[test]
fn fleet_nulls_give_a_profile_a_pod_and_minute() {
    let nulls = [
        (Fleet::null_cells(3), 9 * 89, 0),
        (Fleet::null_request_labels(3), 3 * 266, 3),
        (Fleet::null_hour_edge(3), 6 * 35, 0),
    ];
    for (builder, pods, labels) in nulls {
        let fleet = builder.build();
        assert_eq!((fleet.pods(), fleet.profiles()), (pods, 30 * u64::try_from(pods).unwrap()));
        assert_eq!(fleet.functions().len(), 500);
        let (mut count, mut samples) = (0, 0);
        for profile in one_by_one(&fleet) {
            assert!(profile.identity.process_start.unwrap().plus(seconds(3600)) <= fleet.time().start);
            assert_eq!(folded(&profile).len(), if labels > 0 { labels } else { 1 });
            (count, samples) = (count + 1, samples + profile.total());
        }
        assert_eq!(count, fleet.profiles());
        let mean = samples as f64 / count as f64;
        let error = 6000.0 * 0.3 / (pods as f64).sqrt();
        assert!((mean - 6000.0).abs() < 5.0 * error, "{mean} samples a profile");
    }
}

#[test]
fn fleet_hour_edge_has_one_and_the_others_none() {
    let hours = |fleet: Fleet| fleet.time().end.0 / 3_600_000_000_000 - fleet.time().start.0 / 3_600_000_000_000;
    assert_eq!(hours(Fleet::null_hour_edge(1).build()), 1);
    assert_eq!(hours(Fleet::null_cells(1).build()), 0);
    assert_eq!(hours(Fleet::null_request_labels(1).build()), 0);
    assert_eq!(hours(Fleet::rollout(1).build()), 0);
}

#[test]
fn fleet_labelled_cells_share_their_pods_and_their_noise() {
    let fleet = Fleet::null_request_labels(4).regions(["a"]).pods_per_cell(0, 60).pod_cv(0.3).build();
    let mut pods: BTreeMap<PodId, BTreeMap<Cohort, (f64, f64)>> = BTreeMap::new();
    for profile in one_by_one(&fleet) {
        let cohorts = folded(&profile);
        assert!(cohorts.is_sorted_by(|a, b| a.cohort < b.cohort));
        for part in cohorts {
            let own = part.functions.iter().find(|f| f.name == 0).map_or(0, |f| f.own);
            let entry = pods.entry(profile.identity.pod.clone()).or_default().entry(part.cohort.clone()).or_default();
            *entry = (entry.0 + own as f64, entry.1 + part.samples as f64);
        }
    }
    assert_eq!(pods.len(), 60);
    for cohorts in pods.values() {
        let shares: Vec<(f64, f64)> = cohorts.values().map(|(own, all)| (own / all, *all)).collect();
        assert_eq!(shares.len(), 3);
        for ((share, all), (other, others)) in shares.iter().zip(&shares[1..]) {
            let error = (share * (1.0 - share) * (1.0 / all + 1.0 / others)).sqrt();
            assert!((share - other).abs() < 5.0 * error, "one pod, one multiplier: {shares:?}");
        }
    }
    let (mean, variance) =
        moments(&pods.values().map(|c| c.values().map(|(o, a)| o / a).sum::<f64>()).collect::<Vec<_>>());
    assert!(variance.sqrt() / mean > 0.15, "pods differ");
}

#[test]
fn fleet_refuses_what_it_cannot_be() {
    let refused = |builder: FleetBuilder| builder.try_build().expect_err("refused");
    let one = || Fleet::seeded(1);
    let unknown = refused(one().regress("no_such_function", Cells::all(), 1.1));
    assert_eq!(unknown, FleetError::UnknownFunction { function: "no_such_function".into() });
    // It is on every stack, but no sample is taken in it: there is nothing to multiply.
    assert_eq!(refused(one().regress("main", Cells::all(), 1.1)).code(), "unknown_function");
    let cells = Cells::cohort("Android-TV").and(Cells::one("mars", "iOS-iPad"));
    assert_eq!(refused(one().regress(HIT, cells, 1.1)), FleetError::UnknownCell { cell: "mars:iOS-iPad".into() });
    assert_eq!(refused(one().cell("mars", "iOS-iPad", 1, 1)).code(), "unknown_cell");
    assert_eq!(refused(one().cohorts_by_request().cell("eu-west-1", "iOS-iPad", 1, 1)).code(), "unknown_cell");
    for wrong in [
        one().regress(HIT, Cells::all(), -1.0),
        one().regress(HIT, Cells::all(), f64::NAN),
        one().pod_cv(-0.1),
        one().late(1.0, seconds(1)),
        one().hop_noise(0.1, 1.0),
    ] {
        assert_eq!(refused(wrong).code(), "out_of_range");
    }
    for empty in [
        one().regions::<&str>([]),
        one().cohorts::<&str>([]),
        one().pods_per_cell(0, 0),
        one().lasts(seconds(9)),
        one().period(Nanos(0)),
        one().calls(Calls::Zipf(0)),
        one().hardware::<&str>([]),
        one().pods_per_node(0),
    ] {
        assert_eq!(refused(empty).code(), "empty");
    }
}
