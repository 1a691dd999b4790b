//! All that one test of a cell needs.

use std::collections::BTreeMap;

use crate::moments::closed::Prefix;
use crate::strata::Stratum;

/// All that one test of a cell needs.
#[derive(Clone, Default)]
pub struct Contrast<'a> {
    /// Number of functions; their ids are `0..functions`.
    pub functions: usize,
    /// Strata with both arms that never change, if their sums are kept: they come before `strata`.
    pub closed: Option<Prefix<'a>>,
    /// Strata in which both arms have exposure.
    pub strata: Vec<Stratum<'a>>,
    /// Strata left out since an arm was missing.
    pub strata_dropped: usize,
    /// Distinct head pods by bucket, over all strata; an occupied bucket that is missing here counts one pod.
    pub head_pods: BTreeMap<u16, u32>,
    /// Distinct base pods by bucket.
    pub base_pods: BTreeMap<u16, u32>,
    /// A function that is in no family: its samples count only to the exposure.
    pub untested: Option<usize>,
    /// The functions that are measured, ascending, if not all are: results then go by place in this list. The others count
    /// to the exposure only.
    pub only: Option<Vec<u32>>,
    /// Whether pods of one arm gave far more or fewer samples than those of the other, so that one dispersion does not fit both:
    /// the test on the log scale must then agree whatever the number of pods, and the standard error is the larger of the two.
    pub imbalance: bool,
}

impl<'a> Contrast<'a> {
    /// The contrast of `strata`, without those in which an arm has no exposure; these are counted. Rows without exposure are
    /// left out.
    #[must_use]
    pub fn new(
        functions: usize,
        strata: Vec<Stratum<'a>>,
        head_pods: BTreeMap<u16, u32>,
        base_pods: BTreeMap<u16, u32>,
    ) -> Self {
        let all = strata.len();
        let mut strata = strata;
        for stratum in &mut strata {
            stratum.head.rows.retain(|row| row.exposure > 0);
            stratum.base.rows.retain(|row| row.exposure > 0);
        }
        strata.retain(|stratum| stratum.head.exposure() > 0 && stratum.base.exposure() > 0);
        let strata_dropped = all - strata.len();
        Self {
            functions,
            closed: None,
            strata,
            strata_dropped,
            head_pods,
            base_pods,
            untested: None,
            only: None,
            imbalance: false,
        }
    }

    /// How many functions are measured.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.only.as_ref().map_or(self.functions, Vec::len)
    }

    /// Measures only functions that can be tested: at least `min_count` samples in both arms together, and not
    /// [`Contrast::untested`]. Nothing that is tested changes by a bit, since what is shared within a cell rests on its family.
    pub fn keep_family(&mut self, min_count: f64) {
        const BLOCK: usize = 1024;
        let mut family = Vec::new();
        let mut sums = [0.0; BLOCK];
        for start in (0..self.functions).step_by(BLOCK) {
            let sums = &mut sums[..BLOCK.min(self.functions - start)];
            sums.fill(0.0);
            let rows = self.strata.iter().flat_map(|stratum| stratum.head.rows.iter().chain(&stratum.base.rows));
            let closed = self.closed.iter().flat_map(|closed| closed.strata.iter().flatten().flatten());
            rows.flat_map(|row| &row.counts).chain(closed).for_each(|counts| counts.add_to(start, sums));
            let enough = (start..).zip(&*sums).filter(|&(f, &sum)| sum >= min_count && Some(f) != self.untested);
            family.extend(enough.map(|(f, _)| u32::try_from(f).unwrap_or(u32::MAX)));
        }
        self.untested = None;
        self.only = Some(family);
    }
}
