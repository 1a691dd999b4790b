//! What a cell needs before it can have a verdict: more time, more pods, or an unknown amount.
//!
//! A cell is clean once functions with most of the base's samples are equivalent (within five percent) with firm
//! support. The probability of that follows from the estimated variance between pods and from how often each function
//! is sampled. The answer is the shortest time, or the fewest pods, with which an unchanged cell is found clean with
//! probability .8. On synthetic fleets the predicted equivalent share is within .02 of the actual one (*measured*).

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::number::signed_float;
use fleetdiff_schemas::rows::{CellRow, ComparisonRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Support;
use fleetdiff_statistics::special::normal_quantile;
use serde::{Deserialize, Serialize};

use super::summary::CLEAN_SHARE;
use crate::evidence::row::RATIO;

/// The probability with which an unchanged cell must be found clean.
const POWER: f64 = 0.8;
/// Confidence of one side of the 90 % interval of equivalence.
const ONE_SIDED: f64 = 0.95;
/// Pods in each arm for firm support; see [`mod@fleetdiff_statistics::support`].
const FIRM_PODS: u32 = 5;
/// The largest arm that is asked for.
const MOST_PODS: u32 = 10_000;

/// What is missing until an unchanged cell would be found clean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outlook {
    /// More pods of the head build.
    pub head_pods: u32,
    /// More pods of the base.
    pub base_pods: u32,
    /// With no more pods: seconds still to wait, 0 if the samples so far are enough. With more pods: seconds for which
    /// all of them must be watched, since new pods begin without samples. `None` if it is unknown (the variance between
    /// pods is not known yet, or too many of the samples are in functions that are sampled too rarely).
    pub seconds: Option<f64>,
}

/// The outlook of a cell, from its row of the last look and its rows of the last report: one kind of count, scope `epoch`.
///
/// Assumes that new pods are sampled like the present ones and vary like them. If support is firm and time within the
/// epoch is enough (evidence starts again after it), that time is given. Otherwise the answer is the fewest pods of the
/// head (or of both arms, if the base is too small) with which a window, or the time so far if that is longer, is
/// enough.
pub(crate) fn outlook(cell: &ComparisonRow, rows: &[&CellRow], config: &Config) -> Outlook {
    let pods = |count: i64| u32::try_from(count).unwrap_or(0);
    let patience = Patience { window: seconds(config.window), epoch: seconds(config.epoch) };
    needed(Study::of(cell, rows).as_ref(), Arms { head: pods(cell.head_pods), base: pods(cell.base_pods) }, patience)
}

/// The longest times to wait, in seconds.
#[derive(Clone, Copy, Debug)]
struct Patience {
    window: f64,
    epoch: f64,
}

fn needed(study: Option<&Study>, now: Arms, patience: Patience) -> Outlook {
    let firm = Arms { head: now.head.max(FIRM_PODS), base: now.base.max(FIRM_PODS) };
    let missing =
        |arms: Arms, seconds| Outlook { head_pods: arms.head - now.head, base_pods: arms.base - now.base, seconds };
    let Some(study) = study else { return missing(firm, None) };
    let after = |arms: Arms, longest: f64| {
        let so_far = if arms == now { study.seconds } else { 0.0 };
        missing(arms, study.wait(arms, longest).map(|wait| (wait - so_far).max(0.0)))
    };
    if firm == now && study.is_likely(firm, patience.epoch) {
        return after(firm, patience.epoch);
    }
    let longest = study.seconds.max(patience.window);
    let more_head =
        fewest(firm.head, |head| study.is_likely(Arms { head, ..firm }, longest)).map(|head| Arms { head, ..firm });
    let both = |pods| Arms { head: pods, base: pods };
    let more_of_both = || fewest(firm.head.max(firm.base), |pods| study.is_likely(both(pods), longest)).map(both);
    more_head.or_else(more_of_both).map_or_else(|| missing(firm, None), |arms| after(arms, longest))
}

/// The fewest pods from `from` on that are enough, given that more are never worse.
fn fewest(from: u32, is_enough: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (from, MOST_PODS);
    while low < high {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    (low < MOST_PODS).then_some(low)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arms {
    head: u32,
    base: u32,
}

/// The tested functions of a cell.
struct Study {
    /// Variance between pods, of head and base.
    tau2: [f64; 2],
    /// Samples per pod and second.
    rate: f64,
    /// Length of the epoch so far.
    seconds: f64,
    /// Share of a function among all samples, and among the base's.
    functions: Vec<(f64, f64)>,
}

impl Study {
    /// `None` if nothing is tested, so that the variance between pods is not known.
    fn of(cell: &ComparisonRow, rows: &[&CellRow]) -> Option<Self> {
        let tested = rows.iter().filter(|row| row.ln_p.is_some() && row.support != Support::Untestable);
        let functions: Vec<(f64, f64)> = tested.filter_map(|row| Some((pooled_share(row), row.base.share?))).collect();
        let seconds = seconds(cell.window_end_at.since(cell.window_start_at));
        let rate = quotient(cell.head_total + cell.base_total, cell.head_pods + cell.base_pods) / seconds;
        (!functions.is_empty() && rate > 0.0).then_some(Self {
            tau2: [cell.head_pod_variance?, cell.base_pod_variance?],
            rate,
            seconds,
            functions,
        })
    }

    /// The fewest whole seconds, at most `longest`, after which the cell is likely to be found clean.
    fn wait(&self, arms: Arms, longest: f64) -> Option<f64> {
        if !self.is_likely(arms, longest) {
            return None;
        }
        let (mut short, mut long) = (0.0, longest.ceil());
        while long - short > 1.0 {
            let middle = libm::floor(f64::midpoint(short, long));
            if self.is_likely(arms, middle) { long = middle } else { short = middle }
        }
        Some(long)
    }

    /// Whether the equivalent share of the base's samples after `seconds` is enough for a clean cell with probability
    /// [`POWER`]. Its mean and variance are those of a sum of independent functions. The probability that the 90 % interval of an
    /// unchanged one lies within five percent is 2 Phi(ln 1.05 / se - z) - 1, z of .95 (two one-sided tests, Schuirmann 1987).
    fn is_likely(&self, arms: Arms, seconds: f64) -> bool {
        // NB: once for all functions; a quantile takes longer than a function.
        let (widest, margin) = (libm::log(RATIO), normal_quantile(ONE_SIDED));
        let (mut mean, mut variance) = (0.0, 0.0);
        for &(share, weight) in &self.functions {
            let room = (widest / self.standard_error(share, arms, seconds) - margin).max(0.0);
            let chance = libm::erf(room / std::f64::consts::SQRT_2);
            mean += weight * chance;
            variance += weight * weight * chance * (1.0 - chance);
        }
        mean - normal_quantile(POWER) * libm::sqrt(variance) >= CLEAN_SHARE
    }

    /// Of the log ratio of a function with a share f: se^2 = (tau1^2 + (1-f)/(f s))/K1 + (tau0^2 + (1-f)/(f s))/K0 after s samples a pod.
    fn standard_error(&self, share: f64, arms: Arms, seconds: f64) -> f64 {
        let sampling = (1.0 - share) / (share * self.rate * seconds);
        let [head, base] = self.tau2;
        libm::sqrt((head + sampling) / f64::from(arms.head) + (base + sampling) / f64::from(arms.base))
    }
}

fn seconds(length: Nanos) -> f64 {
    quotient(length.0, 1_000_000_000)
}

fn pooled_share(row: &CellRow) -> f64 {
    quotient(row.head.count + row.base.count, row.head.total + row.base.total)
}

fn quotient(part: i64, whole: i64) -> f64 {
    signed_float(part) / signed_float(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { window: 1800.0, epoch: 21_600.0 };

    /// Pods that give 100 samples a second, watched for 1800 s, in functions of one percent each.
    fn study(tau2: f64, functions: usize) -> Study {
        Study { tau2: [tau2; 2], rate: 100.0, seconds: 1800.0, functions: vec![(0.01, 0.01); functions] }
    }

    fn arms(head: u32, base: u32) -> Arms {
        Arms { head, base }
    }

    /// By hand, for 100 functions: with a probability of .7371 each, the mean less .8416 standard deviations is .7.
    /// That needs se = .048790 / (1.6449 + 1.1194), and .99 / (.01 x 100 T) x (1/5 + 1/20) is the square of that after
    /// T = 794.5 s.
    #[test]
    fn a_time_is_given_where_time_is_enough() {
        let short = Study { seconds: 500.0, ..study(0.0, 100) };
        assert_eq!(
            needed(Some(&short), arms(5, 20), PATIENCE),
            Outlook { head_pods: 0, base_pods: 0, seconds: Some(295.0) }
        );
        assert_eq!(
            needed(Some(&study(0.0, 100)), arms(5, 20), PATIENCE),
            Outlook { head_pods: 0, base_pods: 0, seconds: Some(0.0) }
        );
    }

    #[test]
    fn firm_support_is_asked_for_first() {
        assert_eq!(
            needed(Some(&study(0.0, 100)), arms(3, 20), PATIENCE),
            Outlook { head_pods: 2, base_pods: 0, seconds: Some(795.0) }
        );
        assert_eq!(needed(None, arms(1, 2), PATIENCE), Outlook { head_pods: 4, base_pods: 3, seconds: None });
    }

    #[test]
    fn the_fewest_pods_are_asked_for_where_time_is_not_enough() {
        let noisy = study(0.0025, 100);
        let outlook = needed(Some(&noisy), arms(3, 20), PATIENCE);
        assert!(outlook.head_pods > 2 && outlook.base_pods == 0 && outlook.seconds <= Some(1800.0), "{outlook:?}");
        assert!(noisy.is_likely(arms(3 + outlook.head_pods, 20), 1800.0));
        assert!(!noisy.is_likely(arms(2 + outlook.head_pods, 20), 1800.0));
        let both = needed(Some(&noisy), arms(3, 6), PATIENCE);
        assert!(both.head_pods > 0 && both.base_pods > 0 && both.head_pods + 3 == both.base_pods + 6, "{both:?}");
    }

    #[test]
    fn an_epoch_is_the_longest_wait() {
        let slow = Study { rate: 2.0, ..study(0.0, 100) };
        assert!(needed(Some(&slow), arms(5, 20), PATIENCE).head_pods > 0);
        let outlook = needed(Some(&slow), arms(5, 20), Patience { epoch: 50_000.0, ..PATIENCE });
        assert_eq!((outlook.head_pods, outlook.base_pods), (0, 0));
        assert!(outlook.seconds > Some(37_000.0), "{outlook:?}");
    }

    #[test]
    fn functions_with_too_few_samples_give_no_answer() {
        assert_eq!(
            needed(Some(&study(0.0, 60)), arms(20, 180), PATIENCE),
            Outlook { head_pods: 0, base_pods: 0, seconds: None }
        );
    }
}
