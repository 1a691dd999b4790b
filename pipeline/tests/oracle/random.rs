//! Fleets and configurations drawn at random.
//!
//! `FLEETDIFF_ORACLE_FLEETS=200 cargo test --release -p fleetdiff-pipeline --test oracle random -- --nocapture` is the long form.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleetdiff_schemas::config::{CellBy, Comparing, Config};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{CountKind, Decoded};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow, EvidenceRow, FlagRow, LedgerRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use fleetdiff_simulation::fleet::{Cells, FleetBuilder, Ring};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::clocks::{ClocksOccurred, with_random_clocks};
use super::silences::with_silence;
use super::{agreed, builder, delivered, fleets, on_other_machines};

/// How many fleets are drawn, unless `FLEETDIFF_ORACLE_FLEETS` says otherwise.
const FLEETS: u64 = 20;

/// Every setting that decides rows, drawn at random.
pub(super) fn random_config(draws: &mut Xoshiro256PlusPlus) -> Config {
    let mut one_of = |values: &[i64]| values[draws.random_range(0..values.len())];
    let seconds = Nanos::from_seconds;
    Config {
        window: seconds(one_of(&[110, 120, 130, 200, 400, 400, 400, 700])),
        lateness: seconds(one_of(&[20, 30, 90, 150])),
        warm_up: seconds(one_of(&[0, 30, 30, 60])),
        drain: seconds(one_of(&[0, 0, 0, 20, 45])),
        epoch: seconds(one_of(&[200, 300, 600, 21_600, 21_600])),
        history: seconds(one_of(&[0, 300, 600, 604_800])),
        history_every: seconds(one_of(&[10, 30, 60])),
        evaluate_every: seconds(one_of(&[20, 40, 70])),
        report_every: seconds(one_of(&[100, 200, 300])),
        min_head_pods: u64::try_from(one_of(&[1, 2, 2, 4])).unwrap(),
        min_count: u64::try_from(one_of(&[10, 30, 30, 50])).unwrap(),
        q: [0.01, 0.05, 0.1][usize::try_from(one_of(&[0, 1, 1, 2])).unwrap()],
        cell_by: [CellBy::RegionCohort, CellBy::Region, CellBy::Cohort, CellBy::All]
            [usize::try_from(one_of(&[0, 0, 0, 0, 1, 2, 3])).unwrap()],
        count_kinds: match one_of(&[0, 1, 2, 2, 2, 2]) {
            0 => vec![CountKind::SelfCount],
            1 => vec![CountKind::Total],
            _ => CountKind::ALL.to_vec(),
        },
        young: seconds(one_of(&[0, 60, 120, 200, 600])),
        ..Config::default()
    }
}

/// Every kind of fleet in turn, each with a change for which particular statistics exist.
fn random_fleet(seed: u64, config: Config) -> (FleetBuilder, Config) {
    let plain = builder(seed);
    match seed % 5 {
        // Requests cost more in one region, in all functions; in every other fleet some buckets have no requests for
        // minutes.
        1 => {
            let rate = if seed.is_multiple_of(2) { 0.02 } else { 30.0 };
            (plain.requests_per_second(rate).regress_all(Cells::region("east"), 1.15).folded(), config)
        }
        // So few samples that most functions are rare: one is nearly new in the head, one comes from few pods.
        2 => {
            let few = plain.pods_per_cell(16, 16).samples_per_second(0.3).unchanged();
            let shifted = few.regress("asm_exc_page_fault", Cells::region("east"), 32.0);
            (shifted.regress_some("accept4", Cells::region("west"), 60.0, 0.1), config)
        }
        // A minority of the head's pods differs.
        3 => {
            let hit = plain.regions(["east"]).pods_per_cell(10, 14).unchanged().folded();
            (
                hit.regress_some("gc::mark_object", Cells::all(), 1.6, 0.2).regress_some(
                    "cache::probe",
                    Cells::all(),
                    2.0,
                    0.15,
                ),
                config,
            )
        }
        // Cohorts by request on two kinds of machine, folded, with frames without names; epochs end, looks are seldom, and the base
        // is two builds, whose pods have the same names.
        4 => {
            let mixed =
                plain.cohorts_by_request().pods_per_cell(6, 8).hardware(["old", "new"]).unknown_frames(0.02).folded();
            let rolling = Config { evaluate_every: Nanos::from_seconds(70), epoch: Nanos::from_seconds(300), ..config };
            let two_builds = Comparing::Named { base: vec!["v40".into(), "v41".into()], head: "v42".into() };
            if seed.is_multiple_of(2) {
                (mixed.ring(Ring::new("v40", 5)), Config { comparing: two_builds, ..rolling })
            } else {
                (mixed, rolling)
            }
        }
        // Nothing more, or a cell without a base.
        _ if seed.is_multiple_of(2) => (plain, config),
        _ => (plain.cell("west", "web", 4, 0), config),
    }
}

/// Gives the pods of the other build the names of the base's pods.
fn with_names_of_before(partitions: &mut [Vec<Decoded>]) {
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        let name = profile.identity.pod.as_str().replace("-v40-", "-v41-");
        Arc::make_mut(&mut profile.identity).pod = name.as_str().into();
    }
}

/// Three times as many requests for each pod of the head.
fn with_thrice_the_requests(partitions: &mut [Vec<Decoded>], head: &Build) {
    let profiles = partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten();
    for requests in
        profiles.filter(|profile| profile.identity.build == *head).filter_map(|profile| profile.requests.as_mut())
    {
        requests.count *= 3;
    }
}

/// How often the things occurred that these fleets must show.
#[derive(Debug, Default)]
struct Occurred {
    flags: usize,
    evidence: usize,
    evidence_of_all: usize,
    evidence_of_roll_ups: usize,
    evidence_of_several_strata: usize,
    uniform: usize,
    rare: usize,
    outlying: usize,
    compositional: usize,
    checked: i64,
    pods_needed: usize,
    always_valid: usize,
    explained: usize,
    strata_detail: usize,
    provisional: usize,
    /// Flags that pods of the same age confirmed, and did not.
    settled: [usize; 2],
    /// Warnings: requests a pod, age of pods, hardware.
    imbalance: [usize; 3],
}

impl Occurred {
    fn count(&mut self, tables: &Tables) {
        let rows = |of: fn(&CellRow) -> bool| tables.cells.iter().filter(|row| of(row)).count();
        self.flags += tables.flags.len();
        let evidence = |of: fn(&EvidenceRow) -> bool| tables.evidence.iter().filter(|row| of(row)).count();
        self.evidence += tables.evidence.len();
        self.evidence_of_all += evidence(|row| row.function.as_ref() == ALL_FUNCTIONS);
        self.evidence_of_roll_ups += evidence(|row| row.is_roll_up);
        self.evidence_of_several_strata += evidence(|row| row.stratum > 0);
        self.uniform += rows(|row| row.function == ALL_FUNCTIONS && row.verdict == Verdict::Regressed);
        self.rare += rows(|row| row.reason == Some(RowReason::Rare) && row.verdict == Verdict::Regressed);
        self.outlying += rows(|row| row.verdict == Verdict::SomePodsOutlying && !row.outlying_pods.is_empty());
        self.compositional += rows(|row| row.verdict == Verdict::Compositional && row.cause.is_some());
        self.explained += rows(|row| row.verdict.is_significant() && row.cause.is_some());
        self.strata_detail += rows(|row| row.reason == Some(RowReason::NoCommonStratum) && row.detail.is_some());
        self.provisional += rows(|row| row.provisional_until_at.is_some());
        let flags = |of: fn(&FlagRow) -> bool| tables.flags.iter().filter(|flag| of(flag)).count();
        self.settled[0] += confirmed(&tables.flags);
        self.settled[1] += flags(|flag| flag.cleared_because.as_deref() == Some("warm_up"));
        self.checked += tables.comparisons.iter().filter_map(|row| row.aa_check_tests).sum::<i64>();
        let warnings = || tables.comparisons.iter().flat_map(|row| &row.warnings);
        for (warned, subject) in self.imbalance.iter_mut().zip(["requests a pod", "age of pods", "hardware"]) {
            *warned += warnings().filter(|words| words.starts_with(subject)).count();
        }
        self.pods_needed += rows(|row| row.pods_needed.is_some());
        self.always_valid +=
            rows(|row| row.always_valid_ln_p.is_some_and(|ln_p| ln_p < 0.0) && row.always_valid_ratio.is_some());
    }
}

/// Flags that were provisional at one change and not at the next.
fn confirmed(flags: &[FlagRow]) -> usize {
    let mut provisional: BTreeSet<&str> = BTreeSet::new();
    let mut confirmed = 0;
    for flag in flags {
        if flag.row.provisional_until_at.is_some() {
            provisional.insert(&flag.flag_id);
        } else if provisional.remove(flag.flag_id.as_str()) {
            confirmed += 1;
        }
    }
    confirmed
}

#[test]
fn oracle_random_fleets() {
    let mut rows = 0;
    let mut occurred = Occurred::default();
    let mut clocks = ClocksOccurred::default();
    let fleets = fleets(FLEETS);
    for seed in 1..=fleets {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (builder, config) = random_fleet(seed, random_config(&mut draws));
        // Drawn apart, so that each seed keeps its fleet.
        let mut of_clocks = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x10_001));
        let config = Config { agreement: of_clocks.random_range(1..=5), ..config };
        println!("seed {seed}: {config:?}");
        let fleet = delivered(builder);
        let mut partitions = fleet.partitions(3);
        match seed % 5 {
            0 => on_other_machines(&mut partitions, fleet.head()),
            2 => with_thrice_the_requests(&mut partitions, fleet.head()),
            4 => with_names_of_before(&mut partitions),
            _ => {}
        }
        if draws.random_bool(0.25) {
            let from = fleet.time().start.plus(Nanos::from_seconds(draws.random_range(300..700)));
            partitions = with_silence(partitions, from, Nanos::from_seconds(draws.random_range(60..1500)));
        }
        println!("{}", with_random_clocks(&mut partitions, &mut of_clocks));
        let got = agreed(seed, &config, &partitions);
        assert!(got.ledger.iter().all(LedgerRow::balances), "seed {seed}");
        rows += got.cells.len();
        occurred.count(&got);
        clocks.count(&got);
    }
    println!("{rows} rows of cells equal over seeds 1 to {fleets}: {occurred:?}, {clocks:?}");
    assert!(clocks.all(), "{clocks:?}");
    let Occurred {
        flags,
        evidence,
        evidence_of_all,
        evidence_of_roll_ups,
        evidence_of_several_strata,
        uniform,
        rare,
        outlying,
        compositional,
        checked,
        pods_needed,
        always_valid,
        explained,
        strata_detail,
        provisional,
        settled,
        imbalance,
    } = occurred;
    assert!(rows > 1000 && flags >= 50 && checked > 1000, "too little to compare: {rows} rows, {occurred:?}");
    let behind = [evidence, evidence_of_all, evidence_of_roll_ups, evidence_of_several_strata];
    let each =
        [uniform, rare, outlying, compositional, pods_needed, always_valid, explained, strata_detail, provisional];
    assert!(
        each.iter().chain(&behind).chain(&settled).chain(&imbalance).all(|&times| times > 0),
        "something never occurred: {occurred:?}"
    );
}
