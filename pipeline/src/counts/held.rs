//! How much all services hold, for whoever watches the memory of the process. No row depends on it.

use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of one worker, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Cells that have a place within the limits of their service.
    pub cells: u64,
    /// Builds that have one.
    pub builds: u64,
    /// Pods that have one.
    pub pods: u64,
    /// What `limits.bytes` bounds: the estimated size of the counts within the window.
    pub window_bytes: u64,
}

/// The figures of all workers of a process.
#[derive(Debug, Default)]
pub struct Held([AtomicU64; 4]);

impl Held {
    /// A worker holds so much now; `before` is what it said last.
    pub fn replace(&self, before: &mut Figures, now: Figures) {
        for ((total, before), now) in self.0.iter().zip(before.parts()).zip(now.parts()) {
            // NB: both wrap, so that a worker that holds less subtracts.
            total.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
        *before = now;
    }

    /// All workers together.
    pub fn figures(&self) -> Figures {
        let [cells, builds, pods, window_bytes] = [0, 1, 2, 3].map(|part: usize| self.0[part].load(Ordering::Relaxed));
        Figures { cells, builds, pods, window_bytes }
    }
}

impl Sum for Figures {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let add = |a: u64, b: u64| a.saturating_add(b);
        all.fold(Self::default(), |a, b| Self {
            cells: add(a.cells, b.cells),
            builds: add(a.builds, b.builds),
            pods: add(a.pods, b.pods),
            window_bytes: add(a.window_bytes, b.window_bytes),
        })
    }
}

impl Figures {
    fn parts(self) -> [u64; 4] {
        [self.cells, self.builds, self.pods, self.window_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_and_each_replaces_its_own() {
        let held = Held::default();
        let [mut first, mut second] = [Figures::default(); 2];
        held.replace(&mut first, Figures { pods: 5, window_bytes: 100, ..Figures::default() });
        held.replace(&mut second, Figures { pods: 2, cells: 1, ..Figures::default() });
        held.replace(&mut first, Figures { pods: 3, window_bytes: 40, ..Figures::default() });
        assert_eq!(held.figures(), Figures { cells: 1, builds: 0, pods: 5, window_bytes: 40 });
    }
}
