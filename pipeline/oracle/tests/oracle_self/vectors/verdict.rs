//! The lines of the verdict table one after the other, those too that no cell of the vectors shows.

use fleetdiff_oracle::statistics::verdict::{Facts, verdict};
use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};

/// A row of which nothing can be said.
fn silent() -> Facts {
    Facts {
        not_comparable: None,
        counts: [200.0, 100.0],
        samples: 10_000.0,
        min_count: 30.0,
        support: Support::Firm,
        rare: false,
        decided: false,
        theta: 0.3,
        theta_share: -0.1,
        min_effect: 0.01,
        contradicts: false,
        per_request: None,
        one_pod: false,
        outlying: false,
        ln_scales: vec![-0.4],
        share_moved: false,
        interval90: (-0.2, 0.8),
        missing: RowReason::NeedsTime,
    }
}

#[test]
fn oracle_reads_each_line_of_the_verdict_table() {
    // Each change is made on top of those before it: a line further up goes before all below.
    let mut facts = silent();
    let mut expect = |change: &dyn Fn(&mut Facts), expected: Verdict, reason: Option<RowReason>| {
        change(&mut facts);
        assert_eq!(verdict(&facts), (expected, reason), "{facts:?}");
    };
    expect(&|_| (), Verdict::Inconclusive, Some(RowReason::NeedsTime));
    expect(&|row| row.interval90 = (-0.04, 0.04), Verdict::Equivalent, None);
    expect(&|row| (row.share_moved, row.theta) = (true, 0.05), Verdict::Compositional, None);
    expect(&|row| row.ln_scales.push(0.2), Verdict::Inconclusive, Some(RowReason::AmbiguousScale));
    expect(&|row| row.outlying = true, Verdict::SomePodsOutlying, None);
    expect(&|row| (row.decided, row.theta) = (true, 0.009), Verdict::SomePodsOutlying, None);
    expect(&|row| row.theta = 0.05, Verdict::Regressed, None);
    expect(&|row| row.counts = [300.0, 0.0], Verdict::Regressed, Some(RowReason::OnlyInHead));
    expect(&|row| (row.counts, row.theta) = ([0.0, 300.0], -0.05), Verdict::Improved, Some(RowReason::OnlyInBase));
    expect(&|row| row.one_pod = true, Verdict::SomePodsOutlying, Some(RowReason::OnePod));
    expect(&|row| row.contradicts = true, Verdict::Inconclusive, Some(RowReason::ContradictsShare));
    expect(&|row| row.per_request = Some((-2.0, -0.1)), Verdict::Inconclusive, Some(RowReason::ContradictsShare));
    expect(&|row| row.per_request = Some((-4.0, 0.1)), Verdict::Inconclusive, Some(RowReason::ContradictsShare));
    expect(&|row| row.per_request = Some((-4.0, -0.1)), Verdict::SomePodsOutlying, Some(RowReason::OnePod));
    expect(&|row| row.counts = [10.0, 19.0], Verdict::TooRare, Some(RowReason::CountNeeded));
    expect(&|row| row.rare = true, Verdict::Improved, Some(RowReason::Rare));
    expect(&|row| row.support = Support::Untestable, Verdict::Untestable, Some(RowReason::FewPods));
    expect(&|row| row.samples = 29.0, Verdict::Untestable, Some(RowReason::WholeProfile));
    expect(&|row| row.not_comparable = Some(RowReason::NoBase), Verdict::NotComparable, Some(RowReason::NoBase));
}

#[test]
fn oracle_needs_firm_support_for_equivalence() {
    let facts = Facts { support: Support::Tentative, interval90: (-0.04, 0.04), ..silent() };
    assert_eq!(verdict(&facts), (Verdict::Inconclusive, Some(RowReason::NeedsTime)));
    let facts = Facts { interval90: (-0.04, 0.05), ..silent() };
    assert_eq!(verdict(&facts).0, Verdict::Inconclusive, "0.05 is beyond ln 1.05");
}
