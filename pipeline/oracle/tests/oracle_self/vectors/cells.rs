//! The test of a cell, its scales, rows and family.

use fleetdiff_oracle::statistics::families::{weighted_bh, weights};
use fleetdiff_oracle::statistics::geometry::ArmData;
use fleetdiff_oracle::statistics::levels::{Held, Model, StrataTest, fano, strata_test};
use fleetdiff_oracle::statistics::normalization::{Moved, Scales, admissible, modes, scales};
use fleetdiff_oracle::statistics::rows::{Rows, rows_of_cell};
use serde_json::Value;

use super::{Check, cases, cube, matrix, number, numbers};

const MIN_COUNT: f64 = 30.0;
const MIN_EFFECT: f64 = 0.01;

/// An arm with the given exposure.
fn arm(case: &Value, exposure: &str) -> ArmData {
    ArmData { counts: cube(&case["counts"]), exposure: matrix(&case[exposure]), pods: numbers(&case["pods"]) }
}

/// The variance over the mean of hop counts of an arm.
fn of_hops(case: &Value) -> Vec<f64> {
    let arm = arm(case, "totals");
    let single = |f: usize| arm.counts.iter().flatten().map(|bucket| bucket[f]).sum::<f64>();
    let pairs: Vec<f64> =
        numbers(&case["hop_squares"]).iter().enumerate().map(|(f, squares)| squares - single(f)).collect();
    fano(&pairs, &arm, &matrix(&case["hop_q"]))
}

fn only(tested: &[bool], values: &[f64], expected: &Value) -> (Vec<f64>, Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(values.len(), expected.len());
    let chosen: Vec<usize> = (0..tested.len()).filter(|&f| tested[f]).collect();
    (chosen.iter().map(|&f| values[f]).collect(), Value::Array(chosen.iter().map(|&f| expected[f].clone()).collect()))
}

/// Compares the tested functions.
fn near(check: &mut Check, what: &str, tested: &[bool], values: &[f64], expected: &Value, tolerance: f64) {
    let (values, expected) = only(tested, values, expected);
    check.all_near(what, &values, &expected, tolerance);
}

/// Compares the tested functions by absolute distance.
fn close(check: &mut Check, what: &str, tested: &[bool], values: &[f64], expected: &Value) {
    let (values, expected) = only(tested, values, expected);
    for (i, (value, expected)) in values.iter().zip(numbers(&expected)).enumerate() {
        check.within(&format!("{what}[{i}]"), *value, expected, 1e-8);
    }
}

#[test]
fn oracle_tests_functions_as_the_reference() {
    let mut check = Check::new();
    for case in cases("test.json") {
        let (name, expect) = (case["name"].as_str().unwrap(), &case["expect"]);
        let (model, exposure) =
            if case["model"] == "rate" { (Model::Rate, "requests") } else { (Model::Share, "totals") };
        let (head, base) = (arm(&case["head"], exposure), arm(&case["base"], exposure));
        let hops = (case["use_fano"] == true).then(|| [of_hops(&case["head"]), of_hops(&case["base"])]);
        if let Some(hops) = &hops {
            check.all_near(&format!("{name} head fano"), &hops[0], &expect["fano"][0], 1e-8);
            check.all_near(&format!("{name} base fano"), &hops[1], &expect["fano"][1], 1e-8);
        }
        let test = strata_test(&head, &base, model, MIN_COUNT, None, hops.as_ref(), None);
        measured(&mut check, name, &test, expect);
        figures(&mut check, name, &test, expect);
        // What was measured can be held: the same test follows.
        let again = strata_test(&head, &base, model, MIN_COUNT, None, hops.as_ref(), Some(&test.held));
        for f in (0..test.functions).filter(|&f| test.tested[f]) {
            assert_eq!(test.ln_p(f, 1.0).to_bits(), again.ln_p(f, 1.0).to_bits(), "{name}: {f} held");
        }
    }
    check.done("test.json", 40_000);
}

/// What a test measures over all functions.
fn measured(check: &mut Check, name: &str, test: &StrataTest, expect: &Value) {
    let tested: Vec<bool> = numbers(&expect["tested"]).iter().map(|tested| *tested > 0.0).collect();
    assert_eq!(test.tested, tested, "{name}: tested");
    for (arm, tau2) in numbers(&expect["tau2"]).into_iter().enumerate() {
        check.near_or_within(&format!("{name} tau2 {arm}"), test.held.tau2[arm], tau2, 1e-7, 1e-9);
    }
    let priors = expect["prior"].as_array().unwrap();
    assert_eq!(test.held.priors.len(), priors.len(), "{name}: groups");
    for (got, prior) in test.held.priors.iter().zip(priors) {
        check.near(&format!("{name} lowest mean"), got.lowest_mean, number(&prior[0]), 1e-8);
        for arm in [0, 1] {
            let expected = numbers(&prior[arm + 1]);
            check.near_or_within(&format!("{name} d0 {arm}"), got.arms[arm].df, expected[0], 1e-7, 1e-9);
            check.near(&format!("{name} s0 {arm}"), got.arms[arm].dispersion, expected[1], 1e-7);
        }
    }
}

/// The figures of every function.
fn figures(check: &mut Check, name: &str, test: &StrataTest, expect: &Value) {
    for (f, class) in numbers(&expect["cls"]).into_iter().enumerate() {
        assert_eq!(u32::try_from(test.class[f]).map(f64::from), Ok(class), "{name}: class of {f}");
    }
    let tested = &test.tested;
    let of = |one: &dyn Fn(usize) -> f64| (0..test.functions).map(one).collect::<Vec<f64>>();
    for (arm, suffix) in [(0, "1"), (1, "0")] {
        for (column, values, tolerance) in [
            ("p", of(&|f| test.levels[arm][f].level), 1e-8),
            ("A", of(&|f| test.levels[arm][f].linear), 1e-7),
            ("B", of(&|f| test.levels[arm][f].quadratic), 1e-7),
            ("s", test.raw[arm].clone(), 1e-7),
            ("d", test.own_df[arm].clone(), 1e-7),
            ("phi", test.phi[arm].clone(), 1e-7),
        ] {
            let column = format!("{column}{suffix}");
            near(check, &format!("{name} {column}"), tested, &values, &expect[&column], tolerance);
        }
    }
    for (column, values, tolerance) in
        [("df", &test.df, 1e-7), ("theta", &test.theta, 1e-8), ("v", &test.variance, 1e-8)]
    {
        near(check, &format!("{name} {column}"), tested, values, &expect[column], tolerance);
    }
    check.p(&format!("{name} p"), &of(&|f| test.ln_p(f, 1.0)), &expect["p"], 1e-8);
    check.p(&format!("{name} p_102"), &of(&|f| test.ln_p(f, 1.02)), &expect["p_102"], 1e-8);
    check.p(
        &format!("{name} p_delta"),
        &of(&|f| test.ln_p_min_effect(f, 1.0, MIN_EFFECT, 0.0)),
        &expect["p_delta"],
        1e-8,
    );
    let (low, high) = intervals(test, 0.05, 0.0);
    close(check, &format!("{name} low"), tested, &low, &expect["low"]);
    close(check, &format!("{name} high"), tested, &high, &expect["high"]);
}

/// Intervals of all functions, less the scale.
fn intervals(test: &StrataTest, p: f64, ln_scale: f64) -> (Vec<f64>, Vec<f64>) {
    let one = |f: usize| {
        let (low, high) = if test.tested[f] { test.interval(f, p.ln(), 0.0) } else { (f64::NAN, f64::NAN) };
        (low - ln_scale, high - ln_scale)
    };
    (0..test.functions).map(one).unzip()
}

#[test]
fn oracle_finds_scales_as_the_reference() {
    let mut check = Check::new();
    for (i, case) in cases("normalization.json").iter().enumerate() {
        let [theta, se, cost] = ["theta", "se", "cost"].map(|column| numbers(&case[column]));
        let functions: Vec<Moved> =
            (0..theta.len()).map(|f| Moved { theta: theta[f], se: se[f], cost: cost[f] }).collect();
        let found = modes(&functions);
        let expected = matrix(&case["modes"]);
        assert_eq!(found.len(), expected.len(), "case {i}");
        for (mode, expected) in found.iter().zip(&expected) {
            check.within(&format!("mode of {i}"), mode.at, expected[0], 1e-8);
            check.within(&format!("mass of {i}"), mode.mass, expected[1], 1e-8);
        }
        check.within("location", found[0].at, number(&case["location"]), 1e-8);
        check.within("mass", found[0].mass, number(&case["mass"]), 1e-8);
        let anchor = case["anchor"].as_array().map(|anchor| (number(&anchor[0]), number(&anchor[1])));
        let chosen = admissible(&found, anchor);
        check.within("scale", chosen[0].at, number(&case["ln_scale"]), 1e-8);
        let mut at: Vec<f64> = chosen.iter().map(|mode| mode.at).collect();
        let mut expected = numbers(&case["ln_scales"]);
        at.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
        expected.dedup();
        assert_eq!(at.len(), expected.len(), "scales of {i}");
        at.iter().zip(&expected).for_each(|(at, expected)| check.within("scales", *at, *expected, 1e-8));
    }
    check.done("normalization.json", 160);
}

#[test]
fn oracle_makes_rows_as_the_reference() {
    let mut check = Check::new();
    for (i, case) in cases("cell.json").iter().enumerate() {
        let name = &format!("{} {i}", case["name"].as_str().unwrap());
        let expect = &case["expect"];
        let (head, base) = (arm(&case["head"], "totals"), arm(&case["base"], "totals"));
        let hops = [of_hops(&case["head"]), of_hops(&case["base"])];
        let test = strata_test(&head, &base, Model::Share, MIN_COUNT, None, Some(&hops), None);
        let anchor = case["anchor"].as_array().map(|anchor| (number(&anchor[0]), number(&anchor[1])));
        let found = scales(&test, anchor, false, false);
        check.all_near(&format!("{name} scales"), &found.ln_scales, &expect["ln_scales"], 1e-7);
        let rows = rows_of_cell(&test, &found, MIN_EFFECT);
        of_rows(&mut check, name, &test, &found, &rows, expect);
        let (per_request, of_all) = (served(case, false), served(case, true));
        of_requests(&mut check, name, &per_request, &of_all, expect);
        of_family(&mut check, name, &test, &rows, expect);
    }
    check.done("cell.json", 10_000);
}

fn of_rows(check: &mut Check, name: &str, test: &StrataTest, scales: &Scales, rows: &Rows, expect: &Value) {
    let tested = &test.tested;
    for (column, ln_p) in [
        ("p_a", &rows.ln_p),
        ("p_delta", &rows.ln_p_min_effect),
        ("p_row", &rows.ln_p_row),
        ("p_s", &rows.ln_p_share),
        ("p_comp", &rows.ln_p_comp),
    ] {
        check.p(&format!("{name} {column}"), ln_p, &expect[column], 1e-7);
    }
    near(check, &format!("{name} theta"), tested, &rows.theta, &expect["theta"], 1e-7);
    near(check, &format!("{name} ln_e"), tested, &rows.ln_e, &expect["ln_e"], 1e-7);
    for f in 0..test.functions {
        check.compared += 2;
        assert_eq!(Some(rows.contradicts[f]), expect["contradicts"][f].as_bool(), "{name}: contradicts {f}");
        let one = test.one_bucket(f, scales.deciding());
        assert_eq!(Some(one.is_some()), expect["one_pod"][f].as_bool(), "{name}: one pod makes {f}: {one:?}");
    }
    for (p, columns) in [(0.05, ["low", "high"]), (0.1, ["low90", "high90"])] {
        let (low, high) = intervals(test, p, scales.deciding());
        close(check, &format!("{name} {}", columns[0]), tested, &low, &expect[columns[0]]);
        close(check, &format!("{name} {}", columns[1]), tested, &high, &expect[columns[1]]);
    }
}

/// The test per request, of each function or of all together.
fn served(case: &Value, as_one: bool) -> StrataTest {
    let [head, base] = ["head", "base"].map(|side| {
        let mut arm = arm(&case[side], "requests");
        if as_one {
            arm.counts.iter_mut().flatten().for_each(|bucket| *bucket = vec![bucket.iter().sum()]);
        }
        arm
    });
    strata_test(&head, &base, Model::Rate, MIN_COUNT, None, None, None)
}

fn of_requests(check: &mut Check, name: &str, per_request: &StrataTest, of_all: &StrataTest, expect: &Value) {
    for (test, prefix) in [(per_request, "per_request"), (of_all, "all")] {
        let ln_p: Vec<f64> = (0..test.functions).map(|f| test.ln_p(f, 1.0)).collect();
        let [p, theta] = ["p", "theta"].map(|column| format!("{prefix}_{column}"));
        check.p(&format!("{name} {p}"), &ln_p, &expect[&p], 1e-7);
        near(check, &format!("{name} {theta}"), &test.tested, &test.theta, &expect[&theta], 1e-7);
    }
    check.all_near(&format!("{name} all_v"), &of_all.variance, &expect["all_v"], 1e-7);
    check.all_near(&format!("{name} all_df"), &of_all.df, &expect["all_df"], 1e-7);
}

fn of_family(check: &mut Check, name: &str, test: &StrataTest, rows: &Rows, expect: &Value) {
    let weights = weights(&(0..test.functions).map(|f| test.cost(f)).collect::<Vec<f64>>(), &test.tested);
    check.all_near(&format!("{name} weight"), &weights, &expect["weight"], 1e-7);
    check.p(&format!("{name} q_flat"), &weighted_bh(&rows.ln_p_row, &weights), &expect["q_flat"], 1e-7);
}

#[test]
fn oracle_holds_what_it_is_given() {
    let case = &cases("test.json")[9];
    let (head, base) = (arm(&case["head"], "totals"), arm(&case["base"], "totals"));
    let fresh = strata_test(&head, &base, Model::Share, MIN_COUNT, None, None, None);
    let held = Held { tau2: [0.5, 0.5], ..fresh.held.clone() };
    let wider = strata_test(&head, &base, Model::Share, MIN_COUNT, None, None, Some(&held));
    assert_eq!(wider.held.tau2.map(f64::to_bits), [0.5_f64.to_bits(); 2]);
    assert_ne!(wider.class, fresh.class, "classes follow from the variance that is held");
    let held = Held { priors: Vec::new(), ..fresh.held.clone() };
    let alone = strata_test(&head, &base, Model::Share, MIN_COUNT, None, None, Some(&held));
    assert!((0..fresh.functions).any(|f| alone.df[f] < fresh.df[f] - 1.0), "no prior, fewer degrees of freedom");
    let restless = Held { calm: vec![0.0; fresh.functions], ..fresh.held.clone() };
    let restless = strata_test(&head, &base, Model::Share, MIN_COUNT, None, None, Some(&restless));
    assert!((0..fresh.functions).all(|f| restless.df[f] <= fresh.df[f]), "nothing is earned");
    let untested = strata_test(&head, &base, Model::Share, MIN_COUNT, Some(0), None, None);
    assert!(!untested.tested[0] && untested.tests + 1 == fresh.tests);
    let mut few = fresh.clone();
    few.leave_out_below_df(f64::INFINITY);
    assert_eq!(few.tests, 0);
}
