//! What could have been seen: from which change on the largest functions would have been significant, and how many runs a change of
//! 10 % takes.
//!
//! A change by the factor r of one function alone is significant with probability .8 if ln r > minimum effect + (t_a + t_.8) se: t_a is
//! the two-sided quantile at the level a of the first of a weighted family of m functions (Benjamini-Hochberg: a = q w / m). Degrees of
//! freedom are those of the runs alone, K1 + K0 - 2. The interval of one function says little of its se, since runs are few; so each se
//! is what samples and the spread of all functions let expect (`minimum_detectable_ratio`), times what the intervals of the middle
//! function are of that. Simulated in `diff/tests/compare/reach.rs`.

use std::sync::Arc;

use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_statistics::families::weights;
use fleetdiff_statistics::tails::t_quantile;

use super::settings::Settings;
use crate::sides::Sides;

/// How many of the largest functions are looked at.
const LARGEST: usize = 3;
/// The smallest part of the samples that is large.
const LARGE: f64 = 0.01;
/// The change for which runs are counted.
const CHANGE: f64 = 1.1;
/// The probability with which a change is to be found.
const POWER: f64 = 0.8;
/// Confidence of the intervals of ratios.
const CONFIDENCE: f64 = 0.95;
/// More runs of a side than this are no advice.
const MOST_RUNS: usize = 1_000;

/// What could have been seen of one function.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// Its name.
    pub function: Arc<str>,
    /// Its share of all samples, 0 to 1.
    pub share: f64,
    /// The smallest change, as a ratio above 1, that would have been significant with probability .8.
    pub ratio: f64,
    /// How many runs of each side a change of 10 % takes; none if a thousand are too few.
    pub runs: Option<usize>,
}

/// The reach of the largest functions, by self counts.
pub(super) fn reach(rows: &[&CellRow], runs: Sides<usize>, settings: &Settings) -> Vec<Reach> {
    let is_tested = |row: &&CellRow| row.count_kind == CountKind::SelfCount && row.q_value.is_some();
    let tested: Vec<&CellRow> = rows.iter().copied().filter(is_tested).collect();
    let shares: Vec<f64> = tested.iter().map(|row| share(row)).collect();
    let (number, wide) = (length_float(tested.len()), width(&tested));
    let of = |((row, share), weight): ((&&CellRow, &f64), f64)| {
        let half = wide? * expected(row)?;
        let study = Study { half, runs, level: settings.q * weight / number, min_effect: settings.min_effect };
        let is_named = row.function != UNSYMBOLISED && row.functions.is_none() && *share >= LARGE;
        is_named.then(|| Reach {
            function: row.function.as_str().into(),
            share: *share,
            ratio: libm::exp(study.smallest(runs)),
            runs: study.runs_for(libm::log(CHANGE)),
        })
    };
    let mut found: Vec<Reach> = tested.iter().zip(&shares).zip(weights(&shares)).filter_map(of).collect();
    found.sort_by(|one, other| other.share.total_cmp(&one.share));
    found.truncate(LARGEST);
    found
}

fn share(row: &CellRow) -> f64 {
    f64::midpoint(row.base.share.unwrap_or(0.0), row.head.share.unwrap_or(0.0))
}

/// What samples and the spread of all functions let expect of an interval, up to a factor that all functions share.
fn expected(row: &CellRow) -> Option<f64> {
    row.minimum_detectable_ratio.map(libm::log).filter(|expected| *expected > 0.0)
}

/// That factor: how much of it is half the interval of the middle function.
fn width(rows: &[&CellRow]) -> Option<f64> {
    let of = |row: &&CellRow| {
        let ratio = row.adjusted_ratio.filter(|ratio| ratio.low > 0.0 && ratio.high.is_finite())?;
        Some(0.5 * libm::log(ratio.high / ratio.low) / expected(row)?)
    };
    let mut widths: Vec<f64> = rows.iter().filter_map(of).collect();
    widths.sort_unstable_by(f64::total_cmp);
    widths.get(widths.len() / 2).copied()
}

/// A function in these runs.
struct Study {
    /// Half the interval of its log ratio, as expected.
    half: f64,
    runs: Sides<usize>,
    /// Two-sided level at which it is significant alone.
    level: f64,
    min_effect: f64,
}

impl Study {
    /// The smallest |ln ratio| that is found with so many runs of each side, sampled and varying like the present ones.
    fn smallest(&self, runs: Sides<usize>) -> f64 {
        let harmonic = |runs: Sides<usize>| 1.0 / length_float(runs.base) + 1.0 / length_float(runs.head);
        let df = |runs: Sides<usize>| length_float(runs.base + runs.head) - 2.0;
        let error = self.half / t_quantile(CONFIDENCE, df(self.runs));
        let with = error * libm::sqrt(harmonic(runs) / harmonic(self.runs));
        let quantiles = t_quantile(1.0 - self.level, df(runs)) + t_quantile(2.0 * POWER - 1.0, df(runs));
        self.min_effect + quantiles * with
    }

    /// The fewest runs of each side with which a change is found.
    fn runs_for(&self, ln_ratio: f64) -> Option<usize> {
        let is_enough = |runs: usize| self.smallest(Sides { base: runs, head: runs }) <= ln_ratio;
        // More runs are never worse, so that a half of what is left can be passed over each time.
        let (mut few, mut many) = (1, MOST_RUNS);
        if !is_enough(many) {
            return None;
        }
        while many - few > 1 {
            let middle = usize::midpoint(few, many);
            if is_enough(middle) { many = middle } else { few = middle }
        }
        Some(many)
    }
}
