//! Everything about a cell that does not depend on the scale: counts, dispersion, ratio, error.
//!
//! One pass over the bucket rows, 256 functions at a time: a block of every row is read once, as floats, and stays in cache for
//! totals, deviations and logarithms. Inner loops run over whole blocks of plain arrays, and are compiled for the widest vectors
//! that the machine at hand has; the same operations in the same order give the same bits with any. What a test at any scale
//! needs is kept: O(strata x functions).

mod block;
pub mod closed;
mod layout;
mod state;

pub(crate) use self::state::LogScale;
pub use self::state::Moments;

use crate::contrast::Contrast;
use crate::dispersion::{Moderation, moderate_in_order};
use crate::moments::block::BlockPass;
use crate::moments::layout::ArmLayout;
use crate::number::float;
use crate::strata::{Model, Stratum};
use crate::thresholds::FEW_PODS;

impl Moments {
    /// Measures a contrast; a function is tested with at least `min_count` samples in both arms together, not all samples of the
    /// cell, any degree of freedom between buckets, and unless it is [`Contrast::untested`].
    ///
    /// e = x - p_arm n; w_s = N_other/N; u_b = sum_s w e; v_b = sum_s w^2 n p(1-p) (n p for rates); phi = sum_b u^2/v / df; df =
    /// sum over occupied buckets of (1 - sum_s w^2 n_b^2/N_arm / sum_s w^2 n_b). Then [`crate::dispersion::moderate`]. Assumes that pods are
    /// independent of each other, also across the strata they take part in. Checked against the reference programs (`ql.json`,
    /// `ql_stratified.json`, `decide.json`) to 1e-8.
    #[must_use]
    pub fn measure(contrast: &Contrast<'_>, model: Model, min_count: f64) -> Self {
        Self::measure_in_order(contrast, model, min_count, Vec::new())
    }

    /// [`Moments::measure`] with sums over functions taken in this order of all of them: to the last bit what it would be if
    /// they stood in that order.
    #[must_use]
    pub fn measure_in_order(contrast: &Contrast<'_>, model: Model, min_count: f64, order: Vec<u32>) -> Self {
        let mut moments = Self { order, ..Self::empty(contrast, model) };
        if moments.strata == 0 {
            return moments;
        }
        let other = |pick: fn(&(f64, f64)) -> f64| moments.exposures.iter().map(pick).collect::<Vec<_>>();
        let (n_head, n_base) = (other(|n| n.0), other(|n| n.1));
        let closed = |arm: usize| contrast.closed.as_ref().map(|closed| closed.arm(arm));
        let head =
            ArmLayout::new(contrast, closed(0), |s: &Stratum<'_>| &s.head.rows, &n_head, &n_base, &contrast.head_pods);
        let base =
            ArmLayout::new(contrast, closed(1), |s: &Stratum<'_>| &s.base.rows, &n_base, &n_head, &contrast.base_pods);
        moments.describe(&head, &base);
        BlockPass::new(&head, &base, model, moments.few).run(contrast.only.as_deref(), &mut moments);
        moments.conclude(min_count, contrast.untested);
        moments
    }

    fn empty(contrast: &Contrast<'_>, model: Model) -> Self {
        let functions = contrast.measured();
        let closed = contrast.closed.iter().flat_map(|closed| closed.residuals.exposures());
        let exposures = closed.chain(contrast.strata.iter().map(|s| (s.head.exposure(), s.base.exposure())));
        let exposures: Vec<(f64, f64)> = exposures.map(|(head, base)| (float(head), float(base))).collect();
        let strata = exposures.len();
        let kept = if strata > 1 { strata } else { 0 };
        let nan = || vec![f64::NAN; functions];
        Self {
            model,
            strata,
            strata_dropped: contrast.strata_dropped,
            n_head: exposures.iter().map(|n| n.0).sum(),
            n_base: exposures.iter().map(|n| n.1).sum(),
            k_head: 0.0,
            k_base: 0.0,
            buckets_head: 0,
            buckets_base: 0,
            df: 0.0,
            df_total: 0.0,
            df_log_total: f64::NAN,
            tau2: 0.0,
            d0: 0.0,
            s02: 1.0,
            few: false,
            imbalance: contrast.imbalance,
            a: vec![0.0; functions],
            b: vec![0.0; functions],
            tested: vec![false; functions],
            tests: 0,
            phi: nan(),
            mu: vec![0.0; functions],
            phi_tilde: nan(),
            theta_raw: nan(),
            se: nan(),
            by_stratum: (0..kept).map(|_| (vec![0.0; functions], vec![0.0; functions])).collect(),
            exposures,
            log_scale: None,
            order: Vec::new(),
        }
    }

    /// The tested functions, in the order in which sums are taken.
    pub(crate) fn family(&self) -> impl Iterator<Item = usize> {
        in_order(&self.order, &self.tested)
    }

    fn describe(&mut self, head: &ArmLayout<'_>, base: &ArmLayout<'_>) {
        (self.k_head, self.k_base) = (head.pods, base.pods);
        (self.buckets_head, self.buckets_base) = (head.buckets.len(), base.buckets.len());
        let df = head.df + base.df;
        self.df = if df > 1e-9 { df } else { 0.0 };
        self.few = self.imbalance || self.k_head < FEW_PODS || self.k_base < FEW_PODS;
        if self.few {
            let nan = vec![f64::NAN; self.a.len()];
            self.log_scale = Some(LogScale { difference: nan.clone(), se: nan });
        }
    }

    /// The same cell with only these functions, in this order. Their tests at a given scale do not change by a bit: what they
    /// share with the others (dispersion, degrees of freedom, the size of the family) is kept.
    #[must_use]
    pub fn only(&self, places: &[usize]) -> Self {
        let floats = |all: &Vec<f64>| places.iter().map(|&f| all[f]).collect::<Vec<_>>();
        let log_scale = self.log_scale.as_ref();
        Self {
            model: self.model,
            strata: self.strata,
            strata_dropped: self.strata_dropped,
            n_head: self.n_head,
            n_base: self.n_base,
            k_head: self.k_head,
            k_base: self.k_base,
            buckets_head: self.buckets_head,
            buckets_base: self.buckets_base,
            df: self.df,
            df_total: self.df_total,
            df_log_total: self.df_log_total,
            tau2: self.tau2,
            d0: self.d0,
            s02: self.s02,
            few: self.few,
            imbalance: self.imbalance,
            a: floats(&self.a),
            b: floats(&self.b),
            tested: places.iter().map(|&f| self.tested[f]).collect(),
            tests: self.tests,
            phi: floats(&self.phi),
            mu: floats(&self.mu),
            phi_tilde: floats(&self.phi_tilde),
            theta_raw: floats(&self.theta_raw),
            se: floats(&self.se),
            exposures: self.exposures.clone(),
            by_stratum: self.by_stratum.iter().map(|(head, both)| (floats(head), floats(both))).collect(),
            log_scale: log_scale.map(|logs| LogScale { difference: floats(&logs.difference), se: floats(&logs.se) }),
            order: Vec::new(),
        }
    }

    /// The degrees of freedom by which sums of squares are divided: 1 where there are none.
    pub(crate) fn df_divisor(&self) -> f64 {
        if self.df > 0.0 { self.df } else { 1.0 }
    }

    /// Who is tested, moderation, and the standard errors that follow from it.
    fn conclude(&mut self, min_count: f64, untested: Option<usize>) {
        let whole = self.n_head + self.n_base;
        for ((tested, &a), &b) in self.tested.iter_mut().zip(&self.a).zip(&self.b) {
            *tested = a + b >= min_count && (self.model == Model::Rate || a + b < whole) && self.df > 0.0;
        }
        if let Some(tested) = untested.and_then(|f| self.tested.get_mut(f)) {
            *tested = false;
        }
        let Moderation { phi, df_total, tau2, d0, s02 } =
            moderate_in_order(&self.phi, &self.mu, self.family(), self.df);
        (self.phi_tilde, self.df_total, self.tau2, self.d0, self.s02) = (phi, df_total, tau2, d0, s02);
        for (se, &phi) in self.se.iter_mut().zip(&self.phi_tilde) {
            *se = (*se * phi).sqrt();
        }
        if self.strata > 1 {
            self.exclude_without_variance();
        }
        self.tests = self.tested.iter().filter(|&&tested| tested).count();
        if let Some(log_scale) = &mut self.log_scale {
            let Moderation { phi, df_total, .. } =
                moderate_in_order(&log_scale.se, &self.mu, in_order(&self.order, &self.tested), self.df);
            self.df_log_total = df_total;
            let pods = 1.0 / self.k_head + 1.0 / self.k_base;
            for ((se, &phi), &mu) in log_scale.se.iter_mut().zip(&phi).zip(&self.mu) {
                *se = (phi / mu.max(1e-300) * pods).sqrt();
            }
            if self.imbalance {
                for (se, log) in self.se.iter_mut().zip(&log_scale.se).filter(|(se, _)| !se.is_nan()) {
                    *se = se.max(*log);
                }
            }
        }
    }

    /// A function that is all or nothing in every stratum has no variance there and cannot be tested.
    fn exclude_without_variance(&mut self) {
        for (f, tested) in self.tested.iter_mut().enumerate().filter(|(_, tested)| **tested) {
            *tested = self
                .by_stratum
                .iter()
                .zip(&self.exposures)
                .any(|((_, both), (n1, n0))| both[f] > 0.0 && (self.model == Model::Rate || both[f] < n1 + n0));
        }
    }
}

/// Those that are tested, in this order; as they stand if there is none.
fn in_order(order: &[u32], tested: &[bool]) -> impl Iterator<Item = usize> {
    let ordered = order.iter().filter_map(|&f| usize::try_from(f).ok());
    let standing = if order.is_empty() { 0..tested.len() } else { 0..0 };
    ordered.chain(standing).filter(|&f| tested[f])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Arm, BucketRow};

    type Columns = Vec<Vec<u32>>;

    fn arm(columns: &Columns) -> Arm<'_> {
        let row = |(bucket, counts): (u16, &'_ Vec<u32>)| {
            (bucket, counts.iter().map(|&count| u64::from(count)).sum::<u64>() + 7)
        };
        let mut rows = Vec::new();
        for (numbered, counts) in (0u16..).zip(columns).map(|numbered| (row(numbered), numbered.1)) {
            rows.push(BucketRow { bucket: numbered.0, exposure: numbered.1, counts: vec![counts] });
        }
        Arm { rows }
    }

    fn columns() -> impl Strategy<Value = Columns> {
        proptest::collection::vec(proptest::collection::vec(0u32..40, 60), 2..6)
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        /// Law: leaving out what is not tested, before measuring or after, changes no bit of what is.
        #[test]
        fn the_family_alone_gives_the_same_bits(head in columns(), base in columns(), later in columns()) {
            for strata in [vec![(&head, &base)], vec![(&head, &base), (&later, &base)]] {
                let strata = strata.into_iter().map(|(head, base)| Stratum { head: arm(head), base: arm(base) });
                let mut contrast = Contrast::new(60, strata.collect(), Default::default(), Default::default());
                contrast.untested = Some(3);
                let all = Moments::measure(&contrast, Model::Share, 150.0);
                let tested: Vec<usize> = (0..60).filter(|&f| all.tested[f]).collect();
                let backwards = Moments::measure_in_order(&contrast, Model::Share, 150.0, (0..60).rev().collect());
                prop_assert_eq!(bits(&backwards.phi), bits(&all.phi));
                let forwards = Moments::measure_in_order(&contrast, Model::Share, 150.0, (0..60).collect());
                prop_assert_eq!((bits(&forwards.phi_tilde), forwards.normalization().to_bits()), (bits(&all.phi_tilde), all.normalization().to_bits()));
                contrast.keep_family(150.0);
                let family = Moments::measure(&contrast, Model::Share, 150.0);
                prop_assert_eq!((family.tests, family.normalization().to_bits()), (all.tests, all.normalization().to_bits()));
                let listed: Vec<usize> = contrast.only.iter().flatten().map(|&f| usize::try_from(f).unwrap()).collect();
                let places: Vec<usize> = tested.iter().filter_map(|f| listed.binary_search(f).ok()).collect();
                prop_assert_eq!(places.len(), tested.len());
                for normalization in [1.0, 1.03] {
                    let (one, other) = (all.only(&tested).normalized(normalization), family.only(&places).normalized(normalization));
                    let whole = all.normalized(normalization);
                    let of_tested = |all: &[f64]| tested.iter().map(|&f| all[f].to_bits()).collect::<Vec<_>>();
                    prop_assert_eq!((bits(&one.ln_p), bits(&one.se)), (of_tested(&whole.ln_p), of_tested(&whole.se)));
                    prop_assert_eq!((bits(&one.ln_p), bits(&one.se)), (bits(&other.ln_p), bits(&other.se)));
                }
            }
        }
    }
}
