//! Bases that are history: section 13 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::identity::{Build, Hardware, Service};
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonRow};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, RowReason, Scope, Verdict};

use super::aa_check::Checked;
use super::counts::{Archive, BASE, Cell, HEAD, HistoryCell};
use super::evidence::{Few, Using, judge};
use super::family::{Live, LookAt, Looked};
use super::imbalance::Warnings;
use super::report::{Report, Reported, first_three, is_under};
use super::row::{About, lines, range};
use super::timeline::{History, Open};
use super::verdicts::Verdicts;

type Cells = BTreeMap<CellKey, HistoryCell>;

/// The rows of `cells`, of `evidence` and of `comparisons` at one report of a comparison whose base is history.
pub(super) fn against_history(
    config: &Config,
    archive: &Archive,
    service: &Service,
    history: &History,
    hop: Hop,
) -> (Reported, Vec<ComparisonRow>) {
    let mut by_type: BTreeMap<ProfileType, Cells> = BTreeMap::new();
    for ((profile_type, key), cell) in archive.history_cells(config, history, hop) {
        if cell.cell.strata.values().any(|stratum| stratum[HEAD].samples > 0) {
            by_type.entry(profile_type).or_default().insert(key, cell);
        }
    }
    // There are no looks and no flags: the live rule remembers nothing about this comparison.
    let open = Open { base: history.base.clone(), head: history.head.clone(), opened: hop, epoch: hop };
    let (live, nothing, no_warning) = (Live::new(service, &open), Checked::new(), Warnings::new());
    let at = LookAt {
        config,
        archive,
        blocks: &[],
        open: &open,
        hop,
        report: true,
        checked: &nothing,
        imbalance: &no_warning,
    };
    let (mut reported, mut comparisons) = (Reported::default(), Vec::new());
    for (profile_type, cells) in by_type {
        let report = Report { config, archive, open: &open, live: &live, hop, against_history: true };
        let compared = compared(config, archive, &open, profile_type, hop, &cells);
        let of_type = report.of_type(Scope::Window, profile_type, &compared);
        reported.evidence.extend(of_type.evidence);
        let of_type: Vec<CellRow> =
            of_type.cells.into_iter().map(|row| without_unknown_figures(row, &cells, &open.base_name())).collect();
        comparisons.extend(verdicts(&at, &live, profile_type, (&cells, &compared), &of_type));
        reported.cells.extend(of_type);
    }
    (reported, comparisons)
}

/// The strata at hours of the day at which the head has samples, of pods of the same age if there are any.
fn compared(
    config: &Config,
    archive: &Archive,
    open: &Open,
    profile_type: ProfileType,
    hop: Hop,
    cells: &Cells,
) -> BTreeMap<CellKey, Cell> {
    let of_cell = |(key, cell): (&CellKey, &HistoryCell)| {
        let strata = &cell.cell.strata;
        let hours: BTreeSet<Hop> =
            strata.iter().filter(|(_, stratum)| stratum[HEAD].samples > 0).map(|((hour, ..), _)| *hour).collect();
        let at_hours = strata.iter().filter(|((hour, ..), _)| hours.contains(hour));
        let at_hours = at_hours.map(|(place, stratum)| (place.clone(), stratum.clone())).collect();
        let (place, builds) = ((profile_type, key.clone()), (&open.head, &open.base[..]));
        let until_at = archive.old_at(config, builds, hop, &place);
        let cell = Cell { strata: at_hours, ..Cell::default() }.of_like_ages(until_at);
        let young = archive.young_pods(config, builds, hop, (&place, &cell));
        (place.1, Cell { young, ..cell })
    };
    cells.iter().map(of_cell).collect()
}

/// A row with its detail, without the figures that history cannot give.
fn without_unknown_figures(row: CellRow, cells: &Cells, base: &Build) -> CellRow {
    let under = cells.iter().filter(|(key, _)| is_under(key, &row.cell));
    let under: Vec<&HistoryCell> = under.map(|(_, cell)| cell).collect();
    let strata_detail = matches!(row.reason, Some(RowReason::NoBase | RowReason::NoCommonStratum));
    let strata_detail = if strata_detail {
        format!("; head: {}; base: {}", ran(&under, HEAD), ran(&under, BASE))
    } else {
        String::new()
    };
    let seconds = signed_float(row.window_end_at.since(row.window_start_at).0) / 1e9;
    let slow = signed_float(row.head.total) / signed_float(row.head.pods) < seconds;
    let unknown = if slow { RowReason::LowLoad } else { RowReason::NeedsTime };
    CellRow {
        detail: Some(format!("{}{strata_detail}", which_history(&under, base))),
        reason: if is_open(&row) { Some(unknown) } else { row.reason },
        minimum_detectable_ratio: None,
        seconds_to_significance: None,
        pods_needed: None,
        samples_needed_iid: None,
        ..row
    }
}

/// Whether nothing is known about a row yet.
fn is_open(row: &CellRow) -> bool {
    let known = matches!(row.reason, Some(RowReason::ContradictsShare | RowReason::AmbiguousScale));
    row.verdict == Verdict::Inconclusive && !known
}

/// Hours and hardware of strata that some cells compare.
fn shared<'a>(cells: &[&'a HistoryCell]) -> Vec<(&'a HistoryCell, (Hop, Hardware))> {
    let of_cell = |cell: &&'a HistoryCell| {
        let (cell, of_like_ages) = (*cell, cell.cell.clone().of_like_ages(Nanos(0)));
        let both = of_like_ages.strata.into_iter().filter(|(_, stratum)| stratum.iter().all(|arm| arm.samples > 0));
        both.map(|((hour, hardware, _), _)| (cell, (hour, hardware))).collect::<Vec<_>>()
    };
    cells.iter().flat_map(of_cell).collect()
}

fn which_history(cells: &[&HistoryCell], base: &Build) -> String {
    let hours: BTreeSet<u64> = shared(cells).iter().map(|(_, (hour, _))| hour.0).collect();
    let days: BTreeSet<i64> =
        shared(cells).iter().filter_map(|(cell, key)| cell.days.get(key)).flatten().copied().collect();
    let named: Vec<String> = hours.iter().map(ToString::to_string).collect();
    match named.as_slice() {
        [] => format!("base is the history of {base}"),
        hours => {
            let plural = |count: usize| if count == 1 { "" } else { "s" };
            let (of_hours, of_days) = (plural(hours.len()), plural(days.len()));
            format!(
                "base is the history of {base}: hour{of_hours} {} UTC on {} day{of_days}",
                hours.join(", "),
                days.len()
            )
        }
    }
}

/// The first strata of an arm, at all hours.
fn ran(cells: &[&HistoryCell], arm: usize) -> String {
    let strata = cells.iter().flat_map(|cell| &cell.cell.strata).filter(|(_, stratum)| stratum[arm].samples > 0);
    let strata: BTreeSet<(Hop, &Hardware)> = strata.map(|((hour, hardware, _), _)| (*hour, hardware)).collect();
    first_three(strata.into_iter().map(|(hour, hardware)| format!("{hardware} at hour {} UTC", hour.0)).collect())
}

/// Rows of `comparisons`: as in section 9, but for the window, and with its significant rows.
fn verdicts(
    at: &LookAt<'_>,
    live: &Live,
    profile_type: ProfileType,
    (cells, compared): (&Cells, &BTreeMap<CellKey, Cell>),
    rows: &[CellRow],
) -> Vec<ComparisonRow> {
    let (start_at, end_at) = range(at.config, at.open, Scope::Window, at.hop);
    let kinds = || CountKind::ALL.into_iter().filter(|kind| at.config.count_kinds.contains(kind));
    let looked: Vec<Looked> = compared
        .iter()
        .map(|(key, cell)| {
            let evidence = judge(at.config, at.archive, &[cell], Using { few: Few::Everywhere, ..Using::default() });
            let about = |kind| About {
                scope: Scope::Window,
                comparison: live.key(profile_type),
                cell: key.clone(),
                kind,
                start_at,
                end_at,
            };
            let lines =
                kinds().map(|kind| (kind, lines(at.config, at.archive, &about(kind), &evidence, None))).collect();
            Looked { profile_type, cell: key.clone(), evidence, lines }
        })
        .collect();
    let history = |cells: &[&HistoryCell], row: ComparisonRow| ComparisonRow {
        window_start_at: start_at,
        warnings: vec![which_history(cells, &at.open.base_name())],
        action: None,
        base_kind: BaseKind::History,
        ..row
    };
    let mut summaries = Vec::new();
    for kind in kinds() {
        let all = Verdicts { at, live, profile_type, kind };
        let of_cell = |looked: &Looked| {
            let row = all.of_cell(looked);
            let selected = |verdict: Verdict| {
                rows.iter().any(|row| row.count_kind == kind && row.cell == looked.cell && row.verdict == verdict)
            };
            let verdict = match row.verdict {
                ComparisonVerdict::NotComparable => ComparisonVerdict::NotComparable,
                _ if selected(Verdict::Regressed) => ComparisonVerdict::Regressed,
                other => other,
            };
            history(&[&cells[&looked.cell]], ComparisonRow { verdict, ..row })
        };
        let of_cells: Vec<ComparisonRow> = looked.iter().map(of_cell).collect();
        if at.config.cell_by != CellBy::All {
            let everywhere: Vec<&HistoryCell> = cells.values().collect();
            let hours: BTreeSet<Hop> = shared(&everywhere).iter().map(|(_, (hour, _))| *hour).collect();
            let row = all.over_all(&looked.iter().collect::<Vec<_>>(), &of_cells);
            let time_blocks = i64::try_from(hours.len()).unwrap_or(i64::MAX);
            summaries.push(history(&everywhere, ComparisonRow { time_blocks, ..row }));
        }
        summaries.extend(of_cells);
    }
    summaries
}
