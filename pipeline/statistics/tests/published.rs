//! The statistics against vectors of outside programs, and the laws that hold for any input.
//!
//! Vectors, their origin and their tolerances: `testdata/README.md`. Every test says on stderr how many numbers it
//! compared and how far the worst was off, and fails if it compared none.

#[path = "published/always_valid.rs"]
mod always_valid;
#[path = "published/cell_laws.rs"]
mod cell_laws;
#[path = "published/cells.rs"]
mod cells;
#[path = "published/combine.rs"]
mod combine;
#[path = "published/exact.rs"]
mod exact;
#[path = "published/families.rs"]
mod families;
#[path = "published/laws.rs"]
mod laws;
#[path = "published/levels.rs"]
mod levels;
#[path = "published/minority.rs"]
mod minority;
#[path = "published/normalization.rs"]
mod normalization;
#[path = "published/numbers.rs"]
mod numbers;
#[path = "published/outliers.rs"]
mod outliers;
#[path = "published/plain.rs"]
mod plain;
#[path = "published/scaling.rs"]
mod scaling;
#[path = "published/vectors.rs"]
mod vectors;
#[path = "published/verdict.rs"]
mod verdict;
