//! How much more functions vary within a run than independent samples do: at least that much they vary between runs.
//!
//! What a program does once, or now and then (imports, compiles, collects garbage), comes in bursts, so that its samples are not as many
//! independent ones. Where a file says when each sample was taken, its time is cut into stretches of as many samples, and the counts of a
//! function in them show it. What varies more slowly than a stretch shows less, and what differs from process to process not at all, hence
//! a lower bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_formats::reading::SLICES;
use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_schemas::profile::{CountKind, Samples, Stack};

use super::recording::Recording;
use crate::flame::place;

/// The 95 % quantile of a chi-square with 19 degrees of freedom over 19: what 20 stretches of independent samples show in one of 20
/// functions.
const BY_CHANCE: f64 = 1.586_5;

/// The counts of functions in each stretch of one run; of none if it has no times.
#[derive(Default)]
pub(super) struct Within<'r> {
    /// All samples of each stretch.
    all: [u64; SLICES],
    functions: BTreeMap<(CountKind, &'r str), [u64; SLICES]>,
}

impl<'r> Within<'r> {
    /// Of the only run of a side.
    pub(super) fn of(side: &'r [Recording]) -> Self {
        let mut within = Self::default();
        let [run] = side else { return within };
        let (Some(ends), Samples::Stacks(stacks)) = (&run.slices, &run.profile.samples) else { return within };
        let mut begins = 0;
        for (slice, end) in ends.iter().enumerate().take(SLICES) {
            within.add(slice, &run.profile.names, stacks.get(begins..*end).unwrap_or_default());
            begins = *end;
        }
        within
    }

    fn add(&mut self, slice: usize, names: &'r [Arc<str>], stacks: &'r [Stack]) {
        for part in fold_stacks(names, stacks, &"".into()) {
            self.all[slice] += part.samples;
            for function in part.functions {
                let Some(name) = names.get(place(function.name)) else { continue };
                for (kind, count) in [(CountKind::SelfCount, function.own), (CountKind::Total, function.total)] {
                    if count > 0 {
                        self.functions.entry((kind, name)).or_default()[slice] += count;
                    }
                }
            }
        }
    }

    /// By what the variance of independent samples of a function is multiplied, 1 or more.
    ///
    /// With c of n samples, c_k of n_k in stretch k of K: the dispersion sum (c_k - n_k c/n)^2 K/(K-1) / (c (1 - c/n)), over what it is by
    /// chance in one of 20 functions.
    pub(super) fn inflation(&self, kind: CountKind, function: &str) -> f64 {
        let Some(counts) = self.functions.get(&(kind, function)) else { return 1.0 };
        let sum = |of: &[u64; SLICES]| of.iter().copied().map(float).sum::<f64>();
        let (count, all) = (sum(counts), sum(&self.all));
        let part = count / all;
        if !(part > 0.0 && part < 1.0) {
            return 1.0;
        }
        let off = |(count, all): (&u64, &u64)| (float(*count) - part * float(*all)).powi(2);
        let squares: f64 = counts.iter().zip(&self.all).map(off).sum();
        let slices = length_float(SLICES);
        let dispersion = squares * slices / (slices - 1.0) / (count * (1.0 - part));
        (dispersion / BY_CHANCE).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::profile::ProfileType;
    use fleetdiff_statistics::tails::ln_f_tail;

    use super::*;

    /// A run of stretches of 100 samples, of which a function has so many.
    fn run(counts: &[u64; SLICES]) -> Recording {
        let names: Arc<[Arc<str>]> = ["main".into(), "once".into(), "rest".into()].into();
        let stack = |leaf, count| Stack { frames: vec![0, leaf], count, cohort: None, value: 0 };
        let stacks = counts.iter().flat_map(|&count| [stack(1, count), stack(2, 100 - count)]).collect();
        let ends = (1..=SLICES).map(|slice| 2 * slice).collect();
        Recording { slices: Some(ends), ..Recording::of_stacks("run", ProfileType::Cpu, names, stacks) }
    }

    fn inflation(counts: &[u64; SLICES], kind: CountKind) -> f64 {
        Within::of(&[run(counts)]).inflation(kind, "once")
    }

    #[test]
    fn even_counts_are_independent_samples_and_bursts_are_not() {
        let even = [5; SLICES];
        let chance: [u64; SLICES] = std::array::from_fn(|slice| [3, 5, 7, 4, 6][slice % 5]);
        let mut burst = [0; SLICES];
        burst[3] = 80;
        for kind in CountKind::ALL {
            assert_eq!(
                [inflation(&even, kind), inflation(&chance, kind)].map(|found| found.to_bits()),
                [1f64.to_bits(); 2]
            );
            // All of 80 in one of 20: (80 - 4)^2 + 19 * 4^2 = 6,080, over 80 * .96, times 20/19: 83.3.
            let found = inflation(&burst, kind);
            assert!((found - 83.333 / BY_CHANCE).abs() < 0.01, "{found}");
        }
    }

    #[test]
    fn nothing_is_known_of_several_runs_and_without_times() {
        let mut burst = [0; SLICES];
        burst[3] = 80;
        let without = Recording { slices: None, ..run(&burst) };
        for side in [vec![run(&burst), run(&burst)], vec![without], Vec::new()] {
            assert!(Within::of(&side).inflation(CountKind::SelfCount, "once") <= 1.0);
        }
    }

    /// Independent samples exceed the bound in one of 20 functions, and then by little.
    #[test]
    fn published_quantile_of_chi_square() {
        let p = libm::exp(ln_f_tail(BY_CHANCE, 19.0, 1e12));
        assert!((p - 0.05).abs() < 1e-4, "{p}");
    }
}
