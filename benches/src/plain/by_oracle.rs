//! The same rows by the statistics of the oracle, which share nothing with those of the dataflow.

use fleetdiff_oracle::statistics::fano::fano;
use fleetdiff_oracle::statistics::geometry::ArmData;
use fleetdiff_oracle::statistics::levels::{Model, strata_test};
use fleetdiff_oracle::statistics::normalization::scales;
use fleetdiff_oracle::statistics::rows::{Rows, rows_of_cell};
use fleetdiff_schemas::number::float;
use fleetdiff_statistics::Side;

use super::cell::{Cell, Column};
use super::{FEWEST_DF, MIN_COUNT, MIN_EFFECT};

/// Measures every cell afresh on both sides and compares which functions are tested, and theta, ln p and ln e of each, to 1e-6.
///
/// # Panics
/// If they differ.
pub(super) fn hold_against_oracle(cells: &[Cell]) {
    for cell in cells {
        let Some(rows) = cell.afresh() else { continue };
        let enough = (0..rows.theta.len()).filter(|&function| rows.tests.count(function) >= MIN_COUNT);
        let functions: Vec<usize> = enough.collect();
        if functions.is_empty() {
            continue;
        }
        let expected = by_oracle(cell, &functions);
        for (place, &function) in functions.iter().enumerate() {
            let (ln_p, expected_ln_p) = (rows.ln_p[function], expected.ln_p[place]);
            // A function that is not tested has an effect in the oracle, and none here.
            let theta = if expected_ln_p.is_nan() { f64::NAN } else { expected.theta[place] };
            let pairs =
                [(rows.theta[function], theta), (ln_p, expected_ln_p), (rows.ln_e[function], expected.ln_e[place])];
            assert!(
                pairs.iter().all(|&(one, other)| is_near(one, other)),
                "the oracle's statistics differ: function {function}, (theta, ln p, ln e) here and there: {pairs:?}"
            );
        }
    }
}

/// Equal to 1e-6, also where both are infinite or unknown.
fn is_near(one: f64, other: f64) -> bool {
    one.is_nan() && other.is_nan()
        || one.total_cmp(&other).is_eq()
        || (one - other).abs() <= 1e-6 * other.abs().max(1.0)
}

/// The rows of these functions, all that have enough samples.
fn by_oracle(cell: &Cell, functions: &[usize]) -> Rows {
    let [head, base] = Side::BOTH.map(|side| OracleArm::of(cell, side, functions));
    let factors = [&head, &base].map(|arm| fano(&arm.pairs, &arm.data, &arm.hop_concentration));
    let mut test = strata_test(&head.data, &base.data, Model::Share, MIN_COUNT, None, Some(&factors), None);
    test.leave_out_below_df(FEWEST_DF);
    rows_of_cell(&test, &scales(&test, None, true, true), MIN_EFFECT)
}

/// One arm of a cell as input of the oracle.
struct OracleArm {
    data: ArmData,
    /// By stratum and bucket.
    hop_concentration: Vec<Vec<f64>>,
    /// By function.
    pairs: Vec<f64>,
}

impl OracleArm {
    fn of(cell: &Cell, side: Side, functions: &[usize]) -> Self {
        let pods = cell.pods(side);
        let strata: Vec<_> = cell.shared().into_iter().map(|arms| &arms[side]).collect();
        let none = Column::default();
        let columns: Vec<Vec<&Column>> = strata
            .iter()
            .map(|arm| {
                let of = |bucket: &u16| u8::try_from(*bucket).ok().and_then(|bucket| arm.columns.get(&bucket));
                pods.keys().map(|bucket| of(bucket).unwrap_or(&none)).collect()
            })
            .collect();
        let count =
            |column: &Column, function: usize| column.counts.get(function).map_or(0.0, |&count| f64::from(count));
        let counts = |column: &&Column| functions.iter().map(|&function| count(column, function)).collect();
        let by_bucket = |value: &dyn Fn(&Column) -> f64| {
            columns.iter().map(|stratum| stratum.iter().map(|column| value(column)).collect()).collect()
        };
        let data = ArmData {
            counts: columns.iter().map(|stratum| stratum.iter().map(counts).collect()).collect(),
            exposure: by_bucket(&|column| float(column.samples)),
            pods: pods.values().map(|&pods| f64::from(pods)).collect(),
        };
        let pairs = |&function: &usize| strata.iter().map(|arm| float(arm.pairs[function])).sum();
        Self {
            data,
            hop_concentration: by_bucket(&Column::hop_concentration),
            pairs: functions.iter().map(pairs).collect(),
        }
    }
}
