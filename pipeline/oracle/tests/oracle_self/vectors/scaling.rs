//! Elasticities to load.

use fleetdiff_oracle::statistics::scaling::Course;
use fleetdiff_schemas::number::{length_float, whole};

use super::{Check, cases, matrix, number, numbers};

#[test]
fn oracle_finds_elasticities_as_the_reference() {
    let mut check = Check::new();
    for (i, case) in cases("scaling.json").iter().enumerate() {
        let numbers: Vec<u64> = numbers(&case["intervals"]).into_iter().map(whole).collect();
        let minutes = numbers.into_iter().zip(matrix(&case["requests"])).map(|(number, requests)| {
            let serving = length_float(requests.iter().filter(|&&one| one > 0.0).count());
            (number, requests, serving)
        });
        let course = Course::of(minutes.filter(|(_, _, serving)| *serving > 0.0).collect());
        let samples: Vec<_> = case["samples"].as_array().unwrap().iter().map(matrix).collect();
        let (persistence, df, slopes) = course.elasticities(&samples, samples.len());
        let expect = &case["expect"];
        let of = |name: &str| number(&expect[name]);
        check.near(&format!("persistence {i}"), persistence, of("persistence"), 1e-7);
        check.near(&format!("df {i}"), df, of("df"), 1e-7);
        check.near(&format!("span {i}"), course.rise.max(course.fall).exp(), of("span"), 1e-9);
        for (slope, expected) in slopes.iter().zip(expect["slopes"].as_array().unwrap()) {
            let Some(slope) = slope else {
                assert!(expected.is_null(), "{i}");
                continue;
            };
            let [beta, low, high] = slope.interval();
            let got = [("beta", beta), ("error", slope.error), ("ln_p", slope.ln_p()), ("low", low), ("high", high)];
            for (name, got) in got {
                check.near(&format!("{name} {i}"), got, number(&expected[name]), 1e-6);
            }
        }
    }
    check.done("elasticities", 550);
}
