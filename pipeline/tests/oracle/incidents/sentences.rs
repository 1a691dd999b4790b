//! What is advised is read back from the sentences and compared with the rows, over fleets drawn at random: whoever is named is so
//! in the rows, whoever the rows flag is named, and only what is firm is to be rolled back.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::advice::words;
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, ComparisonRow, FlagRow, IncidentRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ComparisonVerdict, IncidentState, Severity, Support};
use fleetdiff_simulation::fleet::{Cells, Fleet};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Fleets that are drawn.
const FLEETS: u64 = 12;
const REGIONS: [&str; 2] = ["north", "south"];
const COHORTS: [&str; 2] = ["tv", "web"];

/// What is advised for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Advice {
    RollBack,
    Repeat,
    Doubtful,
    Young,
    Stay,
    Pods,
    Wait,
    Needs,
    Unknown,
}

impl Advice {
    const ALL: [Self; 9] = [
        Self::RollBack,
        Self::Repeat,
        Self::Doubtful,
        Self::Young,
        Self::Stay,
        Self::Pods,
        Self::Wait,
        Self::Needs,
        Self::Unknown,
    ];

    /// What stands before and after the cells.
    fn frame(self) -> (&'static str, &'static str) {
        match self {
            Self::RollBack => ("Roll back v42 in ", "."),
            Self::Repeat => ("Repeat with more pods in ", " before v42 is rolled back there: "),
            Self::Doubtful => {
                ("See the warnings before v42 is rolled back in ", ": pods differ there by something other")
            }
            Self::Young => (" before v42 is rolled back in ", ": its pods are young there"),
            Self::Stay => ("v42 may stay in ", "."),
            Self::Pods => (" in ", " first: there v42 did not change as a whole"),
            Self::Wait => (" in ", ", where "),
            Self::Needs => ("The result is inconclusive in ", ": "),
            Self::Unknown => ("Nothing is known in ", ": no time block and hardware has samples of both builds."),
        }
    }
}

/// What a text says of each of these cells: every part of the grid is put into every frame.
fn read(text: &str, grid: &BTreeSet<CellKey>) -> BTreeMap<CellKey, Advice> {
    let cells: Vec<&CellKey> = grid.iter().collect();
    let mut read = BTreeMap::new();
    for part in 1..1_u32 << cells.len() {
        let meant: Vec<&CellKey> =
            (0..).zip(&cells).filter(|(place, _)| part >> place & 1 == 1).map(|(_, cell)| *cell).collect();
        let place = words(&extents(meant.iter().copied(), grid));
        for advice in Advice::ALL {
            let (before, after) = advice.frame();
            if text.contains(&format!("{before}{place}{after}")) {
                for cell in &meant {
                    let earlier = read.insert(CellKey::clone(cell), advice);
                    assert_eq!(earlier, None, "{cell:?} is named twice: {text}");
                }
            }
        }
    }
    read
}

/// The incidents that stand at the close of a hop, each as announced last.
fn standing(tables: &Tables, at: Nanos) -> Vec<&IncidentRow> {
    let mut last: BTreeMap<&str, &IncidentRow> = BTreeMap::new();
    for row in tables.incidents.iter().filter(|row| row.changed_at <= at) {
        let latest = last.entry(&row.incident_id).or_insert(row);
        if latest.changed_at <= row.changed_at {
            *latest = row;
        }
    }
    last.into_values().filter(|row| matches!(row.state, IncidentState::Raised | IncidentState::Updated)).collect()
}

fn regressed<'a>(incidents: &[&'a IncidentRow], cell: &CellKey) -> Vec<&'a FlagRow> {
    let flags = incidents.iter().flat_map(|incident| &incident.flags);
    flags.filter(|flag| flag.row.cell == *cell && flag.severity != Severity::Info).collect()
}

/// Compares what a look says of a cell with its rows.
fn agrees(advice: Advice, row: &ComparisonRow, flags: &[&FlagRow]) -> bool {
    let firm = |flag: &&FlagRow| flag.row.support == Support::Firm && flag.row.provisional_until_at.is_none();
    let is_provisional = |flag: &&FlagRow| flag.row.provisional_until_at.is_some();
    match advice {
        Advice::RollBack => flags.iter().any(|flag| firm(flag) && flag.severity == Severity::Page),
        Advice::Doubtful => flags.iter().any(firm) && flags.iter().all(|flag| flag.severity == Severity::Ticket),
        Advice::Repeat => !flags.iter().any(firm) && !flags.iter().all(is_provisional),
        Advice::Young => !flags.is_empty() && flags.iter().all(is_provisional),
        Advice::Stay | Advice::Pods => {
            flags.is_empty() && matches!(row.verdict, ComparisonVerdict::Clean | ComparisonVerdict::Improved)
        }
        Advice::Wait | Advice::Needs => {
            flags.is_empty() && matches!(row.verdict, ComparisonVerdict::Inconclusive | ComparisonVerdict::Regressed)
        }
        Advice::Unknown => flags.is_empty() && row.verdict == ComparisonVerdict::NotComparable,
    }
}

/// A fleet with cells of unequal size, of which one function, or all, may cost more or less in some.
fn fleet(seed: u64) -> Fleet {
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let builder = Fleet::seeded(seed).regions(REGIONS).cohorts(COHORTS);
    // Every fourth fleet has so much data that cells without a change are clean.
    let is_large = seed.is_multiple_of(4);
    let pods = if is_large { [14, 18] } else { [draws.random_range(2..12), draws.random_range(3..20)] };
    let mut builder = builder.pods_per_cell(pods[0], pods[1]);
    if draws.random_bool(0.3) {
        builder = builder.cell("south", "web", draws.random_range(1..4), draws.random_range(0..3));
    }
    let cells = match draws.random_range(0..4) {
        0 => Cells::all(),
        1 => Cells::cohort("tv"),
        2 => Cells::region("north"),
        _ => Cells::one("south", "tv"),
    };
    let factor = [0.6, 0.85, 1.0, 1.2, 1.5, 2.5][draws.random_range(0..6)];
    builder = match draws.random_range(0..3) {
        0 => builder.requests_per_second(30.0).regress_all(cells, factor),
        1 => builder.stacks().regress("serialize_video_chunk", cells, factor),
        _ => builder.regress_some("gc::mark_object", cells, factor, 0.3),
    };
    let (rate, cv) = ([20.0, 50.0, 200.0][draws.random_range(0..3)], [0.03, 0.1, 0.3][draws.random_range(0..3)]);
    let (rate, cv) = if is_large { (1000.0, 0.02) } else { (rate, cv) };
    builder
        .samples_per_second(rate)
        .pod_cv(cv)
        .lasts(Nanos::from_seconds(900))
        .deploy_after(Nanos::from_seconds(draws.random_range(60..300)))
        .build()
}

fn config(seed: u64) -> Config {
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let seconds = Nanos::from_seconds;
    Config {
        window: seconds(300),
        report_every: seconds([100, 300][draws.random_range(0..2)]),
        evaluate_every: seconds(20),
        young: seconds([0, 120, 600][draws.random_range(0..3)]),
        ..Config::default()
    }
}

/// What is advised at each look of the cells, counted.
fn check_looks(seed: u64, tables: &Tables, counted: &mut BTreeMap<Advice, usize>) {
    let mut looks: BTreeMap<Nanos, Vec<&ComparisonRow>> = BTreeMap::new();
    for row in tables.comparisons.iter().filter(|row| row.count_kind == CountKind::SelfCount) {
        looks.entry(row.window_end_at).or_default().push(row);
    }
    for (at, rows) in looks {
        let over_all = rows.iter().find(|row| row.is_roll_up).expect("a row over all cells");
        let action = over_all.action.as_deref().expect("a look has advice");
        let cells: BTreeMap<&CellKey, &ComparisonRow> =
            rows.iter().filter(|row| !row.is_roll_up).map(|row| (&row.cell, *row)).collect();
        let grid: BTreeSet<CellKey> = cells.keys().copied().cloned().collect();
        let advice = read(action, &grid);
        assert_eq!(
            advice.keys().collect::<BTreeSet<_>>(),
            grid.iter().collect(),
            "seed {seed}: some cells are not named: {action}"
        );
        let incidents = standing(tables, at);
        for (cell, advice) in &advice {
            let flags = regressed(&incidents, cell);
            assert!(
                agrees(*advice, cells[cell], &flags),
                "seed {seed}: {advice:?} of {cell:?}: {action}\n{:?}\n{flags:?}",
                cells[cell]
            );
            *counted.entry(*advice).or_default() += 1;
        }
        let costs_more = advice.values().any(|advice| *advice <= Advice::Young);
        let settled = advice.values().all(|advice| matches!(advice, Advice::Stay | Advice::Pods));
        assert_eq!(action.starts_with("Nothing has to be rolled back."), settled, "seed {seed}: {action}");
        let open = !costs_more && !settled;
        assert_eq!(action.starts_with("Nothing is known to cost more."), open, "seed {seed}: {action}");
    }
}

/// The summary of an incident names its cause, and each of its cells in the direction of its flags.
fn check_incidents(seed: u64, tables: &Tables) -> usize {
    let grid: BTreeSet<CellKey> =
        tables.comparisons.iter().filter(|row| !row.is_roll_up).map(|row| row.cell.clone()).collect();
    let subsets = || {
        (1..1_u32 << grid.len()).map(|part| {
            (0..).zip(&grid).filter(|(place, _)| part >> place & 1 == 1).map(|(_, cell)| cell).collect::<BTreeSet<_>>()
        })
    };
    let mut named = 0;
    for row in tables.incidents.iter().filter(|row| matches!(row.state, IncidentState::Raised | IncidentState::Updated))
    {
        let subject =
            if row.cause == ALL_FUNCTIONS { "A request, all functions together," } else { row.cause.as_str() };
        assert!(row.summary.starts_with(subject), "seed {seed}: {}", row.summary);
        for (is_info, places) in [(false, &row.regressed_in), (true, &row.improved_in)] {
            let flagged: BTreeSet<&CellKey> = row
                .flags
                .iter()
                .filter(|flag| (flag.severity == Severity::Info) == is_info)
                .map(|flag| &flag.row.cell)
                .collect();
            // NB: when it was raised some cells may not have been known.
            let known: BTreeSet<CellKey> = tables
                .comparisons
                .iter()
                .filter(|one| !one.is_roll_up && one.window_end_at <= row.changed_at)
                .map(|one| one.cell.clone())
                .collect();
            let described = subsets().find(|cells| {
                let words: Vec<String> =
                    extents(cells.iter().copied(), &known).iter().map(ToString::to_string).collect();
                words == *places
            });
            assert_eq!(described.unwrap_or_default(), flagged, "seed {seed}: {places:?}");
            named += flagged.len();
        }
        assert_eq!(
            row.summary.contains("; provisional: "),
            row.provisional_until_at.is_some(),
            "seed {seed}: {}",
            row.summary
        );
        let says_firm = row.confidence.contains("Support is firm");
        assert!(
            !says_firm || row.flags.iter().any(|flag| flag.row.support == Support::Firm),
            "seed {seed}: {}",
            row.confidence
        );
    }
    named
}

#[test]
fn sentences_say_what_the_rows_say() {
    let mut counted = BTreeMap::new();
    let mut named = 0;
    for seed in 1..=FLEETS {
        let tables = run_in_memory(&config(seed), fleet(seed).partitions(2), 2).unwrap();
        let causes: BTreeSet<&str> = tables.incidents.iter().map(|row| row.cause.as_str()).collect();
        println!("seed {seed}: {} causes", causes.len());
        check_looks(seed, &tables, &mut counted);
        named += check_incidents(seed, &tables);
    }
    println!("over seeds 1 to {FLEETS}: {counted:?}; {named} cells of incidents");
    let seen = |advice: &Advice| counted.get(advice).is_some_and(|times| *times > 0);
    let expected =
        [Advice::RollBack, Advice::Repeat, Advice::Young, Advice::Stay, Advice::Pods, Advice::Wait, Advice::Needs];
    let missing: Vec<&Advice> = expected.iter().filter(|advice| !seen(advice)).collect();
    assert!(missing.is_empty() && named > 10, "never advised: {missing:?}; {named} cells of incidents");
}
