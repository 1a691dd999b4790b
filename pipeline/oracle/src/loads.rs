//! How much more the pods of one arm serve than those of the other: line 8 of section 7 of `docs/semantics.md`.

/// How the loads of the arms of a cell differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loads {
    /// Requests per second of a pod, the mean over pods: head, base.
    pub means: [f64; 2],
    /// Variance of ln of their ratio.
    pub variance: f64,
}

impl Loads {
    /// ln of their ratio.
    pub fn ln_ratio(&self) -> f64 {
        (self.means[0] / self.means[1]).ln()
    }

    /// Whether a change is not shown, at 3.719 standard errors, to be larger than their ratio.
    pub fn may_have_made(&self, theta: f64, variance: f64) -> bool {
        theta.abs() - self.ln_ratio().abs() <= 3.719_016 * (variance + self.variance).sqrt()
    }
}
