//! Whole fleets: strata, scale, minimum effect, per request, the row over all cells, two levels, e-values.

use fleetdiff_statistics::evalue::{ln_e, ln_e_normalized};
use fleetdiff_statistics::families::two_level;
use fleetdiff_statistics::special::z_two_sided;
use fleetdiff_statistics::{CellRows, MIN_EFFECT, Model, Moments, Test, rows_of_cell};
use serde_json::Value;

use crate::vectors::{ArmData, Compared, cases, contrast, float, list, live_rows};

const TOLERANCE: f64 = 1e-7;

fn arm(value: &Value, exposure: &str) -> ArmData {
    ArmData::new(&value["counts"], &value[exposure], &value["pods"])
}

fn cells(case: &Value, exposure: &str) -> Vec<(ArmData, ArmData)> {
    list(&case["cells"]).iter().map(|cell| (arm(&cell["head"], exposure), arm(&cell["base"], exposure))).collect()
}

fn rows(cells: &[&(ArmData, ArmData)]) -> CellRows {
    let arms: Vec<(&ArmData, &ArmData)> = cells.iter().map(|(head, base)| (head, base)).collect();
    rows_of_cell(&contrast(&arms), None, MIN_EFFECT)
}

fn compare_moments(compared: &mut Compared, moments: &Moments, expect: &Value, at: &str) {
    let scalars = [("df", moments.df), ("tau2", moments.tau2), ("d0", moments.d0), ("s02", moments.s02)];
    for (key, value) in scalars {
        compared.relative_above(value, float(&expect[key]), TOLERANCE, 1e-12, &format!("{at} {key}"));
    }
    compared.equal(&Some(moments.few), &expect["few"].as_bool(), at);
    compared.equal(&moments.strata.to_string(), &expect["strata"].to_string(), at);
    for f in 0..moments.a.len() {
        compared.equal(&Some(moments.tested[f]), &expect["tested"][f].as_bool(), at);
        let vectors = [
            ("a", moments.a[f]),
            ("b", moments.b[f]),
            ("phi", moments.phi[f]),
            ("mu", moments.mu[f]),
            ("phi_tilde", moments.phi_tilde[f]),
            ("df_total", moments.df_total),
        ];
        for (key, value) in vectors {
            compared.relative(value, float(&expect[key][f]), TOLERANCE, &format!("{at} {key} {f}"));
        }
    }
}

/// `p_log` exists only with few pods, where it counts.
fn compare_test(compared: &mut Compared, test: &Test, few: bool, expect: &Value, at: &str) {
    for f in 0..test.ln_p.len() {
        let name = |key: &str| format!("{at} {key} {f}");
        let want = |key: &str| float(&expect[key][f]);
        compared.ln_p(test.ln_p[f], want("p"), TOLERANCE, &name("p"));
        compared.relative_above(test.theta[f], want("theta"), TOLERANCE, 1e-13, &name("theta"));
        if !test.ln_p[f].is_nan() {
            compared.relative_above(test.stat[f], want("stat"), TOLERANCE, 1e-9, &name("stat"));
            compared.ln_p(test.ln_p_f[f], want("p_f"), TOLERANCE, &name("p_f"));
            if few {
                compared.ln_p(test.ln_p_log[f], want("p_log"), TOLERANCE, &name("p_log"));
            }
        }
        if !expect["se"].is_null() {
            compared.relative(test.se[f], want("se"), TOLERANCE, &name("se"));
        }
    }
}

/// The reference lets 1 - near/2 + far/2 pass 1 where few pods make far the larger; a p-value stops there.
fn at_most_one(p: f64) -> f64 {
    if p > 1.0 { 1.0 } else { p }
}

#[test]
fn published_decide_cells() {
    let mut compared = Compared::new("rows of cells");
    for case in cases("decide.json") {
        for (i, (arms, cell)) in cells(&case, "totals").iter().zip(list(&case["cells"])).enumerate() {
            let (at, expect) = (format!("{} cell {i}", case["name"]), &cell["expect"]);
            let rows = rows(&[arms]);
            compared.relative(rows.normalization, float(&expect["scale"]), TOLERANCE, &at);
            compare_moments(&mut compared, &rows.moments, &expect["share"], &at);
            compare_test(&mut compared, &rows.share, rows.moments.few, &expect["share"], &format!("{at} share"));
            compare_test(
                &mut compared,
                &rows.adjusted,
                rows.moments.few,
                &expect["adjusted"],
                &format!("{at} adjusted"),
            );
            for f in 0..rows.ln_e.len() {
                for (key, ln_p) in
                    [("p_delta", &rows.ln_p_min_effect), ("p_row", &rows.ln_p_row), ("p_comp", &rows.ln_p_comp)]
                {
                    compared.ln_p(ln_p[f], at_most_one(float(&expect[key][f])), TOLERANCE, &format!("{at} {key} {f}"));
                }
            }
        }
    }
    compared.finish();
}

/// The reference always bets on the adjusted p as if the scale were known; a row's own e-value allows for the scale, and in a cell
/// with fewer than 20 functions it bets on p_row, as defined.
#[test]
fn published_decide_evalues() {
    let mut compared = Compared::new("e-values of cells");
    for case in cases("decide.json") {
        for (i, (arms, cell)) in cells(&case, "totals").iter().zip(list(&case["cells"])).enumerate() {
            let rows = rows(&[arms]);
            for f in 0..rows.ln_e.len() {
                let e = ln_e(rows.adjusted.ln_p[f], rows.share.se[f]);
                compared.relative_above(
                    e,
                    float(&cell["expect"]["ln_e"][f]),
                    TOLERANCE,
                    1e-14,
                    &format!("{} {i} {f}", case["name"]),
                );
                if rows.moments.tests >= 20 {
                    let part = (rows.moments.a[f] + rows.moments.b[f]) / (rows.moments.n_head + rows.moments.n_base);
                    let row = ln_e_normalized(rows.adjusted.ln_p[f], rows.share.se[f], part);
                    compared.equal(
                        &rows.ln_e[f].to_bits(),
                        &row.to_bits(),
                        "the row's e-value is that of the adjusted p",
                    );
                    assert!(row.is_nan() || e < 1.0 || row <= e, "the scale's own spread made {row} of {e}");
                }
            }
        }
    }
    compared.finish();
}

#[test]
fn published_decide_per_request() {
    let mut compared = Compared::new("per request");
    for case in cases("decide.json") {
        for (i, ((head, base), cell)) in cells(&case, "requests").iter().zip(list(&case["cells"])).enumerate() {
            let moments = Moments::measure(&contrast(&[(head, base)]), Model::Rate, 30.0);
            let (test, expect) = (moments.normalized(1.0), &cell["expect"]["per_request"]);
            for f in 0..moments.a.len() {
                let at = format!("{} cell {i} function {f}", case["name"]);
                compared.relative(moments.phi[f], float(&expect["phi"][f]), TOLERANCE, &at);
                compared.relative(moments.phi_tilde[f], float(&expect["phi_tilde"][f]), TOLERANCE, &at);
                compared.ln_p(test.ln_p[f], float(&expect["p"][f]), TOLERANCE, &at);
                compared.relative_above(test.theta[f], float(&expect["theta"][f]), TOLERANCE, 1e-13, &at);
                compared.relative(test.se[f], float(&expect["se"][f]), TOLERANCE, &at);
            }
        }
    }
    compared.finish();
}

#[test]
fn published_decide_families() {
    let mut compared = Compared::new("row over all cells and two levels");
    for case in cases("decide.json") {
        let (name, cells) = (case["name"].to_string(), cells(&case, "totals"));
        let each: Vec<CellRows> = cells.iter().map(|cell| rows(&[cell])).collect();
        let roll_up = rows(&cells.iter().collect::<Vec<_>>());
        let each: Vec<&[f64]> = each.iter().map(|rows| rows.ln_p_row.as_slice()).collect();
        let result = two_level(&each, &roll_up.ln_p_row);
        for f in 0..roll_up.ln_p_row.len() {
            let at = format!("{name} {f}");
            compared.ln_p(roll_up.ln_p_row[f], at_most_one(float(&case["roll_up_p_row"][f])), TOLERANCE, &at);
            compared.ln_p(result.ln_p_f[f], at_most_one(float(&case["p_f"][f])), TOLERANCE, &at);
            compared.relative(result.q_f[f], float(&case["q_f"][f]), TOLERANCE, &at);
            for (c, q_value) in result.q_value.iter().enumerate() {
                compared.relative(q_value[f], float(&case["q_value"][c][f]), TOLERANCE, &at);
            }
        }
    }
    compared.finish();
}

/// The live evaluation gives its candidates the report's numbers, and leaves out none whose e-value reaches the floor.
#[test]
fn published_decide_live() {
    let (mut compared, mut raised, mut unchanged) = (Compared::new("live rows"), 0, 0);
    for case in cases("decide.json") {
        let cells = cells(&case, "totals");
        let all: Vec<&(ArmData, ArmData)> = cells.iter().collect();
        for chosen in cells.iter().map(|cell| vec![cell]).chain([all]) {
            let arms: Vec<(&ArmData, &ArmData)> = chosen.iter().map(|(head, base)| (head, base)).collect();
            let report = rows(&chosen);
            for floor in [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 20.0, 1e6, 1e30] {
                let live = live_rows(&contrast(&arms), None, floor);
                compared.equal(&live.normalization.to_bits(), &report.normalization.to_bits(), "scale");
                let of = |f: usize| live.candidates.iter().find(|row| row.function == f);
                for f in 0..report.ln_e.len() {
                    compared.equal(&live.theta[f].to_bits(), &report.adjusted.theta[f].to_bits(), "theta");
                    unchanged += usize::from(live.equivalent[f]);
                    if let Some(row) = of(f) {
                        let bits = [row.ln_e, row.se, row.theta].map(f64::to_bits);
                        compared.equal(
                            &bits,
                            &[report.ln_e[f], report.share.se[f], report.adjusted.theta[f]].map(f64::to_bits),
                            "row",
                        );
                    } else {
                        // what a bet on the best spread would give at the z of the F test alone must be below ln of the floor
                        let z = z_two_sided(report.adjusted.ln_p_f[f]);
                        let best = 0.5 * (z * z - 1.0 - (z * z).ln());
                        assert!(
                            z.is_nan() || (floor > 1.0 && (z < 1.0 || best < floor.ln() + 1e-6)),
                            "{} {f} was screened out",
                            case["name"]
                        );
                        assert!(
                            report.ln_e[f].is_nan() || report.ln_e[f] < floor.ln(),
                            "{} {f} was screened out",
                            case["name"]
                        );
                    }
                    raised += usize::from(report.ln_e[f] >= floor.ln());
                }
            }
        }
    }
    assert!(raised > 0 && unchanged > 0, "raised {raised}, unchanged {unchanged}");
    compared.finish();
}
