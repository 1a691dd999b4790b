//! The fan-out that the dataflow maintains equals the one computed from the flags and verdicts of each hop alone, and
//! its words name exactly the affected cells, with as few lines as possible.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_oracle as oracle;
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::fan_out::{Extent, FanOutRow};
use fleetdiff_schemas::profile::{CountKind, Decoded};
use fleetdiff_schemas::rows::{CellKey, ComparisonKey, FlagRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ComparisonVerdict, FanOutState, FlagState, Verdict};
use fleetdiff_simulation::fleet::{Cells, Fleet};
use proptest::prelude::*;

const START: i64 = 1_799_996_000;

/// A fleet whose head is rolled back, so that comparisons end: no profile of it after second 650.
fn records(seed: u64) -> (Vec<Vec<Decoded>>, Fleet) {
    let fleet = Fleet::seeded(seed)
        .regions(["east", "north", "west"])
        .cohorts(["tv", "web"])
        .pods_per_cell(8, 10)
        .samples_per_second(3000.0)
        .pod_cv(0.02)
        .starts_at(Nanos::from_seconds(START))
        .lasts(Nanos::from_seconds(1300))
        .deploy_after(Nanos::from_seconds(100))
        .regress(
            "serialize_video_chunk",
            if seed.is_multiple_of(2) { Cells::cohort("tv") } else { "east:tv,west:tv,west:web".parse().unwrap() },
            1.6,
        )
        .partition_count(3)
        .pods_per_record(5)
        .build();
    let mut partitions = fleet.partitions(3);
    let taken_back = Nanos::from_seconds(START + 650);
    for record in partitions.iter_mut().flatten() {
        let stays = |part: &Result<fleetdiff_schemas::profile::Profile, _>| {
            part.as_ref()
                .is_ok_and(|profile| profile.identity.build != *fleet.head() || profile.window.end < taken_back)
        };
        record.parts.retain(stays);
    }
    (partitions, fleet)
}

fn config() -> Config {
    Config {
        window: Nanos::from_seconds(400),
        report_every: Nanos::from_seconds(400),
        evaluate_every: Nanos::from_seconds(50),
        epoch: Nanos::from_seconds(350),
        warm_up: Nanos(0),
        ..Config::default()
    }
}

type Function = (ComparisonKey, CountKind, String);
type Reach = BTreeMap<CellKey, FanOutState>;

/// What is known at the close of a hop, from all rows written up to it.
fn known_at(tables: &Tables, end: Nanos) -> BTreeMap<Function, Reach> {
    let mut last: BTreeMap<&str, &FlagRow> = BTreeMap::new();
    tables
        .flags
        .iter()
        .filter(|flag| Nanos::from_seconds(10).0 * i64::try_from(flag.sequence.0 + 1).unwrap() <= end.0)
        .for_each(|flag| {
            last.insert(&flag.flag_id, flag);
        });
    let mut known: BTreeMap<Function, Reach> = BTreeMap::new();
    for flag in last.values().filter(|flag| flag.state != FlagState::Cleared) {
        let row = &flag.row;
        let state = if row.verdict == Verdict::Improved { FanOutState::Improved } else { FanOutState::Regressed };
        known
            .entry((row.comparison.clone(), row.count_kind, row.function.clone()))
            .or_default()
            .insert(row.cell.clone(), state);
    }
    for ((comparison, kind, _), reach) in &mut known {
        let of_spread = tables
            .comparisons
            .iter()
            .filter(|row| row.comparison == *comparison && row.count_kind == *kind && row.cell.region.as_str() != "*");
        for row in of_spread.filter(|row| row.window_end_at <= end) {
            let clean = row.verdict != ComparisonVerdict::NotComparable
                && row.equivalent_share.is_some_and(|share| share >= 0.7);
            let state = if clean { FanOutState::Clean } else { FanOutState::Unknown };
            let entry = reach.entry(row.cell.clone()).or_insert(state);
            if matches!(entry, FanOutState::Clean | FanOutState::Unknown) {
                *entry = state;
            }
        }
    }
    known
}

/// The expected rows: one whenever the state, computed anew at each hop, has changed.
fn plainly(tables: &Tables) -> Vec<(Nanos, Function, Reach)> {
    let ends: BTreeSet<Nanos> = tables.ledger.iter().map(|row| row.hop_at.plus(Nanos::from_seconds(10))).collect();
    let mut before = BTreeMap::new();
    let mut rows = Vec::new();
    for end in ends {
        let now = known_at(tables, end);
        let functions: BTreeSet<_> = before.keys().chain(now.keys()).cloned().collect();
        for function in functions.into_iter().filter(|function| before.get(function) != now.get(function)) {
            let reach = now.get(&function).cloned().unwrap_or_default();
            rows.push((end, function, reach));
        }
        before = now;
    }
    rows
}

fn reach(row: &FanOutRow) -> (Nanos, Function, Reach) {
    let function = (row.comparison.clone(), row.count_kind, row.function.clone());
    (row.changed_at, function, row.cells.iter().map(|known| (known.cell.clone(), known.state)).collect())
}

#[test]
fn oracle_fan_out_equals_one_made_from_each_hop_alone() {
    let (mut rows, mut withdrawn, mut partly, mut clean) = (0, 0, 0, 0);
    for seed in 1..=2 {
        let (partitions, _) = records(seed);
        let truth = oracle::batch(&config(), &partitions);
        let tables = run_in_memory(&config(), partitions.clone(), 1 + usize::try_from(seed % 3).unwrap()).unwrap();
        let agreement =
            oracle::compare(&truth, &tables).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
        assert!(agreement.flags > 100, "too little to compare: {agreement:?}");
        let (expected, got) = (plainly(&truth), tables.fan_out);
        let got_plain: Vec<_> = got.iter().map(reach).collect();
        assert_eq!(got_plain, expected, "seed {seed}");
        for row in &got {
            let grid: Vec<&CellKey> = row.cells.iter().map(|known| &known.cell).collect();
            for (state, words) in [(FanOutState::Regressed, &row.regressed), (FanOutState::Improved, &row.improved)] {
                let meant: BTreeSet<&CellKey> =
                    row.cells.iter().filter(|known| known.state == state).map(|known| &known.cell).collect();
                assert_eq!(named(words, &grid), meant, "seed {seed}: {words:?}");
            }
        }
        rows += got.len();
        clean += got.iter().filter(|row| row.cells.iter().any(|known| known.state == FanOutState::Clean)).count();
        withdrawn += got.iter().filter(|row| row.cells.is_empty()).count();
        partly += got.iter().filter(|row| !row.regressed.is_empty() && row.regressed != [Extent::Everywhere]).count();
    }
    assert!(
        rows > 100 && withdrawn > 20 && partly > 20 && clean > 20,
        "too little to compare: {rows} rows, {partly} partly, {clean} clean, {withdrawn} withdrawn"
    );
}

#[test]
fn order_fan_out_does_not_depend_on_workers() {
    let (partitions, _) = records(7);
    let one = run_in_memory(&config(), partitions.clone(), 1).unwrap();
    assert!(one.fan_out.len() > 10, "{} rows", one.fan_out.len());
    for workers in [2, 4] {
        assert_eq!(
            one.fan_out,
            run_in_memory(&config(), partitions.clone(), workers).unwrap().fan_out,
            "{workers} workers"
        );
    }
}

/// The cells that the words name.
fn named<'a>(words: &[Extent], grid: &[&'a CellKey]) -> BTreeSet<&'a CellKey> {
    let is_named = |cell: &CellKey| {
        words.iter().any(|extent| match extent {
            Extent::Everywhere => true,
            Extent::Cohort(cohort) => cell.cohort == *cohort,
            Extent::Region(region) => cell.region == *region,
            Extent::CohortIn(cohort, regions) => cell.cohort == *cohort && regions.contains(&cell.region),
            Extent::RegionFor(region, cohorts) => cell.region == *region && cohorts.contains(&cell.cohort),
        })
    };
    grid.iter().copied().filter(|cell| is_named(cell)).collect()
}

/// The fewest lines of a grid that touch every affected cell, by trying all combinations.
fn fewest(meant: &BTreeSet<&CellKey>) -> u32 {
    let cohorts: Vec<_> = meant.iter().map(|cell| &cell.cohort).collect::<BTreeSet<_>>().into_iter().collect();
    let regions: Vec<_> = meant.iter().map(|cell| &cell.region).collect::<BTreeSet<_>>().into_iter().collect();
    let touched = |lines: u32, cell: &CellKey| {
        let cohort = cohorts.iter().position(|cohort| **cohort == cell.cohort).unwrap();
        let region = cohorts.len() + regions.iter().position(|region| **region == cell.region).unwrap();
        lines >> cohort & 1 == 1 || lines >> region & 1 == 1
    };
    let all = 0..1u32 << (cohorts.len() + regions.len());
    all.filter(|&lines| meant.iter().all(|cell| touched(lines, cell))).map(u32::count_ones).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The law: words name exactly the affected cells, say "all" if all are, and fewer lines would not be enough.
    #[test]
    fn words_are_exact_and_fewest(known in proptest::collection::vec(proptest::option::weighted(0.9, any::<bool>()), 16)) {
        let all: Vec<CellKey> = (0..16).map(|i| CellKey { region: format!("r{}", i / 4).as_str().into(), cohort: format!("c{}", i % 4).as_str().into() }).collect();
        let grid: Vec<&CellKey> = all.iter().zip(&known).filter(|(_, known)| known.is_some()).map(|(cell, _)| cell).collect();
        let meant: BTreeSet<&CellKey> = all.iter().zip(&known).filter(|(_, known)| **known == Some(true)).map(|(cell, _)| cell).collect();
        let words = extents(meant.iter().copied(), grid.iter().copied());
        prop_assert_eq!(named(&words, &grid), meant.clone());
        if !meant.is_empty() && meant.len() < grid.len() {
            prop_assert_eq!(u32::try_from(words.len()).unwrap(), fewest(&meant), "{:?}", words);
        } else {
            prop_assert!(words.len() <= 1);
        }
        for line in &words {
            let cells: Vec<_> = grid.iter().filter(|cell| match line {
                Extent::CohortIn(cohort, _) => cell.cohort == *cohort,
                Extent::RegionFor(region, _) => cell.region == *region,
                _ => false,
            }).collect();
            let whole = !cells.is_empty() && cells.iter().all(|cell| meant.contains(**cell));
            prop_assert!(!whole, "{:?} is all of its line and does not say so", line);
        }
    }
}
