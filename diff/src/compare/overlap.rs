//! Whether both sides are profiles of the same program, judged by how much they have in common.

use std::collections::BTreeSet;

use fleetdiff_formats::names::FrameClass;
use fleetdiff_schemas::profile::{CountKind, UNSYMBOLISED};

use super::recording::Recording;
use super::sums::{Sums, part};
use crate::sides::Sides;

/// How much two sides have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlap {
    /// Number of functions that both sides have, anywhere on their stacks.
    pub common: usize,
    /// Number of functions of the side that has fewer.
    pub fewer: usize,
    /// The part of the samples that both sides have at the same leaves: the sum of the smaller share of each function, 0 to 1. Shares
    /// are of samples whose leaf has a name.
    pub samples: f64,
    /// The part of the samples of each side whose leaf has no symbol, or only the file in which it is.
    pub without_symbols: Sides<f64>,
}

impl Overlap {
    /// The overlap of two sides; frames without a symbol do not count as common.
    pub(crate) fn of(sides: &Sides<Vec<Recording>>) -> Self {
        let (base, head) = (Sums::of_samples(&sides.base), Sums::of_samples(&sides.head));
        let named = |(function, _): &(&str, u64)| *function != UNSYMBOLISED;
        let names = |sums: &Sums<'_>| sums.functions(CountKind::Total).filter(named).count();
        let of_base: BTreeSet<&str> =
            base.functions(CountKind::Total).filter(named).map(|(function, _)| function).collect();
        let common = head.functions(CountKind::Total).filter(|(function, _)| of_base.contains(function)).count();
        let whole = |sums: &Sums<'_>| {
            sums.functions(CountKind::SelfCount).filter(named).map(|(_, count)| count).fold(0, u64::saturating_add)
        };
        let (whole_base, whole_head) = (whole(&base), whole(&head));
        let smaller = |function| {
            let own = |sums: &Sums<'_>| sums.of(CountKind::SelfCount, function);
            part(own(&base), whole_base).min(part(own(&head), whole_head))
        };
        let samples = base
            .functions(CountKind::SelfCount)
            .filter(named)
            .map(|(function, _)| smaller(function))
            .fold(0.0, |sum, part| sum + part);
        let without_symbols = Sides { base: without_symbols(&base), head: without_symbols(&head) };
        Self { common, fewer: names(&base).min(names(&head)), samples, without_symbols }
    }

    /// The side of which no function has a name, the base if neither has any.
    pub(crate) fn nameless(sides: &Sides<Vec<Recording>>) -> Option<&'static str> {
        let has_none = |runs: &[Recording]| {
            let sums = Sums::of_samples(runs);
            let mut functions = sums.functions(CountKind::Total).map(|(function, _)| function).peekable();
            functions.peek().is_some() && functions.all(|function| function == UNSYMBOLISED)
        };
        if has_none(&sides.base) {
            Some("base")
        } else if has_none(&sides.head) {
            Some("head")
        } else {
            None
        }
    }

    /// Nothing in common, or next to nothing both in names and in samples.
    pub(crate) fn is_too_small(&self) -> bool {
        self.common == 0 || self.few_names() && self.few_samples()
    }

    /// Little in common in names or in samples: a comparison, but perhaps not the intended one.
    pub fn is_doubtful(&self) -> bool {
        self.few_names() || self.few_samples()
    }

    /// Fewer than a fifth of the names.
    fn few_names(&self) -> bool {
        self.common.saturating_mul(5) < self.fewer
    }

    fn few_samples(&self) -> bool {
        self.samples < 0.05
    }
}

/// The part of the samples whose leaf has no symbol.
fn without_symbols(side: &Sums<'_>) -> f64 {
    let unknown = |function: &str| FrameClass::of(function) == FrameClass::Unknown;
    let leaves = side.functions(CountKind::SelfCount).filter(|(function, _)| unknown(function));
    part(leaves.map(|(_, count)| count).fold(0, u64::saturating_add), side.whole())
}
