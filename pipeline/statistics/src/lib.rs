//! The statistics that decide a flag: pure functions, no input or output, no clock, no randomness.
//!
//! The idea in four sentences. Samples of one pod are not independent, so the pod is the replicate, and how much pods differ is
//! measured over hashed buckets of pods. The log-likelihood ratio G of two shares is divided by that dispersion, which is
//! moderated over all functions of a cell, and becomes an F test. Shares sum to one, so what decides is the ratio against a
//! robust scale of the cell. Many rows are tested, so false discovery is controlled on two levels once per window, and by
//! e-values at every look.
//!
//! | question | file |
//! |---|---|
//! | What is compared with what? | [`strata`], [`contrast`] |
//! | How much do pods differ? | [`dispersion`], [`moments`] |
//! | Is the change more than that? | [`g`], [`mod@test`], [`tails`], [`minimum_effect`] |
//! | How large is it, and against what? | [`effect`], [`normalization`] |
//! | Which of many rows may be called? | [`families`], [`evalue`] |
//! | What is done at a report, and what every ten seconds? | [`rows`], [`live`] |
//! | What is kept of strata that never change? | [`moments::closed`] |
//! | What moved only because shares sum to one? | [`compositional`] |
//! | What could have been seen? | [`power`], [`mod@support`] |
//! | What may be said at any look? | [`evalue`], [`always_valid`] |
//! | Does a request cost more? | [`requests`] |
//! | What of functions with a handful of samples? | [`rare`], [`exact`] |
//! | Do only some pods differ? | [`outliers`], [`combine`], [`chi_square`] |
//! | What do the textbooks say of independent samples? | [`g`], [`intervals`], [`exact`] |
//!
//! Prior art: quasi-likelihood F tests with moderated dispersion (Lund 2012; Smyth 2004; edgeR `glmQLFTest`), TREAT (McCarthy &
//! Smyth 2009), clustered Cochran-Mantel-Haenszel (Zhang & Boos 1997), Benjamini & Bogomolov 2014, e-BH (Wang & Ramdas 2022).
//! Every function is held against vectors of an outside program in `tests/published.rs`.
//!
//! "Not tested" is NaN in every vector of ln p; NaN is in no family. All floats are computed in a fixed order with `libm`.

pub mod always_valid;
pub mod chi_square;
pub mod combine;
pub mod compositional;
pub mod contrast;
pub mod dispersion;
pub mod effect;
pub mod evalue;
pub mod exact;
pub mod families;
pub mod g;
pub mod intervals;
pub mod live;
pub mod minimum_effect;
pub mod moments;
pub mod normalization;
mod number;
pub mod outliers;
pub mod power;
pub mod rare;
pub mod requests;
pub mod rows;
pub mod special;
pub mod strata;
pub mod support;
pub mod tails;
pub mod test;
mod thresholds;

pub use contrast::Contrast;
pub use live::{LiveRow, LiveRows};
pub use moments::Moments;
pub use rows::{CellRows, rows_of_cell};
pub use strata::{Arm, BucketCounts, BucketRow, Model, Stratum};
pub use support::{Support, support};
pub use test::Test;
pub use thresholds::{FEW_FUNCTIONS, FEW_PODS, MIN_COUNT, MIN_EFFECT};
