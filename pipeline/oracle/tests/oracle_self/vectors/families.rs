//! Families of rows, and changes that fade.

use fleetdiff_oracle::statistics::always_valid::faded;
use fleetdiff_oracle::statistics::families::{bh, e_bh, live_weights, two_level, weighted_bh, weights};
use serde_json::Value;

use super::{Check, cases, matrix, number, numbers, object};

fn ln(p: &Value) -> Vec<f64> {
    numbers(p).iter().map(|p| p.ln()).collect()
}

#[test]
fn oracle_controls_plain_families_as_the_reference() {
    let mut check = Check::new();
    for case in cases("bh.json") {
        check.p(case["name"].as_str().unwrap(), &bh(&ln(&case["p"])), &case["q"], 1e-11);
    }
    for case in cases("ebh.json") {
        let ln_e = numbers(&case["ln_e"]);
        let family = ln_e.iter().filter(|ln_e| !ln_e.is_nan()).count();
        let rejected: Vec<bool> = numbers(&case["reject"]).iter().map(|reject| *reject > 0.0).collect();
        assert_eq!(e_bh(&ln_e, number(&case["q"]), family), rejected, "{}", case["name"]);
        check.compared += rejected.len();
    }
    check.done("plain families", 2500);
}

#[test]
fn oracle_controls_weighted_families_as_the_reference() {
    let mut check = Check::new();
    let families = object("families.json");
    let of = |kind: &str| families[kind].as_array().unwrap().clone();
    for (i, case) in of("two_level").iter().enumerate() {
        let rows: Vec<Vec<f64>> = case["p"].as_array().unwrap().iter().map(ln).collect();
        let levels = two_level(&rows, &ln(&case["p_roll"]), &numbers(&case["share"]));
        check.all_near(&format!("two-level {i} weight"), &levels.weights, &case["weight"], 1e-11);
        check.p(&format!("two-level {i} p_f"), &levels.ln_p_f, &case["p_f"], 1e-11);
        check.p(&format!("two-level {i} q_f"), &levels.ln_q_f, &case["q_f"], 1e-11);
        for (got, expected) in levels.ln_q_value.iter().zip(case["q_value"].as_array().unwrap()) {
            check.p(&format!("two-level {i} q_value"), got, expected, 1e-11);
        }
    }
    for (i, case) in of("bh").iter().enumerate() {
        let ln_p = ln(&case["p"]);
        let in_family: Vec<bool> = ln_p.iter().map(|ln_p| !ln_p.is_nan()).collect();
        let weights = weights(&numbers(&case["share"]), &in_family);
        check.all_near(&format!("bh {i} weight"), &weights, &case["weight"], 1e-11);
        check.p(&format!("bh {i} q"), &weighted_bh(&ln_p, &weights), &case["q"], 1e-11);
    }
    for (i, case) in of("e_bh").iter().enumerate() {
        let (ln_e, weights) = (numbers(&case["ln_e"]), numbers(&case["weight"]));
        let weighted: Vec<f64> = ln_e.iter().zip(&weights).map(|(ln_e, weight)| ln_e + weight.ln()).collect();
        let family = ln_e.iter().filter(|ln_e| !ln_e.is_nan()).count();
        let rejected: Vec<bool> = numbers(&case["reject"]).iter().map(|reject| *reject > 0.0).collect();
        assert_eq!(e_bh(&weighted, 0.05, family), rejected, "e-BH {i}");
        check.compared += rejected.len();
    }
    for (i, case) in of("faded").iter().enumerate() {
        let intervals: Vec<(f64, f64)> = matrix(&case["looks"]).iter().map(|ends| (ends[0], ends[1])).collect();
        let cleared = faded(number(&case["theta_raised"]), &intervals);
        assert_eq!(Some(cleared), case["cleared"].as_bool(), "faded {i}");
        check.compared += 1;
    }
    check.done("weighted families", 1600);
}

#[test]
fn oracle_gives_rows_of_all_functions_a_tenth_of_the_weight() {
    let (rows, all) = live_weights(&[0.1, 0.0005, 0.005, 0.0], 2);
    assert!((rows.iter().sum::<f64>() - 0.9 * 4.0).abs() < 1e-12, "mean .9 over rows of functions: {rows:?}");
    assert!((2.0 * all - 0.1 * 6.0).abs() < 1e-12, "a tenth of the whole family: {all}");
    assert!((rows[0] / rows[1] - 40.0_f64.sqrt()).abs() < 1e-12, "largest over smallest");
    assert!((rows[1] - rows[3]).abs() < 1e-15, "below the smallest all weigh the same");
    let (rows, _) = live_weights(&[0.02, 0.02], 0);
    assert!(rows.iter().all(|w| (w - 1.0).abs() < 1e-15));
}
