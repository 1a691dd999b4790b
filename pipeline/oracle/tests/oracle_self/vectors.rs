//! The oracle's statistics against `pipeline/statistics/testdata`, whose README says where the vectors come from.

#[path = "vectors/cells.rs"]
mod cells;
#[path = "vectors/families.rs"]
mod families;
#[path = "vectors/scaling.rs"]
mod scaling;
use fleetdiff_oracle::statistics::always_valid::{critical_z, ln_e, ln_p_always_valid};
use fleetdiff_oracle::statistics::g::{g_share, ln_p_iid};
use fleetdiff_oracle::statistics::outliers::{PodSamples, outlying_pods};
use fleetdiff_oracle::statistics::power::{Design, samples_needed};
use fleetdiff_oracle::statistics::rare::{RareArm, ln_p_rare};
use fleetdiff_oracle::statistics::tails::{
    ln_erfc, ln_f_tail, ln_f1_tail, pentagamma, t_quantile, trigamma, trigamma_inverse, z_two_sided,
};
use fleetdiff_schemas::number::whole;
use serde_json::Value;

fn text(name: &str) -> String {
    let path = format!("{}/../statistics/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cases(name: &str) -> Vec<Value> {
    object(name).as_array().unwrap().clone()
}

fn object(name: &str) -> Value {
    serde_json::from_str(&text(name).replace("NaN", "null")).unwrap()
}

/// Rows of a table by column name.
fn table(name: &str) -> Vec<Vec<(String, String)>> {
    let text = text(name);
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines.map(|line| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

fn column(row: &[(String, String)], name: &str) -> f64 {
    let (_, text) = row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no column {name}"));
    if text.is_empty() { f64::NAN } else { text.parse().unwrap_or_else(|_| panic!("{name}: {text}")) }
}

/// A number of the vectors: `null` is NaN, `"inf"` infinite.
fn number(value: &Value) -> f64 {
    match value {
        Value::Null => f64::NAN,
        Value::String(text) => text.parse().unwrap(),
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        other => other.as_f64().unwrap(),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn cube(value: &Value) -> Vec<Vec<Vec<f64>>> {
    value.as_array().unwrap().iter().map(matrix).collect()
}

/// Compares and counts.
struct Check {
    compared: usize,
    worst: f64,
}

impl Check {
    fn new() -> Self {
        Self { compared: 0, worst: 0.0 }
    }

    #[track_caller]
    fn near(&mut self, what: &str, got: f64, expected: f64, tolerance: f64) {
        self.compared += 1;
        if expected.is_nan() || expected.is_infinite() {
            assert!(
                got.total_cmp(&expected).is_eq() || (got.is_nan() && expected.is_nan()),
                "{what}: {got} instead of {expected}"
            );
            return;
        }
        let off = (got - expected).abs() / expected.abs().max(1e-9);
        assert!(off <= tolerance, "{what}: {got} instead of {expected}, off by {off:e}");
        self.worst = self.worst.max(off);
    }

    /// Within an absolute distance.
    #[track_caller]
    fn within(&mut self, what: &str, got: f64, expected: f64, distance: f64) {
        self.near_or_within(what, got, expected, 0.0, distance);
    }

    /// Within a distance, of which a part is relative.
    #[track_caller]
    fn near_or_within(&mut self, what: &str, got: f64, expected: f64, relative: f64, distance: f64) {
        self.compared += 1;
        let is_same = got.total_cmp(&expected).is_eq();
        let off = (got - expected).abs();
        assert!(is_same || off <= distance + relative * expected.abs(), "{what}: {got} instead of {expected}");
    }

    #[track_caller]
    fn all_near(&mut self, what: &str, got: &[f64], expected: &Value, tolerance: f64) {
        let expected = numbers(expected);
        assert_eq!(got.len(), expected.len(), "{what}");
        for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
            self.near(&format!("{what}[{i}]"), *got, *expected, tolerance);
        }
    }

    /// p from ln p; below 1e-200 the logarithms are compared.
    #[track_caller]
    fn p(&mut self, what: &str, got_ln: &[f64], expected: &Value, tolerance: f64) {
        let expected = numbers(expected);
        assert_eq!(got_ln.len(), expected.len(), "{what}");
        for (i, (got, expected)) in got_ln.iter().zip(expected).enumerate() {
            let what = format!("{what}[{i}]");
            // The reference's p_delta may exceed 1.
            match expected.min(1.0) {
                _ if expected.is_nan() => assert!(got.is_nan(), "{what}: {got} where nothing was tested"),
                0.0 => assert!(*got < -700.0, "{what}: {got} instead of an underflow"),
                p if p < 1e-200 => self.near(&what, *got, p.ln(), 1e-6),
                // A difference of logarithms is the relative one of p.
                p => self.within(&what, *got, p.ln(), tolerance),
            }
        }
    }

    fn done(self, name: &str, at_least: usize) {
        eprintln!("{name}: {} numbers, worst {:e}", self.compared, self.worst);
        assert!(self.compared >= at_least, "{name}: only {} numbers", self.compared);
    }
}

#[test]
fn oracle_finds_power_and_evidence_as_the_reference() {
    let mut check = Check::new();
    for case in cases("power.json").iter().filter(|case| case["ratio"].as_f64() == Some(1.05)) {
        let [k1, k0, rate, share, tau] =
            ["canary_pods", "control_pods", "rate_hz", "share", "tau"].map(|name| number(&case[name]));
        let design = Design { pods: [k1, k0], tau2: [tau * tau; 2], share };
        check.near("seconds", design.seconds_to_detect(rate), number(&case["seconds"]), 1e-8);
        check.near("mde", design.smallest_detectable(180_000.0), number(&case["mde_ln_30min"]), 1e-9);
    }
    for row in table("evalue_mixture.csv") {
        let (theta, v) = (column(&row, "theta"), column(&row, "v"));
        let ln_p = ln_p_iid(theta * theta / v);
        if ln_p > -690.0 {
            check.near("ln_e", ln_e(ln_p, v), column(&row, "ln_e"), 1e-9);
        }
    }
    check.done("power, evidence", 140);
}

#[test]
fn oracle_tests_rare_functions_as_the_reference() {
    let mut check = Check::new();
    for (i, case) in cases("rare.json").iter().enumerate() {
        let arm = |names: [&str; 4]| {
            let [count, total, showing, pods] = names.map(|name| case[name].as_u64().unwrap());
            RareArm { count, total, showing, pods }
        };
        let ln_p = ln_p_rare(arm(["a", "N1", "pods_head", "K1"]), arm(["b", "N0", "pods_base", "K0"]));
        check.near(&format!("rare {i}"), ln_p.exp(), number(&case["p"]), 1e-8);
    }
    check.done("rare.json", 60);
}

/// An arm of `outliers.json`, by stratum, pod and function.
fn pods(arm: &Value) -> Vec<PodSamples> {
    let mut pods = Vec::new();
    for (stratum, seen) in cube(arm).into_iter().enumerate() {
        for (pod, counts) in seen.into_iter().enumerate() {
            let counts: Vec<u64> = counts.into_iter().map(whole).collect();
            pods.push(PodSamples { stratum, pod, samples: counts.iter().sum(), counts });
        }
    }
    pods
}

#[test]
fn oracle_tests_pods_as_the_reference() {
    let mut check = Check::new();
    for case in cases("outliers.json") {
        let (expect, name) = (&case["expect"], case["name"].as_str().unwrap());
        let found = outlying_pods(&pods(&case["head"]), &pods(&case["base"]), &[]);
        for (f, found) in found.iter().enumerate() {
            assert_eq!(Some(found.is_some()), expect["tested"][f].as_bool(), "{name}: whether {f} is tested");
            let Some(found) = found else { continue };
            check.near(&format!("{name}: ln p of {f}"), found.ln_p, number(&expect["ln_p"][f]), 1e-7);
            check.near(&format!("{name}: tau^2 of {f}"), found.tau2, number(&expect["tau2"][f]), 1e-7);
            for (i, pod) in found.pods.iter().enumerate() {
                let what = format!("{name}: pod {} in {f}", pod.pod);
                check.near(&what, pod.t, number(&expect["t"][i][f]), 1e-7);
                check.near(&what, pod.ln_p, number(&expect["ln_p_pod"][i][f]), 1e-7);
            }
        }
    }
    check.done("outliers.json", 3000);
}

#[test]
fn oracle_needs_and_intervals_are_where_their_formulas_cross() {
    let mut check = Check::new();
    for v in [0.0001, 0.04, 0.000_016, 9.0] {
        check.near("ln e at the critical z", ln_e(ln_p_always_valid(v, 0.05), v), 20.0_f64.ln(), 1e-9);
        assert!(critical_z(v, 0.05) > 1.96, "wider than at one look");
    }
    for (pods, share, tau2) in
        [([5.0, 20.0], 0.01, [0.04, 0.01]), ([2.0, 300.0], 0.2, [0.01, 0.0]), ([4.0, 30.0], 0.001, [0.004, 0.004])]
    {
        let within =
            |more: f64| Design { pods: [pods[0] + more, pods[1]], tau2, share }.seconds_to_detect(50.0) <= 1800.0;
        let found = Design { pods, tau2, share }.pods_needed(50.0, 1800.0);
        let fewest = (0..3000_u32).find(|more| within(f64::from(*more))).map(i64::from);
        assert_eq!(found, fewest, "{pods:?}");
    }
    let too_wide = Design { pods: [5.0, 20.0], tau2: [0.0, 1.0], share: 0.01 };
    assert_eq!(too_wide.pods_needed(50.0, 1800.0), None, "the base alone spreads too much");
    check.near("samples", samples_needed(0.01), 40_000.0, 1e-12);
    check.done("needs and intervals", 5);
}

#[test]
fn oracle_tails_are_those_of_the_reference() {
    let mut check = Check::new();
    for row in table("f1_tail.csv") {
        check.near("ln p of F", ln_f1_tail(column(&row, "F"), column(&row, "d2")), column(&row, "ln_p"), 1e-8);
    }
    for row in table("g_2x2.csv") {
        let [a, n, b, m] = ["a_canary", "n_canary", "b_control", "n_control"].map(|name| column(&row, name));
        if n > 0.0 && m > 0.0 {
            let g = g_share(a, n, b, m);
            check.near("G", g, column(&row, "G"), 1e-9);
            check.near("ln p of G", ln_p_iid(g), column(&row, "ln_p"), 1e-9);
        }
    }
    for row in table("special.csv") {
        let x = column(&row, "x");
        check.near("ln erfc", ln_erfc((x / 2.0).sqrt()), column(&row, "ln_erfc_sqrt_x_over_2"), 1e-13);
        if (1e-3..1e6).contains(&x) {
            check.near("trigamma", trigamma(x), column(&row, "trigamma"), 1e-11);
            check.near("trigamma inverse", trigamma_inverse(x), column(&row, "trigamma_inv_of_x"), 1e-8);
        }
    }
    // Sums of series with a known value: pi^4 / 15, and the same less 6.
    check.near("pentagamma of 1", pentagamma(1.0), std::f64::consts::PI.powi(4) / 15.0, 1e-13);
    check.near("pentagamma of 2", pentagamma(2.0), std::f64::consts::PI.powi(4) / 15.0 - 6.0, 1e-12);
    // With two degrees of freedom below, the tail is elementary; so it is with two above.
    for f in [0.3, 2.0, 7.5] {
        check.near("F(4, 2)", ln_f_tail(f, 4.0, 2.0), (1.0 - (2.0 * f / (1.0 + 2.0 * f)).powi(2)).ln(), 1e-12);
        check.near("F(2, 7)", ln_f_tail(f, 2.0, 7.0), -3.5 * (2.0 * f / 7.0).ln_1p(), 1e-12);
    }
    // Student's t and normal quantiles of printed tables.
    for (level, df, t) in [(0.95, 20.0, 2.085_963_447), (0.9, 5.0, 2.015_048_373), (0.95, 1.0, 12.706_204_736)] {
        check.near("t quantile", t_quantile(level, df), t, 1e-9);
    }
    check.near("normal quantile", z_two_sided(0.05_f64.ln()), 1.959_963_984_540_054, 1e-12);
    check.near("far normal quantile", z_two_sided(ln_p_iid(1600.0)), 40.0, 1e-12);
    check.done("tails", 6000);
}
