//! What differs between the arms besides the build: imbalance, and what divides pods and has no label.

use std::collections::BTreeSet;

use fleetdiff_schemas::verdict::BaseKind;

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Cell, Section, Text, paragraph, words};
use crate::figures::figure;
use crate::references::References;

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let mut rows = Vec::new();
    let mut silent: BTreeSet<&str> = BTreeSet::new();
    for key in comparison.keys.iter().copied() {
        let cells = comparison.cells(key, BaseKind::Concurrent);
        for (cell, filed) in &cells {
            let place = comparison.places(key, BaseKind::Concurrent, [*cell]);
            for warning in &filed.row.warnings {
                let citation = references.row(*filed);
                let text: Text = vec![figure(warning.clone(), citation, &[])];
                rows.push(vec![Cell::words(place.clone()), Cell::words(key.profile_type.name()), Cell::of(text)]);
            }
        }
        if !cells.is_empty() && cells.values().all(|filed| filed.row.warnings.is_empty()) {
            silent.insert(key.profile_type.name());
        }
    }
    let mut blocks = Vec::new();
    if !silent.is_empty() {
        let types: Vec<&str> = silent.into_iter().collect();
        let text = "no imbalance was found: requests of a pod are within a factor of 4/3 of each other, age and hardware of pods within 2";
        blocks.push(paragraph(vec![words(format!("{}: {text}.", types.join(", ")))]));
    }
    if !rows.is_empty() {
        blocks.push(paragraph(vec![words(
            "The builds differ by more than their code, and no statistic can separate that from it. In a cell where the base's own pods \
             differ by such a thing, incidents are tickets, not pages.",
        )]));
        blocks.push(Block::list("Warnings of the last report", &["cell", "profiles", "warning"], rows));
    }
    Ok((!blocks.is_empty()).then(|| Section { title: Some("What else differs between the builds".to_owned()), blocks }))
}
