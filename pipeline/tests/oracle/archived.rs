//! Rows of the archive are what was counted, pod by pod: compared with the ledger, and with a plain count of the records.

use std::collections::BTreeMap;

use fleetdiff_pipeline::run::in_memory::{Collected, run_in_memory};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::fold::{fold_stacks, fold_values};
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::profile::{Decoded, Samples};
use fleetdiff_schemas::rows::{Archived, Tables};
use fleetdiff_schemas::time::Nanos;

use super::going_on::Taken;
use super::processes::Workers;
use super::{agreed_but_archived, builder, config, delivered, numbered};

/// Samples that were counted, by hop and type.
fn counted(tables: &Tables) -> BTreeMap<(Nanos, String), i64> {
    let rows = tables.ledger.iter().filter(|row| row.samples_counted > 0);
    rows.map(|row| ((row.hop_at, row.profile_type.clone()), row.samples_counted)).collect()
}

fn archived(rows: &Archived) -> BTreeMap<(Nanos, String), i64> {
    let mut sums = BTreeMap::new();
    for row in &rows.counts {
        *sums.entry((row.span.start_at, row.profile_type.name().to_owned())).or_default() += row.samples;
    }
    sums
}

/// Some stacks say what their samples stand for.
fn with_values(records: &mut [Decoded]) {
    for profile in records.iter_mut().flat_map(|record| record.parts.iter_mut().flatten()) {
        let Samples::Stacks(stacks) = &mut profile.samples else { panic!("stacks") };
        for (number, stack) in (0u64..).zip(stacks) {
            stack.value = stack.count * (number % 4) * 1000;
        }
    }
}

/// By pod, build, cohort and function: self, total and their values.
type Plain = BTreeMap<(String, String, String, i64), [i64; 4]>;

fn hash(name: &str) -> i64 {
    i64::from_le_bytes(stable_hash(name.as_bytes()).to_le_bytes())
}

/// A plain count of all records, of which each is counted.
fn plain(partitions: &[Vec<Decoded>]) -> Plain {
    let mut sums = Plain::new();
    for profile in partitions.iter().flatten().flat_map(|record| record.parts.iter().flatten()) {
        let Samples::Stacks(stacks) = &profile.samples else { panic!("stacks") };
        let identity = &profile.identity;
        let counts = fold_stacks(&profile.names, stacks, &identity.cohort);
        let values = fold_values(&profile.names, stacks, &identity.cohort);
        for (place, part) in counts.iter().map(|part| (0, part)).chain(values.iter().map(|part| (2, part))) {
            for function in &part.functions {
                let name = hash(&profile.names[usize::try_from(function.name).unwrap()]);
                let pod = (identity.pod.to_string(), identity.build.to_string(), part.cohort.to_string(), name);
                let sum = sums.entry(pod).or_default();
                sum[place] += i64::try_from(function.own).unwrap();
                sum[place + 1] += i64::try_from(function.total).unwrap();
            }
        }
    }
    sums
}

fn of_rows(rows: &Archived) -> Plain {
    let mut sums = Plain::new();
    for row in &rows.counts {
        for (place, function) in row.functions.iter().enumerate() {
            let pod = (row.pod.to_string(), row.build.to_string(), row.cell.cohort.to_string(), *function);
            let sum = sums.entry(pod).or_default();
            for (sum, list) in sum.iter_mut().zip([&row.own, &row.total, &row.own_value, &row.total_value]) {
                *sum += list.get(place).copied().unwrap_or(0);
            }
        }
    }
    sums
}

/// Samples by cell, build and function at the leaf: of call trees, and of pods.
fn leaves(rows: &Archived) -> [BTreeMap<(String, i64), i64>; 2] {
    let mut sums = [BTreeMap::new(), BTreeMap::new()];
    for row in &rows.call_trees {
        let nodes: BTreeMap<i64, usize> = row.nodes.iter().copied().zip(0..).collect();
        for (place, parent) in row.parents.iter().enumerate() {
            assert!(*parent == 0 || nodes.contains_key(parent), "a path has its beginning");
            let of = (format!("{:?} {}", row.cell, row.build), row.functions[place]);
            *sums[0].entry(of).or_default() += row.samples[place];
        }
    }
    for row in &rows.counts {
        for (function, own) in row.functions.iter().zip(&row.own) {
            *sums[1].entry((format!("{:?} {}", row.cell, row.build), *function)).or_default() += own;
        }
    }
    sums.iter_mut().for_each(|sums| sums.retain(|_, samples| *samples > 0));
    sums
}

#[test]
fn oracle_archived_rows_are_a_plain_count() {
    let config = Config { archive: true, warm_up: Nanos(0), ..config() };
    for seed in [91, 92] {
        let fleet = builder(seed).build();
        let mut partitions = fleet.partitions(3);
        if seed == 92 {
            partitions.iter_mut().for_each(|records| with_values(records));
        }
        let tables = run_in_memory(&config, partitions.clone(), 2).unwrap();
        assert_eq!(archived(&tables.archived), counted(&tables), "seed {seed}");
        let (got, expected) = (of_rows(&tables.archived), plain(&partitions));
        assert!(expected.len() > 500, "{}", expected.len());
        assert!(got == expected, "seed {seed}: {} sums, expected {}", got.len(), expected.len());
        let [of_trees, of_pods] = leaves(&tables.archived);
        assert!(of_trees.len() > 50 && of_trees == of_pods, "seed {seed}: call trees");
        let names: BTreeMap<i64, &str> =
            tables.archived.functions.iter().map(|row| (row.function, &*row.name)).collect();
        assert!(names.iter().all(|(function, name)| *function == hash(name)));
        assert!(got.keys().all(|(.., function)| names.contains_key(function)), "seed {seed}: names");
    }
}

/// With late, repeated and dropped profiles they add up to the ledger, and no other row depends on them; whatever the workers.
#[test]
fn oracle_archived_rows_add_up_to_the_ledger() {
    for seed in [93, 94] {
        let partitions: Vec<_> = delivered(builder(seed)).partitions(3).into_iter().map(numbered).collect();
        let with = Config { archive: true, ..config() };
        let collected = Collected::default();
        let taken = Taken::by_run(&with, &partitions, 1, 20, collected.clone());
        let tables = collected.tables();
        assert!(tables.ledger.iter().any(|row| row.samples_late_counted > 0 && row.samples_duplicate >= 0));
        assert_eq!(archived(&tables.archived), counted(&tables), "seed {seed}");
        let without = run_in_memory(&config(), partitions.clone(), 2).unwrap();
        assert!(without.archived.is_empty());
        assert!(agreed_but_archived(tables, without), "seed {seed}: other rows");
        let shape = Workers { processes: 2, each: 2 };
        let run = Taken::by_processes(&with, &partitions, shape, 20, Collected::default());
        taken.assert_same_from(Default::default(), &run, &format!("seed {seed}"));
        taken.go_on(7, shape, &format!("seed {seed}"));
    }
}
