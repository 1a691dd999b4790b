//! Each function's variance, drawn towards what the functions of its cell expect.
//!
//! Three rules keep that honest. A function that is restless in one arm is not taken for quiet in the other, whatever two pods
//! happen to say. A function that is restless beyond what the prior allows does not get the prior's degrees of freedom: how far it
//! earns them is its `calm`, a false discovery rate over all functions of the cell. And no variance is below that of counting,
//! times the clumping of its samples in time ([`crate::fano`]).
//!
//! phi = max((d0 c + d s)/(d0 + d), the same with d0 calm for d0, f/(1 + B p/A)), df = d + d0 calm; without a prior max(s,
//! f/(1 + B p/A)) and d. c = s0 max(1, the other arm's moderated s over its s0).

use crate::arms::{Arms, Side};
use crate::deviance::{Level, Levels, mean_share, welch};
use crate::families::bh_among;
use crate::layout::{BLOCK, Row};
use crate::number::length;
use crate::priors::{Dispersion, GroupPrior, Prior};
use crate::tails::FTail;
use crate::variance::ArmBlock;

/// A function is looked at for restlessness from this many times the expected dispersion on.
const RESTLESS: f64 = 2.0;

/// What both arms show of one function, and what is expected of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'p> {
    /// `None` where the arm has none of it or cannot show a variance.
    pub arms: Arms<Option<Dispersion>>,
    /// The priors of its group.
    pub prior: Option<&'p GroupPrior>,
}

/// What an arm shows of a function, where that is more than quiet functions show.
#[derive(Clone, Copy)]
struct Excess {
    /// The dispersion over the expected one.
    ratio: f64,
    /// Its degrees of freedom, and the prior's.
    df: (f64, f64),
}

impl Seen<'_> {
    fn excess(&self) -> Option<[Option<Excess>; 2]> {
        let prior = self.prior?;
        let of = |side: Side| {
            let (seen, prior) = (self.arms[side]?, prior.arms[side]);
            let is_above = seen.df > 0.0 && seen.ratio > RESTLESS * prior.dispersion;
            is_above.then(|| Excess { ratio: seen.ratio / prior.dispersion, df: (seen.df, prior.df) })
        };
        let excess = Side::BOTH.map(of);
        excess.iter().any(Option::is_some).then_some(excess)
    }
}

/// The functions that do not earn all of the prior's degrees of freedom, by place in the list, and the part that they earn: the false
/// discovery rate (Benjamini-Hochberg) over all functions of [`Tails::ln_p_of_restlessness`]. A function that shows no excess has p = 1.
pub(crate) fn restless(seen: &[Seen<'_>]) -> Vec<(usize, f64)> {
    let above: Vec<_> = seen.iter().enumerate().filter_map(|(place, seen)| Some((place, seen.excess()?))).collect();
    // Only p below rank / functions has a rate below 1, and no rank is above the number of those that show an excess. Of these p may be unknown.
    let least_functions = (seen.len() - above.len()).max(1);
    let mut tails = Tails { calm_from: libm::log(length(above.len()) / length(least_functions)), known: Vec::new() };
    let ln_p: Vec<f64> = above.iter().map(|(_, excess)| tails.ln_p_of_restlessness(excess)).collect();
    let unknown = ln_p.iter().filter(|ln_p| ln_p.is_nan()).count();
    let earned = above.iter().map(|(place, _)| *place).zip(bh_among(&ln_p, seen.len() - unknown));
    earned.filter(|(_, calm)| *calm < 1.0).collect()
}

/// Tails of F that were used: a cell has as many as arms, classes and groups.
struct Tails {
    /// From this ln p on a function earns all degrees of freedom.
    calm_from: f64,
    known: Vec<KnownTail>,
}

struct KnownTail {
    tail: FTail,
    /// The largest ratio that was seen to be calm: no smaller one need be computed.
    calm_to: f64,
}

impl Tails {
    /// ln of the probability of dispersions as large in both arms under the priors, by Fisher's product; 0 of a function that is calm.
    fn ln_p_of_restlessness(&mut self, excess: &[Option<Excess>; 2]) -> f64 {
        let in_product = |product: f64| product + libm::log1p(-product);
        match *excess {
            [None, None] => 0.0,
            [Some(one), None] | [None, Some(one)] => {
                let calm_from = self.calm_from;
                let KnownTail { tail, calm_to } = self.of(one);
                if one.ratio <= *calm_to {
                    return 0.0;
                }
                let ln_p = in_product(tail.ln_tail(one.ratio));
                if ln_p >= calm_from {
                    *calm_to = one.ratio;
                }
                ln_p
            }
            [Some(head), Some(base)] => {
                let mut ln_tail = |excess: Excess| self.of(excess).tail.ln_tail(excess.ratio);
                in_product(ln_tail(head) + ln_tail(base))
            }
        }
    }

    fn of(&mut self, excess: Excess) -> &mut KnownTail {
        let (d1, d2) = excess.df;
        let place = self.known.iter().position(|known| known.tail.is_of(d1, d2)).unwrap_or_else(|| {
            self.known.push(KnownTail { tail: FTail::new(d1, d2), calm_to: 0.0 });
            self.known.len() - 1
        });
        &mut self.known[place]
    }
}

/// A block of functions of one class before their variances are moderated, by lane.
pub(crate) struct UnmoderatedBlock<'b> {
    /// What was seen.
    pub seen: &'b Arms<ArmBlock>,
    /// Degrees of freedom of what each arm shows; 0 if it cannot show a variance.
    pub df: Arms<f64>,
    /// The priors of all groups.
    pub priors: &'b [GroupPrior],
    /// Shares of cost, which say the group.
    pub shares: Row,
    /// How far each function earns the prior's degrees of freedom, 0 to 1.
    pub calm: Row,
    /// Clumping in time, at least 1.
    pub clumping: Arms<Row>,
}

/// The moderated variances of a block.
pub(crate) struct Moderated {
    /// Of each arm.
    pub arms: Arms<ModeratedArm>,
    /// Degrees of freedom of the difference of both arms.
    pub df: Row,
}

/// One arm of a block.
pub(crate) struct ModeratedArm {
    /// By which the expected variance would be multiplied, were it not held above counting noise.
    pub drawn: Row,
    /// Counting noise over the expected variance, f = 1/(1 + B p/A).
    pub floor: Row,
    /// phi.
    pub phi: Row,
    /// A, multiplied by phi.
    pub counting: Row,
    /// B, multiplied by phi.
    pub between: Row,
    /// Degrees of freedom.
    df: Row,
}

/// One arm's prior of each function of a block.
struct PriorRows {
    df: Row,
    dispersion: Row,
}

/// Moderates a block, compiled for each width of vectors.
struct Moderate<'b> {
    block: &'b UnmoderatedBlock<'b>,
    out: &'b mut Moderated,
}

impl pulp::NullaryFnOnce for Moderate<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { block, out: Moderated { arms: Arms { head, base }, df } } = self;
        let priors = Arms { head: block.priors_of(Side::Head), base: block.priors_of(Side::Base) };
        block.draw(Side::Head, &priors, head);
        block.draw(Side::Base, &priors, base);
        block.hold(Side::Head, head);
        block.hold(Side::Base, base);
        welch_df(block.seen, head, base, df);
    }
}

impl UnmoderatedBlock<'_> {
    /// Moderates all lanes.
    pub fn moderate(&self, out: &mut Moderated) {
        pulp::Arch::new().dispatch(Moderate { block: self, out });
    }

    /// The first group that each share reaches, or the last.
    #[inline(always)]
    fn priors_of(&self, side: Side) -> PriorRows {
        let Prior { df, dispersion } = self.priors.last().map_or(Prior::NONE, |group| group.arms[side]);
        let mut rows = PriorRows { df: [df; BLOCK], dispersion: [dispersion; BLOCK] };
        for group in self.priors.iter().rev() {
            let Prior { df, dispersion } = group.arms[side];
            for i in 0..BLOCK {
                let reached = self.shares[i] >= group.least_share;
                rows.df[i] = if reached { df } else { rows.df[i] };
                rows.dispersion[i] = if reached { dispersion } else { rows.dispersion[i] };
            }
        }
        rows
    }

    /// What an arm shows of the function at `i`, as degrees of freedom and ratio; 0 and 0 if nothing.
    #[inline(always)]
    fn shown(&self, side: Side, i: usize) -> (f64, f64) {
        let (df, ratio) = (self.df[side], self.seen[side].ratio[i]);
        let shows = df > 0.0 && !ratio.is_nan();
        (if shows { df } else { 0.0 }, if shows { ratio } else { 0.0 })
    }

    /// What the priors draw an arm's variances to, whatever counting noise is.
    #[inline(always)]
    fn draw(&self, side: Side, priors: &Arms<PriorRows>, out: &mut ModeratedArm) {
        let (prior, other) = (&priors[side], &priors[side.other()]);
        let known = !self.priors.is_empty();
        for i in 0..BLOCK {
            let ((df, ratio), (other_df, other_ratio)) = (self.shown(side, i), self.shown(side.other(), i));
            let (d0, s0) = (prior.df[i], prior.dispersion[i]);
            let both = other.df[i] + other_df;
            let moderated = (other.df[i] * other.dispersion[i] + other_df * other_ratio) / both;
            let raised = s0 * (moderated / other.dispersion[i]).max(1.0);
            let centre = if known && both > 0.0 { raised } else { s0 };
            let earned = d0 * self.calm[i];
            let whole = (d0 * centre + df * ratio) / (d0 + df);
            let part = (earned * centre + df * ratio) / (earned + df);
            let part = if earned + df > 0.0 { part } else { 0.0 };
            out.drawn[i] = if d0 + df > 0.0 { whole.max(part) } else { 1.0 };
            out.df[i] = df + earned;
        }
    }

    /// Holds an arm's variances above counting noise, times its clumping in time.
    #[inline(always)]
    fn hold(&self, side: Side, out: &mut ModeratedArm) {
        let (seen, other, clumping) = (&self.seen[side], &self.seen[side.other()], &self.clumping[side]);
        for (i, clumping) in clumping.iter().enumerate() {
            let (share, mean) = (seen.share[i], 0.5 * (seen.share[i] + other.share[i]));
            let at = if share > 0.0 { share } else { mean };
            out.floor[i] = 1.0 / (1.0 + seen.between[i] * at / seen.counting[i].max(1e-300));
            out.phi[i] = out.drawn[i].max(out.floor[i] * clumping);
            out.counting[i] = out.phi[i] * seen.counting[i];
            out.between[i] = out.phi[i] * seen.between[i];
            out.df[i] = if out.df[i] > 0.0 { out.df[i] } else { self.df[side] };
        }
    }
}

impl Moderated {
    /// Of no block yet.
    pub fn new() -> Self {
        let zero = [0.0; BLOCK];
        let arm = || ModeratedArm { drawn: zero, floor: zero, phi: zero, counting: zero, between: zero, df: zero };
        Self { arms: Arms { head: arm(), base: arm() }, df: zero }
    }
}

/// (r_1 + r_0)^2/(r_1^2/df_1 + r_0^2/df_0), r = A/p + B at the mean of both levels. Welch (1947).
#[inline(always)]
fn welch_df(seen: &Arms<ArmBlock>, head: &ModeratedArm, base: &ModeratedArm, df: &mut Row) {
    for (i, df) in df.iter_mut().enumerate() {
        let at = mean_share(seen.head.share[i], seen.base.share[i]);
        let (r1, r0) = (head.counting[i] / at + head.between[i], base.counting[i] / at + base.between[i]);
        *df = welch(Arms { head: r1, base: r0 }, Arms { head: head.df[i], base: base.df[i] });
    }
}

impl Moderated {
    /// The levels of the function in lane `i`.
    pub fn levels(&self, seen: &Arms<ArmBlock>, i: usize) -> Levels {
        let level = |seen: &ArmBlock, arm: &ModeratedArm| Level {
            share: seen.share[i],
            counting: arm.counting[i],
            between: arm.between[i],
        };
        let arms = Arms { head: level(&seen.head, &self.arms.head), base: level(&seen.base, &self.arms.base) };
        Levels { arms, df: self.df[i] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::families::bh;
    use crate::tails::ln_f_tail;

    const PRIOR: Prior = Prior { df: 10.0, dispersion: 1.0 };
    const GROUP: GroupPrior = GroupPrior { least_share: 0.0, arms: Arms { head: PRIOR, base: PRIOR } };

    fn seen(head: Option<(f64, f64)>, base: Option<(f64, f64)>) -> Seen<'static> {
        let of = |arm: Option<(f64, f64)>| arm.map(|(ratio, df)| Dispersion { ratio, df });
        Seen { arms: Arms { head: of(head), base: of(base) }, prior: Some(&GROUP) }
    }

    /// By the definition: every tail, and all functions in one list.
    fn as_defined(seen: &[Seen<'_>]) -> Vec<(usize, f64)> {
        let ln_p = seen.iter().map(|seen| {
            let tail = |arm: Option<Dispersion>| match arm {
                Some(Dispersion { ratio, df }) if ratio > 2.0 => ln_f_tail(ratio, df, 10.0),
                _ => 0.0,
            };
            let product = tail(seen.arms.head) + tail(seen.arms.base);
            if product < 0.0 { product + libm::log1p(-product) } else { 0.0 }
        });
        bh(&ln_p.collect::<Vec<_>>()).into_iter().enumerate().filter(|(_, calm)| *calm < 1.0).collect()
    }

    /// Law: Fisher's product of two tails is x (1 - ln x).
    #[test]
    fn product_of_tails() {
        let x = (ln_f_tail(5.0, 4.0, 10.0) + ln_f_tail(3.0, 4.0, 10.0)).exp();
        let all = [seen(Some((1.9, 4.0)), None), seen(Some((5.0, 4.0)), Some((3.0, 4.0)))];
        let restless = restless(&all);
        assert_eq!(restless.len(), 1, "{restless:?}");
        assert!((restless[0].1 - 2.0 * x * (1.0 - x.ln())).abs() < 1e-14, "{restless:?}");
    }

    proptest! {
        /// Law: what is not computed is what would change nothing.
        #[test]
        fn restless_as_defined(
            quiet in 0usize..300,
            above in proptest::collection::vec((proptest::option::of(1.5f64..9.0), proptest::option::of(1.5f64..9.0), 1u8..4), 0..60),
        ) {
            let df = |df: u8| f64::from(df) * 2.5;
            let mut all: Vec<_> = above
                .iter()
                .map(|&(head, base, d)| seen(head.map(|ratio| (ratio, df(d))), base.map(|ratio| (ratio, df(d)))))
                .collect();
            all.extend((0..quiet).map(|_| seen(Some((1.0, 4.0)), Some((0.5, 4.0)))));
            prop_assert_eq!(restless(&all), as_defined(&all));
        }
    }
}
