//! Heads whose base was young within the recording: what their young pods show must hold against that too.

use fleetdiff_pipeline::run::in_memory::records;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::rows::{CellRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::FlagState;
use fleetdiff_simulation::day::Day;
use fleetdiff_simulation::fleet::FleetBuilder;

use super::{agreed, builder, config, delivered};

/// The base starts, grows old, and its young hops leave the window; then the head starts. Both settle in the same way, and
/// one function costs more in the head.
fn deployed_twice(seed: u64) -> (FleetBuilder, Config) {
    let seconds = Nanos::from_seconds;
    let plain = builder(seed)
        .regions(["east"])
        .samples_per_second(50.0)
        .base_starts_within(seconds(80))
        .settling(0.5, seconds(120))
        .deploy_after(seconds(620))
        .lasts(seconds(900));
    let config = Config {
        window: seconds(200),
        young: seconds(250),
        history_every: seconds(30),
        evaluate_every: seconds(70),
        report_every: seconds(150),
        ..config()
    };
    match seed % 4 {
        // Two kinds of machine, and cohorts by request.
        0 => (plain.cohorts_by_request().pods_per_cell(6, 9).hardware(["old", "new"]).folded(), config),
        // Profiles come seldom, so that pods miss whole minutes.
        1 => (plain.period(seconds(40)).folded(), Config { history_every: seconds(60), ..config }),
        // The base of one cell has too few pods for a test; and history is short.
        2 => (plain.cell("east", "web", 4, 1), Config { history: seconds(400), ..config }),
        // Requests are known.
        _ => (plain.requests_per_second(30.0), config),
    }
}

/// How often the second comparison was there, and decided.
#[derive(Debug, Default)]
struct Held {
    rows: usize,
    /// The first comparison alone has a smaller p.
    decided: usize,
    /// In the other direction.
    opposed: usize,
    roll_ups: usize,
    flags: usize,
    /// Rows of pods of different ages without it.
    without: usize,
}

impl Held {
    fn count(&mut self, tables: &Tables) {
        let rows = |of: &dyn Fn(&CellRow) -> bool| tables.cells.iter().filter(|row| of(row)).count();
        let known = |row: &CellRow| row.young_ln_p.is_some();
        let own = |row: &CellRow| row.adjusted_ln_p.zip(row.ln_p_min_effect).map(|(plain, least)| plain.max(least));
        self.rows += rows(&known);
        self.decided += rows(&|row| known(row) && row.ln_p_row > own(row));
        self.opposed += rows(&|row| row.young_ln_p == Some(0.0));
        self.roll_ups += rows(&|row| known(row) && row.is_roll_up);
        self.flags += tables.flags.iter().filter(|flag| flag.row.young_ln_p.is_some()).count();
        self.without += rows(&|row| row.provisional_until_at.is_some() && row.ln_p_row.is_some() && !known(row));
        assert!(tables.cells.iter().all(|row| !known(row) || row.provisional_until_at.is_some()));
    }
}

#[test]
fn oracle_young_pods_of_the_base() {
    let mut held = Held::default();
    for seed in 801..=804 {
        let (builder, config) = deployed_twice(seed);
        held.count(&agreed(seed, &config, &delivered(builder).partitions(3)));
    }
    println!("young pods of both builds, seeds 801 to 804: {held:?}");
    let Held { rows, decided, opposed, roll_ups, flags, without } = held;
    assert!(rows > 1000, "too little to compare: {held:?}");
    assert!([decided, opposed, roll_ups, flags, without].iter().all(|&times| times > 0), "never occurred: {held:?}");
}

/// Without history there is nothing to hold against.
#[test]
fn oracle_young_pods_without_history() {
    let (builder, config) = deployed_twice(809);
    let got = agreed(809, &Config { history: Nanos(0), ..config }, &delivered(builder).partitions(2));
    assert!(got.cells.iter().any(|row| row.provisional_until_at.is_some()));
    assert!(got.cells.iter().all(|row| row.young_ln_p.is_none()));
}

/// Functions of few samples are flagged while pods are young. Once they are not, some are cleared at a look that does not test them:
/// the rows of these flags are of that look, as all others of its hop are ([`super::Filed`]), not of the last that tested them.
#[test]
fn regression_flags_that_are_cleared_untested_are_of_the_look() {
    let of_hours =
        |day: Day| records(day.filter(|profile| (18..20).contains(&(profile.window.start.0 / 3_600_000_000_000 % 24))));
    let config = Config::default();
    let got = agreed(1, &config, &[of_hours(Day::share(0, 2)), of_hours(Day::share(1, 2))]);
    let cleared = got.flags.iter().filter(|flag| flag.state == FlagState::Cleared).count();
    assert!(cleared > 0, "{} flags", got.flags.len());
}
