//! Rows over several cells: all of them, those of a region, those of a cohort.

use std::collections::BTreeSet;

use crate::evidence::gap::Gap;
use crate::evidence::kind::KindEvidence;
use crate::evidence::report::ScopeReport;
use crate::evidence::requests::RequestTests;
use crate::evidence::row::{RowEvidence, RowFrame};
use crate::evidence::snapshot::Together;
use crate::evidence::strata_detail::{History, StrataDetail};
use crate::evidence::tests::{Places, ShareRows, ShareTests};
use crate::evidence::young::YoungTests;
use crate::rules::table::scope::{ScopeCells, TableRules};
use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::verdict::{Scope, Support};

/// The rows over several cells.
pub(super) struct RollUp {
    /// Its name, with `*` where a dimension is merged.
    pub cell: CellKey,
    /// Rows of each kind of count.
    pub rows: Vec<Vec<RowEvidence>>,
}

/// The roll-ups of a scope: over all cells first, then over each region's and each cohort's.
pub(super) fn roll_ups(cells: &ScopeCells, kinds: &[CountKind], rules: &TableRules) -> Vec<RollUp> {
    let Some(first) = cells.cells.values().next() else { return Vec::new() };
    let merged = |region: Option<&CellKey>, cohort: Option<&CellKey>| CellKey {
        region: region.map_or_else(|| MERGED.into(), |cell| cell.region.clone()),
        cohort: cohort.map_or_else(|| MERGED.into(), |cell| cell.cohort.clone()),
    };
    let everything = merged(None, None);
    let mut keys = BTreeSet::new();
    if cells.cells.len() > 1 {
        keys.extend(cells.cells.keys().map(|cell| merged(Some(cell), None)));
        keys.extend(cells.cells.keys().map(|cell| merged(None, Some(cell))));
    }
    keys.remove(&everything);
    // With a dimension that is merged already, a roll-up over it is the cell itself.
    let keys = std::iter::once(everything).chain(keys).filter(|key| !cells.cells.contains_key(key));
    let under = |key: &CellKey| -> Vec<&ScopeReport> {
        cells.cells.iter().filter(|(cell, _)| is_under(cell, key)).map(|(_, report)| report).collect()
    };
    keys.map(|key| roll_up(under(&key), key, first, cells.scope, kinds, rules)).collect()
}

/// Whether a roll-up covers a cell.
pub(super) fn is_under(cell: &CellKey, roll_up: &CellKey) -> bool {
    (roll_up.region.as_str() == MERGED || roll_up.region == cell.region)
        && (roll_up.cohort.as_str() == MERGED || roll_up.cohort == cell.cohort)
}

fn roll_up(
    under: Vec<&ScopeReport>,
    cell: CellKey,
    like: &ScopeReport,
    scope: Scope,
    kinds: &[CountKind],
    rules: &TableRules,
) -> RollUp {
    let together = Together::of(&under.iter().map(|report| &report.snapshot).collect::<Vec<_>>());
    let history =
        History::of_cells(under.iter().filter_map(|report| report.history.as_ref())).map(|history| history.words());
    let knows_requests = history.is_none() && together.knows_requests();
    let tests = tests_of(&together, kinds, rules, knows_requests || !rules.method.is_calibrated());
    let strata_detail = StrataDetail::of_cells(under.iter().map(|report| report.strata_detail.as_ref()));
    let strata_detail = strata_detail.map(|strata_detail| {
        if history.is_some() { strata_detail.words_of_history() } else { strata_detail.words(rules.clock) }
    });
    let support = together.support();
    let gap = Gap::largest(under.iter().map(|report| report.gap));
    let of_cells = under.iter().filter_map(|report| report.rows.iter().flatten().next());
    let provisional_until_at = of_cells.filter_map(|evidence| evidence.row.provisional_until_at).max();
    // Cells in which pods of the same age are compared have no part in it.
    let of_young = Together::of(&under.iter().filter_map(|report| report.young.as_ref()).collect::<Vec<_>>());
    let hashes = || of_young.functions.iter().map(|(hash, _)| *hash);
    let young: Vec<Option<YoungTests>> = tests_of(&of_young, kinds, rules, true)
        .into_iter()
        .map(|tests| tests.map(|tests| YoungTests::of(hashes(), &tests)))
        .collect();
    // Only where shares alone would decide: no factor could be measured.
    let asks_requests = knows_requests && rules.method.is_calibrated();
    let each = kinds.iter().zip(&like.rows).zip(tests.iter().zip(&young));
    let rows = each.map(|((&kind, example), (tests, young))| {
        let asking = tests.as_ref().filter(|tests| asks_requests && !tests.rows.scales.measured);
        let contrast = || together.contrast(kind, together.untested());
        let requests = asking.map(|_| RequestTests::of(&contrast(), rules.min_effect));
        let Some(frame) = frame(&together, &cell, example, scope, kind, support, rules) else { return Vec::new() };
        let (strata_detail, history) = (strata_detail.clone(), history.clone());
        let frame = RowFrame { gap, provisional_until_at, strata_detail, history, ..frame };
        let (head, base) = (together.counts(Side::Head, kind), together.counts(Side::Base, kind));
        let evidence = KindEvidence {
            functions: &together.functions,
            frame: &frame,
            counts: (&head, &base),
            min_count: rules.min_count,
            places: Places(None),
            tests: tests.as_ref(),
            pods_of_bucket: &|side, bucket| together.pods_of_bucket(side, bucket),
            requests: requests.as_ref(),
            family: None,
            pods: None,
            young: young.as_ref(),
        };
        evidence.rows(rules.q).0
    });
    RollUp { rows: rows.collect(), cell }
}

/// The tests of each kind of count over several cells together, on the scales of their self counts; `None` if there are
/// too few pods for a test. If requests are not known, few functions have a scale too.
pub fn tests_of<'t>(
    together: &'t Together<'_>,
    kinds: &[CountKind],
    rules: &TableRules,
    requests_known: bool,
) -> Vec<Option<ShareRows<'t>>> {
    let untested = together.untested();
    let measure = |kind| ShareTests::measure(together.contrast(kind, untested), rules.min_count);
    let mut own = (together.support() != Support::Untestable).then(|| measure(CountKind::SelfCount));
    let scales = own.as_ref().map(|own| own.scales(None, requests_known));
    let each = kinds.iter().map(|&kind| {
        let tests = match kind {
            CountKind::SelfCount => own.take(),
            CountKind::Total => scales.as_ref().map(|_| measure(kind)),
        };
        tests.zip(scales.as_ref()).map(|(tests, scales)| tests.rows(scales, rules.min_effect))
    });
    each.collect()
}

fn frame(
    together: &Together<'_>,
    cell: &CellKey,
    example: &[RowEvidence],
    scope: Scope,
    kind: CountKind,
    support: Support,
    rules: &TableRules,
) -> Option<RowFrame> {
    let example = &example.first()?.row;
    Some(RowFrame {
        scope,
        comparison: example.comparison.clone(),
        count_kind: kind,
        cell: cell.clone(),
        is_roll_up: true,
        window_start_at: example.window_start_at,
        window_end_at: example.window_end_at,
        provisional_until_at: None,
        head: together.figures(Side::Head),
        base: together.figures(Side::Base),
        strata: together.kept,
        support,
        gap: Gap::default(),
        window_seconds: rules.window_seconds,
        strata_detail: None,
        history: None,
    })
}
