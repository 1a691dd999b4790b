//! Why a profile cannot be written.

/// A profile that cannot be written in a format of stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unencodable {
    /// Its stacks were folded away.
    #[error("the profile holds counts by function, but this format holds stacks")]
    Folded,
    /// A frame or a count that the format has no place for.
    #[error("a stack refers to a name beyond the table, or its count exceeds 2^63 - 1")]
    OutOfRange,
    /// Folded stacks have no place for it: a frame with `;` or a line end, a root with `#`, a cohort of its own.
    #[error("folded stacks cannot hold {0:?}; pprof can")]
    Text(String),
}
