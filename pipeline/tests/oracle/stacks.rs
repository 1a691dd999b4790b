//! Samples by stack in the cell that changed most.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::rows::{CellKey, ComparisonKey, RARE_STACKS, StackRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_simulation::fleet::{Cells, Fleet};

use super::{agreed, builder, config, delivered, seeds};

/// The rows of each report.
fn by_report(tables: &Tables) -> BTreeMap<(Nanos, &ComparisonKey, &CellKey), Vec<&StackRow>> {
    let mut reports: BTreeMap<_, Vec<&StackRow>> = BTreeMap::new();
    for row in &tables.stacks {
        reports.entry((row.window_end_at, &row.comparison, &row.cell)).or_default().push(row);
    }
    reports
}

#[test]
fn oracle_stacks() {
    let (mut rows, mut rare, mut reports, mut whole) = (0, 0, 0, 0);
    let mut cells: BTreeSet<String> = BTreeSet::new();
    for seed in seeds(1..=9) {
        let fleet = builder(seed).pods_per_cell(6, 9).regress("gc::mark_object", Cells::cohort("web"), 3.0);
        let got = agreed(seed, &config(), &delivered(fleet).partitions(3));
        for ((at, comparison, cell), stacks) in by_report(&got) {
            let distinct: BTreeSet<&[String]> = stacks.iter().map(|row| &row.stack[..]).collect();
            assert_eq!(distinct.len(), stacks.len(), "seed {seed}: a stack has two rows");
            let total = |samples: fn(&StackRow) -> i64| stacks.iter().map(|row| samples(row)).sum::<i64>();
            let arms = (total(|row| row.head_samples), total(|row| row.base_samples));
            let mut of_cell = got.cells.iter().filter(|row| row.comparison == *comparison && row.scope == Scope::Epoch);
            let of_cell = of_cell.find(|row| row.window_end_at == at && row.cell == *cell);
            let of_cell = of_cell.map(|row| (row.head.total, row.base.total));
            // The row counts strata that have both arms; the picture is of all of them.
            let in_row = of_cell.unwrap();
            assert!(arms.0 >= in_row.0 && arms.1 >= in_row.1, "seed {seed}, {cell:?}: {arms:?} of {in_row:?}");
            whole += usize::from(arms == in_row);
            reports += 1;
            cells.insert(format!("{seed} {cell:?}"));
        }
        rows += got.stacks.len();
        rare += got.stacks.iter().filter(|row| row.stack.last().is_some_and(|name| name == RARE_STACKS)).count();
    }
    println!("{rows} rows of stacks equal, {rare} of rare stacks, in {reports} reports of {} cells", cells.len());
    assert!(
        rows > 500 && rare > 0 && reports >= 6 && whole > 2,
        "{rows} rows, {rare} rare, {whole} of {reports} reports whole"
    );
}

/// Without a flag there is nothing to show, and without stacks nothing to show it with.
#[test]
fn oracle_stacks_are_of_flagged_cells_only() {
    let unchanged =
        agreed(7, &config(), &delivered(builder(7).unchanged().warm_up(Nanos::from_seconds(30))).partitions(3));
    let (stacks, flags, cells) = (unchanged.stacks.len(), unchanged.flags.len(), unchanged.cells.len());
    assert!(stacks == 0 && flags == 0 && cells > 100, "{stacks} rows of stacks, {flags} flags, {cells} rows of cells");
    let changed = |fleet: fleetdiff_simulation::fleet::FleetBuilder| {
        let fleet = fleet.pods_per_cell(6, 9).regress(Fleet::DEMO_FUNCTION, Cells::all(), 2.5);
        agreed(8, &config(), &delivered(fleet).partitions(3))
    };
    let (with, without) = (changed(builder(8)), changed(builder(8).folded()));
    assert!(!with.stacks.is_empty() && !with.flags.is_empty());
    assert!(without.stacks.is_empty() && !without.flags.is_empty());
}
