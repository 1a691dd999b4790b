//! The table `evidence`, the counts behind rows: section 16 of `docs/semantics.md`.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellRow, EvidenceRow, SharedFigures};

use super::arms::{column, kept_of, pods_of_bucket};
use super::counts::{BASE, BucketCounts, Cell, HEAD};
use super::evidence::Evidence;
use super::row::Line;
use super::statistics::levels::StrataTest;

/// What the test of a row took from all functions: its test, its place there, and ln of the admissible factors, the
/// deciding one first.
struct Taken<'a> {
    test: &'a StrataTest,
    place: usize,
    ln_scales: &'a [f64],
}

impl Taken<'_> {
    fn of_arm(&self, arm: usize) -> SharedFigures {
        let prior = self.test.prior(self.place)[arm];
        let factors = || self.ln_scales.iter().map(|ln_scale| ln_scale.exp());
        SharedFigures {
            pod_variance: self.test.held.tau2[arm],
            prior_df: prior.df,
            prior_dispersion: prior.dispersion,
            calm: self.test.held.calm[self.place],
            normalization_factor: factors().next().unwrap_or(1.0),
            smallest_factor: factors().fold(f64::INFINITY, f64::min),
            largest_factor: factors().fold(0.0, f64::max),
        }
    }
}

/// The evidence of a row over some cells, whose test is in `evidence`; none if it was not tested.
pub(super) fn behind(line: &Line, evidence: &Evidence, cells: &[&Cell], is_roll_up: bool) -> Vec<EvidenceRow> {
    let kind = line.row.count_kind;
    let taken = match (line.function, &line.tested, &line.all, &evidence.all) {
        (Some(function), Some(_), ..) => evidence
            .kinds
            .get(&kind)
            .and_then(|found| found.place(function))
            .map(|(place, found)| Taken { test: &found.test, place, ln_scales: &found.scales.ln_scales }),
        (None, _, Some(_), Some(rate)) => Some(Taken { test: rate.test(), place: 0, ln_scales: &[0.0] }),
        _ => None,
    };
    let (Some(taken), kept) = (taken, kept_of(cells)) else { return Vec::new() };
    let mut rows = Vec::new();
    for (number, stratum) in kept.iter().enumerate() {
        for (arm, side) in [(HEAD, Side::Head), (BASE, Side::Base)] {
            for (bucket, counts) in &stratum[arm].buckets {
                let row = EvidenceRow {
                    stratum: table_count(number),
                    arm: side,
                    bucket: i64::from(*bucket),
                    pods: table_count(pods_of_bucket(&kept, arm, *bucket).len()),
                    shared: taken.of_arm(arm),
                    ..of_bucket(&line.row, line.function, kind, counts)
                };
                rows.push(EvidenceRow { is_roll_up, ..row });
            }
        }
    }
    rows
}

/// What the bucket alone shows; of all samples if there is no function.
fn of_bucket(row: &CellRow, function: Option<usize>, kind: CountKind, counts: &BucketCounts) -> EvidenceRow {
    let count = function.map_or(counts.samples, |function| counts.functions[function][column(kind)]);
    let pairs = function.map_or(0, |function| counts.pairs[function][column(kind)]);
    EvidenceRow {
        scope: row.scope,
        comparison: row.comparison.clone(),
        count_kind: kind,
        cell: row.cell.clone(),
        is_roll_up: false,
        function: row.function.as_str().into(),
        window_end_at: row.window_end_at,
        stratum: 0,
        arm: Side::Head,
        bucket: 0,
        pods: 0,
        samples: table_count(counts.samples),
        requests: table_count(counts.requests),
        count: table_count(count),
        pairs: i64::try_from(pairs).unwrap_or(i64::MAX),
        concentration: counts.hop_concentration(),
        shared: SharedFigures::default(),
    }
}
