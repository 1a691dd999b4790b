//! The statistics that decide a flag: pure functions, no input or output, no clock, no randomness.
//!
//! The idea in five sentences. Samples of one pod are not independent, so the pod is the replicate, pods are weighted by what they
//! tell, and each arm has a variance of its own, measured over hashed buckets of pods. The variance of one function is drawn towards
//! what the functions of its cell expect, unless it is restless. The test is a quasi-likelihood ratio with a variance A p + B p^2,
//! which is Poisson's for small counts and Welch's t for large pods, and its interval is the test read backwards. Shares sum to one,
//! so what decides is the ratio against a robust scale of the cell. Many rows are tested, so false discovery is controlled on two
//! levels once per window, and by e-values at every look.
//!
//! | question | file |
//! |---|---|
//! | What is compared with what? | [`arms`], [`strata`], [`contrast`] |
//! | How much does a pod count, and how much do pods differ? | `geometry`, `spread`, `variance` |
//! | What do functions expect of each other? | [`priors`], `moderation` |
//! | What may be older than the look? | [`pooled`] |
//! | Do samples come in bursts? | [`mod@fano`] |
//! | Is the change more than that? | [`mod@test`], [`deviance`], [`minimum_effect`], [`tails`] |
//! | How large is it, and against what? | [`interval`], [`effect`], [`normalization`] |
//! | Did one pod make it? | [`mod@one_pod`] |
//! | Which of many rows may be flagged? | [`families`], [`evalue`] |
//! | What is done at a report, and what every ten seconds? | [`rows`], [`live`] |
//! | What moved only because shares sum to one? | [`compositional`] |
//! | When is a flag cleared? | [`faded`] |
//! | What could have been seen? | [`power`], [`mod@support`] |
//! | What may be said at any look? | [`evalue`], [`always_valid`] |
//! | Does a request cost more? | [`requests`] |
//! | Does it cost more under load? | [`scaling`] |
//! | Do bytes differ, or how fast they grow? | [`pod_levels`] |
//! | What of functions with a handful of samples? | [`rare`], [`exact`] |
//! | Do only some pods differ? | [`outliers`], [`combine`], [`chi_square`] |
//! | Do the arms differ in something else? | [`self_check`], [`hidden_factor`] |
//! | What do the textbooks say of independent samples? | [`g`], [`intervals`], [`exact`] |
//!
//! Prior art: random-effects weights (DerSimonian & Laird 1986), cluster-robust variance with leverage correction and Satterthwaite
//! degrees of freedom (Bell & McCaffrey 2002), Welch (1947), moderated dispersion (Smyth 2004; limma, edgeR `glmQLFTest`), clustered
//! Mantel-Haenszel (Zhang & Boos 1997), quasi-likelihood ratio (Lund 2012), TREAT (McCarthy & Smyth 2009), weighted BH (Genovese,
//! Roeder & Wasserman 2006), Benjamini & Bogomolov 2014, e-BH (Wang & Ramdas 2022). Every function is held against vectors of an
//! outside program in `tests/published.rs`.
//!
//! What a look takes from all functions of a cell together is a value, [`Pooled`] and [`Scales`], which may be older than the look:
//! rows are tested at each look, what they share is measured when it can have changed.
//!
//! "Not tested" is NaN in every vector of ln p; NaN is in no family. All floats are computed in a fixed order with `libm`.

pub mod always_valid;
pub mod arms;
pub mod chi_square;
pub mod combine;
pub mod compositional;
pub mod contrast;
pub mod deviance;
pub mod effect;
pub mod evalue;
pub mod exact;
pub mod faded;
pub mod families;
pub mod fano;
pub mod g;
mod geometry;
pub mod hidden_factor;
pub mod interval;
pub mod intervals;
mod layout;
pub mod live;
pub mod median;
pub mod minimum_effect;
mod moderation;
pub mod normalization;
mod number;
pub mod one_pod;
pub mod outliers;
pub mod pod_levels;
pub mod pooled;
pub mod power;
pub mod priors;
pub mod rare;
pub mod requests;
pub mod rows;
pub mod scaling;
mod screen;
pub mod self_check;
pub mod special;
mod spread;
pub mod strata;
pub mod support;
pub mod tails;
pub mod test;
mod thresholds;
mod variance;

pub use arms::{Arms, Side};
pub use contrast::{Contrast, Untested};
pub use deviance::Levels;
pub use normalization::Scales;
pub use pooled::Pooled;
pub use rows::{CellRows, rows_of_cell};
pub use strata::{Arm, BucketCounts, BucketRow, Model, Stratum};
pub use support::{Support, support};
pub use test::{Hops, Measure, Tests};
pub use thresholds::{FEW_FUNCTIONS, MIN_COUNT, MIN_EFFECT, is_whole_profile};
