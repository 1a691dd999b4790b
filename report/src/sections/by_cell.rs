//! What is known of the cause of an incident in each cell.

use std::collections::BTreeMap;

use fleetdiff_pipeline::rules::advice;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, FlagRow};
use fleetdiff_schemas::verdict::{BaseKind, Scope, Severity};

use crate::chart::Effect;
use crate::comparison::{Comparison, Incident};
use crate::document::{Block, Cell, Span, Tone, Verdict, words};
use crate::figures::{ADJUSTED_RATIO, Columns, PER_REQUEST_RATIO, count, percent, points, ratio};
use crate::records::Filed;
use crate::references::{Citation, References};
use crate::verdicts;

/// What is known of a cause, in one type of profile and kind of count.
pub(crate) struct Known<'a> {
    /// The function, or `(all)`.
    pub(crate) cause: &'a str,
    /// The type of profile of the flag that stands for the incident.
    pub(crate) key: &'a ComparisonKey,
    /// Self counts if a flag of them stands.
    pub(crate) kind: CountKind,
    /// Each cell with a row.
    pub(crate) cells: BTreeMap<&'a CellKey, OfCell<'a>>,
}

/// What is known of it in one cell.
pub(crate) struct OfCell<'a> {
    /// The row of the last report, or of its flag if there was no report.
    pub(crate) row: &'a CellRow,
    source: Source<'a>,
    /// The severity of the flag that stands.
    flagged: Option<Severity>,
}

/// The table of a row.
#[derive(Clone, Copy)]
enum Source<'a> {
    Report(&'a Filed<CellRow>),
    Flag(&'a Filed<FlagRow>),
}

/// What is known of the cause of an incident; none if no flag of it is recorded.
pub(crate) fn known<'a>(comparison: &Comparison<'a>, incident: &Incident<'a>) -> Option<Known<'a>> {
    let cause = incident.standing.row.cause.as_str();
    let flags = comparison.flags_of(incident);
    let lead = flags.iter().min_by(|a, b| {
        let rank = |flag: &FlagRow| (flag.severity, flag.row.count_kind);
        let size = |flag: &FlagRow| flag.row.effect().map_or(f64::INFINITY, |ratio| (ratio.value - 1.0).abs());
        rank(&a.row).cmp(&rank(&b.row)).then(size(&b.row).total_cmp(&size(&a.row)))
    })?;
    let kind = lead.row.row.count_kind;
    let key = comparison.keys.iter().copied().find(|key| **key == lead.row.row.comparison)?;
    let of_kind: BTreeMap<&CellKey, &'a Filed<FlagRow>> = flags
        .iter()
        .filter(|filed| filed.row.row.comparison == *key && filed.row.row.count_kind == kind)
        .map(|filed| (&filed.row.row.cell, *filed))
        .collect();
    let reported = comparison.last_report(key, kind, Scope::Epoch).filter(|filed| filed.row.function == cause);
    let mut cells: BTreeMap<&CellKey, OfCell<'a>> = reported
        .map(|filed| {
            let flagged = of_kind.get(&filed.row.cell).map(|flag| flag.row.severity);
            (&filed.row.cell, OfCell { row: &filed.row, source: Source::Report(filed), flagged })
        })
        .collect();
    for (cell, flag) in of_kind {
        let flagged = Some(flag.row.severity);
        cells.entry(cell).or_insert(OfCell { row: &flag.row.row, source: Source::Flag(flag), flagged });
    }
    Some(Known { cause, key, kind, cells })
}

impl OfCell<'_> {
    pub(crate) fn cite(&self, references: &mut References) -> Citation {
        match self.source {
            Source::Report(filed) => references.row(filed),
            Source::Flag(filed) => references.row(filed),
        }
    }

    pub(crate) fn is_flagged(&self) -> bool {
        self.flagged.is_some()
    }

    /// That of the flag, or of the row where it is not flagged.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.flagged {
            Some(Severity::Info) => Verdict::new("improved", Tone::Less),
            Some(Severity::Page | Severity::Ticket) => Verdict::new("regressed", Tone::More),
            None => verdicts::of_row(self.row.verdict),
        }
    }

    /// The columns of its effect.
    pub(crate) fn columns(&self) -> Columns {
        if self.row.function == ALL_FUNCTIONS { PER_REQUEST_RATIO } else { ADJUSTED_RATIO }
    }

    /// How far its ratio is from 1.
    fn size(&self) -> f64 {
        self.row.effect().map_or(0.0, |ratio| libm::log(ratio.value).abs())
    }
}

impl<'a> Known<'a> {
    /// Its cells: flagged ones first, then those with the largest change.
    pub(crate) fn in_order(&self) -> Vec<(&'a CellKey, &OfCell<'a>)> {
        let mut cells: Vec<(&'a CellKey, &OfCell<'a>)> = self.cells.iter().map(|(cell, of)| (*cell, of)).collect();
        cells.sort_by(|(_, a), (_, b)| b.is_flagged().cmp(&a.is_flagged()).then(b.size().total_cmp(&a.size())));
        cells
    }

    /// Its rows for a picture.
    pub(crate) fn effects(&self, comparison: &Comparison<'_>, most: usize) -> Vec<Effect> {
        let rows = self.in_order().into_iter().take(most);
        rows.map(|(cell, of)| Effect {
            place: comparison.places(self.key, BaseKind::Concurrent, [cell]),
            ratio: of.row.effect(),
            tone: of.verdict().tone,
            is_flagged: of.is_flagged(),
        })
        .collect()
    }

    /// Its rows as a table.
    pub(crate) fn table(&self, comparison: &Comparison<'_>, most: usize, references: &mut References) -> Block {
        let head =
            ["cell", "verdict", "head / base", "share of head", "share of base", "change of share", "pods", "samples"];
        let rows = self.in_order().into_iter().take(most).map(|(cell, of)| {
            let (row, citation) = (of.row, of.cite(references));
            let place = comparison.places(self.key, BaseKind::Concurrent, [cell]);
            let unknown = || Cell::words("unknown");
            let share = |share: Option<f64>, column| {
                share.map_or_else(unknown, |share| Cell::of(vec![percent(share, citation, column)]))
            };
            let pair = |[head, base]: [(i64, &'static str); 2]| {
                let [head, base] = [head, base].map(|(of, column)| count(of, citation, column));
                Cell::of(vec![head, words(" against "), base])
            };
            vec![
                Cell::words(place),
                Cell::of(vec![Span::Verdict(of.verdict())]),
                row.effect().map_or_else(
                    || Cell::words(advice::only_in(row.head.count, row.base.count).unwrap_or("not tested")),
                    |effect| Cell::of(vec![ratio(effect, citation, of.columns())]),
                ),
                share(row.head.share, "head_share"),
                share(row.base.share, "base_share"),
                row.share_delta.map_or_else(unknown, |delta| Cell::of(vec![points(delta, citation)])),
                pair([(row.head.pods, "head_pods"), (row.base.pods, "base_pods")]),
                pair([(row.head.total, "head_total"), (row.base.total, "base_total")]),
            ]
        });
        Block::list("The cause in each cell", &head, rows)
    }
}
