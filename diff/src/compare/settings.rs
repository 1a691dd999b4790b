//! The settings of a comparison.

/// The method that decides which functions are significant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Runs as replicates, a robust normalization factor, false discovery controlled.
    #[default]
    Honest,
    /// p of G on merged counts below 1e-4: for comparison, not calibrated.
    Article,
}

/// The settings of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The method that decides which functions are significant.
    pub method: Method,
    /// False-discovery rate of each family.
    pub q: f64,
    /// Minimum effect: a change must be larger to be significant, as a log ratio.
    pub min_effect: f64,
    /// Smallest count of both sides together that is tested.
    pub min_count: u64,
    /// Between single runs, by how much functions differ beyond independent samples: a standard deviation of log
    /// ratios. None: it is learned from the functions.
    pub background: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { method: Method::Honest, q: 0.05, min_effect: 0.01, min_count: 30, background: None }
    }
}
