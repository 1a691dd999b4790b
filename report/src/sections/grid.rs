//! The grid: regions down, cohorts across, with the leading change in each cell, or with the verdicts of cells.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_pipeline::rules::wording::Wording;
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, ComparisonKey, ComparisonRow};

use super::by_cell::{Known, known};
use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Shape, Span, Table, Text, name, paragraph, words};
use crate::figures::{figure, percent, points, ratio};
use crate::records::Filed;
use crate::references::References;
use crate::verdicts;

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let base = comparison.base_kind();
    let incidents = comparison.incidents();
    let lead = incidents.first().and_then(|incident| known(comparison, incident));
    let mut blocks = Vec::new();
    for key in comparison.keys.iter().copied() {
        let cells = comparison.cells(key, base);
        if cells.is_empty() {
            continue;
        }
        let of_lead = lead.as_ref().filter(|lead| lead.key == key);
        blocks.push(paragraph(introduction(key, of_lead)));
        let mut texts: BTreeMap<&CellKey, Cell> = BTreeMap::new();
        for (cell, verdict) in &cells {
            let text = match of_lead {
                Some(lead) => of_function(lead, cell, verdict, references),
                None => of_cell(verdict, references),
            };
            texts.insert(cell, text);
        }
        blocks.push(Block::Table(table(&texts)));
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("Cell by cell".to_owned()), blocks }))
}

fn introduction(key: &ComparisonKey, lead: Option<&Known<'_>>) -> Text {
    match lead {
        Some(lead) if lead.cause == ALL_FUNCTIONS => vec![words(format!(
            "{} profiles: how many times as much a request {} in each cell, all functions together, and whether that is a change.",
            key.profile_type.name(),
            Wording::of(key.profile_type).does
        ))],
        Some(lead) => vec![
            words(format!("{} profiles: by how much the share of ", key.profile_type.name())),
            name(lead.cause),
            words(" among all samples of a cell changed, in percentage points, and whether that is a change."),
        ],
        None => vec![words(format!(
            "{} profiles: the verdict of each cell, and the part of its base samples that lies in functions shown to be unchanged.",
            key.profile_type.name()
        ))],
    }
}

/// The leading change in one cell.
fn of_function(lead: &Known<'_>, cell: &CellKey, verdict: &Filed<ComparisonRow>, references: &mut References) -> Cell {
    let Some(of_cell) = lead.cells.get(cell) else {
        let citation = references.row(verdict);
        let too_rare = verdicts::too_rare();
        return Cell::of(vec![figure(too_rare.word, citation, &[])]).toned(too_rare.tone);
    };
    let citation = of_cell.cite(references);
    let row: &CellRow = of_cell.row;
    let change = match (row.share_delta, row.effect()) {
        (Some(delta), _) => Some(points(delta, citation)),
        (None, Some(effect)) => Some(ratio(effect, citation, of_cell.columns())),
        (None, None) => None,
    };
    let word = of_cell.verdict();
    let tone = word.tone;
    let text: Text = change.into_iter().chain([words(" ")]).chain([Span::Verdict(word)]).collect();
    Cell::of(text).toned(tone)
}

/// The verdict of one cell.
fn of_cell(verdict: &Filed<ComparisonRow>, references: &mut References) -> Cell {
    let citation = references.row(verdict);
    let word = verdicts::of_cell(verdict.row.verdict);
    let tone = word.tone;
    let mut text = Text::new();
    match verdict.row.equivalent_share {
        Some(share) => {
            text.push(percent(share, citation, "equivalent_share"));
            text.push(words(" unchanged "));
            text.push(Span::Verdict(word));
        }
        None => text.push(figure(word.word, citation, &[])),
    }
    Cell::of(text).toned(tone)
}

fn table(cells: &BTreeMap<&CellKey, Cell>) -> Table {
    let regions: BTreeSet<&str> = cells.keys().map(|cell| cell.region.as_str()).collect();
    let cohorts: BTreeSet<&str> = cells.keys().map(|cell| cell.cohort.as_str()).collect();
    let named = |place: &str, merged: &str| if place == MERGED { merged.to_owned() } else { place.to_owned() };
    let of = |region: &str, cohort: &str| {
        let found = cells.iter().find(|(cell, _)| cell.region.as_str() == region && cell.cohort.as_str() == cohort);
        found.map_or_else(|| Cell::words("no pods"), |(_, cell)| cell.clone())
    };
    let head = cohorts.iter().map(|cohort| vec![words(named(cohort, "all cohorts"))]);
    let row = |region: &&str| {
        let first = Cell::words(named(region, "all regions"));
        [first].into_iter().chain(cohorts.iter().map(|cohort| of(region, cohort))).collect()
    };
    Table {
        caption: "Regions down, cohorts across".to_owned(),
        shape: Shape::Grid,
        head: [vec![words("region")]].into_iter().chain(head).collect(),
        rows: regions.iter().map(row).collect(),
    }
}
