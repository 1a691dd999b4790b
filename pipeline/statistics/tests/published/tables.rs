//! Many tables of independent samples.

use fleetdiff_statistics::mantel_haenszel::{Strata, Table};
use serde_json::Value;

use crate::vectors::{Compared, cases, float, list};

const TOLERANCE: f64 = 1e-10;

fn tables(case: &Value) -> Vec<Table> {
    let whole = |value: &Value| value.as_u64().expect("a count");
    let table = |row: &Value| Table { x1: whole(&row[0]), n1: whole(&row[1]), x0: whole(&row[2]), n0: whole(&row[3]) };
    list(&case["tables_x1_n1_x0_n0"]).iter().map(table).collect()
}

#[test]
fn published_stratified() {
    let (mut compared, mut with_odds, mut without) = (Compared::new("stratified tables"), 0, 0);
    for case in cases("stratified.json") {
        let (strata, name) = (Strata::of(&tables(&case)), case["name"].to_string());
        // a statistic that is nothing but rounding has no digits to compare
        let mut same = |key: &str, actual: f64, tolerance: f64| {
            compared.relative_above(actual, float(&case[key]), tolerance, 1e-11, &format!("{name} {key}"));
        };
        same("U", strata.u, TOLERANCE);
        same("V", strata.v, TOLERANCE);
        same("G_sum", strata.g_sum, TOLERANCE);
        same("df_G_sum", strata.g_strata, 0.0);
        same("ln_p_G_sum", strata.ln_p_g_sum, TOLERANCE);
        same("G_pooled", strata.g_pooled, TOLERANCE);
        let Some(common) = strata.common else {
            assert!(case["cmh_chi2"].is_null(), "{name} has a variance");
            without += 1;
            continue;
        };
        same("cmh_chi2", common.chi_square, TOLERANCE);
        same("cmh_chi2_cc", common.chi_square_corrected, TOLERANCE);
        same("ln_p_cmh", common.ln_p, TOLERANCE);
        same("mh_odds_ratio", common.odds_ratio, TOLERANCE);
        let Some(odds) = common.likelihood else {
            assert!(case["common_log_odds"].is_null(), "{name} has a common odds ratio");
            continue;
        };
        same("common_log_odds", odds.log_odds, 1e-9);
        same("LR_common", odds.likelihood_ratio, TOLERANCE);
        same("G_het", odds.heterogeneity, TOLERANCE);
        same("df_het", odds.heterogeneity_df, 0.0);
        with_odds += 1;
    }
    assert!(with_odds > 50 && without > 0, "{with_odds} with a common odds ratio, {without} without a variance");
    compared.finish();
}

/// Counts of a million million, and strata with nothing in them.
#[test]
fn stratified_extremes() {
    let n = 1_000_000_000_000;
    let huge = Strata::of(&[Table { x1: n / 2, n1: n, x0: n / 2 + 1_000_000, n0: n }; 3]);
    let common = huge.common.expect("a variance");
    let odds = common.likelihood.expect("a common odds ratio");
    assert!(
        (common.chi_square / odds.likelihood_ratio - 1.0).abs() < 1e-6 && odds.heterogeneity.abs() < 1e-6,
        "{huge:?}"
    );
    let empty = Strata::of(&[Table { x1: 0, n1: 0, x0: 3, n0: 9 }]);
    assert!(
        empty.common.is_none() && empty.u.abs() + empty.g_sum + empty.g_pooled <= 0.0 && empty.ln_p_g_sum >= 0.0,
        "{empty:?}"
    );
    let one_sided = Strata::of(&[Table { x1: 5, n1: 9, x0: 0, n0: 9 }]).common.expect("a variance");
    assert!(one_sided.odds_ratio.is_infinite() && one_sided.likelihood.is_none());
}
