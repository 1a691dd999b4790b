//! Families: BH, two levels, e-BH.

use fleetdiff_statistics::evalue::e_bh;
use fleetdiff_statistics::families::{bh, selected, two_level};

use crate::vectors::{Compared, cases, float, floats, list};

fn logs(p: &[f64]) -> Vec<f64> {
    p.iter().map(|&p| libm::log(p)).collect()
}

#[test]
fn published_bh() {
    let (mut values, mut rejections) = (Compared::new("BH q-values"), Compared::new("BH rejections"));
    for case in cases("bh.json") {
        let name = case["name"].to_string();
        let q = bh(&logs(&floats(&case["p"])));
        values.equal(&q.iter().filter(|q| !q.is_nan()).count().to_string(), &case["m"].to_string(), &name);
        for (i, (&q, expected)) in q.iter().zip(list(&case["q"])).enumerate() {
            values.relative(q, float(expected), 1e-12, &format!("{name} {i}"));
            rejections.equal(&Some(selected(q, 0.05)), &case["reject_q05"][i].as_bool(), &format!("{name} {i}"));
        }
    }
    values.finish();
    rejections.finish();
}

#[test]
fn published_ebh() {
    let mut compared = Compared::new("e-BH rejections");
    for case in cases("ebh.json") {
        let ln_e = floats(&case["ln_e"]);
        let rejected = e_bh(&ln_e, float(&case["q"]), ln_e.iter().filter(|e| !e.is_nan()).count());
        assert_eq!(rejected, e_bh(&ln_e, float(&case["q"]), 0), "the family is at least the rows given");
        for (i, rejected) in rejected.iter().enumerate() {
            compared.equal(&Some(*rejected), &case["reject"][i].as_bool(), &format!("{} {i}", case["name"]));
        }
    }
    compared.finish();
}

#[test]
fn published_two_level() {
    let mut compared = Compared::new("two-level q-values");
    for case in cases("two_level.json") {
        let cells: Vec<Vec<f64>> = list(&case["p"]).iter().map(|cell| logs(&floats(cell))).collect();
        let cells: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let result = two_level(&cells, &logs(&floats(&case["p_roll"])));
        for (f, expected) in list(&case["p_f"]).iter().enumerate() {
            compared.relative(result.ln_p_f[f].exp(), float(expected), 1e-12, &format!("p_f {f}"));
            compared.relative(result.q_f[f], float(&case["q_f"][f]), 1e-12, &format!("q_f {f}"));
        }
        for (c, cell) in list(&case["q_value"]).iter().enumerate() {
            for (f, expected) in list(cell).iter().enumerate() {
                compared.relative(result.q_value[c][f], float(expected), 1e-12, &format!("q_value {c} {f}"));
            }
        }
    }
    compared.finish();
}
