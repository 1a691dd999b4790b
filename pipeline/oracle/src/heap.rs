//! What became of memory: section 19 of `docs/semantics.md`.

pub(super) mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::{Config, Method};
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::{CountKind, ProfileType, is_of_several};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, HeapRow, LevelFace};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{HeapClass, LevelDirection, LevelReason, Support};

use self::pods::{Figure, Pods};
use super::arms::column;
use super::counts::{Archive, Held, Holder};
use super::loads::Differences;
use super::statistics::families::bh;
use super::timeline::Open;

/// The rows of a comparison at a report.
pub(super) fn rows(config: &Config, archive: &Archive, service: &Service, open: &Open, hop: Hop) -> Vec<HeapRow> {
    if config.method != Method::Honest {
        return Vec::new();
    }
    let builds: Vec<&Build> = open.base.iter().chain([&open.head]).collect();
    let mut held = archive.memory(config, &builds, hop);
    held.retain(|(kind, ..), _| matches!(kind, ProfileType::Heap | ProfileType::LiveHeap));
    let is_counted = |(_, profiles): &(&Holder, &Vec<Held>)| profiles.iter().any(|one| one.samples > 0);
    let cells: BTreeSet<CellKey> = held.iter().filter(is_counted).map(|((_, cell, ..), _)| cell.clone()).collect();
    let clock = config.clock();
    let blank = HeapRow {
        service: service.clone(),
        base_build: open.base_name(),
        head_build: open.head.clone(),
        window_start_at: clock.start_of(hop.plus(1).minus(config.window_hops())),
        window_end_at: clock.end_of(hop),
        ..HeapRow::blank()
    };
    let differences = archive.differences(config, open, hop);
    let of_cell = |cell: &CellKey| {
        // Only memory in use has ages.
        let of_types: Vec<Differences> =
            differences.iter().filter(|((_, one), _)| one == cell).map(|(_, differ)| *differ).collect();
        of_cell(config, open, &held, Differences::largest(&of_types), &HeapRow { cell: cell.clone(), ..blank.clone() })
    };
    let mut rows: Vec<HeapRow> = cells.iter().flat_map(of_cell).collect();
    let family = |row: &HeapRow| (&*row.function != ALL_FUNCTIONS).then(|| (row.cell.clone(), row.count_kind));
    for (figure, is_slope) in FIGURES {
        for one in rows.iter().map(family).collect::<BTreeSet<_>>() {
            let members = rows.iter_mut().filter(|row| family(row) == one);
            let mut members: Vec<&mut LevelFace> = members.map(figure).filter(|face| face.ln_p.is_some()).collect();
            let ln_p: Vec<f64> = members.iter().filter_map(|face| face.ln_p).collect();
            let tests = table_count(ln_p.len());
            for (face, ln_q) in members.iter_mut().zip(bh(&ln_p)) {
                face.tests = Some(tests);
                direct(face, ln_q.exp().min(1.0), config.q, is_slope);
            }
        }
    }
    rows.iter_mut().for_each(classify);
    rows.retain(|row| &*row.function == ALL_FUNCTIONS || row.moved());
    rows
}

/// A figure of a row, and whether it is one of growth.
type Face = (fn(&mut HeapRow) -> &mut LevelFace, bool);

/// The figures of a row, each with whether it is one of growth.
const FIGURES: [Face; 3] = [(|row| &mut row.alloc, false), (|row| &mut row.live, false), (|row| &mut row.slope, true)];

fn direct(face: &mut LevelFace, q_value: f64, q: f64, is_slope: bool) {
    face.q_value = Some(q_value);
    let (low, high) = pods::limits(is_slope);
    let value = face.change.map_or(f64::NAN, |change| change.value);
    if q_value <= q
        && (value > high || value < low)
        && !matches!(face.reason, Some(LevelReason::LoadDiffers | LevelReason::AgeDiffers))
    {
        face.direction = if value > high { LevelDirection::Up } else { LevelDirection::Down };
        face.reason = None;
    }
}

fn classify(row: &mut HeapRow) {
    use LevelDirection::{Down, Flat, Up};
    let (alloc, live, slope) = (row.alloc.direction, row.live.direction, row.slope.direction);
    row.class = if live == Up && slope == Up && matches!(alloc, Flat | Down) {
        HeapClass::HiddenLeak
    } else if live == Up && slope == Up {
        HeapClass::Leak
    } else if live == Up && slope == Flat {
        HeapClass::RetentionStep
    } else if alloc == Up && live == Flat {
        HeapClass::Churn
    } else if alloc == Down && matches!(live, Flat | Down) {
        HeapClass::Win
    } else if [alloc, live, slope] == [Flat; 3] {
        HeapClass::Unchanged
    } else {
        HeapClass::Unknown
    };
    let reasons = [row.alloc.reason, row.live.reason, row.slope.reason];
    let reason = reasons.into_iter().flatten().next().unwrap_or(LevelReason::NoClass);
    row.reason = (row.class == HeapClass::Unknown).then_some(reason);
}

fn of_cell(
    config: &Config,
    open: &Open,
    held: &BTreeMap<Holder, Vec<Held>>,
    differ: Differences,
    blank: &HeapRow,
) -> Vec<HeapRow> {
    let of_type = |profile_type| {
        let of_cell = held.iter().filter(|((kind, cell, ..), _)| *kind == profile_type && *cell == blank.cell);
        let of_cell: Vec<(&Holder, &Vec<Held>)> = of_cell.collect();
        let is_counted = of_cell.iter().any(|(_, profiles)| profiles.iter().any(|one| one.samples > 0));
        let differ = if profile_type == ProfileType::Heap { Differences { ages: None, ..differ } } else { differ };
        is_counted.then(|| Pods { differ, ..Pods::of(config, open, &of_cell) })
    };
    let types = [of_type(ProfileType::Heap), of_type(ProfileType::LiveHeap)];
    let first = config.count_kinds.first().copied().unwrap_or(CountKind::SelfCount);
    let all = HeapRow { function: ALL_FUNCTIONS.into(), count_kind: first, ..blank.clone() };
    let mut all = row(&types, None, all);
    let mut rows = vec![all.clone()];
    let names: BTreeSet<Arc<str>> = types.iter().flatten().flat_map(Pods::names).collect();
    for &kind in &config.count_kinds {
        for name in names.iter().filter(|name| !is_of_several(name)) {
            let blank = HeapRow { function: Arc::clone(name), count_kind: kind, ..blank.clone() };
            let mut found = row(&types, Some((name, column(kind))), blank);
            if found.alloc.change.is_none() && found.live.change.is_none() {
                continue;
            }
            for (figure, _) in FIGURES {
                let missing = [Some(LevelReason::NoAllocations), Some(LevelReason::NoSnapshots)];
                if missing.contains(&figure(&mut found).reason) {
                    let of_all = *figure(&mut all);
                    figure(&mut found).reason =
                        if of_all.change.is_some() { Some(LevelReason::CountNeeded) } else { of_all.reason };
                }
            }
            rows.push(found);
        }
    }
    rows
}

/// Items 2 to 5 of one function, or of all. A type that has no change for a function has no figure of it.
fn row([alloc, live]: &[Option<Pods<'_>>; 2], what: Figure<'_>, mut row: HeapRow) -> HeapRow {
    let mut supports = Vec::new();
    if let Some(pods) = alloc.as_ref().filter(|pods| pods.is_tested(what)) {
        let face = pods.allocation(what);
        if what.is_none() || face.change.is_some() {
            row.alloc = face;
            supports.push(pods.support(&face));
        }
    }
    if let Some(pods) = live.as_ref().filter(|pods| pods.is_tested(what)) {
        let face = pods.in_use(what);
        if what.is_none() || face.change.is_some() {
            row.live = face;
            row.slope = if face.change.is_some() { pods.growth(what) } else { face };
            supports.push(pods.support(&face));
        }
    }
    let known = supports.into_iter().filter(|support| *support != Support::Untestable);
    row.support = known.max().unwrap_or(Support::Untestable);
    row
}
