//! The oracle's statistics against `pipeline/statistics/testdata`, whose README says where the vectors come from.

use fleetdiff_oracle::statistics::decide::{
    always_valid_half_width, ln_e, ln_p_iid, pods_needed, rows_of_cell, samples_needed, seconds_to_detect,
    smallest_detectable,
};
use fleetdiff_oracle::statistics::families::{e_bh, ln_bh, two_level};
use fleetdiff_oracle::statistics::likelihood::g_share;
use fleetdiff_oracle::statistics::moderation::normalization_from;
use fleetdiff_oracle::statistics::outliers::{PodSamples, outlying_pods};
use fleetdiff_oracle::statistics::rare::{RareArm, ln_p_rare};
use fleetdiff_oracle::statistics::strata::{Arm, Model, strata_test};
use fleetdiff_oracle::statistics::tails::{ln_erfc, ln_f1_tail, t_quantile, trigamma, trigamma_inverse, z_two_sided};
use fleetdiff_schemas::number::whole;
use serde_json::Value;

fn text(name: &str) -> String {
    let path = format!("{}/../statistics/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cases(name: &str) -> Vec<Value> {
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
        let off = (got - expected).abs() / expected.abs().max(1e-6);
        assert!(off <= tolerance, "{what}: {got} instead of {expected}, off by {off:e}");
        self.worst = self.worst.max(off);
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
    fn p(&mut self, what: &str, got_ln: &[f64], expected: &Value) {
        for (i, (got, expected)) in got_ln.iter().zip(numbers(expected)).enumerate() {
            let what = format!("{what}[{i}]");
            // The reference's p_delta may exceed 1.
            match expected.min(1.0) {
                _ if expected.is_nan() => assert!(got.is_nan(), "{what}: {got} where nothing was tested"),
                0.0 => assert!(*got < -700.0, "{what}: {got} instead of an underflow"),
                p if p < 1e-200 => self.near(&what, *got, p.ln(), 1e-6),
                p => self.near(&what, got.exp(), p, 1e-7),
            }
        }
    }

    /// Both levels of a fleet's family, for the rows of its cells and of its roll-up.
    fn levels(&mut self, name: &str, rows: &[Vec<f64>], roll_up: &[f64], expected: &Value) {
        let levels = two_level(rows, roll_up);
        self.p(&format!("{name} p_f"), &levels.ln_p_f, &expected["p_f"]);
        self.p(&format!("{name} q_f"), &levels.ln_q_f, &expected["q_f"]);
        for (got, expected) in levels.ln_q_value.iter().zip(expected["q_value"].as_array().unwrap()) {
            self.p(&format!("{name} q_value"), got, expected);
        }
    }

    fn done(self, name: &str, at_least: usize) {
        eprintln!("{name}: {} numbers, worst {:e}", self.compared, self.worst);
        assert!(self.compared >= at_least, "{name}: only {} numbers", self.compared);
    }
}

fn arm(case: &Value) -> Arm {
    Arm {
        counts: cube(&case["counts"]),
        samples: matrix(&case["totals"]),
        pods: numbers(&case["pods"]),
        imbalance: false,
    }
}

#[test]
fn oracle_tests_cells_as_the_reference() {
    let mut check = Check::new();
    for fleet in cases("decide.json") {
        let name = fleet["name"].as_str().unwrap();
        let mut cells = Vec::new();
        for (i, cell) in fleet["cells"].as_array().unwrap().iter().enumerate() {
            let (head, base, expect) = (arm(&cell["head"]), arm(&cell["base"]), &cell["expect"]);
            let got = rows_of_cell(&head, &base, None, 0.01, 30.0);
            let what = |column: &str| format!("{name} cell {i} {column}");
            check.near(&what("scale"), got.normalization, number(&expect["scale"]), 1e-8);
            let share = &expect["share"];
            for (column, got) in [
                ("df", got.share.df),
                ("tau2", got.share.prior.tau2),
                ("d0", got.share.prior.d0),
                ("s02", got.share.prior.s02),
                ("few", f64::from(u8::from(got.share.few))),
            ] {
                check.near(&what(column), got, number(&share[column]), 1e-7);
            }
            for (column, got) in [
                ("a", &got.share.a),
                ("b", &got.share.b),
                ("phi", &got.share.phi),
                ("mu", &got.share.mu),
                ("phi_tilde", &got.share.phi_tilde),
                ("stat", &got.share.stat),
                ("theta", &got.share.theta),
                ("se", &got.share.se),
            ] {
                // Cancellation leaves the reference's G of a small change with an absolute error of 1e-10.
                check.all_near(&what(column), got, &share[column], if column == "stat" { 1e-5 } else { 1e-7 });
            }
            let tested: Vec<bool> = numbers(&share["tested"]).iter().map(|tested| *tested > 0.0).collect();
            assert_eq!(got.share.tested, tested, "{}", what("tested"));
            check.p(&what("p_f"), &got.share.ln_p_f, &share["p_f"]);
            check.p(&what("p_log"), &got.share.ln_p_log, &share["p_log"]);
            check.p(&what("p"), &got.share.ln_p, &share["p"]);
            let adjusted = &expect["adjusted"];
            check.all_near(&what("adjusted stat"), &got.adjusted.stat, &adjusted["stat"], 1e-5);
            check.all_near(&what("adjusted theta"), &got.adjusted.theta, &adjusted["theta"], 1e-7);
            check.p(&what("adjusted p_f"), &got.adjusted.ln_p_f, &adjusted["p_f"]);
            check.p(&what("adjusted p"), &got.adjusted.ln_p, &adjusted["p"]);
            check.p(&what("p_delta"), &got.ln_p_min_effect, &expect["p_delta"]);
            check.p(&what("p_row"), &got.ln_p_row, &expect["p_row"]);
            check.p(&what("p_comp"), &got.ln_p_comp, &expect["p_comp"]);
            let evidence =
                |f: usize| if tested[f] { ln_e(got.adjusted.ln_p[f], got.share.se[f], 1.0) } else { f64::NAN };
            let evidence: Vec<f64> = (0..tested.len()).map(evidence).collect();
            check.all_near(&what("ln_e"), &evidence, &expect["ln_e"], 1e-7);
            cells.push((head, base, got));
        }
        let roll_up = roll_up(&cells.iter().map(|(head, base, _)| (head, base)).collect::<Vec<_>>());
        check.p(&format!("{name} roll-up"), &roll_up, &fleet["roll_up_p_row"]);
        let rows: Vec<Vec<f64>> = cells.iter().map(|(_, _, got)| got.ln_p_row.clone()).collect();
        check.levels(name, &rows, &roll_up, &fleet);
    }
    check.done("decide.json", 4000);
}

/// ln p of the rows over all cells, whose blocks of buckets are side by side as in the reference.
fn roll_up(cells: &[(&Arm, &Arm)]) -> Vec<f64> {
    let stack = |pick: fn(&(&Arm, &Arm)) -> Arm| {
        let arms: Vec<Arm> = cells.iter().map(pick).collect();
        let width: usize = arms.iter().map(|arm| arm.pods.len()).sum();
        let functions = arms[0].counts[0][0].len();
        let mut all = Arm {
            counts: Vec::new(),
            samples: Vec::new(),
            pods: arms.iter().flat_map(|arm| arm.pods.clone()).collect(),
            imbalance: false,
        };
        let mut before = 0;
        for arm in &arms {
            for (counts, samples) in arm.counts.iter().zip(&arm.samples) {
                let mut wide = vec![vec![0.0; functions]; width];
                let mut totals = vec![0.0; width];
                wide[before..before + counts.len()].clone_from_slice(counts);
                totals[before..before + samples.len()].clone_from_slice(samples);
                all.counts.push(wide);
                all.samples.push(totals);
            }
            before += arm.pods.len();
        }
        all
    };
    rows_of_cell(&stack(|cell| cell.0.clone()), &stack(|cell| cell.1.clone()), None, 0.01, 30.0).ln_p_row
}

#[test]
fn oracle_tests_one_stratum_as_the_reference() {
    let mut check = Check::new();
    for case in cases("ql.json") {
        let name = case["name"].as_str().unwrap();
        let arm = |arm: &Value| Arm {
            counts: vec![matrix(&arm["counts"])],
            samples: vec![numbers(&arm["totals"])],
            pods: numbers(&arm["pods"]),
            imbalance: false,
        };
        let got =
            strata_test(&arm(&case["canary"]), &arm(&case["control"]), Model::Share, number(&case["scale"]), 30.0);
        let expect = &case["expect"];
        check.near(&format!("{name} tau2"), got.prior.tau2, number(&expect["tau2"]), 1e-8);
        check.near(&format!("{name} d0"), got.prior.d0, number(&expect["d0"]), 1e-8);
        check.near(&format!("{name} s02"), got.prior.s02, number(&expect["s02"]), 1e-8);
        check.near(&format!("{name} df"), got.df, number(&expect["df"]), 1e-8);
        check.all_near(&format!("{name} phi"), &got.phi, &expect["phi"], 1e-8);
        check.all_near(&format!("{name} phi_tilde"), &got.phi_tilde, &expect["phi_tilde"], 1e-8);
        check.all_near(&format!("{name} theta"), &got.theta, &expect["theta"], 1e-8);
        // With a normalization factor the stratified definition divides by 1 - share, which this older one does not.
        if case["scale"].as_f64() == Some(1.0) {
            check.p(&format!("{name} p_raw"), &got.ln_p_f, &expect["p_raw"]);
        }
    }
    check.done("ql.json", 1500);
}

#[test]
fn oracle_tests_several_strata_as_the_reference() {
    let mut check = Check::new();
    for case in cases("ql_stratified.json").iter().filter(|case| case["name"] != "one-stratum") {
        let name = case["name"].as_str().unwrap();
        let arm = |arm: &Value| Arm {
            counts: cube(&arm["counts_sbf"]),
            samples: matrix(&arm["totals_sb"]),
            pods: numbers(&arm["pods"]),
            imbalance: false,
        };
        let got = strata_test(&arm(&case["canary"]), &arm(&case["control"]), Model::Share, 1.0, 30.0);
        let expect = &case["expect"];
        check.near(&format!("{name} df"), got.df, number(&expect["df"]), 1e-8);
        check.all_near(&format!("{name} phi"), &got.phi, &expect["phi"], 1e-8);
        check.all_near(&format!("{name} phi_tilde"), &got.phi_tilde, &expect["phi_tilde"], 1e-8);
        let f: Vec<f64> = got.stat.iter().zip(&got.phi_tilde).map(|(stat, phi)| stat / phi).collect();
        check.all_near(&format!("{name} F"), &f, &expect["F"], 1e-8);
    }
    check.done("ql_stratified.json", 240);
}

#[test]
fn oracle_controls_families_as_the_reference() {
    let ln = |p: &Value| numbers(p).iter().map(|p| p.ln()).collect::<Vec<f64>>();
    let mut check = Check::new();
    for case in cases("bh.json") {
        check.p(case["name"].as_str().unwrap(), &ln_bh(&ln(&case["p"])), &case["q"]);
    }
    for (i, case) in cases("two_level.json").iter().enumerate() {
        let rows: Vec<Vec<f64>> = case["p"].as_array().unwrap().iter().map(ln).collect();
        let levels = two_level(&rows, &ln(&case["p_roll"]));
        check.p(&format!("two-level {i} p_f"), &levels.ln_p_f, &case["p_f"]);
        check.p(&format!("two-level {i} q_f"), &levels.ln_q_f, &case["q_f"]);
        for (got, expected) in levels.ln_q_value.iter().zip(case["q_value"].as_array().unwrap()) {
            check.p(&format!("two-level {i} q_value"), got, expected);
        }
    }
    for case in cases("ebh.json") {
        let ln_e = numbers(&case["ln_e"]);
        let mut order: Vec<usize> = (0..ln_e.len()).filter(|&i| !ln_e[i].is_nan()).collect();
        order.sort_by(|&i, &j| ln_e[j].total_cmp(&ln_e[i]));
        let descending: Vec<f64> = order.iter().map(|&i| ln_e[i]).collect();
        let selected = e_bh(&descending, number(&case["q"]), descending.len());
        let rejected = numbers(&case["reject"]);
        for (rank, &i) in order.iter().enumerate() {
            assert_eq!(rank < selected, rejected[i] > 0.0, "{}: row {i}", case["name"]);
            check.compared += 1;
        }
    }
    check.done("families", 3000);
}

#[test]
fn oracle_finds_normalization_power_and_evidence_as_the_reference() {
    let mut check = Check::new();
    for (i, case) in cases("scale.json").iter().enumerate() {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let (na, nb) = (number(&case["n_canary"]), number(&case["n_control"]));
        let kept: Vec<(f64, f64)> =
            a.into_iter().zip(b).filter(|(a, b)| a + b >= 30.0 && *a > 0.0 && *b > 0.0).collect();
        let l: Vec<f64> = kept.iter().map(|(a, b)| (a.ln() - na.ln()) - (b.ln() - nb.ln())).collect();
        let v: Vec<f64> = kept.iter().map(|(a, b)| 1.0 / a + 1.0 / b).collect();
        check.near(&format!("scale {i}"), normalization_from(&l, &v), number(&case["scale"]), 1e-9);
    }
    for case in cases("power.json").iter().filter(|case| case["ratio"].as_f64() == Some(1.05)) {
        let [k1, k0, rate, share, tau] =
            ["canary_pods", "control_pods", "rate_hz", "share", "tau"].map(|name| number(&case[name]));
        check.near("seconds", seconds_to_detect(k1, k0, rate, share, tau * tau), number(&case["seconds"]), 1e-8);
        check.near(
            "mde",
            smallest_detectable(k1, k0, 180_000.0, share, tau * tau),
            number(&case["mde_ln_30min"]),
            1e-9,
        );
    }
    for row in table("evalue_mixture.csv") {
        let (theta, v) = (column(&row, "theta"), column(&row, "v"));
        let ln_p = ln_p_iid(theta * theta / v);
        if ln_p > -690.0 {
            check.near("ln_e", ln_e(ln_p, v.sqrt(), 1.0), column(&row, "ln_e"), 1e-9);
        }
    }
    check.done("scale, power, evidence", 160);
}

/// Arms with requests as exposure, and with all samples as one function.
fn served(arm: &Value, as_one: bool) -> Arm {
    let counts = cube(&arm["counts"]);
    let sum = |bucket: &Vec<f64>| if as_one { vec![bucket.iter().sum()] } else { bucket.clone() };
    let counts = counts.iter().map(|stratum| stratum.iter().map(sum).collect()).collect();
    Arm { counts, samples: matrix(&arm["requests"]), pods: numbers(&arm["pods"]), imbalance: false }
}

#[test]
fn oracle_tests_requests_as_the_reference() {
    let mut check = Check::new();
    let mut of_all = cases("per_request_all.json").into_iter();
    for fleet in cases("decide.json") {
        for (i, cell) in fleet["cells"].as_array().unwrap().iter().enumerate() {
            for (as_one, expect) in
                [(false, cell["expect"]["per_request"].clone()), (true, of_all.next().unwrap()["expect"].clone())]
            {
                let got =
                    strata_test(&served(&cell["head"], as_one), &served(&cell["base"], as_one), Model::Rate, 1.0, 30.0);
                let what = |column: &str| format!("{} cell {i} {column}, as one: {as_one}", fleet["name"]);
                check.all_near(&what("phi"), &got.phi, &expect["phi"], 1e-7);
                check.all_near(&what("phi_tilde"), &got.phi_tilde, &expect["phi_tilde"], 1e-7);
                check.all_near(&what("theta"), &got.theta, &expect["theta"], 1e-7);
                check.all_near(&what("se"), &got.se, &expect["se"], 1e-7);
                check.p(&what("p"), &got.ln_p, &expect["p"]);
            }
        }
    }
    assert!(of_all.next().is_none());
    check.done("per request", 1000);
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
        let found = outlying_pods(&pods(&case["head"]), &pods(&case["base"]), None);
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
    for (se, df, others) in [(0.01_f64, 8.0, 1.0_f64), (0.2, 24.0, 0.9), (0.004, 120.0, 0.7), (3.0, 5.0, 1.0)] {
        let half = always_valid_half_width(se, df, others, 0.95);
        check.near(
            "ln e at the end of the interval",
            ln_e(ln_f1_tail((half / se).powi(2), df), se, others),
            20.0_f64.ln(),
            1e-9,
        );
        assert!(half > t_quantile(0.95, df) * se, "wider than at one look");
    }
    for (pods, share, tau2) in [((5.0, 20.0), 0.01, 0.04), ((2.0, 300.0), 0.2, 0.01), ((4.0, 30.0), 0.001, 0.004)] {
        let within = |more: f64| seconds_to_detect(pods.0 + more, pods.1, 50.0, share, tau2) <= 1800.0;
        let found = pods_needed(pods, 50.0, share, tau2, 1800.0);
        let fewest = (0..3000_u32).find(|more| within(f64::from(*more))).map(i64::from);
        assert_eq!(found, fewest, "{pods:?}");
    }
    assert_eq!(pods_needed((5.0, 20.0), 50.0, 0.01, 1.0, 1800.0), None, "the base alone spreads too much");
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
    // Student's t and normal quantiles of printed tables.
    for (level, df, t) in [(0.95, 20.0, 2.085_963_447), (0.9, 5.0, 2.015_048_373), (0.95, 1.0, 12.706_204_736)] {
        check.near("t quantile", t_quantile(level, df), t, 1e-9);
    }
    check.near("normal quantile", z_two_sided(0.05_f64.ln()), 1.959_963_984_540_054, 1e-12);
    check.near("far normal quantile", z_two_sided(ln_p_iid(1600.0)), 40.0, 1e-12);
    check.done("tails", 6000);
}
