//! One cell: dispersion, moderation, scale.

use fleetdiff_statistics::dispersion::moderate;
use fleetdiff_statistics::g::{g_rate, g_share};
use fleetdiff_statistics::normalization::biweight_of_counts;
use fleetdiff_statistics::{Model, Moments};
use serde_json::{Value, json};

use crate::vectors::{ArmData, Compared, cases, contrast, float, floats, ln_f1_tail};

const TOLERANCE: f64 = 1e-8;

fn one_stratum(arm: &Value) -> ArmData {
    ArmData::new(&json!([arm["counts"]]), &json!([arm["totals"]]), &arm["pods"])
}

/// The statistic of the first reference program: G of shares at scale 1, of rates elsewhere.
fn statistic(moments: &Moments, f: usize, normalization: f64) -> f64 {
    let (a, b, n1, n0) = (moments.a[f], moments.b[f], moments.n_head, moments.n_base);
    if (normalization - 1.0).abs() > 0.0 { g_rate(a, normalization * n1, b, n0) } else { g_share(a, n1, b, n0) }
}

#[test]
fn published_ql_moments() {
    let mut compared = Compared::new("dispersion and F of one stratum");
    for case in cases("ql.json") {
        let (head, base) = (one_stratum(&case["canary"]), one_stratum(&case["control"]));
        let moments = Moments::measure(&contrast(&[(&head, &base)]), Model::Share, 30.0);
        let (expect, name, normalization) = (&case["expect"], case["name"].to_string(), float(&case["scale"]));
        let test = moments.normalized(normalization);
        for (key, value) in [("df", moments.df), ("tau2", moments.tau2), ("d0", moments.d0), ("s02", moments.s02)] {
            compared.relative_above(value, float(&expect[key]), TOLERANCE, 1e-12, &format!("{name} {key}"));
        }
        compared.equal(&Some(moments.few), &expect["few"].as_bool(), &name);
        for f in 0..moments.a.len() {
            let at = |key: &str| format!("{name} {key} {f}");
            let want = |key: &str| float(&expect[key][f]);
            compared.equal(&Some(moments.tested[f]), &expect["tested"][f].as_bool(), &at("tested"));
            compared.relative(moments.phi[f], want("phi"), TOLERANCE, &at("phi"));
            compared.relative(moments.mu[f], want("mu"), TOLERANCE, &at("mu"));
            compared.relative(moments.phi_tilde[f], want("phi_tilde"), TOLERANCE, &at("phi_tilde"));
            compared.relative_above(statistic(&moments, f, 1.0), want("G"), TOLERANCE, 1e-8, &at("G"));
            compared.relative_above(
                statistic(&moments, f, normalization),
                want("G_used"),
                TOLERANCE,
                1e-8,
                &at("G_used"),
            );
            compared.relative_above(test.theta[f], want("theta"), TOLERANCE, 1e-14, &at("theta"));
            if moments.a[f] > 0.0 && moments.b[f] > 0.0 {
                compared.relative(test.se[f], want("se"), TOLERANCE, &at("se"));
            }
            if moments.tested[f] {
                compared.relative(moments.df_total, want("df_total"), TOLERANCE, &at("df_total"));
                let ratio = statistic(&moments, f, normalization) / moments.phi_tilde[f];
                compared.relative_above(ratio, want("F"), TOLERANCE, 1e-9, &at("F"));
                compared.ln_p(ln_f1_tail(ratio, moments.df_total), want("p_raw"), TOLERANCE, &at("p_raw"));
                if normalization <= 1.0 {
                    compared.ln_p(test.ln_p_f[f], want("p_raw"), TOLERANCE, &at("ln_p_f"));
                }
                if normalization <= 1.0 && !moments.few {
                    compared.ln_p(test.ln_p[f], want("p"), TOLERANCE, &at("ln_p"));
                }
            } else {
                assert!(test.ln_p[f].is_nan(), "{name}: {f} is not tested");
            }
        }
    }
    compared.finish();
}

/// The first program's log-scale test takes ln((x + 1/2)/(n + 1)); here from moderation and tail alone.
#[test]
fn published_ql_log_scale() {
    let mut compared = Compared::new("log-scale test");
    for case in cases("ql.json") {
        let expect = &case["expect"];
        let (mu, df, normalization) = (floats(&expect["mu"]), float(&expect["df"]), float(&case["scale"]));
        let tested: Vec<bool> = floats(&expect["tested"]).iter().map(|&tested| tested > 0.0).collect();
        let arms = [one_stratum(&case["canary"]), one_stratum(&case["control"])];
        let pods = arms.each_ref().map(|arm| arm.pods.iter().sum::<f64>());
        let log = |arm: &ArmData, b: usize, f: usize| ((arm.counts[0][b][f] + 0.5) / (arm.exposures[0][b] + 1.0)).ln();
        let (mut difference, mut squares) = (vec![0.0; mu.len()], vec![0.0; mu.len()]);
        for f in 0..mu.len() {
            for ((arm, pods), sign) in arms.iter().zip(pods).zip([1.0, -1.0]) {
                let mean = (0..arm.pods.len()).map(|b| arm.pods[b] * log(arm, b, f)).sum::<f64>() / pods;
                difference[f] += sign * mean;
                squares[f] += (0..arm.pods.len()).map(|b| arm.pods[b] * (log(arm, b, f) - mean).powi(2)).sum::<f64>();
            }
            squares[f] *= mu[f] / df.max(1.0);
        }
        let moderated = moderate(&squares, &mu, &tested, df);
        for f in (0..mu.len()).filter(|&f| tested[f]) {
            let error = (moderated.phi[f] / mu[f] * (1.0 / pods[0] + 1.0 / pods[1])).sqrt();
            let t = (difference[f] - normalization.ln()) / error;
            let at = format!("{} {f}", case["name"]);
            compared.relative_above(t, float(&expect["t_log"][f]), TOLERANCE, 1e-10, &at);
            compared.ln_p(ln_f1_tail(t * t, moderated.df_total), float(&expect["p_log"][f]), TOLERANCE, &at);
        }
    }
    compared.finish();
}

#[test]
fn published_ql_stratified() {
    let mut compared = Compared::new("dispersion and score over strata");
    for case in cases("ql_stratified.json") {
        let arm = |arm: &Value| ArmData::new(&arm["counts_sbf"], &arm["totals_sb"], &arm["pods"]);
        let (head, base) = (arm(&case["canary"]), arm(&case["control"]));
        let moments = Moments::measure(&contrast(&[(&head, &base)]), Model::Share, 30.0);
        let (expect, name) = (&case["expect"], case["name"].to_string());
        let test = moments.normalized(1.0);
        for (key, value) in [("df", moments.df), ("tau2", moments.tau2), ("d0", moments.d0), ("s02", moments.s02)] {
            compared.relative_above(value, float(&expect[key]), TOLERANCE, 1e-12, &format!("{name} {key}"));
        }
        for f in 0..moments.a.len() {
            let at = |key: &str| format!("{name} {key} {f}");
            let want = |key: &str| float(&expect[key][f]);
            compared.equal(&Some(moments.tested[f]), &expect["tested"][f].as_bool(), &at("tested"));
            compared.relative(moments.phi[f], want("phi"), TOLERANCE, &at("phi"));
            compared.relative(moments.phi_tilde[f], want("phi_tilde"), TOLERANCE, &at("phi_tilde"));
            compared.relative(moments.df_total, want("df_total"), TOLERANCE, &at("df_total"));
            if moments.tested[f] && moments.strata > 1 {
                // with one stratum this program takes the score, the test takes G
                compared.relative_above(test.stat[f], want("U").powi(2) / want("V"), TOLERANCE, 1e-10, &at("U^2/V"));
                compared.ln_p(test.ln_p_f[f], want("p"), TOLERANCE, &at("p"));
            }
        }
    }
    compared.finish();
}

#[test]
fn published_scale() {
    let mut compared = Compared::new("scale of counts");
    for (i, case) in cases("scale.json").iter().enumerate() {
        let (a, b) = (floats(&case["a"]), floats(&case["b"]));
        let normalization = biweight_of_counts(&a, float(&case["n_canary"]), &b, float(&case["n_control"]));
        compared.relative(normalization, float(&case["scale"]), 1e-9, &i.to_string());
    }
    compared.finish();
}
