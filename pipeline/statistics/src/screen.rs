//! Which of many functions may reach a statistic, by [`Levels::deviance_at_most`], a block of functions at a time.
//!
//! Inner loops run over plain arrays and are compiled for the widest vectors of the machine at hand; a function's bound has the same
//! bits as alone.

use crate::arms::Arms;
use crate::deviance::{Level, Levels, bound};
use crate::number::{length, whole};

/// Functions of a block.
const BLOCK: usize = 64;
type Row = [f64; BLOCK];

/// Whole degrees of freedom below which critical values are told apart.
const WHOLE_DF: usize = 64;

/// A critical value by degrees of freedom: fewer have a larger one.
#[derive(Clone, Copy)]
pub(crate) struct Critical([f64; WHOLE_DF + 1]);

impl Critical {
    /// `of` gives the value of whole and of infinitely many degrees of freedom.
    pub fn new(of: impl Fn(f64) -> f64) -> Self {
        Self(std::array::from_fn(|df| match df {
            0 => f64::INFINITY,
            WHOLE_DF => of(f64::INFINITY),
            df => of(length(df)),
        }))
    }

    /// Of the statistic F whose z^2 can be `z2`: with d degrees of freedom z^2 <= d ln(1 + F/d) (Wallace 1959).
    pub fn of_z2(z2: f64) -> Self {
        Self::new(|df| if df.is_finite() { df * libm::expm1(z2 / df) } else { z2 })
    }

    /// At most the critical value of so many.
    pub fn at_most(&self, df: f64) -> f64 {
        self.0[whole_df(df) + 1]
    }

    /// At least the critical value of so many.
    pub fn at_least(&self, df: f64) -> f64 {
        self.0[whole_df(df)]
    }
}

fn whole_df(df: f64) -> usize {
    usize::try_from(whole(df)).map_or(WHOLE_DF - 1, |whole| whole.min(WHOLE_DF - 1))
}

/// Calls `visit` with the place of each function whose statistic may reach its critical value against every one of some ratios,
/// ascending.
pub(crate) fn each_reaching(levels: &[Levels], ratios: &[f64], critical: &Critical, mut visit: impl FnMut(usize)) {
    let arch = pulp::Arch::new();
    let mut block = Block::default();
    for (start, levels) in (0..).step_by(BLOCK).zip(levels.chunks(BLOCK)) {
        block.fill(levels);
        let least_bounds = arch.dispatch(LeastBounds { block: &block, ratios });
        let reaching = levels.iter().zip(least_bounds).enumerate();
        let reaching = reaching.filter(|(_, (levels, bound))| *bound >= critical.at_most(levels.df));
        reaching.for_each(|(i, _)| visit(start + i));
    }
}

/// One arm's levels in columns.
struct ArmRows {
    share: Row,
    counting: Row,
    between: Row,
}

/// The levels of a block in columns; places beyond its last function say nothing.
struct Block {
    arms: Arms<ArmRows>,
}

impl Default for Block {
    fn default() -> Self {
        let rows = || ArmRows { share: [0.0; BLOCK], counting: [1.0; BLOCK], between: [0.0; BLOCK] };
        Self { arms: Arms { head: rows(), base: rows() } }
    }
}

impl Block {
    fn fill(&mut self, levels: &[Levels]) {
        for (i, Levels { arms, .. }) in levels.iter().enumerate() {
            self.arms.head.set(i, arms.head);
            self.arms.base.set(i, arms.base);
        }
    }
}

impl ArmRows {
    #[inline]
    fn set(&mut self, i: usize, level: Level) {
        self.share[i] = level.share;
        self.counting[i] = level.counting;
        self.between[i] = level.between;
    }

    #[inline(always)]
    fn level(&self, i: usize) -> Level {
        Level { share: self.share[i], counting: self.counting[i], between: self.between[i] }
    }
}

/// The least bound of each function over some ratios, compiled for each width of vectors. No bound is NaN.
struct LeastBounds<'b> {
    block: &'b Block,
    ratios: &'b [f64],
}

impl pulp::NullaryFnOnce for LeastBounds<'_> {
    type Output = Row;

    #[inline(always)]
    fn call(self) -> Row {
        let Arms { head, base } = &self.block.arms;
        let mut least = [f64::INFINITY; BLOCK];
        for &ratio in self.ratios {
            for (i, least) in least.iter_mut().enumerate() {
                let bound = bound(&Arms { head: head.level(i), base: base.level(i) }, ratio);
                *least = if bound < *least { bound } else { *least };
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: the functions whose bound reaches the critical value against all ratios, whatever their place in a block.
        #[test]
        fn as_one_by_one(all in proptest::collection::vec((0.0..1.0_f64, 0.0..1.0_f64, 1e-9..1e-3_f64, 0.0..0.1_f64), 0..200), least in 0.0..50.0_f64) {
            let level = |share, counting, between| Level { share, counting, between };
            let many = Arms { head: 9.0, base: 30.0 };
            let critical = Critical::new(|df| least * if df < 20.0 { 1.5 } else { 1.0 });
            let levels: Vec<Levels> = all
                .iter()
                .map(|&(head, base, a, b)| Levels::new(Arms { head: level(head, a, b), base: level(base, 2.0 * a, 0.0) }, many))
                .collect();
            let ratios = [1.0, 1.3];
            let mut found = Vec::new();
            each_reaching(&levels, &ratios, &critical, |place| found.push(place));
            let reaches = |levels: &Levels| ratios.iter().all(|&ratio| levels.deviance_at_most(ratio) >= critical.at_most(levels.df));
            let one_by_one: Vec<usize> = (0..levels.len()).filter(|&place| reaches(&levels[place])).collect();
            prop_assert_eq!(found, one_by_one);
        }
    }
}
