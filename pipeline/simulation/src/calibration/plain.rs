//! The plain test: G of counts merged over pods, the chi-square tail with one degree of freedom, Benjamini-Hochberg.
//!
//! It is what everybody would try first, and what the method's article prints. Every figure is shown next to it, so
//! that each row shows that its fleets are a real test.

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::MIN_COUNT;
use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::tails::ln_chi1_tail;

use super::model::Pair;
use super::row::Q;

/// ln p of each function; NaN below the floor or if the function is the whole profile.
pub(super) fn ln_p(head: &[u64], head_total: u64, base: &[u64], base_total: u64) -> Vec<f64> {
    let one = |(&a, &b): (&u64, &u64)| {
        let tested = float(a + b) >= MIN_COUNT && a + b < head_total + base_total;
        if tested { ln_chi1_tail(g_2x2(a, head_total, b, base_total)) } else { f64::NAN }
    };
    head.iter().zip(base).map(one).collect()
}

/// ln p of each function of a cell, from the counts of all its strata together.
pub(super) fn ln_p_pooled<'p>(strata: impl IntoIterator<Item = &'p Pair>) -> Vec<f64> {
    let (mut head, mut base): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for pair in strata {
        add(&mut head, &pair.head.merged());
        add(&mut base, &pair.base.merged());
    }
    ln_p(&head, head.iter().sum(), &base, base.iter().sum())
}

fn add(sums: &mut Vec<u64>, counts: &[u64]) {
    sums.resize(counts.len().max(sums.len()), 0);
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// Which functions are significant in one family.
pub(super) fn significant(ln_p: &[f64]) -> Vec<bool> {
    bh(ln_p).iter().map(|&q| selected(q, Q)).collect()
}

/// How many functions are significant in one family.
pub(super) fn rejections(ln_p: &[f64]) -> usize {
    significant(ln_p).iter().filter(|&&significant| significant).count()
}
