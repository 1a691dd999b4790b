//! Cost per request of all functions together, which shares cannot show.

use std::collections::BTreeMap;

use fleetdiff_pipeline::rules::advice::{capitalised, effect_of, words};
use fleetdiff_pipeline::rules::extent::extents;
use fleetdiff_pipeline::rules::wording::Wording;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonRow};
use fleetdiff_schemas::verdict::Verdict;

use super::findings::Findings;

/// One line: where all functions together cost more or less per request, where they are equivalent, and where it is
/// inconclusive or unknown; none of a level, to which requests do not belong.
pub(crate) fn line(findings: &Findings<'_>) -> Option<String> {
    let wording = Wording::of(findings.key.profile_type);
    let unseen = wording.unseen()?;
    if findings.uniform.is_empty() {
        return Some(format!("Without request counts, {unseen}."));
    }
    let of = |wanted: &[Verdict]| -> Vec<(&CellKey, &CellRow)> {
        findings
            .uniform
            .iter()
            .filter(|(_, row)| wanted.contains(&row.verdict))
            .map(|(cell, row)| (*cell, *row))
            .collect()
    };
    let place = |cells: &[(&CellKey, &CellRow)]| {
        words(&extents(cells.iter().map(|(cell, _)| *cell), findings.cells.keys().copied()))
    };
    let mut parts = Vec::new();
    for verdict in [Verdict::Regressed, Verdict::Improved] {
        let flagged = of(&[verdict]);
        let effects: BTreeMap<&CellKey, String> =
            flagged.iter().filter_map(|(cell, row)| Some((*cell, effect_of(row.per_request_ratio?)))).collect();
        let effects: Vec<&str> = effects.values().map(String::as_str).collect();
        if !flagged.is_empty() {
            parts.push(format!("{} in {}: {}", verdict.name(), place(&flagged), effects.join(", ")));
        }
    }
    let equivalent = of(&[Verdict::Equivalent]);
    if !equivalent.is_empty() {
        parts.push(format!("equivalent (within 5 %) in {}", place(&equivalent)));
    }
    let open = of(&[Verdict::Inconclusive, Verdict::Untestable]);
    if !open.is_empty() {
        parts.push(format!("inconclusive in {}", place(&open)));
    }
    let unknown = findings.cells.iter().filter(|(cell, _)| !findings.uniform.contains_key(*cell));
    let (sampled, empty): (Vec<_>, Vec<_>) = unknown.partition(|(_, row)| row.head_total > 0 && row.base_total > 0);
    let cells_of = |rows: Vec<(&&CellKey, &&ComparisonRow)>| -> Option<String> {
        let cells = rows.iter().map(|(cell, _)| **cell);
        (!rows.is_empty()).then(|| words(&extents(cells, findings.cells.keys().copied())))
    };
    parts.extend(cells_of(sampled).map(|place| format!("without request counts in {place}: there, {unseen}")));
    parts.extend(cells_of(empty).map(|place| format!("without samples of both builds in {place}")));
    let of_request = capitalised(wording.of_request?);
    Some(format!("{of_request} per request, all functions together, in the last window: {}.", parts.join("; ")))
}
