//! Broken metrics, and broken pairs for a delta: what [`super::mutations`] is for formats.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_formats::Options;
use fleetdiff_formats::compression::{decompress, gzip};
use fleetdiff_formats::otlp::metrics::{Decoder, REQUEST_METRICS};
use fleetdiff_formats::pprof::delta::{NoDelta, message};
use fleetdiff_formats::pprof::proto::Profile;
use fleetdiff_schemas::rejected::Reason;
use proptest::prelude::*;
use prost::Message;

use super::changes::{LIMIT, changes, run, runs};
use super::otlp_metrics::good_metrics;
use super::pprof_delta::{godeltaprof, heap};

#[test]
fn mutated_metrics() {
    let seeds: Vec<Vec<u8>> = good_metrics().into_iter().flat_map(|record| [gzip(&record), record]).collect();
    let decoder = Decoder::new(&Options::default(), REQUEST_METRICS);
    let (good, reasons) = (RefCell::new(0u64), RefCell::new(BTreeSet::new()));
    run("metrics", &(0..seeds.len(), changes()), |(seed, changes)| {
        let mut bytes = seeds[seed].clone();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        for point in decoder.points(&bytes) {
            match point {
                Ok(point) => {
                    prop_assert!(point.window.start <= point.window.end);
                    *good.borrow_mut() += 1;
                }
                Err(fault) => drop(reasons.borrow_mut().insert(fault.reason)),
            }
        }
        Ok(())
    });
    let (good, reasons) = (good.into_inner(), reasons.into_inner());
    assert!(good > u64::from(runs() / 50), "{good} points");
    for reason in [Reason::Truncated, Reason::Malformed, Reason::UnsupportedType, Reason::MissingIdentity] {
        assert!(reasons.contains(&reason), "{reason:?} not in {reasons:?}");
    }
}

/// Pairs that have a delta, the earlier one first: made ones with two numberings, and recorded ones.
fn pairs() -> Vec<[Vec<u8>; 2]> {
    let rows = |values: [i64; 2]| {
        BTreeMap::from([((vec![0, 1, 2], 0), values), ((vec![3, 1, 2], 0), values), ((vec![], 1), values)])
    };
    let (before, after) = (rows([4, 300]), rows([900, 20]));
    let unpacked = |name: &str| decompress(&godeltaprof(name), LIMIT).unwrap().into_owned();
    vec![
        [heap(&before, 0), heap(&after, 0)],
        [heap(&before, 1), heap(&after, 2)],
        [gzip(&heap(&before, 3)), gzip(&heap(&after, 0))],
        [unpacked("mutex-00.cumulative"), unpacked("mutex-01.cumulative")],
    ]
}

/// Every index and id of a delta is of something that it holds, and no sample is nothing.
fn stands_alone(delta: &[u8]) {
    let delta = Profile::decode(delta).unwrap();
    let strings = i64::try_from(delta.string_table.len()).unwrap().max(1);
    let known = |indexes: &[i64]| indexes.iter().all(|index| (0..strings).contains(index));
    let locations: BTreeSet<u64> = delta.location.iter().map(|location| location.id).collect();
    let functions: BTreeSet<u64> = delta.function.iter().map(|function| function.id).chain([0]).collect();
    for sample in &delta.sample {
        assert!(sample.value.len() == delta.sample_type.len() && sample.value.iter().all(|value| *value >= 0));
        assert!(sample.value.iter().any(|value| *value > 0));
        assert!(sample.location_id.iter().all(|id| locations.contains(id)));
        assert!(sample.label.iter().all(|label| known(&[label.key, label.str, label.num_unit])));
    }
    assert!(
        delta.location.iter().flat_map(|location| &location.line).all(|line| functions.contains(&line.function_id))
    );
    assert!(delta.function.iter().all(|function| known(&[function.name, function.system_name, function.filename])));
    assert!(delta.sample_type.iter().chain(&delta.period_type).all(|column| known(&[column.r#type, column.unit])));
}

/// Both inputs are broken, or one of them.
#[test]
fn mutated_pairs_for_a_delta() {
    let pairs = pairs();
    assert!(pairs.iter().all(|[before, after]| message(before, after, LIMIT).is_ok()));
    let (good, codes, reasons) = (RefCell::new(0u64), RefCell::new(BTreeSet::new()), RefCell::new(BTreeSet::new()));
    let maybe = || prop::option::of(changes());
    run("delta of a pair", &(0..pairs.len(), maybe(), maybe()), |(pair, first, second)| {
        let mut pair = pairs[pair].clone();
        for (bytes, changes) in pair.iter_mut().zip([first, second]) {
            changes.iter().flatten().for_each(|change| change.apply(bytes));
        }
        match message(&pair[0], &pair[1], LIMIT) {
            Ok(delta) => {
                stands_alone(&delta);
                *good.borrow_mut() += 1;
            }
            Err(fault) => {
                if let NoDelta::Unreadable(_, fault) = &fault {
                    reasons.borrow_mut().insert(fault.reason);
                }
                codes.borrow_mut().insert(fault.code());
            }
        }
        Ok(())
    });
    let (good, codes, reasons) = (good.into_inner(), codes.into_inner(), reasons.into_inner());
    assert!(good > u64::from(runs() / 100), "{good} deltas");
    assert!(["unreadable", "unlike", "reset"].iter().all(|code| codes.contains(code)), "{codes:?}");
    for reason in [Reason::Truncated, Reason::Malformed, Reason::IndexOutOfRange, Reason::UnitMismatch] {
        assert!(reasons.contains(&reason), "{reason:?} not in {reasons:?}");
    }
}
