//! Each head pod is compared with all base pods together, and the tests of the pods are merged: the article's "diff,
//! then merge".
//!
//! G of the pod's two-by-two table, then Fisher's sum of ln p over pods, or Stouffer's sum of signed roots of G. For
//! comparison only. It is wrong because pods always differ somewhat: such a difference already gives a pod a small p,
//! so that with Fisher's sum every function that differs between pods is significant. Signed roots partly cancel, but
//! their sum still treats the samples of a pod as independent.

use std::collections::BTreeMap;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_statistics::combine::fisher;
use fleetdiff_statistics::g::g_share;
use fleetdiff_statistics::tails::ln_chi1_tail;

use super::pods::WindowPods;
use super::row::RowEvidence;
use crate::counts::functions::CellFunctions;

/// Samples of each function, and of all functions.
#[derive(Clone, Debug, Default)]
struct Counted {
    counts: Vec<f64>,
    samples: f64,
}

/// Adds the merged ln p of their pods to the rows of one cell and kind, if the method merges tests of pods. Pods are
/// those of the window, in strata that both builds share.
pub fn merge_pods(
    rows: &mut [RowEvidence],
    functions: &CellFunctions,
    pods: &WindowPods,
    kind: CountKind,
    method: Method,
) {
    let merge: fn(&[f64]) -> f64 = match method {
        Method::ArticleB => by_fisher,
        Method::ArticleBStouffer => by_stouffer,
        Method::Honest | Method::Article | Method::Naive => return,
    };
    let base = by_pod(pods, Side::Base, kind, functions.len()).into_iter().fold(Counted::default(), Counted::with);
    let head = by_pod(pods, Side::Head, kind, functions.len());
    if head.is_empty() || base.samples <= 0.0 {
        return;
    }
    let numbers: BTreeMap<u64, usize> = functions.entries().iter().map(|(hash, _)| *hash).zip(0..).collect();
    for row in rows {
        let Some(&f) = numbers.get(&row.hash) else { continue };
        let roots: Vec<f64> =
            head.iter().map(|pod| signed_root(pod.counts[f], pod.samples, base.counts[f], base.samples)).collect();
        row.ln_p_by_pod = merge(&roots);
    }
}

/// The pods of an arm, ascending, each over all its strata.
fn by_pod(pods: &WindowPods, side: Side, kind: CountKind, functions: usize) -> Vec<Counted> {
    let mut each = vec![Counted { counts: vec![0.0; functions], samples: 0.0 }; pods.len(side)];
    for row in pods.rows(side, kind) {
        let Some(pod) = usize::try_from(row.pod).ok().and_then(|pod| each.get_mut(pod)) else { continue };
        pod.samples += float(row.samples);
        row.counts.iter().for_each(|counts| counts.add_to(0, &mut pod.counts));
    }
    each
}

impl Counted {
    fn with(mut self, other: Self) -> Self {
        self.counts.resize(other.counts.len(), 0.0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.samples += other.samples;
        self
    }
}

/// The root of G with the sign of the change of the share.
fn signed_root(a: f64, n_a: f64, b: f64, n_b: f64) -> f64 {
    libm::copysign(libm::sqrt(g_share(a, n_a, b, n_b)), a * n_b - b * n_a)
}

/// ln p of -2 sum ln p_i as chi-square with 2 k degrees of freedom, p_i two-sided: signs do not count.
fn by_fisher(roots: &[f64]) -> f64 {
    let ln_p: Vec<f64> = roots.iter().map(|root| ln_chi1_tail(root * root)).collect();
    fisher(&ln_p).ln_p
}

/// Two-sided ln p of sum z_i / sqrt(k).
///
/// NB: z is the signed root itself. Computed from a one-sided p it would be lost where that p rounds to 1.
fn by_stouffer(roots: &[f64]) -> f64 {
    let pods: f64 = roots.iter().map(|_| 1.0).sum();
    let sum: f64 = roots.iter().sum();
    ln_chi1_tail(sum * sum / pods)
}

#[cfg(test)]
mod tests {
    use fleetdiff_statistics::combine::{ln_normal_upper, stouffer};

    use super::*;

    /// Stouffer's method on p-values, which is checked against SciPy, gives the same result as far as its digits go.
    #[test]
    fn roots_are_the_z_of_stouffer() {
        for roots in [&[1.5, 2.0, -0.5][..], &[-3.0, -2.5], &[0.25], &[4.0, 4.5, 5.0, -1.0]] {
            let ln_upper: Vec<f64> = roots.iter().map(|&z| ln_normal_upper(z)).collect();
            let z = stouffer(&ln_upper, &[]).statistic;
            assert!((by_stouffer(roots) - ln_chi1_tail(z * z)).abs() < 1e-9, "{roots:?}");
        }
        assert!(by_stouffer(&[60.0, -60.0]).abs() < 1e-12, "changes in opposite directions cancel");
        assert!(by_fisher(&[60.0, -60.0]) < -3000.0, "and count twice for Fisher");
    }

    /// 30 of 180,000 against 50 of 180,000: G 5.0545 (`g_2x2.csv`); one pod is its own merge.
    #[test]
    fn one_pod_is_the_test_itself() {
        let root = signed_root(30.0, 180_000.0, 50.0, 180_000.0);
        assert!((root + 2.248_230_891_700_02).abs() < 1e-9, "{root}");
        assert!((by_fisher(&[root]) - by_stouffer(&[root])).abs() < 1e-12);
        assert!((by_stouffer(&[root]) + 3.706_576_290_712_19).abs() < 1e-9);
    }
}
