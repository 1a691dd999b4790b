//! Functions with another name in the head, or inlined in one build.

use std::collections::BTreeSet;

use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::{CellRow, FlagRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Scope, Severity, Verdict};
use fleetdiff_simulation::fleet::Cells;

use super::rebuilt::{inline, rename};
use super::{agreed, builder, config};

const FUNCTION: &str = "serialize_video_chunk";

/// What was built otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Built {
    /// The largest function has another name.
    Renamed,
    /// All functions of a module have, and call each other.
    Module,
    /// Two are closures of one function, to which another was added above them.
    Renumbered,
    /// The head has the largest function inlined.
    Inlined,
    /// The base has.
    Outlined,
}

/// A fleet whose head was built otherwise, and costs so much in the largest function.
fn partitions(seed: u64, built: Built, factor: f64) -> Vec<Vec<Decoded>> {
    let cohorts = if built == Built::Module { &["tv", "web"][..] } else { &["tv"] };
    // A small head, of which a new name is seen some looks before that of the base is missed.
    let (head, base) = if built == Built::Module { (2, 16) } else { (6, 12) };
    let cells = builder(seed).regions(["east"]).cohorts(cohorts.to_vec()).pods_per_cell(head, base);
    let cells = cells.unchanged().warm_up(Nanos(0));
    let cells = cells.starts_at(Nanos::from_seconds(1_799_996_400)).lasts(Nanos::from_seconds(600));
    // Without restarts, so that pods of both builds are compared from the start.
    let cells = cells.late(0.02, Nanos::from_seconds(120)).duplicates(0.02).partition_count(3).pods_per_record(5);
    let fleet = cells.regress(FUNCTION, Cells::all(), factor).build();
    let mut partitions = fleet.partitions(3);
    let other =
        |from: &'static str, to: &'static str| move |name: &str| name.starts_with(from).then(|| name.replace(from, to));
    match built {
        Built::Renamed => rename(&mut partitions, fleet.head(), other(FUNCTION, "serialize_chunk")),
        Built::Module => rename(&mut partitions, fleet.head(), other("catalog::", "library::")),
        Built::Renumbered => {
            let closure = |shift: usize| {
                move |name: &str| {
                    let place = [FUNCTION, "recommend::dot_product"].iter().position(|closure| *closure == name)?;
                    Some(format!("video.serve.func{}", place + shift))
                }
            };
            rename(&mut partitions, fleet.base(), closure(1));
            rename(&mut partitions, fleet.head(), closure(2));
        }
        Built::Inlined => inline(&mut partitions, fleet.head(), FUNCTION),
        Built::Outlined => inline(&mut partitions, fleet.base(), FUNCTION),
    }
    partitions
}

/// How often something occurred.
#[derive(Debug, Default)]
struct Occurred {
    in_window: usize,
    in_epoch: usize,
    rolled_up: usize,
    cleared: usize,
    together: usize,
}

impl Occurred {
    fn count(&mut self, tables: &Tables) {
        let moved = |is: fn(&CellRow) -> bool| {
            let moved = tables.cells.iter().filter(|row| row.verdict == Verdict::Moved && row.cause.is_some());
            moved.filter(|row| is(row)).count()
        };
        self.in_window += moved(|row| row.scope == Scope::Window && !row.is_roll_up);
        self.in_epoch += moved(|row| row.scope == Scope::Epoch);
        self.rolled_up += moved(|row| row.is_roll_up);
        let flags = |is: fn(&FlagRow) -> bool| tables.flags.iter().filter(|flag| is(flag)).count();
        self.cleared += flags(|flag| flag.cleared_because.as_deref() == Some("moved"));
        self.together += flags(|flag| flag.row.detail.as_ref().is_some_and(|detail| detail.contains("; together x ")));
    }
}

/// The functions with a flag, by whether they cost more.
fn flagged(tables: &Tables) -> BTreeSet<(&str, bool)> {
    let raised = tables.flags.iter().filter(|flag| flag.state == FlagState::Raised);
    raised.map(|flag| (flag.row.function.as_str(), flag.severity != Severity::Info)).collect()
}

#[test]
fn oracle_moved() {
    let mut occurred = Occurred::default();
    let more = |function| BTreeSet::from([(function, true)]);
    let less = |function| BTreeSet::from([(function, false)]);
    let nothing = BTreeSet::new();
    // What is flagged at the end of each fleet is one function at most, in the direction in which both together changed.
    let cases = [
        (Built::Renamed, 1.0, nothing.clone()),
        (Built::Renamed, 1.6, more("serialize_chunk")),
        (Built::Renamed, 0.6, less(FUNCTION)),
        (Built::Renumbered, 1.0, nothing.clone()),
        (Built::Renumbered, 1.6, more("video.serve.func2")),
        (Built::Inlined, 1.0, nothing.clone()),
        (Built::Inlined, 1.6, more("video::write_segment")),
        (Built::Inlined, 0.5, less(FUNCTION)),
        (Built::Outlined, 1.0, nothing),
        (Built::Outlined, 0.5, less("video::write_segment")),
        (Built::Outlined, 1.9, more(FUNCTION)),
    ];
    for (seed, (built, factor, expected)) in (1..).zip(cases) {
        let tables = agreed(seed, &config(), &partitions(seed, built, factor));
        println!("seed {seed}, {built:?} x {factor}: flags of {:?}", flagged(&tables));
        assert_eq!(flagged(&tables), expected, "seed {seed}, {built:?} x {factor}");
        occurred.count(&tables);
    }
    occurred.count(&agreed(1, &config(), &partitions(1, Built::Module, 1.0)));
    println!("{occurred:?}");
    let Occurred { in_window, in_epoch, rolled_up, cleared, together } = occurred;
    let rare = [in_window, in_epoch, rolled_up, cleared, together].into_iter().min();
    assert!(rare > Some(0), "{occurred:?}");
}
