//! The strata of one comparison in one cell: what the buckets of both arms have in each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::OpenComparison;
use fleetdiff_schemas::identity::{Bucket, Build, Hardware};
use fleetdiff_schemas::number::{float, wide_float};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_statistics::{Arm, BucketCounts, BucketRow, Stratum};

use crate::counts::bucket::BucketState;
use crate::counts::cell::{CellCounts, StratumCounts};
use crate::counts::plane::Plane;

/// One bucket of one arm in one stratum: a state for each of the arm's builds that has one.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub bucket: Bucket,
    pub states: Vec<Cow<'a, BucketState>>,
}

impl Row<'_> {
    pub fn samples(&self) -> u64 {
        self.states.iter().map(|state| state.samples).sum()
    }

    pub fn hop_squares(&self) -> u128 {
        self.states.iter().map(|state| state.hop_squares).sum()
    }

    fn of_kind(&self, kind: CountKind) -> BucketRow<'_> {
        BucketRow {
            bucket: u16::from(self.bucket.0),
            samples: self.samples(),
            requests: self.requests(),
            hop_concentration: hop_concentration(self.hop_squares(), self.samples()),
            counts: columns(self.states.iter().flat_map(|state| state.planes(kind))),
        }
    }

    pub fn requests(&self) -> u64 {
        self.states.iter().map(|state| state.requests).sum()
    }
}

/// One stratum of one comparison.
#[derive(Debug)]
pub(super) struct StratumArms<'a> {
    pub block: Hop,
    /// The kind of machine; `None` if several are merged.
    pub hardware: Option<&'a Hardware>,
    pub head: Vec<Row<'a>>,
    pub base: Vec<Row<'a>>,
}

impl StratumArms<'_> {
    /// Whether both arms have samples in it.
    pub fn is_shared(&self) -> bool {
        !self.head.is_empty() && !self.base.is_empty()
    }

    /// The input of the tests for one kind of count.
    pub fn of_kind(&self, kind: CountKind) -> Stratum<'_> {
        Stratum { head: arm(&self.head, kind), base: arm(&self.base, kind) }
    }
}

/// The strata of a scope in which either arm has samples, ascending; for an epoch, the strata since a block.
pub(super) fn occupied<'a>(
    cell: &'a CellCounts,
    scope: Scope,
    comparison: &OpenComparison,
    since: Hop,
) -> Vec<StratumArms<'a>> {
    let each = cell.strata(scope, since).map(|(key, counts)| StratumArms {
        block: key.block,
        hardware: Some(&key.hardware),
        head: rows(counts, std::slice::from_ref(&comparison.id.head)),
        base: rows(counts, &comparison.id.base),
    });
    each.filter(|stratum| !(stratum.head.is_empty() && stratum.base.is_empty())).collect()
}

pub(super) fn rows<'a>(counts: StratumCounts<'a>, builds: &[Build]) -> Vec<Row<'a>> {
    let mut rows: BTreeMap<Bucket, Vec<Cow<'a, BucketState>>> = BTreeMap::new();
    for (bucket, state) in builds.iter().flat_map(|build| counts.buckets(build)) {
        rows.entry(bucket).or_default().push(state);
    }
    rows.into_iter().map(|(bucket, states)| Row { bucket, states }).collect()
}

fn arm<'a>(rows: &'a [Row<'_>], kind: CountKind) -> Arm<'a> {
    let pairs = rows.iter().flat_map(|row| &row.states).flat_map(|state| state.pairs(kind));
    Arm { rows: rows.iter().map(|row| row.of_kind(kind)).collect(), hop_pairs: columns(pairs) }
}

fn columns<'a>(planes: impl Iterator<Item = &'a Plane>) -> Vec<&'a dyn BucketCounts> {
    planes.map(|plane| -> &dyn BucketCounts { plane }).collect()
}

/// Sum of squared hop totals over the square of their sum; 1 without samples.
pub(super) fn hop_concentration(hop_squares: u128, samples: u64) -> f64 {
    if samples > 0 { wide_float(hop_squares) / (float(samples) * float(samples)) } else { 1.0 }
}
