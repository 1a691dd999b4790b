//! The answer of a comparison: one sentence and one order of findings, whatever format shows them.
//!
//! A *culprit* is a function whose own samples differ. What calls it differs too, by total samples: such a caller is
//! explained by the culprit below it ([`explain`]) and never stands above it.

mod callers;
mod headline;
mod nested;
mod reach;
mod rows;

pub use self::callers::explain;
pub use self::headline::headline;
pub use self::reach::reach;
pub use self::rows::one_by_function;
