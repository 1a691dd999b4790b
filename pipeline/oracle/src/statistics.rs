//! The statistics of the oracle: a plain port of the reference programs (`reference.py` and, for outlying pods,
//! `reference_outliers.py` in `pipeline/statistics/testdata`), nested loops over arrays, checked against the test
//! vectors that those programs wrote.
//!
//! Probabilities are logarithms throughout. Of two arms the head is number 0 and the base number 1. Nothing here is
//! shared with the statistics that it checks.
//!
//! A cell goes from counts ([`levels`], with the weights of pods in `geometry`, the variance between pods in `spread`
//! and clumps in time in [`fano`]) over moderation ([`priors`]) to p at any ratio ([`deviance`]), to the ratio at which
//! nothing changed ([`normalization`]) and to rows ([`rows`]). Rows of many cells meet in [`families`].
//! [`always_valid`] is for looks at any time, [`power`] for changes that are not seen yet.

pub mod always_valid;
pub mod deviance;
pub mod families;
pub mod fano;
pub mod g;
pub mod geometry;
pub mod hidden;
pub mod levels;
pub mod normalization;
mod one_pod;
pub mod outliers;
pub mod pod_levels;
pub mod power;
pub mod priors;
pub mod rare;
pub mod rows;
pub mod scaling;
mod spread;
pub mod tails;

/// Below this many tested functions nothing is moderated and the normalization factor is 1.
pub const ENOUGH_FUNCTIONS: usize = 20;
