//! What divides pods without a label, as the reference program looks for it: singular values of the base's log shares.

use fleetdiff_schemas::number::float;
use nalgebra::DMatrix;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A pod: its samples, and those of each function.
pub type Pod = (f64, Vec<f64>);

/// Whether base pods come in groups, and whether the arms differ along what divides the base. All pods have the same functions.
pub fn hidden(head: &[Pod], base: &[Pod]) -> [bool; 2] {
    let all: Vec<&Pod> = head.iter().chain(base).collect();
    let Some((_, first)) = all.first() else { return [false; 2] };
    let mean = |f: usize| all.iter().map(|(_, counts)| counts[f]).sum::<f64>() / count(all.len());
    let means: Vec<f64> = (0..first.len()).map(mean).collect();
    let least = if means.is_empty() { 0.0 } else { median(means.clone()).max(30.0) };
    let kept: Vec<usize> = (0..means.len()).filter(|f| means[*f] >= least).collect();
    if base.len() < 8 || head.len() < 2 || kept.len() < 20 {
        return [false; 2];
    }
    let samples: f64 = base.iter().map(|(samples, _)| samples).sum();
    let level = |f: &usize| ((base.iter().map(|(_, counts)| counts[*f]).sum::<f64>() + 0.5) / samples).ln();
    let level: Vec<f64> = kept.iter().map(level).collect();
    let logs = |(samples, counts): &Pod| {
        let log = |f: &usize| ((counts[*f] + 0.5) / (samples + 0.5)).ln();
        let row: Vec<f64> = kept.iter().map(log).collect();
        let shift = median(row.iter().zip(&level).map(|(log, level)| log - level).collect());
        row.iter().map(|log| log - shift).collect::<Vec<f64>>()
    };
    let of = |pods: &[Pod]| pods.iter().map(logs).collect::<Vec<_>>();
    let (of_head, of_base) = (of(head), of(base));
    let pods = count(base.len());
    let error = |f: usize, samples: f64| 1.0 / (level[f].exp() * samples);
    let centre: Vec<f64> = (0..kept.len()).map(|f| of_base.iter().map(|row| row[f]).sum::<f64>() / pods).collect();
    let spread = |f: usize| {
        let each = of_base
            .iter()
            .zip(base)
            .map(|(row, (samples, _))| (row[f] - centre[f]).powi(2) * pods / (pods - 1.0) - error(f, *samples));
        (each.sum::<f64>() / pods).max(0.0)
    };
    let spread: Vec<f64> = (0..kept.len()).map(spread).collect();
    let standardised = |rows: &[Vec<f64>], pods: &[Pod]| {
        DMatrix::from_fn(rows.len(), kept.len(), |pod, f| {
            (rows[pod][f] - centre[f]) / (spread[f] + error(f, pods[pod].0)).sqrt()
        })
    };
    let (z_head, z_base) = (standardised(&of_head, head), standardised(&of_base, base));
    let found = z_base.clone().svd(false, true);
    let edge = (1.0 + (count(kept.len()) / (pods - 1.0)).sqrt()).powi(2);
    let ratios: Vec<f64> = found.singular_values.iter().map(|value| value * value / (pods - 1.0) / edge).collect();
    let (strongest, ratio) = ratios.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let Some(directions) = found.v_t else { return [false; 2] };
    let direction = directions.row(strongest).transpose();
    let along = |z: &DMatrix<f64>| (z * &direction).iter().copied().collect::<Vec<f64>>();
    let groups = ratios.iter().filter(|ratio| **ratio > 1.05).count() >= 4;
    [groups, ratio > 1.2 && welch(&along(&z_head), &along(&z_base)) < 0.001]
}

fn welch(a: &[f64], b: &[f64]) -> f64 {
    let moments = |values: &[f64]| {
        let n = count(values.len());
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0) / n, n)
    };
    let ((mean_a, var_a, n_a), (mean_b, var_b, n_b)) = (moments(a), moments(b));
    let df = (var_a + var_b).powi(2) / (var_a.powi(2) / (n_a - 1.0) + var_b.powi(2) / (n_b - 1.0));
    let t = (mean_a - mean_b).abs() / (var_a + var_b).sqrt();
    StudentsT::new(0.0, 1.0, df).map_or(1.0, |t_of_df| 2.0 * t_of_df.sf(t))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

fn count(of: usize) -> f64 {
    float(u64::try_from(of).unwrap_or(0))
}
