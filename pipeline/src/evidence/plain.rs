//! What one cell contributes to one look of the plain method: how many rows it tests, and those that may be significant.
//!
//! A row is significant only if its p is at most q, whatever the other rows of the family are. G is at most twice Pearson's
//! chi-square, since ln x <= x - 1 in each of the four terms, so that most rows are left out without a logarithm. They
//! count in the family all the same.

use std::sync::Arc;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::{float, index_of};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::is_whole_profile;
use fleetdiff_statistics::special::z_two_sided;
use fleetdiff_statistics::tails::ln_chi1_tail;
use serde::{Deserialize, Serialize};

use super::view::CellView;
use crate::counts::merged::{MergedArm, MergedCounts};

/// By how much rounding may move a bound or ln p, with much to spare.
const ROUNDING: f64 = 1e-9;

/// One kind of count of one cell at one look of the plain method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainLook {
    /// Self or total.
    pub count_kind: CountKind,
    /// Rows in the family.
    pub tests: u64,
    /// Samples of the head within the window.
    pub head_total: u64,
    /// Samples of the base within the window.
    pub base_total: u64,
    /// Rows whose p is at most q, ascending by the cell's numbers.
    pub candidates: Vec<PlainRow>,
}

/// A row that may be significant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainRow {
    /// Name of the function.
    pub function: Arc<str>,
    /// Samples of the head.
    pub head: u64,
    /// Samples of the base.
    pub base: u64,
    /// ln p of G, if samples were independent.
    pub ln_p: f64,
}

/// Looks at every kind of count of a cell; nothing unless both arms have samples within the window.
pub fn plain_look(view: &CellView<'_>, merged: &MergedCounts, kinds: &[CountKind]) -> Vec<PlainLook> {
    let least_g = least_g(view.q);
    kinds.iter().filter_map(|&kind| look_at(view, merged, kind, least_g)).collect()
}

fn look_at(view: &CellView<'_>, merged: &MergedCounts, kind: CountKind, least_g: f64) -> Option<PlainLook> {
    let [head, base] = Side::BOTH.map(|side| merged.arm(view.comparison.id.builds(side), kind));
    if head.samples == 0 || base.samples == 0 {
        return None;
    }
    let functions = view.counts.functions();
    let untested = view.untested.map(|number| number.map(|number| index_of(functions.places()[number])));
    let mut tests = 0;
    let mut candidates = Vec::new();
    for (place, [a, b]) in by_place(&head, &base).enumerate() {
        let is_member = float(a + b) >= view.min_count
            && (a <= head.samples && b <= base.samples)
            && !is_whole_profile(float(a + b), float(head.samples + base.samples))
            && !untested.contains(&Some(place));
        tests += u64::from(is_member);
        if is_member && may_be_significant([a, b], &head, &base, least_g) {
            let ln_p = ln_chi1_tail(g_2x2(a, head.samples, b, base.samples));
            candidates.push((functions.number(place), a, b, ln_p));
        }
    }
    candidates.retain(|(.., ln_p)| *ln_p <= libm::log(view.q) + ROUNDING);
    candidates.sort_unstable_by_key(|(number, ..)| *number);
    let named = candidates.into_iter().map(|(number, head, base, ln_p)| PlainRow {
        function: Arc::clone(&functions.entries()[number].1),
        head,
        base,
        ln_p,
    });
    let candidates = named.collect();
    Some(PlainLook { count_kind: kind, tests, head_total: head.samples, base_total: base.samples, candidates })
}

/// The counts of both arms by place; an arm that has not met the last functions has no sample of them.
fn by_place<'a>(head: &'a MergedArm, base: &'a MergedArm) -> impl Iterator<Item = [u64; 2]> + 'a {
    let of = |arm: &MergedArm, place: usize| arm.by_place.get(place).copied().unwrap_or(0);
    (0..head.by_place.len().max(base.by_place.len())).map(move |place| [of(head, place), of(base, place)])
}

/// Whether G can be as large as `least_g`: it is at most twice Pearson's chi-square.
fn may_be_significant([a, b]: [u64; 2], head: &MergedArm, base: &MergedArm, least_g: f64) -> bool {
    let (n_a, n_b) = (float(head.samples), float(base.samples));
    let (both, all) = (float(a + b), n_a + n_b);
    let cross = float(a) * n_b - float(b) * n_a;
    2.0 * all * cross * cross >= least_g * n_a * n_b * both * (all - both)
}

/// The least G whose p is at most `q`, from below: the square of the normal quantile.
fn least_g(q: f64) -> f64 {
    let z = z_two_sided(libm::log(q));
    z * z * (1.0 - ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(samples: u64) -> MergedArm {
        MergedArm { samples, by_place: Vec::new() }
    }

    #[test]
    fn a_row_that_is_left_out_early_has_p_above_q() {
        let least = least_g(0.05);
        assert!((least - 3.841_458_8).abs() < 1e-6, "{least}");
        let mut left_out = 0;
        for (n_a, n_b) in [(1_000, 1_000), (400, 9_000), (9_000, 400)] {
            for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))).filter(|(a, b)| a + b > 0) {
                let g = g_2x2(a, n_a, b, n_b);
                if !may_be_significant([a, b], &arm(n_a), &arm(n_b), least) {
                    left_out += 1;
                    assert!(ln_chi1_tail(g) > libm::log(0.05), "{a} of {n_a}, {b} of {n_b}: G {g}");
                }
            }
        }
        assert!(left_out > 500, "{left_out} are left out");
    }
}
