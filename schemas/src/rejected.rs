//! Bad input: never fatal, never silent.

use serde::{Deserialize, Serialize};

/// Why a record, or a part of one, was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It ends before it should.
    Truncated,
    /// It is not in the format that it claims.
    Malformed,
    /// Its format has a version that this program does not read.
    UnsupportedVersion,
    /// It does not say which pod it is from.
    MissingIdentity,
    /// It holds a count below zero.
    NegativeValue,
    /// It has no samples.
    Empty,
    /// Its event time is later than the moment at which it was sent.
    FromFuture,
    /// Its event time lies long before that of everything else.
    FromPast,
    /// The manifest names a file that does not exist.
    MissingFile,
    /// It is larger than the limit.
    TooLarge,
    /// Profiles of its type or temporality cannot be counted.
    UnsupportedType,
    /// It refers to an entry beyond the end of a table.
    IndexOutOfRange,
    /// Its unit does not fit its type.
    UnitMismatch,
    /// Its values are times, and nobody knows how long it is from one sample to the next.
    UnknownPeriod,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 14] = [
        Self::Truncated,
        Self::Malformed,
        Self::UnsupportedVersion,
        Self::MissingIdentity,
        Self::NegativeValue,
        Self::Empty,
        Self::FromFuture,
        Self::FromPast,
        Self::MissingFile,
        Self::TooLarge,
        Self::UnsupportedType,
        Self::IndexOutOfRange,
        Self::UnitMismatch,
        Self::UnknownPeriod,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::UnsupportedVersion => "unsupported_version",
            Self::MissingIdentity => "missing_identity",
            Self::NegativeValue => "negative_value",
            Self::Empty => "empty",
            Self::FromFuture => "from_future",
            Self::FromPast => "from_past",
            Self::MissingFile => "missing_file",
            Self::TooLarge => "too_large",
            Self::UnsupportedType => "unsupported_type",
            Self::IndexOutOfRange => "index_out_of_range",
            Self::UnitMismatch => "unit_mismatch",
            Self::UnknownPeriod => "unknown_period",
        }
    }
}

/// One thing that was not counted, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rejection {
    /// The kind of fault.
    pub reason: Reason,
    /// What was found and what was expected, in words.
    pub detail: String,
    /// Name of the profile type, if it could be determined; otherwise the ledger shows `_unknown`.
    pub profile_type: Option<crate::profile::kinds::ProfileType>,
    /// Raw samples that are lost with it, if they could be counted.
    pub samples: u64,
    /// Event time of the rejected part, if known.
    pub at: Option<crate::time::Nanos>,
}

impl Rejection {
    /// A rejection of a part whose type and samples are not known.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), profile_type: None, samples: 0, at: None }
    }
}
