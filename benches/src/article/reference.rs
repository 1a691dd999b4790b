//! What is flagged: the job as it is said, in one file, on one thread. It is not fleetdiff, and shares nothing with it but the fleet.
//!
//! Dense counts; every row is tested at every hop, and all p are sorted. It stays as it is, so that figures of two days can be related.

use std::time::Instant;

use fleetdiff_schemas::number::{float, index_of, length_float};
use libm::erfc;

use crate::spread::milliseconds;

use super::{Arrival, Found, MIN_COUNT, Pass, Q, Recorded, hash};

/// The counts of a window.
#[derive(Clone, Debug)]
struct Window {
    functions: usize,
    /// Samples by cell and function: base, head.
    rows: Vec<[u64; 2]>,
    /// Samples by cell: base, head.
    cells: Vec<[u64; 2]>,
}

impl Window {
    fn empty(recorded: &Recorded) -> Self {
        let rows = vec![[0, 0]; recorded.cells * recorded.functions];
        Self { functions: recorded.functions, rows, cells: vec![[0, 0]; recorded.cells] }
    }

    /// Changes the counts that records belong to.
    fn change<'a>(&mut self, records: impl Iterator<Item = &'a Arrival>, change: impl Fn(u64, u64) -> u64) {
        for record in records {
            let (cell, arm) = (usize::from(record.cell), usize::from(record.head));
            let row = cell * self.functions + index_of(record.function);
            for count in [&mut self.rows[row][arm], &mut self.cells[cell][arm]] {
                *count = change(*count, u64::from(record.count));
            }
        }
    }

    /// Every row's p with its place, ascending by p.
    fn tests(&self) -> Vec<(f64, usize)> {
        let mut tests = Vec::new();
        for (cell, (rows, whole)) in self.rows.chunks(self.functions).zip(&self.cells).enumerate() {
            if whole.contains(&0) {
                continue;
            }
            let enough = |row: &[u64; 2]| row[0] + row[1] >= MIN_COUNT;
            let members = rows.iter().enumerate().filter(|(_, row)| enough(row));
            tests.extend(members.map(|(function, row)| (p_value(*row, *whole), cell * self.functions + function)));
        }
        tests.sort_by(|a, b| a.0.total_cmp(&b.0));
        tests
    }
}

/// p of G with 1 degree of freedom: P(chi-square >= G) = erfc(sqrt(G/2)).
fn p_value(row: [u64; 2], whole: [u64; 2]) -> f64 {
    let share = float(row[0] + row[1]) / float(whole[0] + whole[1]);
    let term = |count: u64, expected: f64| if count == 0 { 0.0 } else { float(count) * (float(count) / expected).ln() };
    let of = |arm: usize| {
        term(row[arm], float(whole[arm]) * share) + term(whole[arm] - row[arm], float(whole[arm]) * (1.0 - share))
    };
    let g = 2.0 * (of(0) + of(1));
    erfc((g.max(0.0) / 2.0).sqrt())
}

/// How many of the smallest p Benjamini-Hochberg rejects, and how near any p is to its threshold: the smallest |p m/(q rank) - 1| of
/// the last that is rejected and of all behind it, which alone decide.
fn rejected(tests: &[(f64, usize)]) -> (usize, f64) {
    let ratios = || (1u32..).zip(tests).map(|(rank, (p, _))| p * length_float(tests.len()) / (Q * f64::from(rank)));
    let rejected = ratios().enumerate().filter(|(_, ratio)| *ratio <= 1.0).last().map_or(0, |(last, _)| last + 1);
    let deciding = ratios().skip(rejected.saturating_sub(1));
    (rejected, deciding.map(|ratio| (ratio - 1.0).abs()).fold(f64::INFINITY, f64::min))
}

/// The reference on a fleet whose window is filled.
#[derive(Debug)]
pub struct Reference<'a> {
    recorded: &'a Recorded,
    filled: Window,
}

impl<'a> Reference<'a> {
    /// Fills the window.
    #[must_use]
    pub fn filled(recorded: &'a Recorded) -> Self {
        let mut filled = Window::empty(recorded);
        for hop in 0..recorded.window {
            filled.change(recorded.arrivals(hop), |count, by| count + by);
        }
        Self { recorded, filled }
    }

    /// One pass over the measured hops, and how near any p of them is to its threshold, relatively.
    #[must_use]
    pub fn pass(&self) -> (Pass, f64) {
        let recorded = self.recorded;
        let mut window = self.filled.clone();
        let (mut tested, mut nearest, mut flags) = (0, f64::INFINITY, Vec::new());
        let begun = Instant::now();
        for hop in recorded.window..recorded.window + recorded.measured {
            window.change(recorded.arrivals(hop), |count, by| count + by);
            window.change(recorded.arrivals(hop - recorded.window), |count, by| count - by);
            let tests = window.tests();
            let (rejected, gap) = rejected(&tests);
            tested += tests.len();
            nearest = gap.min(nearest);
            flags.extend(tests[..rejected].iter().map(|(_, row)| (hop, *row)));
        }
        let milliseconds = milliseconds(begun);
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let functions = recorded.functions;
        let hashes = flags.iter().map(|(hop, row)| hash(wide(*hop), wide(row / functions), wide(row % functions)));
        let hash = hashes.fold(0, u64::wrapping_add);
        (Pass { milliseconds, found: Found { flags: wide(flags.len()), tests: wide(tested), hash } }, nearest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{MEDIUM, Mix, Size, Workload};

    #[test]
    fn p_is_that_of_scipy() {
        // chi2_contingency([[30, 970], [60, 940]], correction=False, lambda_="log-likelihood")
        let p = p_value([30, 60], [1000, 1000]);
        assert!((p / 0.001_091_720_672_341_193_4 - 1.0).abs() < 1e-10, "{p}");
    }

    #[test]
    fn benjamini_hochberg_rejects_up_to_the_last_that_is_low_enough() {
        let tests: Vec<_> = [0.001, 0.02, 0.045, 0.039, 0.9].into_iter().zip(0..).collect();
        let (count, nearest) = rejected(&tests);
        assert_eq!(count, 4);
        assert!((nearest - 0.025).abs() < 1e-12, "the fourth is at .975 of its threshold: {nearest}");
        assert_eq!(rejected(&tests[4..]).0, 0);
    }

    #[test]
    fn passes_repeat_and_flag_what_costs_more() {
        let size = Size { name: "tiny", pods: 168, functions: 50, samples: 2_000, ..MEDIUM };
        let recorded = Recorded::of(&Workload::new(size, Mix::CanaryInEveryCell, 6, 3), 2);
        let reference = Reference::filled(&recorded);
        let (pass, nearest) = reference.pass();
        assert_eq!(pass.found, reference.pass().0.found);
        assert!(pass.found.flags > 0 && pass.found.tests > pass.found.flags, "{pass:?}");
        assert!(nearest > 0.0);
    }
}
