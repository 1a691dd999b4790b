//! The rows of one cell whose base is history, and what they show for the cell as a whole.
//!
//! The head is the head of the window; its strata are hour of the day x hardware. Shares are tested as in any other
//! window. Tests that need single pods within the window (rare functions, outlying pods) are not made. Nor is anything
//! computed per request: requests are reported over their own intervals, so the hops that are kept hold more or fewer
//! requests than belong to their samples.

use std::collections::BTreeSet;

use super::arms::CellArms;
use super::gap::Gap;
use super::kind::{KindEvidence, RareRows};
use super::look::KindLook;
use super::report::ScopeReport;
use super::row::{RowEvidence, RowFrame};
use super::snapshot::Snapshot;
use super::strata_detail::{History, StrataDetail};
use super::tests::{Places, ShareRows, ShareTests};
use super::young::{YoungArms, YoungTests};
use crate::evidence::view::CellView;
use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::{Scope, Support};

/// The rows of a cell within the window, and the figures of each kind of count; `None` if the head has no sample in the
/// window, or no history is kept.
pub fn history_report(view: &CellView<'_>, kinds: &[CountKind]) -> Option<(Vec<KindLook>, ScopeReport)> {
    let archive = view.counts.archive();
    let keeping = archive.keeping()?;
    let comparison = &view.comparison.id;
    let strata = archive.strata(&comparison.base);
    let arms = CellArms::against_history(view.counts, comparison, &strata, |block| keeping.hour_of_day(block));
    let figures = KindLook::untested(&arms);
    if figures.head_total == 0 {
        return None;
    }
    let (history, strata_detail) =
        (History::of(view.key.base_build.clone(), &arms, &strata), StrataDetail::of_history(&arms, &strata));
    let support = arms.support();
    let measure = |kind| ShareTests::measure(arms.contrast(kind, view.untested), view.min_count);
    let mut own = (support != Support::Untestable).then(|| measure(CountKind::SelfCount));
    let scales = own.as_ref().map(|own| own.scales(None, false));
    let base_self = arms.counts(Side::Base, CountKind::SelfCount);
    let young = view.young_beside(&arms);
    let (mut rows, mut looks) = (Vec::new(), Vec::new());
    for &kind in kinds {
        let tests = match kind {
            CountKind::SelfCount => own.take(),
            CountKind::Total => scales.as_ref().map(|_| measure(kind)),
        };
        let shares = tests.zip(scales.as_ref()).map(|(tests, scales)| tests.rows(scales, view.min_effect));
        let words = strata_detail.as_ref().map(StrataDetail::words_of_history);
        let frame = RowFrame {
            strata_detail: words,
            history: Some(history.words()),
            ..view.frame(Scope::Window, kind, &arms, support)
        };
        let young_tests = young.map(|young| young.all_tests(kind));
        let of_kind = rows_of_kind(view, &arms, &frame, (shares.as_ref(), young_tests));
        let equivalent_share = equivalent_share(view, &arms, support, &of_kind, &base_self);
        let mut look =
            KindLook { count_kind: kind, equivalent_share, requests_known: false, support, ..figures.clone() };
        if let Some(shares) = &shares {
            look.add_tests(&shares.rows.tests, &shares.rows.scales);
        }
        looks.push(look);
        rows.push(of_kind);
    }
    let rare = vec![RareRows::default(); kinds.len()];
    let snapshot = Snapshot::of(view.counts.functions(), &arms);
    Some((
        looks,
        ScopeReport {
            scope: Scope::Window,
            rows,
            rare,
            snapshot,
            young: young.map(YoungArms::snapshot),
            imbalance: Vec::new(),
            gap: Gap::default(),
            splits: Vec::new(),
            strata_detail,
            history: Some(history),
        },
    ))
}

fn rows_of_kind(
    view: &CellView<'_>,
    arms: &CellArms<'_>,
    frame: &RowFrame,
    (tests, young): (Option<&ShareRows<'_>>, Option<&YoungTests>),
) -> Vec<RowEvidence> {
    let kind = frame.count_kind;
    let (head, base) = (arms.counts(Side::Head, kind), arms.counts(Side::Base, kind));
    let evidence = KindEvidence {
        functions: view.counts.functions().entries(),
        frame,
        counts: (&head, &base),
        min_count: view.min_count,
        places: Places(Some(view.counts.functions().places())),
        tests,
        pods_of_bucket: &|side, bucket| arms.pods_of_bucket(side, bucket),
        requests: None,
        family: None,
        pods: None,
        young,
    };
    evidence.rows(view.q).0
}

/// Share of the base's self samples in equivalent functions with firm support.
fn equivalent_share(
    view: &CellView<'_>,
    arms: &CellArms<'_>,
    support: Support,
    rows: &[RowEvidence],
    base_self: &[f64],
) -> Option<f64> {
    let all: f64 = base_self.iter().sum();
    let equivalent: BTreeSet<u64> = rows
        .iter()
        .filter(|row| support == Support::Firm && row.tested && row.equivalent)
        .map(|row| row.hash)
        .collect();
    let of_equivalent = view
        .counts
        .functions()
        .entries()
        .iter()
        .zip(base_self)
        .filter(|((hash, _), _)| equivalent.contains(hash))
        .map(|(_, count)| count);
    (arms.kept > 0 && all > 0.0).then(|| of_equivalent.sum::<f64>() / all)
}
