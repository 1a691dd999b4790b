//! Each pod's own scale: by how much most of its functions are off.

use crate::number::index_of;
use crate::outliers::location::biweight;
use crate::outliers::pods::Pods;
use crate::outliers::spread::Spread;
use crate::thresholds::FEW_FUNCTIONS;

/// A pod's scale rests on so many functions at most, the best counted ones.
const NORMALIZATION_FUNCTIONS: usize = 1000;

impl Pods<'_> {
    /// Finds every pod's own scale among the best counted functions of `family`; leaves 1 with fewer than 20.
    pub fn own_normalization(&mut self, family: &[u32]) {
        if family.len() < FEW_FUNCTIONS {
            return;
        }
        let (head, base) = (self.samples_by_stratum(&self.head), self.samples_by_stratum(&self.base));
        let total = |&f: &u32| {
            self.shares
                .iter()
                .zip(head.iter().zip(&base))
                .map(|(share, (n1, n0))| share[index_of(f)] * (n1 + n0))
                .sum::<f64>()
        };
        let mut best: Vec<(f64, u32)> = family.iter().map(|f| (total(f), *f)).collect();
        best.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        best.truncate(NORMALIZATION_FUNCTIONS);
        let mut best: Vec<u32> = best.into_iter().map(|(_, f)| f).collect();
        best.sort_unstable();
        let spread = Spread::of_logs(self, &best);
        let mut theta = vec![Vec::with_capacity(best.len()); self.head.len() + self.base.len()];
        let mut variance = theta.clone();
        for (i, column) in self.columns(&best).enumerate() {
            let centre = spread.centre(i, self, &column.base.log_ratios(), &column.base);
            let logs = column.head.log_ratios().into_iter().chain(column.base.log_ratios());
            let expected = column.head.expected.iter().chain(&column.base.expected);
            for (p, ((log, expected), pod)) in logs.zip(expected).zip(self.head.iter().chain(&self.base)).enumerate() {
                theta[p].push(log - centre.mean[pod.group]);
                variance[p].push(1.0 / expected + spread.tau2[i]);
            }
        }
        for (pod, (theta, variance)) in self.head.iter_mut().chain(&mut self.base).zip(theta.iter().zip(&variance)) {
            pod.normalization = biweight(theta, variance);
        }
    }
}
