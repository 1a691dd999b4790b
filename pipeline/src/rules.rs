//! Decisions as pure state machines: no clock, no thread, no engine. Operators feed them, tests drive them directly.

pub mod aa_check;
pub mod admission;
pub mod article;
pub mod causes;
pub mod comparisons;
pub mod cumulative;
pub mod decisions;
pub mod extent;
pub mod lifecycle;
pub mod method;
pub mod naive;
pub mod outlook;
pub mod pods;
pub mod requests;
pub mod summary;
pub mod table;
pub mod verdict;
pub mod watermarks;
