//! Numbers of one formula: G, tails, special functions, e-values, power.

use fleetdiff_statistics::Arms;
use fleetdiff_statistics::evalue::{ln_e_mixture, ln_e_one};
use fleetdiff_statistics::g::{g_2x2, g_share};
use fleetdiff_statistics::power::{Design, detection_z, samples_by_rule};
use fleetdiff_statistics::special::{
    digamma, ln_erfc, ln_normal, normal_quantile, trigamma, trigamma_inverse, z_two_sided,
};
use fleetdiff_statistics::tails::{F1Tail, ln_chi1_tail, t_quantile};
use serde_json::Value;

use crate::vectors::{Compared, cases, float, ln_f1_tail, number, rows};

#[test]
fn published_g_2x2() {
    let (mut g, mut ln_p, mut reals) = (Compared::new("G"), Compared::new("ln p of G"), Compared::new("G of floats"));
    for row in rows("g_2x2.csv") {
        let at = row.join(",");
        let whole = |i: usize| -> u64 { row[i].parse().expect("a count") };
        let (a, n_a, b, n_b) = (whole(1), whole(2), whole(3), whole(4));
        let expected = number(&row[5]);
        let floor = if expected < 1e-6 { 1e-9 } else { 0.0 };
        g.relative_above(g_2x2(a, n_a, b, n_b), expected, 1e-12, floor, &at);
        g.relative_above(g_2x2(b, n_b, a, n_a), expected, 1e-12, floor, &at);
        reals.relative_above(
            g_share(number(&row[1]), number(&row[2]), number(&row[3]), number(&row[4])),
            expected,
            1e-12,
            floor,
            &at,
        );
        ln_p.relative_above(ln_chi1_tail(expected), number(&row[7]), 1e-11, 0.0, &at);
    }
    g.finish();
    reals.finish();
    ln_p.finish();
}

#[test]
fn published_f1_tail() {
    let (mut tail, mut inverse) = (Compared::new("ln p of F(1, d2)"), Compared::new("critical F"));
    for row in rows("f1_tail.csv") {
        let (f, d2, ln_p) = (number(&row[0]), number(&row[1]), number(&row[3]));
        let at = row.join(",");
        tail.relative_above(ln_f1_tail(f, d2), ln_p, 1e-9, 0.0, &at);
        inverse.relative(F1Tail::new(d2).critical(ln_f1_tail(f, d2)), f, 1e-9, &at);
    }
    tail.finish();
    inverse.finish();
}

#[test]
fn published_special() {
    let mut compared = Compared::new("special functions");
    for row in rows("special.csv") {
        let x = number(&row[0]);
        compared.relative(digamma(x), number(&row[1]), 1e-11, &format!("digamma({x})"));
        compared.relative(trigamma(x), number(&row[2]), 1e-11, &format!("trigamma({x})"));
        compared.relative(trigamma_inverse(x), number(&row[3]), 1e-11, &format!("trigamma_inverse({x})"));
        compared.relative(ln_erfc((0.5 * x).sqrt()), number(&row[4]), 1e-11, &format!("ln_erfc(sqrt({x}/2))"));
        compared.relative(z_two_sided(number(&row[4])), x.sqrt(), 1e-11, &format!("z of ln p at {x}"));
        if let Ok(expected) = row[5].parse() {
            compared.relative(normal_quantile(x), expected, 1e-11, &format!("normal_quantile({x})"));
        }
    }
    compared.finish();
}

/// The branch-free logarithm is the one of libm, but for the last bit.
#[test]
fn published_ln_normal() {
    let mut compared = Compared::new("ln");
    for i in -300_i32..300 {
        for j in 0..50_i32 {
            let x = 10_f64.powi(i) * (1.0 + 0.187 * f64::from(j));
            compared.relative_above(ln_normal(x), libm::log(x), 2.3e-16, 0.0, &x.to_string());
        }
    }
    compared.finish();
}

/// Two-sided quantiles, roots of the incomplete beta function (the integrated density for 1e6) in mpmath with 30 digits.
#[test]
fn published_t_quantiles() {
    let mut compared = Compared::new("t quantiles");
    let known = [
        (0.95, 1.0, 12.706_204_736_174_69),
        (0.95, 2.0, 4.302_652_729_749_462),
        (0.95, 20.0, 2.085_963_447_265_864),
        (0.90, 20.0, 1.724_718_242_920_787),
        (0.90, 1e6, 1.644_855_150_722_041),
        (0.99, 5.0, 4.032_142_983_555_227),
    ];
    for (level, df, t) in known {
        compared.relative(t_quantile(level, df), t, 1e-12, &format!("level {level}, df {df}"));
    }
    compared.finish();
}

#[test]
fn published_evalue() {
    let mut compared = Compared::new("ln e of one tau");
    for row in rows("evalue.csv") {
        let (v, tau, expected, z2) = (number(&row[1]), number(&row[2]), number(&row[3]), number(&row[4]));
        compared.relative(ln_e_one(z2, v, tau), expected, 1e-12, &row.join(","));
    }
    compared.finish();
}

#[test]
fn published_evalue_mixture() {
    let mut compared = Compared::new("ln e of the mixture");
    for row in rows("evalue_mixture.csv") {
        let (theta, v) = (number(&row[0]), number(&row[1]));
        compared.relative(ln_e_mixture(theta * theta / v, v), number(&row[2]), 1e-12, &row.join(","));
    }
    compared.finish();
}

/// The design of a case of `power.json`.
fn design_of(case: &Value) -> Design {
    let get = |key: &str| float(&case[key]);
    Design {
        z: detection_z(get("alpha"), get("power")),
        pods: Arms { head: get("canary_pods"), base: get("control_pods") },
        share: get("share"),
        tau2: Arms { head: get("tau") * get("tau"), base: get("tau") * get("tau") },
    }
}

#[test]
fn published_power() {
    let (mut seconds, mut smallest, mut never) =
        (Compared::new("seconds to detect"), Compared::new("smallest change"), 0);
    for case in cases("power.json") {
        let get = |key: &str| float(&case[key]);
        let design = design_of(&case);
        let at = case.to_string();
        never += usize::from(get("seconds").is_infinite());
        seconds.relative(design.seconds_to_detect(get("rate_hz"), get("ratio")), get("seconds"), 1e-9, &at);
        smallest.relative(design.mde(180_000.0), get("mde_ln_30min"), 1e-9, &at);
    }
    assert!(never > 0, "no case of \"only more pods help\"");
    seconds.finish();
    smallest.finish();
}

/// The fewest pods are enough and one fewer is not, over the designs of `power.json`; where the spread alone hides the change, more
/// seconds do not help, and where the base alone is too small, more pods do not.
#[test]
fn published_pods_needed() {
    let (mut more, mut none_needed, mut hopeless, mut when_never) = (0, 0, 0, 0);
    for case in cases("power.json") {
        let get = |key: &str| float(&case[key]);
        let design = design_of(&case);
        let (rate, ratio) = (get("rate_hz"), get("ratio"));
        for seconds in [60.0, 1800.0, f64::INFINITY] {
            let found = |pods: u32| {
                let more = Arms { head: design.pods.head + f64::from(pods), ..design.pods };
                let with = Design { pods: more, ..design }.seconds_to_detect(rate, ratio);
                with.is_finite() && with <= seconds
            };
            match design.pods_needed(rate, ratio, seconds) {
                Some(0) => {
                    assert!(found(0), "{case} {seconds}");
                    none_needed += 1;
                }
                Some(pods) => {
                    assert!(found(pods) && !found(pods - 1), "{case} {seconds}: {pods}");
                    more += 1;
                    when_never += u32::from(get("seconds").is_infinite());
                }
                None => {
                    assert!(!found(1_000_000), "{case} {seconds}");
                    hopeless += 1;
                }
            }
        }
    }
    assert!(
        more > 100 && none_needed > 100 && hopeless > 100 && when_never > 20,
        "{more} {none_needed} {hopeless} {when_never}"
    );
}

/// The article: 1 % of the samples, 5 %: 40,000.
#[test]
fn published_samples_by_rule() {
    let mut compared = Compared::new("samples by the article's rule");
    compared.relative(samples_by_rule(0.01, 0.05), 40_000.0, 1e-12, "1 %, 5 %");
    compared.relative(samples_by_rule(0.001, 0.01), 1e7, 1e-12, ".1 %, 1 %");
    assert!(samples_by_rule(0.01, 0.0).is_infinite());
    compared.finish();
}
