//! The statistics by themselves: one cell, two builds of some pods, and which functions changed.
//!
//! ```sh
//! cargo run --release -p fleetdiff-statistics --example two_builds
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::{Arm, BucketRow, Contrast, Stratum, rows_of_cell};

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

/// An arm in which each pod is a replicate.
fn arm(pods: &[Vec<f64>]) -> Arm<'_> {
    fn row((bucket, counts): (u16, &Vec<f64>)) -> BucketRow<'_> {
        let exposure = format!("{:.0}", counts.iter().sum::<f64>()).parse().unwrap_or(0);
        BucketRow { bucket, exposure, counts: vec![counts] }
    }
    Arm { rows: (0..).zip(pods).map(row).collect() }
}

fn main() -> std::io::Result<()> {
    let (base, head) = (pods(40, 1.0), pods(12, 1.5));
    let strata = vec![Stratum { head: arm(&head), base: arm(&base) }];
    let contrast = Contrast::new(40, strata, BTreeMap::new(), BTreeMap::new());
    let rows = rows_of_cell(&contrast, None, 0.01);
    let q_values = bh(&rows.ln_p_row);
    let significant: Vec<usize> = (0..40).filter(|&function| selected(q_values[function], 0.05)).collect();
    let mut out = std::io::stdout().lock();
    for &function in &significant {
        let ratio = rows.adjusted.theta[function].exp();
        writeln!(out, "function {function}: {ratio:.2} times the share, q = {:.1e}", q_values[function])?;
    }
    assert_eq!(significant, [3]);
    Ok(())
}
