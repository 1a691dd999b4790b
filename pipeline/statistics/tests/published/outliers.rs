//! The test for a minority of pods against its reference program.

use fleetdiff_statistics::BucketCounts;
use fleetdiff_statistics::outliers::{Outliers, PodRow, Settings, outliers};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::vectors::{Compared, cases, float, floats, list};

const TOLERANCE: f64 = 1e-7;
const ALL: Settings = Settings { keep_ln_p: 0.0, untested: [None; 2] };

/// An arm by stratum, pod and function.
type Counts = Vec<Vec<Vec<f64>>>;

fn counts(arm: &Value) -> Counts {
    list(arm).iter().map(|stratum| list(stratum).iter().map(floats).collect()).collect()
}

fn held(counts: &Vec<f64>) -> &dyn BucketCounts {
    counts
}

fn rows(arm: &Counts) -> Vec<PodRow<'_>> {
    let mut rows = Vec::new();
    for (stratum, pods) in arm.iter().enumerate() {
        for (pod, counts) in (0..).zip(pods) {
            let samples = format!("{}", counts.iter().sum::<f64>()).parse().expect("whole counts");
            rows.push(PodRow { stratum, pod, samples, counts: vec![held(counts)] });
        }
    }
    rows
}

fn found(head: &Counts, base: &Counts, settings: &Settings) -> Outliers {
    outliers(head[0][0].len(), &rows(head), &rows(base), settings)
}

#[test]
fn published_outliers() {
    let (mut compared, mut rows, mut pods) = (Compared::new("rows and pods of the test for a minority"), 0, 0);
    for case in cases("outliers.json") {
        let (expect, name) = (&case["expect"], case["name"].to_string());
        let found = found(&counts(&case["head"]), &counts(&case["base"]), &ALL);
        compared.relative(found.df, float(&expect["df"]), TOLERANCE, &name);
        compared.equal(&found.groups.to_string(), &expect["groups"].to_string(), &name);
        if found.tests > 0 {
            compared.relative(found.tail.0.exp(), float(&expect["tail_share"]), TOLERANCE, &name);
            compared.relative(found.tail.1, float(&expect["tail_excess"]), TOLERANCE, &name);
        }
        for f in 0..found.ln_p.len() {
            let at = format!("{name} {f}");
            compared.equal(&Some(found.tested[f]), &expect["tested"][f].as_bool(), &at);
            compared.relative_above(found.ln_p[f], float(&expect["ln_p"][f]), TOLERANCE, 1e-12, &at);
            compared.relative_above(found.tau2[f], float(&expect["tau2"][f]), TOLERANCE, 1e-12, &at);
            rows += usize::from(found.tested[f]);
            // a pod without samples in a common stratum has no place here, and none in the reference
            for (i, pod) in found.pods(f).iter().enumerate() {
                let want = |key: &str| float(&expect[key][i][f]);
                compared.relative_above(pod.t, want("t"), TOLERANCE, 1e-10, &at);
                compared.relative_above(pod.log_ratio, want("log_ratio"), TOLERANCE, 1e-12, &at);
                compared.relative_above(pod.ln_p, want("ln_p_pod"), TOLERANCE, 1e-10, &at);
                pods += 1;
            }
        }
    }
    assert!(rows > 200 && pods > 1500, "{rows} rows, {pods} pods");
    compared.finish();
}

/// Neither the order of rows nor how a pod's counts are split over builds or strata numbers changes a bit.
#[test]
fn outliers_have_no_order() {
    let case = &cases("outliers.json")[1];
    let (head, base) = (counts(&case["head"]), counts(&case["base"]));
    let plain = found(&head, &base, &ALL);
    let mut reversed = [rows(&head), rows(&base)];
    for arm in &mut reversed {
        arm.reverse();
        arm.iter_mut().for_each(|row| row.stratum = 90 - 7 * row.stratum);
    }
    let other = outliers(head[0][0].len(), &reversed[0], &reversed[1], &ALL);
    for f in 0..plain.ln_p.len() {
        let close = (plain.ln_p[f] - other.ln_p[f]).abs() <= 1e-12 * plain.ln_p[f].abs();
        assert!(close || plain.ln_p[f].is_nan() && other.ln_p[f].is_nan(), "{} {}", plain.ln_p[f], other.ln_p[f]);
    }
    let one_builds = rows(&head);
    let zero = vec![0.0; head[0][0].len()];
    let mut two_builds = one_builds.clone();
    two_builds.iter_mut().for_each(|row| row.counts.push(&zero));
    let other = outliers(head[0][0].len(), &two_builds, &rows(&base), &ALL);
    let bits = |found: &Outliers| found.ln_p.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&plain), bits(&other));
}

/// One pod of twelve that costs twice as much is named, with its ratio; if nearly all do, it is no minority.
#[test]
fn outliers_named() {
    let bucket = |pod: u32, twice: bool| -> Vec<f64> {
        let share = |f: u32| 40_000.0 / f64::from(f) * (1.0 + 0.03 * (f64::from((pod * 13 + f * 7) % 11) - 5.0) / 5.0);
        (1..=30).map(|f| (share(f) * if twice && f == 4 { 2.0 } else { 1.0 }).round()).collect()
    };
    let base: Counts = vec![(0..20).map(|pod| bucket(pod + 100, false)).collect()];
    let head = |outlying: u32| -> Counts { vec![(0..12).map(|pod| bucket(pod, pod < outlying)).collect()] };
    let settings = Settings::default();
    let one = found(&head(1), &base, &settings);
    assert!(one.ln_p[3] < -10.0 && (0..30).all(|f| f == 3 || one.ln_p[f] > -7.0), "{:?}", one.ln_p);
    let named = one.minority(3, 0.05).expect("one of twelve");
    assert_eq!(named.iter().map(|pod| pod.pod).collect::<Vec<_>>(), [0]);
    assert!((named[0].log_ratio - 2.0_f64.ln()).abs() < 0.1 && named[0].t > 10.0, "{named:?}");
    assert!(
        one.pods(20).is_empty() && one.named(20, 0.05).is_empty(),
        "pods of a row that cannot be selected are not kept"
    );
    let most = found(&head(9), &base, &settings);
    assert_eq!((most.named(3, 0.05).len(), most.minority(3, 0.05)), (9, None));
    let none = found(&head(0), &base, &settings);
    assert!(none.ln_p.iter().all(|ln_p| *ln_p > -7.0), "{:?}", none.ln_p);
    let left_out = found(&head(1), &base, &Settings { untested: [Some(3), None], ..settings });
    assert!(!left_out.tested[3] && left_out.ln_p[3].is_nan() && left_out.tests == 29);
}

/// Nothing to hold anything against: no number, no panic.
#[test]
fn outliers_of_nothing() {
    let arm = |pods: usize| -> Counts { vec![vec![vec![500.0, 700.0, 900.0]; pods]] };
    for (head, base) in [(arm(3), arm(1)), (vec![vec![]], arm(3)), (arm(3), vec![vec![]])] {
        let nothing = outliers(3, &rows(&head), &rows(&base), &ALL);
        assert_eq!((nothing.tests, nothing.tested.as_slice()), (0, [false; 3].as_slice()));
        assert!(nothing.ln_p.iter().all(|p| p.is_nan()));
    }
    for pods in [2, 3, 40] {
        let equivalent = found(&arm(4), &arm(pods), &ALL);
        assert!(
            equivalent.tests == 3 && equivalent.ln_p.iter().all(|p| !p.is_nan() && *p > -1.0),
            "{pods} equal base pods: {:?}",
            equivalent.ln_p
        );
    }
    let other_stratum: Vec<PodRow<'_>> = Vec::new();
    assert_eq!(outliers(0, &other_stratum, &other_stratum, &ALL).tests, 0);
}

/// An arm of up to 6 pods in two strata, with counts of nothing, few, many and a million million.
fn any_arm() -> impl Strategy<Value = Counts> {
    let count = prop_oneof![2 => Just(0.0), 3 => (0_u32..20).prop_map(f64::from), 4 => (50_u32..5000).prop_map(f64::from), 1 => Just(1e12)];
    (1_usize..6).prop_flat_map(move |pods| vec(vec(vec(count.clone(), 24), pods), 2))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the counts: what is tested has a p, what is not has none, and a pod has a p where it is shown.
    #[test]
    fn law_outliers_are_numbers(head in any_arm(), base in any_arm(), head_only in 0_usize..3) {
        let (mut head, mut base) = (head, base);
        // a stratum that one arm does not have
        if head_only < 2 {
            base[head_only].iter_mut().flatten().for_each(|count| *count = 0.0);
        }
        head[0][0].fill(0.0);
        let found = found(&head, &base, &ALL);
        for f in 0..24 {
            prop_assert_eq!(found.ln_p[f].is_nan(), !found.tested[f]);
            prop_assert!(!found.tested[f] || found.ln_p[f] <= 0.0 && found.tau2[f] >= 0.0 && found.tau2[f].is_finite());
            prop_assert!(found.pods(f).iter().all(|pod| pod.t.is_finite() && pod.log_ratio.is_finite() && pod.ln_p <= 0.0));
        }
    }
}
