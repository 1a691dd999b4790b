//! The numbers that this process gives to functions and call paths. Nothing that leaves a cell depends on them.

/// A function, as numbered by this process.
pub type FunctionId = u32;

/// A call path, as numbered by this process; 0 is the empty one.
pub(crate) type PathId = u32;

/// The path of a sample without frames.
pub(crate) const EMPTY: PathId = 0;
