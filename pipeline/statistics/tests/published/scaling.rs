//! Load scaling against statsmodels, its laws, and when it is withheld.

use fleetdiff_statistics::scaling::{BAND, Elasticities, Load, LoadInterval, Slope, Withheld};
use proptest::prelude::*;
use serde_json::Value;

use crate::vectors::{Compared, cases, float, floats, list};

/// Samples, or requests, by interval and pod.
type Table = Vec<Vec<f64>>;

fn load(numbers: &[u64], requests: &Table) -> Load {
    let interval = |(&number, requests): (&u64, &Vec<f64>)| LoadInterval::of_pods(number, requests.clone());
    Load::of(numbers.iter().zip(requests).map(interval))
}

fn elasticities(numbers: &[u64], requests: &Table, samples: &[Table]) -> Elasticities {
    let functions = samples.len();
    load(numbers, requests).elasticities(functions, functions, |function, place, pod| samples[function][place][pod])
}

#[test]
fn published_elasticities() {
    let mut compared = [
        Compared::new("elasticities"),
        Compared::new("their errors"),
        Compared::new("their ln p"),
        Compared::new("their intervals"),
        Compared::new("what builds have in common"),
    ];
    for (number, case) in cases("scaling.json").iter().enumerate() {
        let table = |value: &Value| -> Table { list(value).iter().map(floats).collect() };
        let numbers: Vec<u64> =
            list(&case["intervals"]).iter().map(|number| number.as_u64().expect("a number")).collect();
        let (requests, samples) =
            (table(&case["requests"]), list(&case["samples"]).iter().map(table).collect::<Vec<_>>());
        let expect = &case["expect"];
        let (seen, load) = (elasticities(&numbers, &requests, &samples), load(&numbers, &requests));
        let [values, errors, ln_p, intervals, of_builds] = &mut compared;
        let at = format!("case {number}");
        of_builds.relative_above(seen.persistence, float(&expect["persistence"]), 1e-7, 0.0, &at);
        of_builds.relative_above(seen.df, float(&expect["df"]), 1e-6, 0.0, &at);
        of_builds.relative_above(load.span(), float(&expect["span"]), 1e-12, 0.0, &at);
        assert_eq!(load.withheld(), None, "{at}");
        for (function, (slope, expect)) in seen.slopes.iter().zip(list(&expect["slopes"])).enumerate() {
            let at = format!("case {number}, function {function}");
            assert_eq!(slope.is_none(), expect.is_null(), "{at}");
            let Some(slope) = slope else { continue };
            values.relative_above(slope.value, float(&expect["beta"]), 1e-8, 1e-9, &at);
            errors.relative_above(slope.error, float(&expect["error"]), 1e-7, 0.0, &at);
            ln_p.relative_above(slope.ln_p(BAND), float(&expect["ln_p"]), 1e-6, 1e-9, &at);
            let (low, high) = slope.interval(0.95);
            intervals.relative_above(low, float(&expect["low"]), 1e-6, 1e-8, &at);
            intervals.relative_above(high, float(&expect["high"]), 1e-6, 1e-8, &at);
        }
    }
    compared.into_iter().for_each(Compared::finish);
}

/// A load that goes up to `peak` times itself and down again, over 30 intervals and 4 pods.
fn hump(peak: f64) -> (Vec<u64>, Table) {
    let numbers: Vec<u64> = (0..30).collect();
    let at = |number: u32| peak.powf((std::f64::consts::PI * f64::from(number) / 29.0).sin());
    (
        numbers,
        (0..30)
            .map(|number| [90.0, 100.0, 120.0, 70.0].map(|requests| (requests * at(number)).round()).to_vec())
            .collect(),
    )
}

#[test]
fn what_cannot_be_told_from_time_is_withheld() {
    let withheld = |factors: &dyn Fn(u32) -> f64, pods: usize, intervals: u32| {
        let numbers: Vec<u64> = (0..u64::from(intervals)).collect();
        load(&numbers, &(0..intervals).map(|number| vec![100.0 * factors(number); pods]).collect()).withheld()
    };
    let there_and_back = |number: u32| if (10..20).contains(&number) { 2.0 } else { 1.0 };
    assert_eq!(withheld(&there_and_back, 4, 30), None);
    assert_eq!(withheld(&there_and_back, 2, 30), Some(Withheld::FewPods));
    assert_eq!(withheld(&there_and_back, 4, 5), Some(Withheld::FewIntervals));
    assert_eq!(withheld(&|number| 1.0 + f64::from(number) / 29.0, 4, 30), Some(Withheld::LoadIsTime), "a ramp");
    assert_eq!(
        withheld(&|number| if number < 20 { 2.0 } else { 1.0 }, 4, 30),
        Some(Withheld::LoadIsTime),
        "a step down"
    );
    let nearly = |number: u32| (1.0 + f64::from(number) / 15.0) * if number.is_multiple_of(2) { 1.03 } else { 1.0 };
    assert_eq!(withheld(&nearly, 4, 30), Some(Withheld::LoadIsTime), "a ramp that trembles");
    let Some(Withheld::LoadSpanTooSmall(span)) =
        withheld(&|number| if there_and_back(number) > 1.0 { 1.4 } else { 1.0 }, 4, 30)
    else {
        panic!("a load of 1.4 times itself is too small")
    };
    assert!((span - 1.4).abs() < 1e-12, "{span}");
    assert!(
        load(&[], &Vec::new()).withheld().is_some()
            && load(&[], &Vec::new()).elasticities(1, 1, |_, _, _| 1.0).slopes[0].is_none()
    );
}

/// Samples that are all at one end of the load have no elasticity, and none is made up.
#[test]
fn samples_of_one_interval_have_no_elasticity() {
    let (numbers, requests) = hump(2.0);
    let load = load(&numbers, &requests);
    let of = |samples: &dyn Fn(usize) -> f64| load.elasticities(1, 1, |_, minute, _| samples(minute)).slopes[0];
    assert_eq!(of(&|_| 0.0), None);
    assert_eq!(of(&|minute| f64::from(u8::from(minute == 0))), None);
    assert!(of(&|minute| f64::from(u8::from(minute.is_multiple_of(2)))).is_some());
    let (low, high) = load.thirds();
    assert!(low.contains(&0) && low.contains(&29) && high.contains(&15) && low.len() == 10 && high.len() == 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Units of requests change nothing.
    #[test]
    fn law_elasticity_is_free_of_units(
        counts in proptest::collection::vec(proptest::collection::vec(1..60_u32, 4), 30),
        unit in 0.01..100.0_f64,
    ) {
        let (numbers, requests) = hump(2.0);
        let samples: Table = counts.iter().map(|row| row.iter().map(|&count| f64::from(count)).collect()).collect();
        let more: Table = requests.iter().map(|row| row.iter().map(|requests| unit * requests).collect()).collect();
        let [one, other] = [&requests, &more].map(|requests| elasticities(&numbers, requests, std::slice::from_ref(&samples)));
        let [one, other] = [one, other].map(|of| of.slopes[0].expect("a slope"));
        prop_assert!((one.value - other.value).abs() < 1e-9 && (one.error - other.error).abs() < 1e-9);
    }

    /// One more power of the load in what a request costs is one more elasticity; the levels of pods are none of it.
    #[test]
    fn law_a_power_of_the_load_is_an_elasticity(power in -2.0..2.0_f64, levels in proptest::array::uniform4(0.1..10.0_f64)) {
        let (numbers, requests) = hump(2.0);
        let load = |row: &Vec<f64>| row.iter().sum::<f64>() / 4.0;
        let of_row = |row: &Vec<f64>| row.iter().zip(levels).map(|(requests, level)| level * requests * load(row).powf(power)).collect();
        let samples: Table = requests.iter().map(of_row).collect();
        let fitted = elasticities(&numbers, &requests, &[samples]).slopes[0];
        prop_assert!(fitted.is_some_and(|slope| (slope.value - power).abs() < 1e-9), "{fitted:?}");
    }

    /// p < .05 exactly if the interval leaves out 0, at a band of 0.
    #[test]
    fn law_interval_of_a_slope_is_its_test(value in -3.0..3.0_f64, error in 0.01..2.0_f64, df in 1.0..40.0_f64) {
        let slope = Slope { value, error, df };
        let (low, high) = slope.interval(0.95);
        let near = low.abs() < 1e-8 || high.abs() < 1e-8;
        prop_assert!(near || (low > 0.0 || high < 0.0) == (slope.ln_p(0.0) < 0.05_f64.ln()));
        let difference = slope.less(Slope { value: 0.0, error, df });
        prop_assert!((difference.error - error * 2.0_f64.sqrt()).abs() < 1e-12 && (difference.df - 2.0 * df).abs() < 1e-9);
    }
}
