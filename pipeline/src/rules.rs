//! Decisions as pure state machines: no clock, no thread, no engine. Operators feed them, tests drive them directly.

pub(crate) mod aa_check;
pub(crate) mod admission;
pub mod advice;
pub mod article;
pub(crate) mod causes;
pub(crate) mod comparisons;
pub(crate) mod cumulative;
pub mod decisions;
pub mod extent;
pub mod heap;
pub(crate) mod incidents;
pub(crate) mod lifecycle;
pub(crate) mod live_family;
pub(crate) mod method;
pub(crate) mod naive;
pub(crate) mod outlook;
pub(crate) mod pods;
pub mod requests;
pub mod rings;
pub(crate) mod roll_out;
pub mod scaling;
pub(crate) mod summary;
pub(crate) mod table;
pub mod verdict;
pub mod waiting;
pub(crate) mod watermarks;
