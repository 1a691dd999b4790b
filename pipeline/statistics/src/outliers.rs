//! A minority of pods that differ: every head pod is held against the base pods by itself.
//!
//! If a tenth of the head pods runs a function 1.6 times as much, the mean moves by 6 % and the test of means sees little; a
//! pod at 1.6 among pods that differ by 10 % is plain to see. So each head pod gets a predictive t: its log share, less its own
//! scale, against the mean and the spread of the base pods. A function's pods are then combined into one p, and functions are a
//! family of their own. The reverse, a small change of all pods, only the test of means sees: both run, and are told apart.
//!
//! | step | formula |
//! |---|---|
//! | log ratio of a pod | y = ln((x + 1/2)/(E + 1/2)), E = sum over its strata of (share over both arms) x samples |
//! | its own scale | c = biweight location of y - m over the 1,000 best counted functions, E <- E exp(c); 0 with fewer than 20 |
//! | spread between pods | tau^2 of base pods with variances tau^2 + 1/E (Paule & Mandel 1982), moderated over functions |
//! | without skewness | y = (1 + o/E) ln((x + o)/(E + o)), o = mu (2 + 3a)/(1 + 3a + 3a^2), a = tau^2 mu, mu = mean E |
//! | predictive t | (y - m)/sqrt(tau^2 + 1/E + 1/W), W = sum of 1/(tau^2 + 1/E) over base pods; df + d0 degrees of freedom |
//! | tail as the base has it | beyond p = .01: share and mean excess of the base pods' own p, never less than exact p have |
//! | all pods of a function | Fisher: T = -2 sum ln p, and T/(T + C) held against Beta(K1, df), C the same sum over base pods |
//!
//! Three things make it honest. Poisson counts are skewed, and their logarithm the other way: with the offset o, which vanishes
//! where pods differ more than their counts do, neither tail is too heavy. All head pods are held against one estimate of mean
//! and spread, so their p are not independent: the base pods, each held against the others, have made the same error, and
//! Fisher's sum must also stand out against theirs (with 90 v 10 pods P(any false) is .97 without, .04 with). Pods may be
//! heavy-tailed by nature: how far the base pods lie out is what "far" means (t with 5 df at CV 30 %: .93 without, .13 with).
//!
//! What makes it wrong: base pods whose spread is of another law than the head's (canary pods on nodes of their own); few base
//! pods of which one is itself an outlier (then it is blind, not wrong).

mod location;
mod moderation;
mod own_normalization;
mod pods;
mod scores;
mod spread;

pub use self::pods::PodRow;
pub use self::scores::PodDeviation;

use std::collections::BTreeMap;

use crate::contrast::Untested;
use crate::families::{bh, selected};
use crate::number::index_of;
use crate::outliers::pods::Pods;
use crate::outliers::scores::{Scored, Tail};
use crate::outliers::spread::Spread;
use crate::thresholds::MIN_COUNT;

/// A function is tested if a pod of each arm has so many samples of it on average.
pub const MIN_PER_POD: f64 = 5.0;

/// What may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Pods are kept of functions whose ln p is at most this: ln .05 is all that can be selected at q = .05; 0 is all.
    pub keep_ln_p: f64,
    /// Functions that are in no family.
    pub untested: Untested,
}

impl Default for Settings {
    fn default() -> Self {
        Self { keep_ln_p: -2.995_732_273_553_991, untested: [None; 2] }
    }
}

/// What was found; vectors are by function, NaN where not tested.
#[derive(Clone, Debug)]
pub struct Outliers {
    /// Whether the function is in the family.
    pub tested: Vec<bool>,
    /// How many are.
    pub tests: usize,
    /// ln p of "no head pod differs by more than base pods do".
    pub ln_p: Vec<f64>,
    /// Variance of the log share between base pods, moderated.
    pub tau2: Vec<f64>,
    /// Degrees of freedom of the predictive t, the prior's included; 0 if nothing is tested.
    pub df: f64,
    /// Head pods in strata that both arms share.
    pub head_pods: usize,
    /// Base pods there.
    pub base_pods: usize,
    /// Groups of pods that share strata, directly or through others: one for each hardware.
    pub groups: usize,
    /// ln of the share of base pods' p-values below .01, at least ln .01, and their mean excess, at least 1.
    pub tail: (f64, f64),
    kept: BTreeMap<usize, Vec<PodDeviation>>,
}

/// Holds every head pod against the base pods, in every function that both arms have enough of.
///
/// Tested: at least 30 samples in both arms, not all of them, 5 a pod on average in each arm, and more base pods than groups of
/// pods. Rows may come in any order; strata without an arm are left out. Formulas and assumptions: see [the module](self).
/// Checked against the reference program (`outliers.json`) to 1e-7; calibration: `tests/published/minority.rs`.
#[must_use]
pub fn outliers(functions: usize, head: &[PodRow<'_>], base: &[PodRow<'_>], settings: &Settings) -> Outliers {
    let mut pods = Pods::of(functions, head, base);
    let family = pods.family(MIN_COUNT, MIN_PER_POD, settings.untested);
    let mut found = Outliers::nothing(functions, &pods);
    if family.is_empty() {
        return found;
    }
    pods.own_normalization(&family);
    let spread = Spread::measure(&pods, &family);
    let scored: Vec<Scored> =
        pods.columns(&family).enumerate().map(|(i, column)| Scored::of(&pods, &spread, i, &column)).collect();
    let tail = Tail::of(&scored, pods.free());
    let one_p = |scored: &Scored| scored.combined(&tail, pods.free());
    for (&f, scored) in family.iter().zip(&scored) {
        let f = index_of(f);
        (found.tested[f], found.tau2[f], found.ln_p[f]) = (true, scored.tau2, one_p(scored));
        if found.ln_p[f] <= settings.keep_ln_p {
            found.kept.insert(f, scored.deviations(&pods, &tail));
        }
    }
    (found.tests, found.df, found.tail) = (family.len(), spread.df_total, (tail.ln_share, tail.excess));
    found
}

impl Outliers {
    fn nothing(functions: usize, pods: &Pods<'_>) -> Self {
        let nan = vec![f64::NAN; functions];
        Self {
            tested: vec![false; functions],
            tests: 0,
            ln_p: nan.clone(),
            tau2: nan,
            df: 0.0,
            head_pods: pods.head.len(),
            base_pods: pods.base.len(),
            groups: pods.groups,
            tail: (scores::LN_FAR, 1.0),
            kept: BTreeMap::new(),
        }
    }

    /// The head pods of a function, ascending by number; none unless its ln p was small enough to be kept.
    #[must_use]
    pub fn pods(&self, function: usize) -> &[PodDeviation] {
        self.kept.get(&function).map_or(&[], Vec::as_slice)
    }

    /// The outlying pods of a function that was selected: BH over its pods at level `q` (within a selection, q R/F).
    #[must_use]
    pub fn named(&self, function: usize, q: f64) -> Vec<PodDeviation> {
        let pods = self.pods(function);
        let ln_p: Vec<f64> = pods.iter().map(|pod| pod.ln_p).collect();
        pods.iter().zip(bh(&ln_p)).filter(|&(_, q_pod)| selected(q_pod, q)).map(|(&pod, _)| pod).collect()
    }

    /// [`Outliers::named`] if they are a minority: at least one, at most half of the head pods. Else the change is not one of
    /// some pods.
    #[must_use]
    pub fn minority(&self, function: usize, q: f64) -> Option<Vec<PodDeviation>> {
        let named = self.named(function, q);
        (!named.is_empty() && 2 * named.len() <= self.head_pods).then_some(named)
    }
}
