//! From the stacks of a profile to its counts by function and by call path.

use std::collections::BTreeMap;

use fleetdiff_schemas::fold::{fold_stacks, fold_values};
use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::{Folded, Profile, Samples, Stack, Temporality, content_hash, value_of_each};
use serde::{Deserialize, Serialize};

use crate::counts::encoding::{Entry, encode_unordered};
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};
use crate::counts::paths::{decode_paths, encode_paths};

/// The counts of one cohort in one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CohortCounts {
    /// Whose samples.
    pub cohort: Cohort,
    /// Number of samples.
    pub samples: u64,
    /// Counts by function, see [`crate::counts::encoding`]; empty for a snapshot, whose difference is folded.
    #[serde(with = "serde_bytes")]
    pub functions: Vec<u8>,
    /// Samples by call path, see [`crate::counts::paths`]; empty if the profile came without stacks.
    #[serde(with = "serde_bytes")]
    pub paths: Vec<u8>,
    /// The values of the samples, by function as `functions` are, or of a snapshot by call path as `paths` are; empty if the
    /// profile does not say them, or if each sample stands for as much.
    #[serde(with = "serde_bytes")]
    pub values: Vec<u8>,
    /// Their sum.
    pub value: u64,
}

/// The hash of all its samples.
pub(super) fn content_of(profile: &Profile) -> u128 {
    match &profile.samples {
        Samples::Stacks(stacks) => content_hash(&profile.names, stacks),
        Samples::Folded { content, .. } => *content,
    }
}

/// The counts of a profile whose names have these numbers.
pub(super) fn fold(profile: &Profile, ids: &[FunctionId], table: &FunctionTable) -> Vec<CohortCounts> {
    let own = &profile.identity.cohort;
    match &profile.samples {
        Samples::Folded { cohorts, .. } => cohorts.iter().map(|part| encoded(part, ids, Vec::new())).collect(),
        Samples::Stacks(stacks) if profile.temporality == Temporality::Cumulative => {
            let mut values = paths_of(stacks, own, ids, table, |stack| stack.value);
            let counts = paths_of(stacks, own, ids, table, |stack| stack.count).into_iter();
            let cohorts = counts.map(|(cohort, paths)| {
                let values = values.remove(&cohort).unwrap_or_default();
                unfolded(cohort, paths, values)
            });
            cohorts.collect()
        }
        Samples::Stacks(stacks) => {
            let cohorts = fold_stacks(&profile.names, stacks, own);
            // What is the same for all need not be kept by function.
            let each = value_of_each(stacks);
            let values = match each {
                Some(_) => Vec::new(),
                None => fold_values(&profile.names, stacks, own),
            };
            let mut paths = paths_of(stacks, own, ids, table, |stack| stack.count);
            let with_paths = |part: &Folded| {
                let values = values.iter().find(|values| values.cohort == part.cohort);
                CohortCounts {
                    values: values.map(|values| functions_of(values, ids)).unwrap_or_default(),
                    value: values.map_or_else(|| part.samples * each.unwrap_or(0), |values| values.samples),
                    ..encoded(part, ids, paths.remove(&part.cohort).unwrap_or_default())
                }
            };
            cohorts.iter().map(with_paths).collect()
        }
    }
}

/// Samples by call path, or their values, for each cohort; none if all are 0.
fn paths_of(
    stacks: &[Stack],
    default_cohort: &Cohort,
    ids: &[FunctionId],
    table: &FunctionTable,
    of: fn(&Stack) -> u64,
) -> BTreeMap<Cohort, Vec<u8>> {
    if stacks.iter().all(|stack| of(stack) == 0) {
        return BTreeMap::new();
    }
    let paths = table.intern_paths(stacks, ids);
    let mut cohorts: BTreeMap<Cohort, Vec<(PathId, u64)>> = BTreeMap::new();
    for (stack, path) in stacks.iter().zip(paths).filter(|(stack, _)| of(stack) > 0) {
        let cohort = stack.cohort.as_ref().unwrap_or(default_cohort);
        match cohorts.get_mut(cohort) {
            Some(samples) => samples.push((path, of(stack))),
            None => drop(cohorts.insert(cohort.clone(), vec![(path, of(stack))])),
        }
    }
    cohorts.into_iter().map(|(cohort, samples)| (cohort, encode_paths(samples))).collect()
}

fn unfolded(cohort: Cohort, paths: Vec<u8>, values: Vec<u8>) -> CohortCounts {
    let sum = |paths: &[u8]| decode_paths(paths).map(|(_, count)| count).sum();
    CohortCounts { cohort, samples: sum(&paths), value: sum(&values), functions: Vec::new(), paths, values }
}

fn encoded(part: &Folded, ids: &[FunctionId], paths: Vec<u8>) -> CohortCounts {
    CohortCounts {
        cohort: part.cohort.clone(),
        samples: part.samples,
        functions: functions_of(part, ids),
        paths,
        values: Vec::new(),
        value: 0,
    }
}

/// Counts, or values, by function.
fn functions_of(part: &Folded, ids: &[FunctionId]) -> Vec<u8> {
    let entries = part.functions.iter().filter_map(|function| {
        let id = *ids.get(usize::try_from(function.name).ok()?)?;
        Some(Entry { function: id, own: function.own, total: function.total })
    });
    encode_unordered(entries)
}
