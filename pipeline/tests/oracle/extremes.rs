//! Fleets at the limits of what numbers can hold: whatever the input, no output is NaN, only figures that may be
//! infinite are, and rows are the same to the last bit with any number of workers. Small fleets are also compared with
//! the oracle.

use std::sync::Arc;

use fleetdiff_oracle as oracle;
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{CountKind, Decoded, FoldedFunction, Profile, Samples};
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::tables::{TableRow, Value};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Support;
use fleetdiff_simulation::fleet::{Fleet, FleetBuilder};

const HUGE: u64 = 1_000_000_000;

fn config() -> Config {
    let seconds = Nanos::from_seconds;
    Config {
        window: seconds(200),
        report_every: seconds(100),
        evaluate_every: seconds(50),
        warm_up: seconds(0),
        ..Config::default()
    }
}

fn builder() -> FleetBuilder {
    Fleet::seeded(31)
        .regions(["east", "west"])
        .cohorts(["web"])
        .pods_per_cell(6, 12)
        .samples_per_second(50.0)
        .lasts(Nanos::from_seconds(420))
        .deploy_after(Nanos::from_seconds(50))
        .folded()
}

/// The fleet's partitions, each profile changed.
fn changed(fleet: &Fleet, change: impl Fn(&mut Profile)) -> Vec<Vec<Decoded>> {
    let mut partitions = fleet.partitions(2);
    partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten().for_each(change);
    partitions
}

fn identity(profile: &mut Profile) -> &mut Identity {
    Arc::make_mut(&mut profile.identity)
}

/// Each count multiplied by this.
fn multiply(profile: &mut Profile, by: u64) {
    let Samples::Folded { cohorts, .. } = &mut profile.samples else { return };
    for part in cohorts {
        part.samples *= by;
        for function in &mut part.functions {
            (function.own, function.total) = (function.own * by, function.total * by);
        }
    }
}

/// Other names, and one sample of each in every profile.
fn with_functions(profile: &mut Profile, names: &Arc<[Arc<str>]>) {
    let Samples::Folded { cohorts, content } = &mut profile.samples else { return };
    *content ^= u128::try_from(names.len()).unwrap();
    profile.names = Arc::clone(names);
    for part in cohorts {
        part.samples = u64::try_from(names.len()).unwrap();
        part.functions = (0..).zip(names.iter()).map(|(name, _)| FoldedFunction { name, own: 1, total: 1 }).collect();
    }
}

fn names(functions: usize) -> Arc<[Arc<str>]> {
    (0..functions).map(|function| Arc::from(format!("f{function}"))).collect()
}

/// The tables of a fleet, after checks that one, two and three workers agree to the last bit and that nothing is NaN.
fn tables(partitions: &[Vec<Decoded>]) -> Tables {
    tables_with(&config(), partitions, &[2, 3])
}

fn tables_with(config: &Config, partitions: &[Vec<Decoded>], other_workers: &[usize]) -> Tables {
    let one = run_in_memory(config, partitions.to_vec(), 1).unwrap();
    for workers in other_workers {
        assert!(
            one == run_in_memory(config, partitions.to_vec(), *workers).unwrap(),
            "{workers} workers give other rows"
        );
    }
    assert!(!one.cells.is_empty() && !one.comparisons.is_empty(), "nothing to look at");
    one.cells.iter().for_each(assert_numbers);
    one.flags.iter().for_each(|flag| assert_numbers(&flag.row));
    one.comparisons.iter().for_each(|row| assert_finite(row, |_| false));
    one
}

fn assert_numbers(row: &CellRow) {
    assert!(row.seconds_to_significance.is_none_or(|seconds| seconds >= 0.0), "{row:?}");
    assert!(
        row.always_valid_ratio
            .is_none_or(|ratio| ratio.value.is_finite() && 0.0 <= ratio.low && ratio.low <= ratio.high),
        "{row:?}"
    );
    // What may be infinite: the time where more time cannot help, and the always-valid interval where there is hardly any data.
    assert_finite(row, |name| name == "seconds_to_significance" || name.starts_with("always_valid_ratio"));
}

/// Whether the numbers of a row are finite, but for columns that need not be.
fn assert_finite<R: TableRow + std::fmt::Debug>(row: &R, may_be_infinite: impl Fn(&str) -> bool) {
    for column in R::columns() {
        if let Value::Number(number) = column.value(row) {
            assert!(number.is_finite() || may_be_infinite(column.name), "{}: {row:?}", column.name);
        }
    }
}

fn assert_oracle(partitions: &[Vec<Decoded>], got: &Tables) {
    oracle::compare(&oracle::batch(&config(), partitions), got).unwrap_or_else(|difference| panic!("{difference}"));
}

#[test]
fn order_extreme_totals() {
    let fleet = builder().build();
    let partitions = changed(&fleet, |profile| multiply(profile, HUGE));
    let got = tables(&partitions);
    let largest = got.cells.iter().map(|row| row.head.total.max(row.base.total)).max().unwrap();
    assert!(largest > 1_000_000_000_000, "{largest}");
    let tested = got.cells.iter().filter(|row| row.ln_p.is_some()).count();
    assert!(tested > 1000, "{tested} tested");
    // Multiplied samples differ between pods as much as before: the multiplied Poisson noise is a difference between
    // pods.
    assert!(
        got.cells.iter().all(|row| [row.head_dispersion, row.base_dispersion].iter().flatten().all(|phi| *phi > 0.0))
    );
}

#[test]
fn order_extreme_zeros() {
    let fleet = builder().build();
    let only = |profile: &mut Profile, head: bool| {
        let name: Arc<str> = if head { "only_head" } else { "only_base" }.into();
        let place = u32::try_from(profile.names.len()).unwrap();
        profile.names = profile.names.iter().cloned().chain([name]).collect();
        if let Samples::Folded { cohorts, .. } = &mut profile.samples {
            for part in cohorts {
                part.samples += 20;
                part.functions.push(FoldedFunction { name: place, own: 20, total: 20 });
            }
        }
    };
    let partitions = changed(&fleet, |profile| {
        let head = profile.identity.build == *fleet.head();
        only(profile, head);
    });
    let got = tables(&partitions);
    for (function, verdict) in [
        ("only_head", fleetdiff_schemas::verdict::Verdict::Regressed),
        ("only_base", fleetdiff_schemas::verdict::Verdict::Improved),
    ] {
        let rows: Vec<&CellRow> =
            got.cells.iter().filter(|row| row.function == function && row.verdict == verdict).collect();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row.ratio.is_none() && row.adjusted_ratio.is_none()),
            "{function}: {rows:?}"
        );
    }
    assert_oracle(&partitions, &got);
}

#[test]
fn order_extreme_one_pod() {
    for (head, base) in [(1, 12), (6, 1), (1, 1)] {
        let fleet = builder().regions(["east"]).pods_per_cell(head, base).already_deployed().build();
        let comparing = fleetdiff_schemas::config::Comparing::Named {
            base: vec![fleet.base().clone()],
            head: fleet.head().clone(),
        };
        let config = Config { comparing, ..config() };
        let partitions = fleet.partitions(2);
        let got = run_in_memory(&config, partitions.clone(), 2).unwrap();
        assert!(got == run_in_memory(&config, partitions.clone(), 1).unwrap());
        got.cells.iter().for_each(assert_numbers);
        let rows = got.cells.iter().filter(|row| row.ln_p_iid.is_some()).count();
        assert!(rows > 100, "{rows} rows of {head} v {base} pods");
        assert!(
            got.cells
                .iter()
                .all(|row| row.support == Support::Untestable && row.ln_p.is_none() && !row.verdict.is_significant())
        );
        assert!(got.flags.is_empty());
        oracle::compare(&oracle::batch(&config, &partitions), &got)
            .unwrap_or_else(|difference| panic!("{head} v {base}: {difference}"));
    }
}

#[test]
fn order_extreme_one_bucket() {
    let fleet = builder().build();
    let partitions = changed(&fleet, |profile| identity(profile).node = Some("the-only-node".into()));
    let got = tables(&partitions);
    let rows = got.cells.iter().filter(|row| row.ln_p_iid.is_some()).count();
    assert!(rows > 1000, "{rows} rows");
    assert!(got.cells.iter().all(|row| row.head.buckets <= 1
        && row.base.buckets <= 1
        && row.ln_p.is_none()
        && !row.verdict.is_significant()));
    assert!(got.flags.is_empty());
    assert_oracle(&partitions, &got);
}

#[test]
fn order_extreme_one_function() {
    let fleet = builder().build();
    let all = names(1);
    let partitions = changed(&fleet, |profile| with_functions(profile, &all));
    let got = tables(&partitions);
    assert!(got.cells.iter().all(|row| row.function != "f0" || !row.verdict.is_significant()));
    assert!(got.flags.is_empty());
    assert_oracle(&partitions, &got);
}

#[test]
fn order_extreme_many_functions() {
    let fleet = builder().regions(["east"]).pods_per_cell(3, 5).lasts(Nanos::from_seconds(150)).build();
    let all = names(100_000);
    let partitions = changed(&fleet, |profile| with_functions(profile, &all));
    let own = Config { count_kinds: vec![CountKind::SelfCount], ..config() };
    let got = tables_with(&own, &partitions, &[2]);
    let met: std::collections::BTreeSet<&str> =
        got.cells.iter().map(|row| row.function.as_str()).filter(|name| name.starts_with('f')).collect();
    let tested = got.cells.iter().filter(|row| row.ln_p.is_some()).count();
    assert!(met.len() == 100_000 && tested >= 100_000, "{} functions, {tested} tested", met.len());
    assert!(
        got.cells.iter().all(|row| !row.verdict.is_significant()),
        "one sample of each function in each profile is no change"
    );
}
