//! What functions of like count have in common: the prior of an arm's dispersion, and which functions it holds for.

use fleetdiff_schemas::number::length_float;
use statrs::function::gamma::digamma;

use super::ENOUGH_FUNCTIONS;
use super::families::bh;
use super::tails::{ln_f_tail, pentagamma, trigamma, trigamma_inverse};

/// The prior counts for no more degrees of freedom than this.
const PRIOR_CAP: f64 = 20.0;
/// At most this many groups of functions, each of at least [`MIN_GROUP`].
const MOST_GROUPS: usize = 4;
/// A group has at least this many functions, unless it is the only one.
const MIN_GROUP: usize = 40;
/// A dispersion beyond this many times the prior's is restless.
const RESTLESS: f64 = 2.0;

/// The prior of an arm's dispersion.
#[derive(Clone, Copy, Debug)]
pub struct Prior {
    /// Degrees of freedom for which it counts.
    pub df: f64,
    /// The dispersion that it expects.
    pub dispersion: f64,
}

/// The priors of functions of like count.
#[derive(Clone, Copy, Debug)]
pub struct GroupPrior {
    /// The lowest mean count per pod of the group.
    pub lowest_mean: f64,
    /// The priors of head and base.
    pub arms: [Prior; 2],
}

/// The dispersion of one function in one arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispersion {
    /// Observed variance over the working variance.
    pub ratio: f64,
    /// Degrees of freedom between the arm's buckets.
    pub df: f64,
}

/// The priors by group, of functions in order of their mean count. `mean` is that count by function, `seen` the
/// dispersions by arm and function, where the function takes part.
pub(super) fn measure(mean: &[f64], seen: &[Vec<Option<Dispersion>>; 2]) -> Vec<GroupPrior> {
    let mut order: Vec<usize> = (0..mean.len()).filter(|&f| seen[0][f].is_some() || seen[1][f].is_some()).collect();
    let ratio = |f: usize, arm: usize| seen[arm][f].map_or(-1.0, |dispersion| dispersion.ratio);
    let by_ratio = |f: usize, g: usize, arm: usize| ratio(f, arm).total_cmp(&ratio(g, arm));
    order.sort_by(|&f, &g| mean[g].total_cmp(&mean[f]).then(by_ratio(f, g, 1)).then(by_ratio(f, g, 0)));
    let n = order.len();
    let groups = match (n / MIN_GROUP).min(MOST_GROUPS) {
        0 => usize::from(n >= ENOUGH_FUNCTIONS),
        several => several,
    };
    let mut found = Vec::new();
    for j in 0..groups {
        let group = &order[j * n / groups..(j + 1) * n / groups];
        let of_arm = |arm: usize| -> Vec<Dispersion> { group.iter().filter_map(|&f| seen[arm][f]).collect() };
        if let Some(arms) = of_group([of_arm(0), of_arm(1)]) {
            let lowest_mean = group.iter().map(|&f| mean[f]).fold(f64::INFINITY, f64::min);
            found.push(GroupPrior { lowest_mean, arms });
        }
    }
    found
}

/// The priors of the group of a function with this mean count; `None` without a prior.
pub(super) fn of_function(priors: &[GroupPrior], mean: f64) -> Option<[Prior; 2]> {
    let group = priors.iter().find(|group| mean >= group.lowest_mean).or_else(|| priors.last());
    group.map(|group| group.arms)
}

/// The moments of ln s in one arm.
struct Moments {
    /// Mean, without that of chi-square.
    mean: f64,
    /// Variance beyond that of chi-square.
    excess: f64,
    /// Its standard error.
    error: f64,
}

/// `excess` of the reference.
fn moments(seen: &[Dispersion]) -> Moments {
    let middle = median(&seen.iter().map(|one| one.ratio).collect::<Vec<f64>>());
    let least = 1e-5 * if middle == 0.0 { 1.0 } else { middle };
    let count = length_float(seen.len());
    let e: Vec<f64> =
        seen.iter().map(|one| one.ratio.max(least).ln() - digamma(one.df / 2.0) + (one.df / 2.0).ln()).collect();
    let mean = e.iter().sum::<f64>() / count;
    let variance = e.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / (count - 1.0);
    let by_chance = seen.iter().map(|one| trigamma(one.df / 2.0)).sum::<f64>() / count;
    let half = seen.iter().map(|one| one.df).sum::<f64>() / count / 2.0;
    let fourth = pentagamma(half) + 2.0 * trigamma(half).powi(2);
    Moments { mean, excess: variance - by_chance, error: (fourth / count).sqrt() }
}

/// The spread of dispersions is that of both arms, unless an arm shows more (`priors`).
fn of_group(seen: [Vec<Dispersion>; 2]) -> Option<[Prior; 2]> {
    let moments = seen.map(|seen| (seen.len() >= ENOUGH_FUNCTIONS).then(|| moments(&seen)));
    let (mut weighted, mut weights) = (0.0, 0.0);
    for one in moments.iter().flatten() {
        weighted += one.excess / one.error.powi(2);
        weights += 1.0 / one.error.powi(2);
    }
    let pooled = weighted / weights;
    let [head, base] = moments.map(|one| {
        one.map(|one| {
            let excess = pooled.max(one.excess - one.error);
            if excess > 0.0 {
                let df = 2.0 * trigamma_inverse(excess);
                let dispersion = (one.mean + digamma(df / 2.0) - (df / 2.0).ln()).exp();
                Prior { df: df.min(PRIOR_CAP), dispersion }
            } else {
                Prior { df: PRIOR_CAP, dispersion: one.mean.exp() }
            }
        })
    });
    Some([head.or(base)?, base.or(head)?])
}

/// How much of the prior a function earns, by function: near 0 if it is restless, 1 if it is not.
///
/// `seen` are the dispersions by arm and function (0 degrees of freedom where there is none), `priors` those of its
/// group, `tested` whether it is in the family.
pub(super) fn calm(seen: &[Vec<Dispersion>; 2], priors: &[Option<[Prior; 2]>], tested: &[bool]) -> Vec<f64> {
    let ln_tail = |arm: usize, f: usize| match priors[f].map(|priors| priors[arm]) {
        Some(prior) if seen[arm][f].df > 0.0 && seen[arm][f].ratio > RESTLESS * prior.dispersion => {
            let ratio = seen[arm][f].ratio / prior.dispersion;
            ln_f_tail(ratio, seen[arm][f].df, prior.df.max(1e-9))
        }
        _ => 0.0,
    };
    let combined = |f: usize| {
        if !tested[f] {
            return f64::NAN;
        }
        // Fisher's product of two p-values x has p = x (1 - ln x).
        let ln_x = ln_tail(0, f) + ln_tail(1, f);
        ln_x + (-ln_x).ln_1p()
    };
    let adjusted = bh(&(0..tested.len()).map(combined).collect::<Vec<f64>>());
    adjusted.into_iter().map(|ln_p| if ln_p.is_nan() { 1.0 } else { ln_p.exp() }).collect()
}

/// The prior's centre and the arm's own dispersion, moderated; and the degrees of freedom that this has.
///
/// Without a prior or a dispersion of its own, the arm takes what there is.
pub(super) fn moderate(
    own: Dispersion,
    other: Dispersion,
    priors: Option<[Prior; 2]>,
    arm: usize,
    calm: f64,
) -> Dispersion {
    let (d, s) = (own.df, own.ratio);
    let Some(priors) = priors else {
        return Dispersion { ratio: if d > 0.0 { s } else { 1.0 }, df: d };
    };
    let (prior, theirs) = (priors[arm], priors[1 - arm]);
    // A function that is restless in the other arm is not taken for quiet here.
    let moderated = (theirs.df * theirs.dispersion + other.df * other.ratio) / (theirs.df + other.df);
    let centre = prior.dispersion * (moderated / theirs.dispersion).max(1.0);
    let with = |weight: f64| (weight * centre + d * s) / (d + weight);
    let earned = prior.df * calm;
    let ratio = if d + earned > 0.0 { with(prior.df).max(with(earned)) } else { with(prior.df) };
    Dispersion { ratio, df: d + earned }
}

/// The median; for an even number of values the mean of the middle two. There must be at least one value.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}
