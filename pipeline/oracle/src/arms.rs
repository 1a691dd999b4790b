//! The strata of a cell as the tests take them: which are used, and each arm's counts by stratum and bucket.

use std::collections::BTreeSet;

use fleetdiff_schemas::number::{float, table_count, wide_float};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::ArmFigures;
use fleetdiff_schemas::verdict::Support;

use super::counts::{BASE, BucketCounts, Cell, HEAD, Stratum};
use super::statistics::geometry::ArmData;

/// A test with fewer degrees of freedom is none.
pub(super) const LEAST_DF: f64 = 2.0;

pub(super) fn in_both(stratum: &Stratum) -> bool {
    stratum.iter().all(|arm| arm.samples > 0)
}

/// The strata that both arms share, of several cells in the order given.
pub(super) fn kept_of<'a>(cells: &[&'a Cell]) -> Vec<&'a Stratum> {
    cells.iter().flat_map(|cell| cell.strata.values()).filter(|stratum| in_both(stratum)).collect()
}

/// The strata that both arms share; all of them if there is none.
pub(super) fn kept_or_all(cell: &Cell) -> Vec<&Stratum> {
    let any = cell.strata.values().any(in_both);
    cell.strata.values().filter(|stratum| !any || in_both(stratum)).collect()
}

/// Buckets of an arm in any of the strata, ascending.
pub(super) fn occupied(used: &[&Stratum], arm: usize) -> BTreeSet<u8> {
    used.iter().flat_map(|stratum| stratum[arm].buckets.keys().copied()).collect()
}

/// A figure by stratum and occupied bucket of an arm; `absent` where a bucket is not in the stratum.
pub(super) fn by_bucket<T: Clone>(
    used: &[&Stratum],
    arm: usize,
    absent: T,
    of: impl Fn(&BucketCounts) -> T,
) -> Vec<Vec<T>> {
    let occupied = occupied(used, arm);
    let of_bucket = |stratum: &Stratum, bucket| stratum[arm].buckets.get(bucket).map_or_else(|| absent.clone(), &of);
    used.iter().map(|stratum| occupied.iter().map(|bucket| of_bucket(stratum, bucket)).collect()).collect()
}

/// The counts of one arm as the test takes them.
pub(super) fn arm_of(used: &[&Stratum], arm: usize, kind: CountKind, functions: &[usize]) -> ArmData {
    let counts = |bucket: &BucketCounts| -> Vec<f64> {
        functions.iter().map(|function| float(bucket.functions[*function][column(kind)])).collect()
    };
    ArmData {
        counts: by_bucket(used, arm, vec![0.0; functions.len()], counts),
        exposure: by_bucket(used, arm, 0.0, |bucket| float(bucket.samples)),
        pods: numbers_of_pods(used, arm),
    }
}

/// Sum over buckets and strata of x (x - 1) over profiles, by function.
pub(super) fn pairs(used: &[&Stratum], arm: usize, kind: CountKind, functions: &[usize]) -> Vec<f64> {
    let of_function = |function: &usize| {
        let buckets = used.iter().flat_map(|stratum| stratum[arm].buckets.values());
        wide_float(buckets.map(|bucket| bucket.pairs[*function][column(kind)]).sum())
    };
    functions.iter().map(of_function).collect()
}

/// How many pods of an arm lie in each occupied bucket.
pub(super) fn numbers_of_pods(used: &[&Stratum], arm: usize) -> Vec<f64> {
    let number = |bucket| float(u64::try_from(pods_of_bucket(used, arm, bucket).len()).unwrap_or(0));
    occupied(used, arm).into_iter().map(number).collect()
}

pub(super) fn pods_of_bucket(used: &[&Stratum], arm: usize, bucket: u8) -> BTreeSet<usize> {
    let of_stratum = used.iter().filter_map(|stratum| stratum[arm].buckets.get(&bucket));
    of_stratum.flat_map(|found| found.pods.iter().copied()).collect()
}

/// Support of a test with `df` degrees of freedom between pods of head and base.
pub(super) fn support(pods: [i64; 2], df: f64) -> Support {
    match pods[HEAD].min(pods[BASE]) {
        ..2 => Support::Untestable,
        _ if df < LEAST_DF => Support::Untestable,
        5.. => Support::Firm,
        _ => Support::Tentative,
    }
}

pub(super) fn pods(used: &[&Stratum], arm: usize) -> BTreeSet<usize> {
    used.iter()
        .flat_map(|stratum| stratum[arm].buckets.values())
        .flat_map(|bucket| bucket.pods.iter().copied())
        .collect()
}

pub(super) fn figures(used: &[&Stratum], arm: usize) -> ArmFigures {
    let requests: u64 = used.iter().map(|stratum| stratum[arm].requests).sum();
    // A pod counts once per bucket, so that a pod that changed its node counts where it is tested.
    let occupied: BTreeSet<(u8, usize)> = used
        .iter()
        .flat_map(|stratum| &stratum[arm].buckets)
        .flat_map(|(number, bucket)| bucket.pods.iter().map(|pod| (*number, *pod)))
        .collect();
    let buckets: BTreeSet<u8> = occupied.iter().map(|(bucket, _)| *bucket).collect();
    ArmFigures {
        count: 0,
        total: table_count(used.iter().map(|stratum| stratum[arm].samples).sum::<u64>()),
        share: None,
        pods: table_count(occupied.len()),
        buckets: table_count(buckets.len()),
        requests: (requests > 0).then(|| table_count(requests)),
    }
}

/// The column of a count kind in pairs of self and total.
pub(super) fn column(kind: CountKind) -> usize {
    match kind {
        CountKind::SelfCount => 0,
        CountKind::Total => 1,
    }
}
