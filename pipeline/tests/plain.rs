//! The flags of method `article`: what is raised and not cleared at a look are the significant rows that a report has then.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::{records, run_in_memory};
use fleetdiff_schemas::config::{Comparing, Config, Method};
use fleetdiff_schemas::identity::{Identity, stable_hash};
use fleetdiff_schemas::profile::{CountKind, Folded, FoldedFunction, Profile, ProfileType, Samples, Temporality};
use fleetdiff_schemas::rows::{CellKey, CellRow, Tables};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use fleetdiff_schemas::verdict::{FlagState, Scope, Severity};

const START: i64 = 1_799_996_400;
const HOPS: i64 = 50;
const FUNCTIONS: u32 = 40;
/// Costs half as much again in the head of one cohort in these hops.
const CHANGED: (u32, std::ops::Range<i64>) = (3, 15..30);

/// Of 24 pods in four cells, half run the head. Pods differ: each has its own share of a function, at random.
fn pod(number: u32) -> Arc<Identity> {
    let (region, cohort) =
        (["east", "west"][usize::from(number % 2 == 1)], ["tv", "web"][usize::from(number / 2 % 2 == 1)]);
    Arc::new(Identity {
        service: "video".into(),
        build: if number < 12 { "old" } else { "new" }.into(),
        region: region.into(),
        cohort: cohort.into(),
        hardware: ["small", "large"][usize::from(number.is_multiple_of(5))].into(),
        node: None,
        pod: format!("pod-{number}").as_str().into(),
        process_start: None,
    })
}

fn profile(number: u32, hop: i64, names: &Arc<[Arc<str>]>) -> Profile {
    let identity = pod(number);
    let changed = identity.build.as_str() == "new" && identity.cohort.as_str() == "tv" && CHANGED.1.contains(&hop);
    let count = |function: u32| {
        let drawn = stable_hash(format!("{number} {function} {}", hop / 10).as_bytes()) % 6;
        6 + drawn + if changed && function == CHANGED.0 { 5 } else { 0 }
    };
    let each = (0..FUNCTIONS).map(|name| FoldedFunction { name, own: count(name), total: count(name) });
    let mut functions: Vec<FoldedFunction> = each.collect();
    let samples: u64 = functions.iter().map(|function| function.own).sum();
    functions[0].total = samples;
    functions[1].total += functions[2].own;
    let start = Nanos::from_seconds(START + 10 * hop);
    Profile {
        window: TimeRange { start, end: start.plus(Nanos(9_999_999_999)) },
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        requests: None,
        names: Arc::clone(names),
        samples: Samples::Folded {
            content: u128::from(number) << 64 | u128::from(hop.unsigned_abs()),
            cohorts: vec![Folded { cohort: identity.cohort.clone(), samples, functions }],
        },
        identity,
    }
}

fn tables(workers: usize) -> Tables {
    let names: Arc<[Arc<str>]> = (0..FUNCTIONS).map(|function| Arc::from(format!("f{function:02}"))).collect();
    let of_hop = |hop| (0..24).map(move |number| (number, hop));
    let pods = |partition: u32| (0..HOPS).flat_map(of_hop).filter(move |(number, _)| number % 3 == partition);
    let partitions = (0..3).map(|partition| records(pods(partition).map(|(number, hop)| profile(number, hop, &names))));
    let config = Config {
        method: Method::Article,
        comparing: Comparing::Named { base: vec!["old".into()], head: "new".into() },
        window: Nanos::from_seconds(100),
        evaluate_every: Nanos::from_seconds(10),
        report_every: Nanos::from_seconds(50),
        lateness: Nanos(0),
        warm_up: Nanos(0),
        ..Config::default()
    };
    run_in_memory(&config, partitions.collect(), workers).unwrap()
}

type Key<'a> = (&'a CellKey, CountKind, &'a str);

fn key(row: &CellRow) -> Key<'_> {
    (&row.cell, row.count_kind, &row.function)
}

/// What is raised and not cleared after the last look up to `at`.
fn standing(tables: &Tables, at: Nanos) -> BTreeSet<Key<'_>> {
    let mut flags: Vec<_> = tables.flags.iter().filter(|flag| flag.row.window_end_at <= at).collect();
    flags.sort_by_key(|flag| flag.sequence);
    let mut standing = BTreeSet::new();
    for flag in flags {
        let key = key(&flag.row);
        let is_news = if flag.state == FlagState::Raised { standing.insert(key) } else { standing.remove(&key) };
        assert!(is_news, "raised twice, or cleared without having been raised: {flag:?}");
    }
    standing
}

#[test]
fn flags_at_a_look_are_the_significant_rows_of_a_report() {
    let tables = tables(1);
    let mut reports: BTreeMap<Nanos, BTreeMap<Key<'_>, &CellRow>> = BTreeMap::new();
    for row in tables.cells.iter().filter(|row| row.scope == Scope::Window) {
        let report = reports.entry(row.window_end_at).or_default();
        if row.verdict.is_significant() {
            report.insert(key(row), row);
        }
    }
    assert!(reports.len() >= 6 && reports.values().filter(|report| !report.is_empty()).count() >= 4);
    for (&at, report) in &reports {
        assert_eq!(standing(&tables, at), report.keys().copied().collect(), "at {at:?}");
        let raised = tables.flags.iter().filter(|flag| flag.state == FlagState::Raised && flag.row.window_end_at == at);
        for flag in raised {
            let figures = |row: &CellRow| {
                let counts = [row.head.count, row.head.total, row.base.count, row.base.total];
                (counts, row.g, row.ln_p_iid, row.q_value, row.verdict, row.reason, row.window_start_at)
            };
            assert_eq!(figures(&flag.row), figures(report[&key(&flag.row)]));
        }
    }
    let because: BTreeSet<_> = tables.flags.iter().filter_map(|flag| flag.cleared_because.as_deref()).collect();
    assert!(because.contains("not_significant"), "{because:?}");
}

#[test]
fn flags_depend_on_no_worker_and_wake_nobody() {
    let (one, two) = (tables(1), tables(2));
    assert_eq!(one.flags, two.flags);
    assert!(one.flags.iter().all(|flag| flag.severity == Severity::Info));
    assert!(one.incidents.is_empty() && one.fan_out.is_empty());
}
