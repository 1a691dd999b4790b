//! What methods that are not calibrated have in common: which rows they test, how they decide a row, and how their
//! tables warn.
//!
//! They are offered so that users can see on their own fleet what the plain test does. They compare merged counts of
//! two builds, row by row, without pods as replicates, strata or a normalization factor. So they send no alert and
//! have no verdict of equivalence, and each of their sentences begins with a warning.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, ComparisonRow};
use fleetdiff_schemas::verdict::{ComparisonVerdict, RowReason, Scope, Verdict};

use super::verdict::only_in;
use crate::evidence::row::RowEvidence;

/// Whether a method without pods and strata takes the row into its family. It leaves out rare rows, frames without
/// symbols, rows without a base, and rows that hold every sample.
#[must_use]
pub fn is_member(evidence: &RowEvidence) -> bool {
    let open = matches!(evidence.decided, None | Some((_, RowReason::FewPods | RowReason::NoCommonStratum)));
    open && evidence.row.g.is_some()
}

/// Whether the share is larger in the head (`Greater`), larger in the base, or equal; exact, by cross-multiplication.
#[must_use]
pub fn moved(row: &CellRow) -> Ordering {
    let cross = |count: i64, total: i64| i128::from(count) * i128::from(total);
    cross(row.head.count, row.base.total).cmp(&cross(row.base.count, row.head.total))
}

/// The row as a method leaves it: significant with the sign of its change, or not.
///
/// A row outside the family keeps its earlier verdict. A row that is not significant is inconclusive without a reason,
/// since such a method cannot show that nothing changed.
#[must_use]
pub fn stated(evidence: &RowEvidence, is_significant: bool, q_value: Option<f64>) -> CellRow {
    let row = &evidence.row;
    let (verdict, reason) = match evidence.decided {
        _ if is_significant => significant(row),
        Some((verdict, reason)) if !is_member(evidence) => (verdict, Some(reason)),
        _ => (Verdict::Inconclusive, None),
    };
    CellRow { q_value, verdict, reason, cause: None, ..row.clone() }
}

/// The verdict of a significant row, by the sign of its change.
#[must_use]
pub fn significant(row: &CellRow) -> (Verdict, Option<RowReason>) {
    match moved(row) {
        Ordering::Greater => (Verdict::Regressed, only_in(row)),
        Ordering::Less => (Verdict::Improved, only_in(row)),
        Ordering::Equal => (Verdict::Inconclusive, None),
    }
}

/// The beginning of every sentence about a comparison.
#[must_use]
pub fn warning(method: Method) -> String {
    format!("not calibrated (method {}): ", method.name())
}

/// What a method found significant in the windows of one hop's report.
#[derive(Debug)]
pub struct Findings {
    method: Method,
    cells: BTreeMap<(ComparisonKey, CountKind), BTreeMap<CellKey, Tally>>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    /// Rows that have one of the method's verdicts.
    members: usize,
    regressed: usize,
    improved: usize,
    /// The significant row whose share moved most: by how much, and its name.
    largest: Option<(f64, String)>,
}

impl Findings {
    /// Summarizes these rows.
    pub fn of<'a>(method: Method, rows: impl Iterator<Item = &'a CellRow>) -> Self {
        let mut cells: BTreeMap<(ComparisonKey, CountKind), BTreeMap<CellKey, Tally>> = BTreeMap::new();
        for row in rows.filter(|row| row.scope == Scope::Window) {
            let of_kind = cells.entry((row.comparison.clone(), row.count_kind)).or_default();
            of_kind.entry(row.cell.clone()).or_default().add(row);
        }
        Self { method, cells }
    }

    /// A row of `comparisons` in the words of the method; `None` at a look without a report, at which the method
    /// decides nothing.
    #[must_use]
    pub fn restate(&self, row: ComparisonRow) -> Option<ComparisonRow> {
        let of_kind = self.cells.get(&(row.comparison.clone(), row.count_kind))?;
        let tally = match of_kind.get(&row.cell) {
            Some(tally) => tally.clone(),
            None if row.cell.is_over_all() => of_kind.values().fold(Tally::default(), Tally::with),
            None => Tally::default(),
        };
        let sentence = format!("{}{}", warning(self.method), tally.in_words());
        Some(ComparisonRow {
            functions_tested: table_count(tally.members),
            flags: 0,
            verdict: tally.verdict(),
            sentence,
            ..row
        })
    }
}

impl Tally {
    fn add(&mut self, row: &CellRow) {
        match row.verdict {
            Verdict::Regressed => self.regressed += 1,
            Verdict::Improved => self.improved += 1,
            Verdict::Inconclusive => {}
            _ => return,
        }
        self.members += 1;
        let change = row.head.share.zip(row.base.share).map(|(head, base)| head - base);
        if let Some(change) = change.filter(|_| row.verdict.is_significant()) {
            self.take_larger(Some((change, row.function.clone())));
        }
    }

    fn take_larger(&mut self, other: Option<(f64, String)>) {
        let size = |largest: &Option<(f64, String)>| largest.as_ref().map_or(-1.0, |(change, _)| change.abs());
        if size(&other) > size(&self.largest) {
            self.largest = other;
        }
    }

    fn with(mut self, other: &Self) -> Self {
        self.members += other.members;
        self.regressed += other.regressed;
        self.improved += other.improved;
        self.take_larger(other.largest.clone());
        self
    }

    fn verdict(&self) -> ComparisonVerdict {
        match self {
            Self { members: 0, .. } => ComparisonVerdict::NotComparable,
            Self { regressed: 1.., .. } => ComparisonVerdict::Regressed,
            Self { improved: 1.., .. } => ComparisonVerdict::Improved,
            _ => ComparisonVerdict::Inconclusive,
        }
    }

    fn in_words(&self) -> String {
        let Self { members, regressed, improved, .. } = self;
        match &self.largest {
            _ if *members == 0 => "no row has samples of both builds".to_owned(),
            None => format!("none of {members} rows is significant, which does not show that nothing changed"),
            Some((change, function)) => {
                format!(
                    "{regressed} regressed and {improved} improved of {members} rows, the largest change {function} {:+.3} pp",
                    change * 100.0
                )
            }
        }
    }
}
