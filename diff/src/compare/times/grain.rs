//! How coarse times are: the grain that would make the small functions of a program vary between runs as they do.
//!
//! Of a function that was seen now and then, each time for a grain g, the time in a run of length n varies around n p as g n p, p the
//! function's share. So D = sum over runs of (x - n p)^2/n, over p (runs - 1), is g. Functions that are seen often vary more than that,
//! as runs differ, and times that were measured exactly have no grain: then D is what the small functions vary by, and no less is
//! assumed of any. Only runs of one side are held against each other, so that a change between
//! sides is none of it.
//!
//! A grain that is too short would be dangerous: a function of a few looks that all fell into one side would stand out against a
//! variation of nothing (with 10 us for a profiler of 10 ms and runs of 1 to 4 s, something was significant in each of 100 pairs in which
//! nothing changed). One that is too long only hides small functions.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::{float, length_float, whole};
use fleetdiff_schemas::profile::CountKind;

use crate::compare::recording::Recording;
use crate::compare::sums::Sums;
use crate::sides::Sides;

/// A function that varies by more than so many times the median counts as that: it comes in bursts, which its own variation shows.
const MOST_OF_MEDIAN: f64 = 4.0;

/// One function of a side: its share of all time, and D.
struct Varies {
    share: f64,
    grain: f64,
}

/// The grain in nanoseconds, of the side that has the coarser times; 0 if nothing shows one.
pub(super) fn of(sides: &Sides<Vec<Recording>>, floor: f64) -> u64 {
    whole(libm::round(of_side(&sides.base, floor).max(of_side(&sides.head, floor))))
}

fn of_side(side: &[Recording], floor: f64) -> f64 {
    let runs: Vec<Sums<'_>> = side.chunks(1).map(Sums::of_samples).filter(|run| run.whole() > 0).collect();
    let mut functions = functions_of(&runs);
    functions.sort_by(|a, b| a.share.total_cmp(&b.share));
    // Up to the median of those above the floor.
    let first = functions.partition_point(|varies| varies.share < floor);
    functions.truncate(first + (functions.len() - first).div_ceil(2));
    let mut grains: Vec<f64> = functions.iter().map(|varies| varies.grain).collect();
    grains.sort_by(f64::total_cmp);
    let Some(median) = grains.get(grains.len() / 2) else { return 0.0 };
    let most = MOST_OF_MEDIAN * median;
    let weighed: f64 = functions.iter().map(|varies| varies.share * varies.grain.min(most)).sum();
    weighed / functions.iter().map(|varies| varies.share).sum::<f64>()
}

/// What each function of these runs shows; two of them at least.
fn functions_of(runs: &[Sums<'_>]) -> Vec<Varies> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let all: f64 = runs.iter().map(|run| float(run.whole())).sum();
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, time) in runs.iter().flat_map(|run| run.functions(CountKind::SelfCount)) {
        *times.entry(name).or_default() += float(time);
    }
    let varies = |(name, time): (&str, f64)| {
        let share = time / all;
        let square = |run: &Sums<'_>| {
            let length = float(run.whole());
            let off = float(run.of(CountKind::SelfCount, name)) - length * share;
            off * off / length
        };
        let squares: f64 = runs.iter().map(square).sum();
        Varies { share, grain: squares / (share * (length_float(runs.len()) - 1.0)) }
    };
    times.into_iter().map(varies).collect()
}
