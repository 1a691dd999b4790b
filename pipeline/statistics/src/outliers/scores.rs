//! From every pod's p to one p a function.

use crate::chi_square::ln_chi_square_tail;
use crate::exact::ln_binomial_lower;
use crate::number::whole;
use crate::outliers::pods::{Arm, Column, Pods};
use crate::outliers::spread::{Centre, Spread};
use crate::tails::F1Tail;

/// ln .01: from here on a p-value is "far".
pub const LN_FAR: f64 = -4.605_170_185_988_091;
/// Pods beyond .01 that are as good as seen, with exact p: they steady the tail where there are few.
const PRIOR: f64 = 20.0;
/// A base pod's squared residual counts as this part of its largest possible at most.
const LARGEST_RESIDUAL: f64 = 0.98;

/// One head pod in one function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodDeviation {
    /// Its number in [`PodRow`](super::PodRow).
    pub pod: u32,
    /// ln of its share against the base pods', at its own scale.
    pub log_ratio: f64,
    /// Predictive t; its sign is that of the deviation.
    pub t: f64,
    /// ln of its two-sided p, the tail as the base pods have it.
    pub ln_p: f64,
}

/// One function's pods before the tail is known.
pub struct Scored {
    pub tau2: f64,
    /// By head pod: log ratio, t, exact ln p.
    head: Vec<(f64, f64, f64)>,
    head_sums: Sums,
    base_sums: Sums,
}

/// Sums of ln p that a tail can be applied to later.
#[derive(Clone, Copy, Default)]
struct Sums {
    pods: f64,
    near: f64,
    far: f64,
    far_pods: f64,
}

impl Sums {
    fn add(&mut self, ln_p: f64) {
        self.pods += 1.0;
        if ln_p >= LN_FAR {
            self.near += ln_p;
        } else {
            self.far += LN_FAR - ln_p;
            self.far_pods += 1.0;
        }
    }

    /// -2 sum of ln p with this tail.
    fn score(&self, tail: &Tail) -> f64 {
        -2.0 * (self.near * tail.ln_share / LN_FAR + self.far_pods * tail.ln_share - self.far / tail.excess)
    }
}

/// How far out base pods lie by nature, over all functions of the cell.
pub struct Tail {
    /// ln of the share of base pods with p < .01; at least ln .01.
    pub ln_share: f64,
    /// Mean of -ln p beyond .01; at least 1, which exact p have.
    pub excess: f64,
    /// Base pods that have a residual.
    base_pods: f64,
}

impl Tail {
    pub fn of(scored: &[Scored], free: f64) -> Self {
        let mut all = Sums::default();
        for Scored { base_sums, .. } in scored {
            all.pods += base_sums.pods;
            all.far += base_sums.far;
            all.far_pods += base_sums.far_pods;
        }
        let share = (all.far_pods + PRIOR) / (all.pods + PRIOR * libm::exp(-LN_FAR));
        let excess = (all.far + PRIOR) / (all.far_pods + PRIOR);
        let base_pods = scored.first().map_or(free, |scored| scored.base_sums.pods);
        Self { ln_share: libm::log(share).max(LN_FAR), excess: excess.max(1.0), base_pods }
    }

    fn ln_p(&self, exact: f64) -> f64 {
        if exact >= LN_FAR { exact * (self.ln_share / LN_FAR) } else { self.ln_share - (LN_FAR - exact) / self.excess }
    }
}

impl Scored {
    /// Scores the function of `column`, which is the next of `spread`'s family.
    pub fn of(pods: &Pods<'_>, spread: &Spread, i: usize, column: &Column) -> Self {
        let (tau2, offset) = (spread.tau2[i], spread.offset[i]);
        let y = column.base.log_ratios_with(offset);
        let centre = spread.centre(i, pods, &y, &column.base);
        let head = head(pods, column, offset, tau2, &centre, &F1Tail::new(spread.df_total));
        let mut head_sums = Sums::default();
        head.iter().for_each(|&(_, _, ln_p)| head_sums.add(ln_p));
        Self { tau2, head, head_sums, base_sums: base(pods, &y, &column.base, tau2, &centre, spread.df_total) }
    }

    /// ln p of the function. `free`: degrees of freedom between base pods.
    ///
    /// Fisher: the larger of the chi-square tail of T with 2 K1 degrees of freedom and of P(Beta(K1, free) > T/(T + C)), C the
    /// base pods' sum brought to `free` pods: the ratio of two sums of exponential variables.
    pub fn combined(&self, tail: &Tail, free: f64) -> f64 {
        let (t, c) = (self.head_sums.score(tail), self.base_sums.score(tail) * free / tail.base_pods);
        let (pods, base) = (whole(self.head_sums.pods), whole(free));
        let against = ln_binomial_lower(pods - 1, pods + base - 1, t / (t + c), c / (t + c));
        ln_chi_square_tail(t, 2.0 * self.head_sums.pods).max(if t > 0.0 && c > 0.0 { against } else { 0.0 })
    }

    /// The head pods, ascending by number.
    pub fn deviations(&self, pods: &Pods<'_>, tail: &Tail) -> Vec<PodDeviation> {
        let deviation = |(pod, &(log_ratio, t, exact)): (u32, &(f64, f64, f64))| PodDeviation {
            pod,
            log_ratio,
            t,
            ln_p: tail.ln_p(exact),
        };
        pods.head.iter().map(|pod| pod.number).zip(&self.head).map(deviation).collect()
    }
}

/// Log ratio to all base pods, predictive t and exact ln p of every head pod.
fn head(
    pods: &Pods<'_>,
    column: &Column,
    offset: f64,
    tau2: f64,
    centre: &Centre,
    tail: &F1Tail,
) -> Vec<(f64, f64, f64)> {
    let of_base = column.base.log_ratio_of_all();
    let logs = column.head.log_ratios().into_iter().zip(column.head.log_ratios_with(offset));
    logs.zip(&column.head.expected)
        .zip(&pods.head)
        .map(|(((log, y), expected), pod)| {
            let variance = tau2 + 1.0 / expected + 1.0 / centre.weight[pod.group];
            let t = (y - centre.mean[pod.group]) / variance.sqrt();
            (log - of_base, t, tail.ln_tail(t * t))
        })
        .collect()
}

/// Every base pod against the others: its residual r^2, with itself taken out of the spread, r^2 (D-1)/(D - r^2), as t with D - 1
/// degrees of freedom. A pod alone in its group has none; with one degree of freedom it says nothing.
fn base(pods: &Pods<'_>, y: &[f64], base: &Arm, tau2: f64, centre: &Centre, df_total: f64) -> Sums {
    let (mut sums, tail) = (Sums::default(), F1Tail::new(df_total - 1.0));
    for ((y, expected), pod) in y.iter().zip(&base.expected).zip(&pods.base).filter(|(_, pod)| pods.paired[pod.group]) {
        let off = y - centre.mean[pod.group];
        let variance = tau2 + 1.0 / expected - 1.0 / centre.weight[pod.group];
        let square = (off * off / variance).min(LARGEST_RESIDUAL * df_total);
        let ln_p = tail.ln_tail(square * (df_total - 1.0) / (df_total - square));
        sums.add(if ln_p.is_nan() { 0.0 } else { ln_p });
    }
    sums
}
