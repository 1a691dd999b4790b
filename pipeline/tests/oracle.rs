//! The dataflow writes the same rows as the slow batch computation.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "oracle/archived.rs"]
mod archived;
#[path = "oracle/checkpoints.rs"]
mod checkpoints;
#[path = "oracle/clocks.rs"]
mod clocks;
#[path = "oracle/cluster.rs"]
mod cluster;
#[path = "oracle/cumulative.rs"]
mod cumulative;
#[path = "oracle/drain.rs"]
mod drain;
#[path = "oracle/extremes.rs"]
mod extremes;
#[path = "oracle/fading.rs"]
mod fading;
#[path = "oracle/fan_out.rs"]
mod fan_out;
#[path = "oracle/few.rs"]
mod few;
#[path = "support/filed.rs"]
mod filed;
#[path = "oracle/forgotten.rs"]
mod forgotten;
#[path = "support/going_on.rs"]
mod going_on;
#[path = "oracle/horizons.rs"]
mod horizons;
#[path = "oracle/idle.rs"]
mod idle;
#[path = "oracle/incidents.rs"]
mod incidents;
#[path = "oracle/limits.rs"]
mod limits;
#[path = "oracle/load.rs"]
mod load;
#[path = "support/log.rs"]
mod log;
#[path = "oracle/memory.rs"]
mod memory;
#[path = "oracle/moved.rs"]
mod moved;
#[path = "oracle/names.rs"]
mod names;
#[path = "support/processes.rs"]
mod processes;
#[path = "oracle/random.rs"]
mod random;
#[path = "support/rebuilt.rs"]
mod rebuilt;
#[path = "oracle/requests.rs"]
mod requests;
#[path = "oracle/rings.rs"]
mod rings;
#[path = "support/rows.rs"]
mod rows;
#[path = "oracle/shards.rs"]
mod shards;
#[path = "oracle/silences.rs"]
mod silences;
#[path = "oracle/stacks.rs"]
mod stacks;
#[path = "support/together.rs"]
mod together;
#[path = "oracle/unlabelled.rs"]
mod unlabelled;
#[path = "oracle/waiting.rs"]
mod waiting;
#[path = "oracle/young.rs"]
mod young;

use std::ops::RangeInclusive;
use std::sync::Arc;

use fleetdiff_oracle as oracle;
use fleetdiff_pipeline::run::in_memory::{Collected, run_in_memory};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::{Archived, CellRow, Tables};
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, RowReason, Scope};
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tikv_jemallocator::Jemalloc;

use self::going_on::Taken;
use self::processes::Workers;

/// As the program: a good part of the time is spent in it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// How many fleets are drawn: so many, unless `FLEETDIFF_ORACLE_FLEETS` says otherwise.
fn fleets(number: u64) -> u64 {
    std::env::var("FLEETDIFF_ORACLE_FLEETS").map_or(number, |number| number.parse().unwrap())
}

/// The seeds of a test: the first third of them, or as many as `FLEETDIFF_ORACLE_FLEETS` asks for and there are.
fn seeds(all: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
    let third = (all.end() - all.start() + 1).div_ceil(3);
    all.zip(0..fleets(third)).map(|(seed, _)| seed)
}

fn fleet(seed: u64) -> Fleet {
    delivered(builder(seed))
}

/// Some profiles come late, some twice, some pods restart.
fn delivered(builder: FleetBuilder) -> Fleet {
    builder
        .late(0.02, Nanos::from_seconds(120))
        .duplicates(0.02)
        .restarts(2)
        .partition_count(3)
        .pods_per_record(5)
        .build()
}

/// A deploy with a real change, nothing late and nothing twice.
fn builder(seed: u64) -> FleetBuilder {
    Fleet::seeded(seed)
        .regions(["east", "west"])
        .cohorts(["tv", "web"])
        .pods_per_cell(4, 6)
        .samples_per_second(100.0)
        .pod_cv(0.05)
        .starts_at(Nanos::from_seconds(1_799_996_000 + i64::try_from(seed).unwrap() * 100))
        .lasts(Nanos::from_seconds(900))
        .deploy_after(Nanos::from_seconds(200))
        .regress("serialize_video_chunk", Cells::cohort("tv"), 1.8)
}

fn config() -> Config {
    Config {
        window: Nanos::from_seconds(400),
        report_every: Nanos::from_seconds(300),
        evaluate_every: Nanos::from_seconds(40),
        warm_up: Nanos::from_seconds(30),
        ..Config::default()
    }
}

/// Keeps rows that come in their time ([`filed`]).
#[derive(Clone)]
struct Filed {
    collected: Collected,
    clock: HopClock,
}

impl Sink for Filed {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        filed::assert_filed(self.clock, hop, &tables);
        self.collected.take(hop, tables)
    }
}

/// The tables of the dataflow, on one to four workers by the seed, which must be those of the oracle. A run that goes on from a
/// checkpoint, on another number of workers or in two processes, writes the same from there on: that of every second seed does.
fn agreed(seed: u64, config: &Config, partitions: &[Vec<Decoded>]) -> Tables {
    let partitions = &partitions.iter().cloned().map(numbered).collect::<Vec<_>>();
    let filed = Filed { collected: Collected::default(), clock: config.clock() };
    let collected = filed.collected.clone();
    let number = usize::try_from(seed).unwrap();
    let taken = Taken::by_run(config, partitions, 1 + number % 4, 1 + seed * 5 % 13, filed);
    let got = collected.tables();
    if let Err(difference) = oracle::compare(&oracle::batch(config, partitions), &got) {
        panic!("seed {seed}: {difference}");
    }
    if taken.count() > 0 && number % 2 == 0 {
        let gone_on = taken.go_on(number * 7, Workers::in_one(1 + (number + 1) % 3), &format!("seed {seed}"));
        if gone_on.count() > 0 && number % 4 == 0 {
            let workers = Workers { processes: 2, each: 1 + number / 4 % 2 };
            gone_on.go_on(number * 11, workers, &format!("seed {seed}, twice"));
        }
    }
    let of_roll_ups =
        got.cells.iter().filter(|row| row.is_roll_up && row.q_value.is_some_and(|q_value| q_value <= config.q));
    let by_others = of_roll_ups.filter(|row| row.ln_p_row.is_none_or(|ln_p| ln_p > config.q.ln())).count();
    assert_eq!(by_others, 0, "seed {seed}: roll-ups that are significant for what single cells show");
    got
}

/// Whether all rows but those of the archive are equal.
fn agreed_but_archived(one: Tables, other: Tables) -> bool {
    Tables { archived: Archived::default(), ..one } == Tables { archived: Archived::default(), ..other }
}

/// Records in the order of their offsets, also if they are those of several fleets one after another.
fn numbered(mut records: Vec<Decoded>) -> Vec<Decoded> {
    if !records.is_sorted_by(|one, next| one.position.offset < next.position.offset) {
        (0..).zip(&mut records).for_each(|(offset, record)| record.position.offset = offset);
    }
    records
}

/// Puts the head's pods of one cell where there is no base pod.
fn on_other_machines(partitions: &mut [Vec<Decoded>], head: &Build) {
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        let id = &profile.identity;
        if id.build == *head && id.region.as_str() == "east" && id.cohort.as_str() == "web" {
            Arc::make_mut(&mut profile.identity).hardware = "other".into();
        }
    }
}

/// Half of the cost of marking moves to sweeping, under the same caller.
#[test]
fn oracle_cost_shift() {
    let plain = || builder(41).unchanged().pods_per_cell(6, 12).warm_up(Nanos::from_seconds(30));
    let shifted = plain().regress("gc::mark_object", Cells::all(), 0.5).regress("gc::sweep_block", Cells::all(), 2.31);
    let partitions = shifted.build().partitions(2);
    let got = run_in_memory(&config(), partitions.clone(), 2).unwrap();
    oracle::compare(&oracle::batch(&config(), &partitions), &got).unwrap_or_else(|difference| panic!("{difference}"));
    let details = |function: &str| {
        got.flags
            .iter()
            .filter(|flag| flag.row.function == function)
            .filter_map(|flag| flag.row.detail.as_deref())
            .collect::<Vec<_>>()
    };
    let (to, from) = (details("gc::sweep_block"), details("gc::mark_object"));
    assert!(to.contains(&"cost shift under gc::incremental_step: work moved here from gc::mark_object"), "{to:?}");
    assert!(from.contains(&"cost shift under gc::incremental_step: work moved to gc::sweep_block"), "{from:?}");
    assert!(got.flags.iter().all(|flag| ["gc::sweep_block", "gc::mark_object"].contains(&flag.row.function.as_str())));
    // The twin: the saved cost does not appear elsewhere.
    let saved = plain().regress("gc::mark_object", Cells::all(), 0.5).build().partitions(2);
    let got = run_in_memory(&config(), saved.clone(), 2).unwrap();
    let marked = got.flags.iter().filter(|flag| flag.row.function == "gc::mark_object").count();
    assert!(marked > 0 && got.flags.iter().all(|flag| flag.row.detail.is_none()), "{marked} flags");
}

/// A full roll-out: every pod of the base is replaced, and for most of the run there is only the head.
fn rolled_out(seed: u64) -> (FleetBuilder, Config) {
    // In every fourth fleet the hour ends before the head is alone, so that the base has no history at that hour.
    let into_the_hour = if seed % 4 == 3 { 3000 } else { 100 * i64::try_from(seed % 16).unwrap() };
    let plain = builder(seed)
        .pods_per_cell(0, 7)
        .samples_per_second(60.0)
        .starts_at(Nanos::from_seconds(1_799_992_800 + into_the_hour))
        .lasts(Nanos::from_seconds(1800))
        .rollout(Nanos::from_seconds(300), Nanos::from_seconds(150));
    let config = Config { history_every: Nanos::from_seconds(30), report_every: Nanos::from_seconds(200), ..config() };
    match seed % 3 {
        // Pods come back, on other machines; the history of the whole base is dropped before the end.
        0 => (
            plain.hardware(["old", "new"]).unknown_frames(0.02).folded(),
            Config { history: Nanos::from_seconds(300), ..config },
        ),
        // Cohorts by request, with requests; every hop is kept.
        1 => (
            plain.cohorts_by_request().pods_per_cell(0, 12).requests_per_second(30.0).folded(),
            Config { history_every: Nanos::from_seconds(10), ..config },
        ),
        _ => (plain, config),
    }
}

/// How often something occurred in comparisons whose base is history.
#[derive(Debug, Default)]
struct PastOccurred {
    verdicts: usize,
    regressed: usize,
    rows: usize,
    significant: usize,
    rolled_up: usize,
    no_base: usize,
    strata_detail: usize,
    ended: usize,
}

impl PastOccurred {
    fn count(&mut self, tables: &Tables) {
        let of_history: Vec<&CellRow> = tables
            .cells
            .iter()
            .filter(|row| row.detail.as_ref().is_some_and(|detail| detail.starts_with("base is the history")))
            .collect();
        let rows = |of: fn(&CellRow) -> bool| of_history.iter().filter(|row| of(row)).count();
        let verdicts = || tables.comparisons.iter().filter(|row| row.base_kind == BaseKind::History);
        self.verdicts += verdicts().count();
        self.regressed += verdicts().filter(|row| row.verdict == ComparisonVerdict::Regressed).count();
        self.rows += of_history.len();
        self.significant += rows(|row| row.verdict.is_significant());
        self.rolled_up += rows(|row| row.verdict.is_significant() && row.cell.is_over_all());
        self.no_base += rows(|row| row.reason == Some(RowReason::NoBase));
        self.strata_detail += rows(|row| row.reason == Some(RowReason::NoCommonStratum));
        let last = tables.ledger.iter().map(|row| row.hop_at).max().unwrap();
        self.ended += usize::from(verdicts().count() > 0 && verdicts().all(|row| row.window_end_at <= last));
        assert!(of_history.iter().all(|row| row.scope == Scope::Window
            && row.rare_ln_p.is_none()
            && row.outlier_ln_p.is_none()
            && row.per_request_ln_p.is_none()));
        let after = verdicts().map(|row| row.window_end_at).min();
        assert!(
            tables.flags.iter().all(|flag| after.is_none_or(|after| flag.row.window_end_at < after)),
            "no flag is raised against history"
        );
    }
}

#[test]
fn oracle_full_roll_outs() {
    let mut occurred = PastOccurred::default();
    for seed in seeds(301..=316) {
        let (builder, config) = rolled_out(seed);
        let fleet = delivered(builder);
        let mut partitions = fleet.partitions(3);
        if seed % 2 == 0 {
            on_other_machines(&mut partitions, fleet.head());
        }
        occurred.count(&agreed(seed, &config, &partitions));
    }
    println!("full roll-outs: {occurred:?}");
    let PastOccurred { verdicts, regressed, rows, significant, rolled_up, no_base, strata_detail, ended } = occurred;
    assert!(rows > 1000 && verdicts > 100, "too little to compare: {occurred:?}");
    let each = [regressed, significant, rolled_up, no_base, strata_detail, ended];
    assert!(each.iter().all(|&times| times > 0), "something never occurred: {occurred:?}");
}

/// A roll-out on two kinds of machine, ten times as long as the window: most time blocks of the epoch have closed, and
/// looks use their sums.
#[test]
fn oracle_roll_out_over_closed_blocks() {
    let config = Config {
        window: Nanos::from_seconds(180),
        report_every: Nanos::from_seconds(600),
        evaluate_every: Nanos::from_seconds(40),
        ..config()
    };
    let (mut most, mut flags, mut dropped) = (0, 0, 0);
    for seed in seeds(31..=34) {
        let rolling =
            builder(seed).regions(["east"]).pods_per_cell(0, 12).hardware(["old", "new"]).samples_per_second(60.0);
        let rolling =
            rolling.lasts(Nanos::from_seconds(2100)).rollout(Nanos::from_seconds(150), Nanos::from_seconds(1800));
        let partitions = delivered(rolling.requests_per_second(20.0)).partitions(3);
        let expected = oracle::batch(&config, &partitions);
        if let Err(difference) = oracle::compare(&expected, &run_in_memory(&config, partitions.clone(), 2).unwrap()) {
            panic!("seed {seed}: {difference}");
        }
        most = most.max(expected.comparisons.iter().map(|row| row.time_blocks).max().unwrap_or(0));
        dropped = dropped.max(expected.comparisons.iter().map(|row| row.strata_dropped).max().unwrap_or(0));
        flags += expected.flags.len();
    }
    println!("equal: up to {most} time blocks with both builds, {dropped} strata without, {flags} flags");
    assert!(
        most >= 5 && flags > 0 && dropped > 0,
        "nothing closed: {most} blocks, {dropped} strata dropped, {flags} flags"
    );
}

#[test]
fn order_workers_and_batches_change_nothing() {
    let config = Config {
        window: Nanos::from_seconds(400),
        report_every: Nanos::from_seconds(200),
        warm_up: Nanos::from_seconds(30),
        ..Config::default()
    };
    for seed in seeds(101..=102) {
        let partitions = fleet(seed).partitions(3);
        let one = run_in_memory(&config, partitions.clone(), 1).unwrap();
        assert!(!one.cells.is_empty() && !one.ledger.is_empty());
        for workers in [2, 4] {
            assert_eq!(
                one,
                run_in_memory(&config, partitions.clone(), workers).unwrap(),
                "seed {seed}, {workers} workers"
            );
        }
    }
}

/// Nothing is late here, so rows must not depend on how records arrived: in which order within lateness, in how many
/// partitions, or how many pods shared a record. Only `ledger` counts records, whose number changes with batching.
#[test]
fn order_arrival_and_batches_within_lateness_change_nothing() {
    let config = Config {
        window: Nanos::from_seconds(400),
        report_every: Nanos::from_seconds(200),
        warm_up: Nanos::from_seconds(30),
        ..Config::default()
    };
    for seed in seeds(201..=202) {
        println!("seed {seed}");
        let fleet = |pods_per_record| builder(seed).pods_per_record(pods_per_record).build();
        let in_order = without_records(run_in_memory(&config, fleet(1).partitions(3), 1).unwrap());
        assert!(in_order.cells.len() > 1000 && !in_order.flags.is_empty(), "seed {seed}: too little to compare");
        for (pods_per_record, partitions, workers) in [(1, 1, 2), (1, 5, 3), (7, 3, 1), (40, 2, 4)] {
            let mut records = fleet(pods_per_record).partitions(partitions);
            for (partition, records) in (0..).zip(&mut records) {
                shuffle(records, config.lateness, seed * 100 + partition);
            }
            let got = without_records(run_in_memory(&config, records.clone(), workers).unwrap());
            assert_eq!(
                in_order, got,
                "seed {seed}: {pods_per_record} pods a record, {partitions} partitions, {workers} workers"
            );
        }
    }
}

/// Moves every record back by up to less than `lateness` of event time.
fn shuffle(records: &mut [Decoded], lateness: Nanos, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    records.sort_by_cached_key(|record| {
        let times = record.parts.iter().flatten().map(|profile| profile.window.end.0);
        times.max().unwrap_or(0) + random.random_range(0..lateness.0 / 2)
    });
}

fn without_records(mut tables: Tables) -> Tables {
    for row in &mut tables.ledger {
        row.records_consumed = 0;
        row.records_decoded = 0;
    }
    tables
}
