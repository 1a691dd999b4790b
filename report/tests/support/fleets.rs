//! Output folders of synthetic fleets, written as Parquet and read back as the program does.

use std::sync::LazyLock;
use std::time::Duration;

use fleetdiff_connectors::parquet::{OutputReader, ParquetOutput};
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_report::{Document, Records, Subject, document};
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType};
use fleetdiff_schemas::rows::{
    CellRow, ComparisonRow, EvidenceRow, FlagRow, HeapRow, IncidentRow, Interval, LedgerRow, LoadCurveRow, RejectedRow,
    RingRow, ScalingRow, StackRow, Tables, WaitingRow,
};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder, Ring};
use fleetdiff_simulation::memory::{first_moment, with_memory};
use fleetdiff_simulation::waiting::with_waiting;
use tempfile::TempDir;

/// One function costs 40 % more in one of two cohorts.
pub static REGRESSED: LazyLock<Tables> =
    LazyLock::new(|| rows(small().regress(Fleet::DEMO_FUNCTION, Cells::cohort("tv"), 1.4).build(), &config()));

/// Nothing changed.
pub static UNCHANGED: LazyLock<Tables> = LazyLock::new(|| rows(small().build(), &config()));

/// One function costs twice as much in one of two cells, and all pods are replaced within seven minutes.
pub static ROLLED_OUT: LazyLock<Tables> = LazyLock::new(|| {
    let fleet = Fleet::seeded(7)
        .regions(["east"])
        .cohorts(["tv", "web"])
        .pods_per_cell(0, 8)
        .samples_per_second(60.0)
        .starts_at(Nanos::from_seconds(1_772_528_400))
        .rollout(Nanos::from_seconds(240), Nanos::from_seconds(420))
        .lasts(Nanos::from_seconds(1500))
        .regress(Fleet::DEMO_FUNCTION, Cells::cohort("tv"), 2.0)
        .stacks()
        .build();
    let seconds = Nanos::from_seconds;
    let (window, history_every) = (seconds(300), seconds(20));
    rows(fleet, &Config { window, history_every, evaluate_every: seconds(60), ..config() })
});

/// Load doubles and falls back, twice; in one of two cohorts a function costs more in the head the higher it is.
pub static UNDER_LOAD: LazyLock<Tables> = LazyLock::new(|| {
    let fleet = Fleet::seeded(5)
        .regions(["north"])
        .cohorts(["tv", "web"])
        .pods_per_cell(6, 8)
        .samples_per_second(60.0)
        .requests_per_second(20.0)
        .already_deployed()
        .load(2.0, Nanos::from_seconds(600))
        .elasticity(Fleet::FIXED_COST, -1.0)
        .scales_worse(Fleet::DEMO_FUNCTION, Cells::cohort("tv"), 1.0)
        .lasts(Nanos::from_seconds(1500))
        .stacks()
        .build();
    let comparing = Comparing::Named { base: vec!["v41".into()], head: "v42".into() };
    rows(fleet, &Config { comparing, ..config() })
});

/// Four builds side by side: the second makes a function 40 % more expensive, the third has it too, the fourth mends it.
pub static RINGS: LazyLock<Tables> = LazyLock::new(|| {
    let seconds = Nanos::from_seconds;
    let fleet = Fleet::seeded(8)
        .regions(["north"])
        .cohorts(["tv", "web"])
        .pods_per_cell(6, 10)
        .samples_per_second(60.0)
        .deploy_after(seconds(60))
        .ring(Ring::new("v43", 6).starts_after(seconds(240)).with_changes())
        .ring(Ring::new("v44", 6).starts_after(seconds(420)))
        .regress(Fleet::DEMO_FUNCTION, Cells::cohort("tv"), 1.4)
        .lasts(seconds(1500))
        .stacks()
        .build();
    rows(fleet, &Config { young: seconds(120), ..config() })
});

/// In one of two cohorts the head allocates a fifth less for a request, and a pod holds more from minute to minute.
pub static MEMORY: LazyLock<Tables> = LazyLock::new(|| {
    let fleet = already_deployed(6, 1500);
    let mut partitions = fleet.partitions(1);
    let start = first_moment(&partitions);
    with_memory(
        &mut partitions,
        |profile, _| if has_changed(profile) { 800 } else { 1000 },
        |profile, _| {
            let seconds = if has_changed(profile) { profile.window.end.since(start).0 / 1_000_000_000 } else { 0 };
            4000 + 12 * u64::try_from(seconds).unwrap()
        },
    );
    compared(partitions)
});

/// In one of two cohorts, helpers of the head wait half as long, and threads that serve requests half as long again.
pub static WAITING: LazyLock<Tables> = LazyLock::new(|| {
    let fleet = already_deployed(9, 900);
    let mut partitions = fleet.partitions(1);
    with_waiting(&mut partitions, ProfileType::OffCpu, |profile, _| {
        let [helper, request] = if has_changed(profile) { [2_000_000, 1_500_000] } else { [4_000_000, 1_000_000] };
        vec![("helper-*", helper), ("request-*", request)]
    });
    compared(partitions)
});

/// Two cohorts whose pods run both builds from the start.
fn already_deployed(seed: u64, seconds: i64) -> Fleet {
    Fleet::seeded(seed)
        .regions(["north"])
        .cohorts(["tv", "web"])
        .pods_per_cell(8, 12)
        .size_cv(0.1)
        .samples_per_second(60.0)
        .requests_per_second(20.0)
        .already_deployed()
        .lasts(Nanos::from_seconds(seconds))
        .stacks()
        .build()
}

/// Whether a profile is of the head, in the cohort in which that differs.
fn has_changed(profile: &Profile) -> bool {
    profile.identity.build.as_str() == "v42" && profile.identity.cohort.as_str() == "tv"
}

/// Rows of the head against the base.
fn compared(partitions: Vec<Vec<Decoded>>) -> Tables {
    let comparing = Comparing::Named { base: vec!["v41".into()], head: "v42".into() };
    run_in_memory(&Config { comparing, ..config() }, partitions, 1).unwrap()
}

fn small() -> FleetBuilder {
    Fleet::seeded(3)
        .regions(["north", "south"])
        .cohorts(["tv", "web"])
        .pods_per_cell(6, 12)
        .cell("south", "web", 2, 12)
        .samples_per_second(60.0)
        .lasts(Nanos::from_seconds(1200))
        .stacks()
}

fn config() -> Config {
    Config { report_every: Nanos::from_seconds(300), ..Config::default() }
}

fn rows(fleet: Fleet, config: &Config) -> Tables {
    run_in_memory(config, fleet.partitions(1), 1).unwrap()
}

/// An output folder with these rows.
pub fn written(tables: &Tables) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut output = ParquetOutput::create(folder.path(), "{}".to_owned(), Duration::from_secs(600)).unwrap();
    output.write(std::slice::from_ref(tables)).unwrap();
    folder
}

/// What a report needs of these rows, by way of Parquet files.
pub fn records(tables: &Tables) -> Records {
    let folder = written(tables);
    let mut records = Records::default();
    let mut reader = OutputReader::open(folder.path()).unwrap();
    reader.for_each_file::<IncidentRow>(|file, rows| records.take_incidents(file, rows)).unwrap();
    reader.for_each_file::<FlagRow>(|file, rows| records.take_flags(file, rows)).unwrap();
    reader.for_each_file::<ComparisonRow>(|file, rows| records.take_comparisons(file, rows)).unwrap();
    reader.for_each_file::<CellRow>(|file, rows| records.take_cells(file, rows)).unwrap();
    reader.for_each_file::<EvidenceRow>(|file, rows| records.take_evidence(file, rows)).unwrap();
    reader.for_each_file::<ScalingRow>(|file, rows| records.take_scaling(file, rows)).unwrap();
    reader.for_each_file::<RingRow>(|file, rows| records.take_rings(file, rows)).unwrap();
    reader.for_each_file::<HeapRow>(|file, rows| records.take_heap(file, rows)).unwrap();
    reader.for_each_file::<WaitingRow>(|file, rows| records.take_waiting(file, rows)).unwrap();
    reader.for_each_file::<StackRow>(|file, rows| records.take_stacks(file, rows)).unwrap();
    reader.for_each_file::<LoadCurveRow>(|file, rows| records.take_load_curves(file, rows)).unwrap();
    reader.for_each_file::<LedgerRow>(|_, rows| records.take_ledger(&rows)).unwrap();
    reader.for_each_file::<RejectedRow>(|_, rows| records.take_rejected(&rows)).unwrap();
    reader.finish().unwrap();
    records
}

/// The report of every comparison of these rows.
pub fn report(tables: &Tables) -> Document {
    let records = records(tables);
    let subjects: Vec<Subject> = records.subjects().into_iter().collect();
    document(&records, &subjects).unwrap()
}

/// The same rows with another name for the changed function, and of a region.
pub fn renamed(tables: &Tables, function: &str, region: &str) -> Tables {
    let mut tables = tables.clone();
    let new_name = |name: &str| name.replace(Fleet::DEMO_FUNCTION, function);
    let new_region = |cell: &mut fleetdiff_schemas::rows::CellKey| {
        if cell.region.as_str() == "north" {
            cell.region = region.into();
        }
    };
    for row in tables.cells.iter_mut().chain(tables.flags.iter_mut().map(|flag| &mut flag.row)) {
        row.function = new_name(&row.function);
        new_region(&mut row.cell);
    }
    for row in &mut tables.evidence {
        row.function = new_name(&row.function).into();
        new_region(&mut row.cell);
    }
    tables.comparisons.iter_mut().for_each(|row| new_region(&mut row.cell));
    for row in &mut tables.incidents {
        row.cause = new_name(&row.cause);
        row.summary = new_name(&row.summary);
        row.explains.push(format!("{function} (total)"));
    }
    tables
}

/// The same rows, and once more with another head.
pub fn doubled(tables: &Tables, head: &str) -> Tables {
    let mut all = tables.clone();
    let mut more = tables.clone();
    more.cells.iter_mut().for_each(|row| row.comparison.head_build = head.into());
    more.evidence.iter_mut().for_each(|row| row.comparison.head_build = head.into());
    more.flags.iter_mut().for_each(|flag| flag.row.comparison.head_build = head.into());
    more.comparisons.iter_mut().for_each(|row| row.comparison.head_build = head.into());
    more.incidents.iter_mut().for_each(|row| row.head_build = head.into());
    all.cells.extend(more.cells);
    all.evidence.extend(more.evidence);
    all.flags.extend(more.flags);
    all.comparisons.extend(more.comparisons);
    all.incidents.extend(more.incidents);
    all
}

/// The same rows with a change of the function by a factor of ten, whose axis has a label at its very end.
pub fn stretched(tables: &Tables) -> Tables {
    let mut tables = tables.clone();
    for row in tables.cells.iter_mut().filter(|row| row.function == Fleet::DEMO_FUNCTION) {
        let [value, low, high] =
            if row.cell.cohort.as_str() == "tv" { [10.64, 7.84, 14.61] } else { [1.48, 0.97, 2.21] };
        row.adjusted_ratio = row.adjusted_ratio.map(|_| Interval { value, low, high });
    }
    tables
}
