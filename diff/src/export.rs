//! Results for other programs: tables, a comment, stacks of both sides.
//!
//! Two kinds of writers, each a file and a pure function. [`json`], [`csv`], [`parquet`] and [`markdown`] write
//! findings, all from one list of [`columns`], so that they cannot disagree. [`difffolded`], [`speedscope`] and
//! [`pprof`] write the stacks of each side, with equal stacks of all its runs summed, not averaged. Equal contents give
//! equal bytes.

pub mod columns;
pub mod csv;
pub mod difffolded;
pub mod json;
pub mod markdown;
pub mod parquet;
pub mod pprof;
pub mod speedscope;

use fleetdiff_schemas::profile::CountKind;

use crate::compare::{Compared, Settings};
use crate::sides::Sides;
use crate::stacks::NoStacks;

/// Findings, and the notes that go with them.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// What was found.
    pub compared: &'a Compared,
    /// The settings that decided.
    pub settings: &'a Settings,
    /// The names of each side's runs.
    pub labels: Sides<Vec<&'a str>>,
    /// The result in a sentence.
    pub headline: &'a str,
    /// Which counts are in the table of a comment.
    pub count_kind: CountKind,
    /// What is known about the variation between runs, in a sentence without its full stop.
    pub spread: &'a str,
}

/// Why something cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum NotExported {
    /// A figure is NaN: a calculation went wrong before, since unknown figures are null and never NaN.
    #[error("{column} of {function} is not a number")]
    NotANumber {
        /// The column.
        column: &'static str,
        /// The function.
        function: String,
    },
    /// A run whose samples came folded by function.
    #[error("{0} holds counts by function and no stacks")]
    NoStacks(String),
    /// A sum that is too large for pprof.
    #[error("{value} is more than a pprof file can hold (2^63 - 1)")]
    TooLarge {
        /// The sum.
        value: u64,
    },
    /// JSON could not be written.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// CSV could not be written.
    #[error("cannot be written as CSV: {0}")]
    Csv(#[from] ::csv::Error),
    /// Parquet could not be written.
    #[error("cannot be written as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

impl From<NoStacks> for NotExported {
    fn from(NoStacks(label): NoStacks) -> Self {
        Self::NoStacks(label)
    }
}

impl NotExported {
    /// The stable name of this kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotANumber { .. } => "not_a_number",
            Self::NoStacks(_) => "no_stacks",
            Self::TooLarge { .. } => "too_large",
            Self::Json(_) => "json",
            Self::Csv(_) => "csv",
            Self::Parquet(_) => "parquet",
        }
    }
}
