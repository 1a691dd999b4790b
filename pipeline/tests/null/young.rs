//! A service that warms up in the same way at every deploy: once history has the base's first minutes, the head's own are no
//! event, provisional or not.

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_simulation::flags::{Changes, Flags};
use fleetdiff_simulation::fleet::{Calls, Cells, Fleet, FleetBuilder};

use crate::seeds::{most_false, over, rows, seeds_to};

const MINUTE: i64 = 60;
/// Fleets that warm up over each time, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 1;
/// Seconds over which the additional cost decays by e, and what it is (ln) at the start of a process: after the minute that is left
/// out it is 65 % and 51 %. With 65 % for minutes there are two normalization factors, which hide most of it.
const WARMING: [(i64, f64); 2] = [(60, 1.36), (300, 0.5)];
/// When the head is deployed: the base's pods are 15 minutes old by then, and the first 10 of those have left the window.
const DEPLOYED: i64 = 16 * MINUTE;
/// Rank, by cost, of the function that a twin makes more expensive: about a 1 % share.
const RANK: usize = 12;

fn config(history: Nanos) -> Config {
    Config {
        window: Nanos::from_seconds(4 * MINUTE),
        evaluate_every: Nanos::from_seconds(30),
        report_every: Nanos::from_seconds(4 * MINUTE),
        history,
        ..Config::default()
    }
}

/// 2 cells of 12 pods beside 40, CV 10 %, 300 functions, of which a third cost more at first in every process.
fn settling(seed: u64, (over, ln_more): (i64, f64)) -> FleetBuilder {
    let cells = Fleet::seeded(seed).calls(Calls::Zipf(300)).regions(["eu", "us"]).cohorts(["tv"]);
    cells
        .pods_per_cell(12, 40)
        .pod_cv(0.1)
        .settling(ln_more, Nanos::from_seconds(over))
        .base_starts_within(Nanos::from_seconds(MINUTE))
        .deploy_after(Nanos::from_seconds(DEPLOYED))
        .lasts(Nanos::from_seconds(DEPLOYED + 14 * MINUTE))
        .folded()
}

/// What one run has of the time in which pods of different ages are compared.
#[derive(Debug)]
struct Found {
    /// Rows of cells that were tested at reports, and those of them that had to hold against the base's young pods.
    tested: usize,
    held: usize,
    flags: Flags,
}

impl Found {
    fn of(tables: Tables) -> Self {
        let is_across = |row: &&CellRow| row.provisional_until_at.is_some() && row.scope == Scope::Epoch;
        let count = |has: fn(&CellRow) -> bool| tables.cells.iter().filter(is_across).filter(|row| has(row)).count();
        let (tested, held) = (count(|row| row.ln_p_row.is_some()), count(|row| row.young_ln_p.is_some()));
        Self { tested, held, flags: Flags::of(tables.flags) }
    }

    fn provisional(&self) -> usize {
        self.flags.count(Changes::is_raised_provisionally)
    }
}

/// Whether a flag is of the self count of the changed function and stands.
fn is_found(flag: &Changes, changed: &str) -> bool {
    let row = &flag.last().row;
    flag.stands() && row.function == changed && row.count_kind == CountKind::SelfCount
}

#[test]
fn null_every_deploy_warms_up() {
    let kept = Config::default().history;
    let of_warming = |warming| {
        let runs = over(seeds_to(FLEETS), |seed| {
            let fleet = settling(seed, warming).build();
            [kept, Nanos(0)].map(|history| Found::of(rows(&config(history), &fleet)))
        });
        let sum = |of: fn(&[Found; 2]) -> usize| runs.iter().map(of).sum::<usize>();
        println!(
            "{} fleets that warm up over {} s at both deploys: {} rows across ages, {} held against the base's young pods; {} \
             provisional flags without history, {} with",
            runs.len(),
            warming.0,
            sum(|[with, _]| with.tested),
            sum(|[with, _]| with.held),
            sum(|[_, without]| without.provisional()),
            sum(|[with, _]| with.provisional()),
        );
        runs
    };
    let runs: Vec<[Found; 2]> = WARMING.into_iter().flat_map(of_warming).collect();
    let sum = |of: fn(&[Found; 2]) -> usize| runs.iter().map(of).sum::<usize>();
    let (tested, held) = (sum(|[with, _]| with.tested), sum(|[with, _]| with.held));
    assert!(held * 10 >= tested * 9, "only {held} of {tested} rows were held against the base's young pods");
    let without = sum(|[_, without]| without.provisional());
    assert!(without >= 10, "{without} provisional flags without history: the warm-up tests nothing");
    let provisional = sum(|[with, _]| with.provisional());
    assert!(provisional * 50 <= without, "{provisional} provisional flags of {without} are left");
    let with_events = runs.iter().filter(|[with, _]| with.flags.iter().next().is_some()).count();
    println!("{with_events} of {} runs have an event", runs.len());
    assert!(with_events <= most_false(runs.len(), 0.05), "{with_events} of {} runs have an event", runs.len());
}

#[test]
fn twin_every_deploy_warms_up() {
    let runs = over(1..=1, |seed| {
        let changed = settling(seed, WARMING[1]).build().functions()[RANK].0.to_string();
        let fleet = settling(seed, WARMING[1]).regress(changed.as_str(), Cells::all(), 1.4).build();
        (changed, Found::of(rows(&config(Config::default().history), &fleet)))
    });
    for (changed, run) in &runs {
        let (cells, provisional) = (run.flags.count(|flag| is_found(flag, changed)), run.provisional());
        println!(
            "twin: {cells} of 2 cells found, {provisional} provisional flags, {} flags in all",
            run.flags.count(|_| true)
        );
        assert_eq!(cells, 2, "{:?}", run.flags);
        assert!(provisional >= 2, "a change of 40 % holds against the base's young pods too");
    }
}

/// When the head is deployed so soon after its base that the base's pods are young too, and yet have warmed up for longer.
const DEPLOYED_AGAIN: i64 = 8 * MINUTE;

/// Flags of a fleet whose base was deployed itself 8 minutes before the head. The function of this rank, if one is given, costs 40 %
/// more in the head.
fn deployed_again(seed: u64, warming: (i64, f64), rank: Option<usize>) -> (String, Flags) {
    let fleet = settling(seed, warming)
        .deploy_after(Nanos::from_seconds(DEPLOYED_AGAIN))
        .lasts(Nanos::from_seconds(DEPLOYED_AGAIN + 22 * MINUTE));
    let name = fleet.clone().build().functions()[rank.unwrap_or(0)].0.to_string();
    let fleet = if rank.is_some() { fleet.regress(name.as_str(), Cells::all(), 1.4) } else { fleet };
    (name, Flags::of(rows(&config(Nanos(0)), &fleet.build()).flags))
}

/// Minutes after a process began it is compared with others as young as a half: what is only warm-up is not a page, and gone at the end.
#[test]
fn null_a_base_that_is_young_itself() {
    for warming in WARMING {
        for (_, flags) in over(seeds_to(FLEETS), |seed| deployed_again(seed, warming, None)) {
            let (provisional, standing) = (flags.count(Changes::is_raised_provisionally), flags.count(Changes::stands));
            println!(
                "warming up over {} s: {provisional} provisional flags, {standing} stand at the end, {} pages",
                warming.0,
                flags.count(Changes::has_paged)
            );
            assert_eq!((flags.count(Changes::has_paged), standing), (0, 0), "{flags:?}");
        }
    }
}

#[test]
fn twin_a_base_that_is_young_itself() {
    for (changed, flags) in over(seeds_to(FLEETS), |seed| deployed_again(seed, WARMING[1], Some(RANK))) {
        assert_eq!(flags.count(|flag| is_found(flag, &changed)), 2, "in both cells: {flags:?}");
    }
}
