//! Why a fleet cannot be built.

/// Why a fleet cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FleetError {
    /// An effect names a function in which no sample is taken.
    #[error("function {function:?} is not one in which this fleet takes samples")]
    UnknownFunction {
        /// The name given.
        function: String,
    },
    /// A cell is named that the fleet does not have.
    #[error("no cell of this fleet is {cell}")]
    UnknownCell {
        /// The pattern given.
        cell: String,
    },
    /// A number is outside its range.
    #[error("{property} is {value}, expected {range}")]
    OutOfRange {
        /// The method of [`FleetBuilder`](super::FleetBuilder).
        property: &'static str,
        /// The number given.
        value: f64,
        /// The possible range.
        range: &'static str,
    },
    /// There is none where at least one is needed.
    #[error("{property} leaves the fleet empty")]
    Empty {
        /// The method of [`FleetBuilder`](super::FleetBuilder).
        property: &'static str,
    },
}

impl FleetError {
    /// The stable name of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFunction { .. } => "unknown_function",
            Self::UnknownCell { .. } => "unknown_cell",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Empty { .. } => "empty",
        }
    }
}
