//! The statistics by themselves: one cell, two builds of some pods, and which functions changed.
//!
//! ```sh
//! cargo run --release -p fleetdiff-statistics --example two_builds
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use fleetdiff_statistics::families::{bh, selected, weighted, weights};
use fleetdiff_statistics::{
    Arm, Arms, BucketRow, Contrast, MIN_EFFECT, Measure, Model, Scales, Stratum, Tests, rows_of_cell,
};

/// Samples of each function in one pod, before anything changed: 40 functions, 2,000 to 50 samples.
fn expected(function: u64) -> u64 {
    2000 / (function + 1)
}

/// Pods of a build: each differs a little from the others, and function 3 costs `factor` times as much.
fn pods(count: u64, factor: f64) -> Vec<Vec<f64>> {
    let of_pod = |pod: u64| {
        (0..40).map(move |function| {
            let count = f64::from(u32::try_from(expected(function)).unwrap_or(u32::MAX));
            let wobble = f64::from(u32::try_from((7 * pod + 3 * function) % 11).unwrap_or(0)) / 100.0 - 0.05;
            (count * (1.0 + wobble) * if function == 3 { factor } else { 1.0 }).round()
        })
    };
    (0..count).map(|pod| of_pod(pod).collect()).collect()
}

/// An arm in which each pod is a replicate; neither requests nor hops are kept.
fn arm(pods: &[Vec<f64>]) -> Arm<'_> {
    fn row((bucket, counts): (u16, &Vec<f64>)) -> BucketRow<'_> {
        let samples = format!("{:.0}", counts.iter().sum::<f64>()).parse().unwrap_or(0);
        BucketRow { bucket, samples, requests: 0, hop_concentration: 1.0, counts: vec![counts] }
    }
    Arm { rows: (0..).zip(pods).map(row).collect(), hop_pairs: Vec::new() }
}

fn main() -> std::io::Result<()> {
    let (base, head) = (pods(40, 1.0), pods(12, 1.5));
    let strata = vec![Stratum { head: arm(&head), base: arm(&base) }];
    let pods = Arms { head: BTreeMap::new(), base: BTreeMap::new() };
    let tests = Tests::measure(&Contrast::new(40, strata, pods), &Measure::afresh(Model::Share));
    let scales = Scales::of(&tests, None);
    let rows = rows_of_cell(tests, scales, MIN_EFFECT);
    let shares: Vec<f64> = (0..40).map(|function| rows.tests.share_of_cost(function)).collect();
    let q_values = bh(&weighted(&rows.ln_p_row, &weights(&shares)));
    let significant: Vec<usize> = (0..40).filter(|&function| selected(q_values[function], 0.05)).collect();
    let mut out = std::io::stdout().lock();
    for &function in &significant {
        let (ratio, interval) = (rows.theta[function].exp(), rows.interval(function, 0.95).ratio());
        let (low, high, q) = (interval.low, interval.high, q_values[function]);
        writeln!(out, "function {function}: {ratio:.2} times the share ({low:.2} to {high:.2}), q = {q:.1e}")?;
    }
    assert_eq!(significant, [3]);
    Ok(())
}
