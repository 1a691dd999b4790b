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
use crate::families::bh;
use crate::priors::{Dispersion, GroupPrior, Prior};
use crate::tails::ln_f_tail;

/// A function is looked at for restlessness from this many times the expected dispersion on.
const RESTLESS: f64 = 2.0;

/// What is known of one function before it is moderated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unmoderated<'p> {
    /// What was seen in each arm; `None` where the arm has none of it or cannot show a variance.
    pub seen: Arms<Option<Dispersion>>,
    /// The priors of its group.
    pub prior: Option<&'p GroupPrior>,
}

/// One arm's variance of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moderated {
    /// By which the expected variance is multiplied, phi.
    pub phi: f64,
    /// Degrees of freedom; 0 if there are none.
    pub df: f64,
}

impl Unmoderated<'_> {
    /// ln of the probability of dispersions as large in both arms under the priors, by Fisher's product; 0 of a quiet function.
    pub fn ln_p_of_restlessness(&self) -> f64 {
        let Some(prior) = self.prior else { return 0.0 };
        let tail = |side: Side| match self.seen[side] {
            Some(seen) if seen.df > 0.0 && seen.ratio > RESTLESS * prior.arms[side].dispersion => {
                ln_f_tail(seen.ratio / prior.arms[side].dispersion, seen.df, prior.arms[side].df)
            }
            _ => 0.0,
        };
        let product = tail(Side::Head) + tail(Side::Base);
        product + libm::log1p(-product)
    }

    /// One arm's moderated variance, not yet held above counting noise; `calm` in 0..=1.
    pub fn moderated(&self, side: Side, calm: f64) -> Moderated {
        let Dispersion { ratio, df } = self.seen(side);
        let Prior { df: d0, .. } = self.prior(side);
        let centre = self.centre(side);
        let drawn = |d0: f64| if d0 + df > 0.0 { (d0 * centre + df * ratio) / (d0 + df) } else { 0.0 };
        let phi = if d0 + df > 0.0 { drawn(d0).max(drawn(d0 * calm)) } else { 1.0 };
        Moderated { phi, df: df + d0 * calm }
    }

    fn seen(&self, side: Side) -> Dispersion {
        self.seen[side].unwrap_or(Dispersion { ratio: 0.0, df: 0.0 })
    }

    fn prior(&self, side: Side) -> Prior {
        self.prior.map_or(Prior::NONE, |prior| prior.arms[side])
    }

    /// What the prior expects of this function, given what the other arm shows.
    fn centre(&self, side: Side) -> f64 {
        let own = self.prior(side).dispersion;
        if self.prior.is_none() {
            return own;
        }
        let (other, seen) = (self.prior(side.other()), self.seen(side.other()));
        if other.df + seen.df <= 0.0 {
            return own;
        }
        let moderated = (other.df * other.dispersion + seen.df * seen.ratio) / (other.df + seen.df);
        own * (moderated / other.dispersion).max(1.0)
    }
}

/// How far each function earns the prior's degrees of freedom, from [`Unmoderated::ln_p_of_restlessness`]: Benjamini-Hochberg over
/// those that are not NaN.
pub(crate) fn calm(ln_p: &[f64]) -> Vec<f64> {
    bh(ln_p)
}

/// Counting noise over the expected variance, 1/(1 + B p/A).
pub(crate) fn counting_floor(counting: f64, between: f64, share: f64) -> f64 {
    1.0 / (1.0 + between * share / counting.max(1e-300))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: Fisher's product of two tails is x (1 - ln x).
    #[test]
    fn product_of_tails() {
        let prior = Prior { df: 10.0, dispersion: 1.0 };
        let group = GroupPrior { least_share: 0.0, arms: Arms { head: prior, base: prior } };
        let seen = |ratio| Some(Dispersion { ratio, df: 4.0 });
        let quiet = Unmoderated { seen: Arms { head: seen(1.9), base: None }, prior: Some(&group) };
        assert!(quiet.ln_p_of_restlessness().abs() < 1e-300);
        let restless = Unmoderated { seen: Arms { head: seen(5.0), base: seen(3.0) }, prior: Some(&group) };
        let x = (ln_f_tail(5.0, 4.0, 10.0) + ln_f_tail(3.0, 4.0, 10.0)).exp();
        assert!((restless.ln_p_of_restlessness().exp() - x * (1.0 - x.ln())).abs() < 1e-14);
    }
}
