//! The differences between two sides of recorded profiles, and which of them are significant.
//!
//! Each file is a run. Runs are the replicates of this comparison, as pods are of a fleet: the variation between runs
//! is measured, and a change must exceed it. So the runs of both sides go through the dataflow of fleets, as pods of
//! two builds in one cell, and its rows are the findings. With a single run on a side, the variation between runs is
//! unknown. Then nothing is significant: functions stand out (`compare/single.rs`) from what the others show together, and the output
//! says so. Times that nobody can count are compared as weights, between many runs only (`compare/times.rs`).

pub mod contained;
mod empirical_null;
pub(crate) mod finding;
mod majority;
mod outcome;
mod overlap;
mod reach;
pub(crate) mod recording;
mod replicates;
mod settings;
mod single;
pub mod sums;
pub mod times;
mod weights;
mod within;

use fleetdiff_formats::Values;
use fleetdiff_formats::reading::FILTERED;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::verdict::Scope;

use self::sums::Sums;
use self::within::Within;
use crate::sides::Sides;

pub use self::finding::Finding;
pub use self::outcome::{Compared, FEWEST_RUNS, Measured, NotCompared, Spread, Weighed};
pub use self::overlap::Overlap;
pub use self::reach::Reach;
pub use self::recording::{Recording, nobody};
pub use self::settings::{Method, Settings};
pub use fleetdiff_formats::reading::Weights;

/// Compares two sides.
///
/// # Errors
/// See [`NotCompared`].
pub fn compare(sides: &Sides<Vec<Recording>>, settings: &Settings) -> Result<Compared, NotCompared> {
    let profile_type = one_type(sides)?;
    let values = times::measure_of(sides)?;
    let totals = Sides { base: total(&sides.base), head: total(&sides.head) };
    for (side, samples) in [("base", totals.base), ("head", totals.head)] {
        if samples == 0 {
            return Err(NotCompared::Empty(side));
        }
    }
    let times = match values {
        Values::Samples => None,
        Values::Times => {
            times::check(sides, settings)?;
            Some(Measured::of(sides))
        }
    };
    let overlap = Overlap::of(sides);
    if let Some(side) = Overlap::nameless(sides).filter(|_| overlap.fewer == 0) {
        let samples = if side == "base" { totals.base } else { totals.head };
        return Err(NotCompared::Nameless { side, samples });
    }
    if overlap.is_too_small() {
        return Err(NotCompared::DifferentPrograms(overlap));
    }
    // The article has no floor.
    let min_count = match (times, settings.method) {
        (Some(times), _) => times.fewest_grains(sides),
        (None, Method::Article) => 1,
        (None, Method::Honest) => settings.min_count,
    };
    let rows = replicates::rows(sides, &Settings { min_count, ..*settings }, times)?;
    // Samples that a filter left out are part of the whole, but of no function.
    let is_of_function = |row: &&CellRow| row.scope == Scope::Window && row.function != FILTERED;
    let of_functions: Vec<&CellRow> = rows.iter().filter(is_of_function).collect();
    let mut findings: Vec<Finding> = of_functions.iter().copied().map(Finding::of).collect();
    let runs = Sides { base: sides.base.len(), head: sides.head.len() };
    let spread = Spread::of(runs);
    let mut background = None;
    match settings.method {
        Method::Article => single::test_as_the_article(&mut findings, totals),
        Method::Honest if spread == Spread::Unknown => {
            // Where the variation is given, the runs are not asked for it.
            let asked = |side| if settings.background.is_none() { Within::of(side) } else { Within::default() };
            let within = Sides { base: asked(&sides.base), head: asked(&sides.head) };
            background = Some(single::test(&mut findings, totals, &within, settings));
        }
        Method::Honest if times.is_some() => majority::demand_majority(&mut findings, sides, Sums::of_weights),
        Method::Honest => majority::demand_majority(&mut findings, sides, Sums::of_samples),
    }
    if settings.method == Method::Honest && spread == Spread::Tentative {
        single::demand_standing_out(&mut findings, totals, runs, settings);
    }
    if let Some(times) = times {
        times::without_counts(&mut findings, sides, times.floor);
    }
    let weights = weights::weigh(&mut findings, sides)?;
    findings.sort_by(Finding::by_importance);
    let reach = match settings.method {
        // Of two runs more is asked than that.
        Method::Honest if runs.base.min(runs.head) > 2 => reach::reach(&of_functions, runs, settings),
        _ => Vec::new(),
    };
    let samples = Some(totals).filter(|_| times.is_none());
    Ok(Compared { profile_type, runs, samples, times, weights, spread, background, reach, overlap, findings })
}

fn one_type(sides: &Sides<Vec<Recording>>) -> Result<ProfileType, NotCompared> {
    let mut all = sides.base.iter().chain(&sides.head);
    let first = all.next().ok_or(NotCompared::Empty("base"))?;
    match all.find(|other| other.profile.profile_type != first.profile.profile_type) {
        None => Ok(first.profile.profile_type),
        Some(other) => Err(NotCompared::Types {
            first: first.label.clone(),
            first_type: first.profile.profile_type,
            other: other.label.clone(),
            other_type: other.profile.profile_type,
        }),
    }
}

fn total(side: &[Recording]) -> u64 {
    side.iter().map(|recording| recording.profile.total()).sum()
}
