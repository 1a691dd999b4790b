//! Families: BH, two levels, e-BH, with weights and without; faded rows; hidden factors.

use fleetdiff_statistics::effect::LnInterval;
use fleetdiff_statistics::evalue::{self, e_bh};
use fleetdiff_statistics::faded::has_faded;
use fleetdiff_statistics::families::{self, bh, selected, two_level, weights};
use fleetdiff_statistics::hidden_factor::{BucketCountsOf, HiddenFactor};

use crate::vectors::{Compared, cases, float, floats, json, list};

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
    let (mut compared, mut seen) = (Compared::new("two-level q-values"), 0);
    for case in list(&json("families.json")["two_level"]) {
        let cells: Vec<Vec<f64>> = list(&case["p"]).iter().map(|cell| logs(&floats(cell))).collect();
        let cells: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let shares = floats(&case["share"]);
        let result = two_level(&cells, &logs(&floats(&case["p_roll"])), Some(&shares));
        let members = result.ln_p_f.iter().zip(&shares).map(|(p, &share)| if p.is_nan() { f64::NAN } else { share });
        for (f, weight) in weights(&members.collect::<Vec<_>>()).into_iter().enumerate() {
            compared.relative(weight, float(&case["weight"][f]), 1e-11, &format!("weight {f}"));
        }
        for (f, expected) in list(&case["p_f"]).iter().enumerate() {
            compared.relative(result.ln_p_f[f].exp(), float(expected), 1e-11, &format!("p_f {f}"));
            compared.relative(result.q_f[f], float(&case["q_f"][f]), 1e-11, &format!("q_f {f}"));
        }
        for (c, cell) in list(&case["q_value"]).iter().enumerate() {
            for (f, expected) in list(cell).iter().enumerate() {
                compared.relative(result.q_value[c][f], float(expected), 1e-11, &format!("q_value {c} {f}"));
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
    compared.finish();
}

#[test]
fn published_weighted_families() {
    let (mut q, mut rejected, mut seen) = (Compared::new("weighted BH"), Compared::new("weighted e-BH"), 0);
    let families = json("families.json");
    for (case, live) in list(&families["bh"]).iter().zip(list(&families["e_bh"])) {
        let p = floats(&case["p"]);
        let shares: Vec<f64> =
            p.iter().zip(floats(&case["share"])).map(|(p, share)| if p.is_nan() { f64::NAN } else { share }).collect();
        let own = weights(&shares);
        for (i, found) in bh(&families::weighted(&logs(&p), &own)).into_iter().enumerate() {
            q.relative(own[i], float(&case["weight"][i]), 1e-11, &format!("weight {i}"));
            q.relative(found, float(&case["q"][i]), 1e-11, &format!("q {i}"));
        }
        let ln_e = evalue::weighted(&floats(&live["ln_e"]), &floats(&live["weight"]));
        for (i, found) in e_bh(&ln_e, 0.05, 0).into_iter().enumerate() {
            rejected.equal(&Some(found), &live["reject"][i].as_bool(), &i.to_string());
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
    q.finish();
    rejected.finish();
}

#[test]
fn published_faded() {
    let mut compared = Compared::new("faded rows");
    for case in list(&json("families.json")["faded"]) {
        let looks: Vec<LnInterval> = list(&case["looks"])
            .iter()
            .map(|look| LnInterval { low: float(&look[0]), high: float(&look[1]) })
            .collect();
        let found = has_faded(float(&case["theta_raised"]), &looks);
        compared.equal(&Some(found), &case["cleared"].as_bool(), &case.to_string());
    }
    assert_eq!(compared.count(), 6);
    compared.finish();
}

#[test]
fn published_hidden_factor() {
    let (mut compared, mut seen) = (Compared::new("hidden factors"), 0);
    for case in list(&json("families.json")["hidden_factor"]) {
        let arm = |counts: &str, totals: &str| -> Vec<(Vec<f64>, f64)> {
            list(&case[counts]).iter().map(floats).zip(floats(&case[totals])).collect()
        };
        let (head, base) = (arm("head", "head_totals"), arm("base", "base_totals"));
        fn rows(arm: &[(Vec<f64>, f64)]) -> Vec<BucketCountsOf<'_>> {
            arm.iter().map(|(counts, samples)| BucketCountsOf { samples: *samples, counts }).collect()
        }
        let found = HiddenFactor::of(&rows(&head), &rows(&base)).expect("enough of everything");
        compared.relative(found.ratio, float(&case["ratio"]), 1e-7, "ratio");
        compared.ln_p(found.ln_p, float(&case["p"]), 1e-7, "p");
        compared.equal(&found.above.to_string(), &case["above"].to_string(), "above");
        seen += 1;
    }
    assert_eq!(seen, 4);
    compared.finish();
}
