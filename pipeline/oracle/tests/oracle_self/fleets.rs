//! Fleets so small that their rows can be computed by hand.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::identity::{Bucket, Identity};
use fleetdiff_schemas::profile::{
    Decoded, Position, Profile, ProfileType, Requests, Samples, Stack, Stamped, Temporality,
};
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::rows::{CellRow, ComparisonRow, FlagRow, LedgerRow, Tables};
use fleetdiff_schemas::time::{Hop, Nanos, TimeRange};

/// Second 0 of these fleets: a full hour.
const START: i64 = 1_699_999_200;

/// An instant, in seconds from the start.
pub fn at(seconds: i64) -> Nanos {
    Nanos::from_seconds(START + seconds)
}

/// A hop of 10 s, counted from the start.
pub fn hop(number: i64) -> Hop {
    Hop(u64::try_from(START / 10 + number).unwrap())
}

/// No warm-up; otherwise the defaults.
pub fn config() -> Config {
    Config { warm_up: Nanos(0), ..Config::default() }
}

/// The same for one comparison of named builds.
pub fn named(base: &str, head: &str) -> Config {
    Config { comparing: Comparing::Named { base: vec![base.into()], head: head.into() }, ..config() }
}

/// A pod in region `r`, cohort `c`, on hardware `h`, that has been running for an hour.
pub fn pod(build: &str, name: &str) -> Identity {
    Identity {
        service: "shop".into(),
        build: build.into(),
        region: "r".into(),
        cohort: "c".into(),
        hardware: "h".into(),
        node: None,
        pod: name.into(),
        process_start: Some(at(-3600)),
    }
}

/// Pods of a build, each in its own bucket.
pub fn pods(build: &str, count: usize) -> Vec<Identity> {
    let mut taken = BTreeSet::new();
    let candidates = (0..1000).map(|i| pod(build, &format!("{build}-{i}")));
    candidates.filter(|pod| taken.insert(Bucket::of(None, &pod.pod))).take(count).collect()
}

/// A CPU profile of 10 s around a moment; stacks are written `main;leaf`.
pub fn profile(of: &Identity, middle: i64, stacks: &[(&str, u64)]) -> Profile {
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut index = |name: &str| {
        let place = names.iter().position(|known| &**known == name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        u32::try_from(place).unwrap()
    };
    let frames = |text: &str, index: &mut dyn FnMut(&str) -> u32| {
        text.split(';').filter(|name| !name.is_empty()).map(index).collect()
    };
    let stacks = stacks
        .iter()
        .map(|(text, count)| Stack { frames: frames(text, &mut index), count: *count, cohort: None, value: 0 })
        .collect();
    Profile {
        identity: Arc::new(of.clone()),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: TimeRange { start: at(middle - 5), end: at(middle + 5) },
        requests: None,
        names: names.into(),
        samples: Samples::Stacks(stacks),
    }
}

/// Adds requests served in the profile's own window.
pub fn with_requests(profile: Profile, count: u64) -> Profile {
    Profile { requests: Some(Requests { count, window: profile.window }), ..profile }
}

/// One profile per pod and hop, `from..to` in hops.
pub fn steady(pods: &[Identity], from: i64, to: i64, stacks: &[(&str, u64)]) -> Vec<Profile> {
    (from..to).flat_map(|number| pods.iter().map(move |pod| profile(pod, number * 10 + 5, stacks))).collect()
}

/// One record.
pub fn record(partition: i32, offset: i64, received: Option<Nanos>, parts: Vec<Result<Profile, Rejection>>) -> Decoded {
    Decoded {
        position: Position { source: "test".into(), partition, offset, file: None },
        stamped: received.map_or(Stamped::No, Stamped::ByBroker),
        parts,
        points: Vec::new(),
    }
}

/// One record per profile, in this order.
pub fn partition(number: i32, profiles: Vec<Profile>) -> Vec<Decoded> {
    profiles.into_iter().zip(0..).map(|(profile, offset)| record(number, offset, None, vec![Ok(profile)])).collect()
}

/// One partition of profiles in order of time.
pub fn in_order(profiles: impl IntoIterator<Item = Profile>) -> Vec<Vec<Decoded>> {
    let mut profiles: Vec<Profile> = profiles.into_iter().collect();
    profiles.sort_by_key(|profile| profile.window);
    vec![partition(0, profiles)]
}

/// The ledger's row of CPU profiles at a hop.
pub fn ledger(tables: &Tables, number: i64) -> &LedgerRow {
    let mut rows = tables.ledger.iter().filter(|row| row.hop_at == at(number * 10) && row.profile_type == "cpu");
    rows.next().unwrap_or_else(|| panic!("no ledger row at hop {number}: {:#?}", tables.ledger))
}

/// Rows of `cells` by a name that tests write as `scope kind region/cohort function`.
pub fn cell<'a>(tables: &'a Tables, which: &str) -> Option<&'a CellRow> {
    let name = |row: &CellRow| {
        format!("{} {} {}/{} {}", row.scope, row.count_kind.name(), row.cell.region, row.cell.cohort, row.function)
    };
    let mut rows = tables.cells.iter().filter(|row| name(row) == which);
    let row = rows.next();
    assert!(rows.next().is_none(), "more than one row {which}");
    row
}

/// The one row of `cells` of this name.
pub fn the_cell<'a>(tables: &'a Tables, which: &str) -> &'a CellRow {
    cell(tables, which).unwrap_or_else(|| panic!("no row {which} among {}", tables.cells.len()))
}

/// Changes of flags of a function's self counts.
pub fn flags<'a>(tables: &'a Tables, function: &str) -> Vec<&'a FlagRow> {
    tables.flags.iter().filter(|flag| flag.row.function == function && flag.row.count_kind.name() == "self").collect()
}

/// Verdicts on self counts over all cells, one per look.
pub fn verdicts(tables: &Tables) -> Vec<&ComparisonRow> {
    let over_all = |row: &&ComparisonRow| row.cell.region.as_str() == "*" && row.cell.cohort.as_str() == "*";
    tables.comparisons.iter().filter(over_all).filter(|row| row.count_kind.name() == "self").collect()
}

/// Asserts that two numbers agree to one part in 10^9.
#[track_caller]
pub fn assert_near(got: Option<f64>, expected: f64) {
    let got = got.expect("a number");
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{got} instead of {expected}");
}
