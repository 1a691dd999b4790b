//! Two profiles on a laptop: what is compared, and the pictures of it.
//!
//! [`compare`] says which differences are significant, [`answer`] says so in a sentence and an order, [`columns`] computes plain ones. [`flame`] merges the stacks of both sides into one
//! call tree. [`page`] shows that tree as a differential flame graph beside what the tests say of each function, [`svg`] draws it
//! once for documents; both take their colours from [`paint`]. [`export`] writes the same for other programs.

pub mod answer;
pub mod columns;
pub mod compare;
pub mod escape;
pub mod export;
pub mod figures;
pub mod flame;
pub mod page;
pub mod paint;
pub mod pairs;
mod report;
pub mod shorten;
mod sides;
mod stacks;
pub mod svg;
