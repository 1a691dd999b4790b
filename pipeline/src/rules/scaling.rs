//! Which functions cost more under load, and of which a head scales worse than its base.

pub(crate) mod findings;

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, Interval, LoadCurveRow, ScalingRow};
use fleetdiff_schemas::verdict::{ScalingReason, ScalingVerdict};
use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::scaling::BAND;

use super::advice::words;
use super::extent::extents;

/// Decides rows that are families together: of one build in one cell, or of one comparison in all cells. Each type of profile and kind of
/// count is a Benjamini-Hochberg family.
pub(crate) fn decide(rows: &mut [ScalingRow], q: f64) {
    let mut families: BTreeMap<(ProfileType, CountKind), Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.ln_p.is_some()) {
        families.entry((row.profile_type, row.count_kind)).or_default().push(place);
    }
    for places in families.into_values() {
        let ln_p: Vec<f64> = places.iter().filter_map(|&place| rows[place].ln_p).collect();
        places.iter().zip(bh(&ln_p)).for_each(|(&place, q_value)| rows[place].q_value = Some(q_value));
    }
    rows.iter_mut().for_each(|row| row.verdict = verdict(row, q));
}

fn verdict(row: &ScalingRow, q: f64) -> ScalingVerdict {
    let [more, less, same] = match row.base_build {
        Some(_) => [ScalingVerdict::ScalesWorse, ScalingVerdict::ScalesBetter, ScalingVerdict::ScalesEqually],
        None => [ScalingVerdict::MoreExpensive, ScalingVerdict::Cheaper, ScalingVerdict::Linear],
    };
    match (row.reason, row.slope()) {
        (Some(reason), _) if is_of_load(reason) => ScalingVerdict::Withheld,
        (None, Some(slope)) if is_significant(row, q) => {
            if slope.value > 0.0 {
                more
            } else {
                less
            }
        }
        (None, Some(slope)) if is_within_band(slope) => same,
        _ => ScalingVerdict::Inconclusive,
    }
}

fn is_significant(row: &ScalingRow, q: f64) -> bool {
    row.q_value.is_some_and(|q_value| selected(q_value, q))
}

fn is_within_band(slope: Interval) -> bool {
    slope.low >= -BAND && slope.high <= BAND
}

/// Whether a reason concerns every function of the build.
fn is_of_load(reason: ScalingReason) -> bool {
    !matches!(reason, ScalingReason::CountNeeded | ScalingReason::AtOneEnd)
}

/// What a request costs at twice the load, relative to what it costs now.
pub fn at_twice_the_load(slope: Interval) -> Interval {
    let Interval { value, low, high } = slope;
    Interval { value: libm::exp2(value), low: libm::exp2(low), high: libm::exp2(high) }
}

/// What to do about functions of which the head scales worse.
pub fn action(head: &Build, base: &Build) -> String {
    format!(
        "Before {head} meets peak load, compare it with {base} there, or add pods; a roll back is not urgent at low load."
    )
}

/// The cell of a figure, after it, if what is said stands in several cells.
pub(crate) fn lead_cell(cell: &CellKey, several: bool, grid: &BTreeSet<&CellKey>) -> String {
    if several { format!(" in {}", words(&extents([cell], grid.iter().copied()))) } else { " there".to_owned() }
}

/// A function in a sentence about load.
pub fn name(function: &str) -> &str {
    if function == ALL_FUNCTIONS { "all functions together" } else { function }
}

/// The minutes of functions that scale worse by their self samples, and of all functions together in their cells.
pub(crate) fn curves_of_worse(
    curves: impl Iterator<Item = LoadCurveRow>,
    rows: &[ScalingRow],
) -> impl Iterator<Item = LoadCurveRow> {
    let worse =
        rows.iter().filter(|row| row.verdict == ScalingVerdict::ScalesWorse && row.count_kind == CountKind::SelfCount);
    let worse: BTreeSet<(ProfileType, &CellKey, &str)> = worse
        .flat_map(|row| [&*row.function, ALL_FUNCTIONS].map(|function| (row.profile_type, &row.cell, function)))
        .collect();
    curves.filter(move |row| worse.contains(&(row.comparison.profile_type, &row.cell, &*row.function)))
}
