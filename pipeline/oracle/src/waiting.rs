//! What requests wait for: section 20 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::{Config, Method};
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::number::{float, length_float, table_count};
use fleetdiff_schemas::profile::{AT_THREAD, CountKind, ProfileType, is_of_several};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, LevelFace, WaitingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::{LevelDirection, LevelReason, Support, TimeMeasure, TimePer};

use super::arms::column;
use super::counts::{Archive, BASE, HEAD, Held, Holder};
use super::heap::pods::{Pod, Pods, face_of, limits, requests_of};
use super::loads::{Differences, Loads};
use super::statistics::families::bh;
use super::statistics::pod_levels::Change;
use super::timeline::Open;

/// The rows of a comparison at a report.
pub(super) fn rows(config: &Config, archive: &Archive, service: &Service, open: &Open, hop: Hop) -> Vec<WaitingRow> {
    if config.method != Method::Honest {
        return Vec::new();
    }
    let builds: Vec<&Build> = open.base.iter().chain([&open.head]).collect();
    let held = archive.memory(config, &builds, hop);
    let clock = config.clock();
    let blank = WaitingRow {
        service: service.clone(),
        base_build: open.base_name(),
        head_build: open.head.clone(),
        window_start_at: clock.start_of(hop.plus(1).minus(config.window_hops())),
        window_end_at: clock.end_of(hop),
        ..WaitingRow::blank()
    };
    let differences = archive.differences(config, open, hop);
    let mut rows = Vec::new();
    for cell in held.keys().map(|(_, cell, ..)| cell.clone()).collect::<BTreeSet<CellKey>>() {
        let of_type = |kind: ProfileType| {
            let of_cell: Vec<(&Holder, &Vec<Held>)> =
                held.iter().filter(|((one, place, ..), _)| *one == kind && *place == cell).collect();
            let is_counted = of_cell.iter().any(|(_, profiles)| profiles.iter().any(|one| one.samples > 0));
            is_counted.then(|| Pods::of(config, open, &of_cell))
        };
        let of_types: Vec<Differences> =
            differences.iter().filter(|((_, one), _)| *one == cell).map(|(_, differ)| *differ).collect();
        let loads = Differences::largest(&of_types).loads;
        let blank = WaitingRow { cell: cell.clone(), ..blank.clone() };
        let single = [
            (ProfileType::OffCpu, TimeMeasure::OffCpu),
            (ProfileType::Wall, TimeMeasure::Wall),
            (ProfileType::Mutex, TimeMeasure::Mutex),
            (ProfileType::Block, TimeMeasure::Block),
        ];
        for (kind, measure) in single {
            if let Some(pods) = of_type(kind) {
                rows.extend(of_legs(config, &[&pods], loads, &WaitingRow { measure, ..blank.clone() }));
            }
        }
        if let (Some(cpu), Some(off)) = (of_type(ProfileType::Cpu), of_type(ProfileType::OffCpu)) {
            let blank = WaitingRow { measure: TimeMeasure::CpuAndOffCpu, ..blank };
            rows.extend(of_legs(config, &[&cpu, &off], loads, &blank));
        }
    }
    decide(config, &mut rows);
    rows
}

fn is_of_cell(row: &WaitingRow) -> bool {
    &*row.function == ALL_FUNCTIONS && row.thread.is_none()
}

/// Item 6.
fn decide(config: &Config, rows: &mut Vec<WaitingRow>) {
    let family = |row: &WaitingRow| {
        let is_thread = &*row.function == ALL_FUNCTIONS;
        (row.measure, (!is_of_cell(row)).then(|| (row.cell.clone(), (!is_thread).then_some(row.count_kind))))
    };
    for one in rows.iter().map(family).collect::<BTreeSet<_>>() {
        let members = rows.iter_mut().filter(|row| family(row) == one && row.time.ln_p.is_some());
        let members: Vec<&mut LevelFace> = members.map(|row| &mut row.time).collect();
        let ln_p: Vec<f64> = members.iter().filter_map(|face| face.ln_p).collect();
        let tests = table_count(ln_p.len());
        for (face, ln_q) in members.into_iter().zip(bh(&ln_p)) {
            let q_value = ln_q.exp().min(1.0);
            (face.q_value, face.tests) = (Some(q_value), Some(tests));
            let ratio = face.change.map_or(f64::NAN, |change| change.value);
            let (low, high) = limits(false);
            let is_of_load = face.reason == Some(LevelReason::LoadDiffers);
            if q_value <= config.q && (ratio > high || ratio < low) && !is_of_load {
                face.direction = if ratio > high { LevelDirection::Up } else { LevelDirection::Down };
                face.reason = None;
            }
        }
    }
    rows.retain(|row| is_of_cell(row) || matches!(row.time.direction, LevelDirection::Up | LevelDirection::Down));
}

/// Names whose figures are added up, by column; all if there are none.
type What = Option<(BTreeSet<Arc<str>>, usize)>;

/// Samples and nanoseconds.
fn sums(held: &Held, what: &What) -> (u64, u64) {
    let Some((names, column)) = what else { return (held.samples, held.bytes) };
    let found = names.iter().filter_map(|name| held.functions.get(name));
    found.fold((0, 0), |sum, one| (sum.0 + one[*column], sum.1 + one[2 + column]))
}

/// A function and its thread, of a name that may hold both.
pub(super) fn split(name: &str) -> (&str, Option<&str>) {
    name.rfind(AT_THREAD).map_or((name, None), |at| (&name[..at], Some(&name[at + AT_THREAD.len()..])))
}

/// Items 2 to 5, for one type of profile or the sum of two.
fn of_legs(config: &Config, legs: &[&Pods<'_>], loads: Option<Loads>, blank: &WaitingRow) -> Vec<WaitingRow> {
    let first = config.count_kinds.first().copied().unwrap_or(CountKind::SelfCount);
    let all = WaitingRow { count_kind: first, function: ALL_FUNCTIONS.into(), ..blank.clone() };
    let mut rows = vec![row(legs, loads, &None, all)];
    let names: BTreeSet<Arc<str>> = legs.iter().flat_map(|pods| pods.names()).collect();
    let mut functions: BTreeMap<(Option<&str>, &str), BTreeSet<Arc<str>>> = BTreeMap::new();
    let mut threads: BTreeMap<&str, BTreeSet<Arc<str>>> = BTreeMap::new();
    for name in names.iter().filter(|name| !is_of_several(name)) {
        let (function, thread) = split(name);
        let thread = thread.filter(|_| legs.len() == 1);
        functions.entry((thread, function)).or_default().insert(Arc::clone(name));
        if let Some(thread) = thread {
            threads.entry(thread).or_default().insert(Arc::clone(name));
        }
    }
    let mut add = |what: What, blank: WaitingRow| {
        let samples: u64 = legs.iter().flat_map(|pods| pods.all()).map(|held| sums(held, &what).0).sum();
        if samples >= config.min_count.max(1) {
            rows.extend(Some(row(legs, loads, &what, blank)).filter(|row| row.time.change.is_some()));
        }
    };
    for (thread, names) in threads {
        let own = Some((names, column(CountKind::SelfCount)));
        let thread = Some(thread.into());
        add(own, WaitingRow { count_kind: first, function: ALL_FUNCTIONS.into(), thread, ..blank.clone() });
    }
    for &kind in &config.count_kinds {
        for ((thread, function), names) in &functions {
            let what = Some((names.clone(), column(kind)));
            let thread = thread.map(Arc::from);
            add(what, WaitingRow { count_kind: kind, function: (*function).into(), thread, ..blank.clone() });
        }
    }
    rows
}

/// Level and counting variance of each leg, of each bucket of an arm.
type Buckets = Vec<Vec<(f64, f64)>>;

/// Level and counting variance of a bucket.
fn level(pods: &[Pod], what: &What, per: TimePer) -> Option<(f64, f64)> {
    let units: u64 = match per {
        TimePer::Request => pods.iter().map(requests_of).sum(),
        TimePer::Profile => pods.iter().flatten().map(|held| u64::from(held.samples > 0)).sum(),
    };
    let both = pods.iter().flatten().map(|held| sums(held, what));
    let (samples, time) = both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let level = float(time) / float(units);
    (units > 0).then(|| (level, if samples > 0 { level * level / float(samples) } else { 0.0 }))
}

/// One row, in no family yet.
fn row(legs: &[&Pods<'_>], loads: Option<Loads>, what: &What, mut row: WaitingRow) -> WaitingRow {
    let serves = |leg: &&Pods<'_>| {
        let pods = leg.strata.values().flatten().flat_map(BTreeMap::values).flatten();
        pods.into_iter().any(|pod| requests_of(pod) > 0)
    };
    row.per = if legs.iter().all(serves) { TimePer::Request } else { TimePer::Profile };
    let mut strata: Vec<[Buckets; 2]> = Vec::new();
    for (hardware, arms) in &legs[0].strata {
        let of_arm = |arm: usize| {
            let buckets = arms[arm].keys().filter_map(|bucket| {
                let of_leg = |leg: &&Pods<'_>| level(leg.strata.get(hardware)?[arm].get(bucket)?, what, row.per);
                legs.iter().map(of_leg).collect::<Option<Vec<_>>>()
            });
            buckets.collect::<Vec<_>>()
        };
        strata.push([of_arm(HEAD), of_arm(BASE)]);
    }
    for (arm, samples) in [(HEAD, &mut row.samples_head), (BASE, &mut row.samples_base)] {
        let held =
            legs.iter().flat_map(|leg| leg.strata.values()).flat_map(|arms| arms[arm].values()).flatten().flatten();
        *samples = table_count(held.map(|held| sums(held, what).0).sum::<u64>());
    }
    let add = |legs: &Vec<(f64, f64)>| legs.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let sums: Vec<[Vec<(f64, f64)>; 2]> =
        strata.iter().map(|arms| arms.each_ref().map(|arm| arm.iter().map(add).collect())).collect();
    let is_timed = |leg: &&Pods<'_>| leg.strata.is_empty() || leg.all().any(|held| held.bytes > 0);
    let change = if legs.iter().all(is_timed) {
        Change::of(&sums, true).ok_or(LevelReason::FewPods)
    } else {
        Err(LevelReason::NoValues)
    };
    let in_arm = |arm: usize| strata.iter().map(|arms| arms[arm].len()).sum::<usize>();
    row.support = match (in_arm(HEAD).min(in_arm(BASE)), change.is_ok()) {
        (5.., _) => Support::Firm,
        (2.., true) => Support::Tentative,
        _ => Support::Untestable,
    };
    match change {
        Err(reason) => row.time = LevelFace::unknown(reason),
        Ok(change) => {
            row.time = face_of(&change, false);
            let is_of_load = Differences { loads, ages: None }.of_level(&change).is_some();
            if is_of_load && row.time.direction == LevelDirection::Unknown {
                row.time.reason = Some(LevelReason::LoadDiffers);
            }
            if legs.len() == 2 {
                let [cpu, off] = [0, 1].map(|leg| means(&strata, leg));
                (row.cpu_head, row.cpu_base) = (Some(cpu[HEAD]), Some(cpu[BASE]));
                (row.off_cpu_head, row.off_cpu_base) = (Some(off[HEAD]), Some(off[BASE]));
            }
        }
    }
    row
}

/// The means of one leg.
fn means(strata: &[[Buckets; 2]], leg: usize) -> [f64; 2] {
    let whole = |arm: &Buckets| arm.iter().flatten().map(|(value, _)| value).sum::<f64>();
    let kept: Vec<_> = strata
        .iter()
        .filter(|arms| arms.iter().all(|arm| !arm.is_empty()) && arms.iter().map(whole).sum::<f64>() > 0.0)
        .collect();
    let weight = |arms: &[Buckets; 2]| {
        let [n1, n0] = arms.each_ref().map(|arm| length_float(arm.len()));
        n1 * n0 / (n1 + n0)
    };
    let all: f64 = kept.iter().map(|arms| weight(arms)).sum();
    [HEAD, BASE].map(|arm| {
        let mean =
            |arms: &[Buckets; 2]| arms[arm].iter().map(|legs| legs[leg].0).sum::<f64>() / length_float(arms[arm].len());
        kept.iter().map(|arms| weight(arms) * mean(arms)).sum::<f64>() / all
    })
}
