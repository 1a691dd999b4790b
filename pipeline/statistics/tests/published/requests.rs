//! Cost per request.

use fleetdiff_statistics::BucketCounts;
use fleetdiff_statistics::requests::{PerRequest, RateTest, Served, ServedRow, ServedStratum};
use serde_json::Value;

use crate::vectors::{ArmData, Compared, cases, float, list};

const TOLERANCE: f64 = 1e-7;

fn arm(value: &Value) -> ArmData {
    ArmData::new(&value["counts"], &value["requests"], &value["pods"])
}

fn held(counts: &Vec<f64>) -> &dyn BucketCounts {
    counts
}

fn rows(arm: &ArmData, stratum: usize) -> Vec<ServedRow<'_>> {
    let whole = |value: f64| -> u64 { format!("{value}").parse().expect("a whole number") };
    let row = |(bucket, (counts, &requests)): (u16, (&'_ Vec<f64>, &f64))| {
        (bucket, whole(requests), whole(counts.iter().sum()))
    };
    (0..)
        .zip(arm.counts[stratum].iter().zip(&arm.exposures[stratum]))
        .map(|numbered| (row(numbered), numbered.1.0))
        .map(|((bucket, requests, samples), counts)| ServedRow {
            bucket,
            requests,
            samples,
            counts: vec![held(counts)],
        })
        .collect()
}

fn served<'a>(head: &'a ArmData, base: &'a ArmData) -> Served<'a> {
    let strata = (0..head.counts.len()).map(|s| ServedStratum { head: rows(head, s), base: rows(base, s) }).collect();
    let functions = head.counts[0][0].len();
    Served { functions, strata, head_pods: head.pods(0), base_pods: base.pods(0), untested: None, only: None }
}

fn compare(compared: &mut Compared, found: &RateTest, expect: &Value, at: &str) {
    for f in 0..found.test.ln_p.len() {
        let at = format!("{at} function {f}");
        compared.relative(found.moments.phi[f], float(&expect["phi"][f]), TOLERANCE, &at);
        compared.relative(found.moments.phi_tilde[f], float(&expect["phi_tilde"][f]), TOLERANCE, &at);
        compared.ln_p(found.test.ln_p[f], float(&expect["p"][f]), TOLERANCE, &at);
        compared.relative_above(found.test.theta[f], float(&expect["theta"][f]), TOLERANCE, 1e-13, &at);
        compared.relative(found.test.se[f], float(&expect["se"][f]), TOLERANCE, &at);
    }
}

/// Functions against `decide.json`, all samples together against the same program on the summed counts.
#[test]
fn published_per_request() {
    let (mut functions, mut all) = (Compared::new("functions per request"), Compared::new("all samples per request"));
    let mut of_all = cases("per_request_all.json").into_iter();
    for case in cases("decide.json") {
        for (i, cell) in list(&case["cells"]).iter().enumerate() {
            let at = format!("{} cell {i}", case["name"]);
            let (head, base) = (arm(&cell["head"]), arm(&cell["base"]));
            let found = PerRequest::measure(&served(&head, &base));
            compare(&mut functions, &found.functions, &cell["expect"]["per_request"], &at);
            let row = of_all.next().expect("a row for each cell");
            assert_eq!((&row["fleet"], &row["cell"].to_string()), (&case["name"], &i.to_string()));
            let expect = &row["expect"];
            compare(&mut all, &found.all, expect, &at);
            all.relative(found.all.moments.df, float(&expect["df"]), TOLERANCE, &at);
            all.relative(found.all.moments.df_total, float(&expect["df_total"][0]), TOLERANCE, &at);
            all.relative_above(found.all.test.stat[0], float(&expect["stat"][0]), TOLERANCE, 1e-9, &at);
            all.ln_p(found.all.test.ln_p_f[0], float(&expect["p_f"][0]), TOLERANCE, &at);
            all.equal(&Some(found.all.moments.few), &expect["few"].as_bool(), &at);
        }
    }
    assert!(of_all.next().is_none(), "a row for each cell");
    functions.finish();
    all.finish();
}

/// Every function costs 1.3 times as much: no share moves, the one row says it. Rows without requests, and strata without them in
/// an arm, change nothing.
#[test]
fn per_request_uniform_change() {
    let bucket = |factor: f64, i: u32| -> Vec<f64> {
        (1..=25).map(|f| (factor * 9000.0 / f64::from(f) * (1.0 + 0.01 * f64::from(i * f % 7))).round()).collect()
    };
    let arm = |factor: f64, buckets: u32, requests: f64| ArmData {
        counts: vec![(0..buckets).map(|i| bucket(factor, i)).collect()],
        exposures: vec![vec![requests; usize::try_from(buckets).expect("few")]],
        pods: vec![1.0; usize::try_from(buckets).expect("few")],
    };
    let (head, base, silent) = (arm(1.3, 12, 1000.0), arm(1.0, 14, 1000.0), arm(7.0, 3, 0.0));
    let found = PerRequest::measure(&served(&head, &base));
    assert!(
        (found.all.test.theta[0].exp() - 1.3).abs() < 0.02 && found.all.test.ln_p[0] < -20.0,
        "{:?}",
        found.all.test
    );
    assert!(found.functions.test.theta.iter().all(|theta| (theta.exp() - 1.3).abs() < 0.05));
    let same = PerRequest::measure(&served(&base, &base));
    assert!(same.all.test.theta[0].abs() < 1e-12 && same.all.test.ln_p[0] > -1e-6);
    let mut more = served(&head, &base);
    let mut without = rows(&silent, 0);
    without.iter_mut().for_each(|row| row.bucket += 40);
    more.strata[0].base.extend(without.clone());
    more.strata.push(ServedStratum { head: rows(&head, 0), base: without });
    let also = PerRequest::measure(&more);
    assert_eq!(also.all.test.ln_p[0].to_bits(), found.all.test.ln_p[0].to_bits());
    assert_eq!((also.all.moments.strata, also.all.moments.strata_dropped, also.functions.moments.strata), (1, 1, 1));
    let mut chosen = served(&head, &base);
    chosen.only = Some(vec![3, 8]);
    let chosen = PerRequest::measure(&chosen);
    assert_eq!(chosen.functions.test.theta[1].to_bits(), found.functions.test.theta[8].to_bits());
    assert_eq!(chosen.all.test.ln_p[0].to_bits(), found.all.test.ln_p[0].to_bits(), "all samples are all samples");
}
