//! What enters the dataflow, and how it is counted for the ledger.

use fleetdiff_schemas::rows::{ClockRow, RejectedRow};
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::vec::Map;

use super::ledger::Term;
use super::split::{OneOfTwo, Split, To};
use crate::rules::admission::OfPod;

/// What a reader takes from its source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arrived {
    /// The hop under which it is booked.
    pub hop: Hop,
    /// What it is.
    pub content: Content,
}

/// The content of a record: a message about a pod, or what is said of a record beside that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Content {
    /// A message about a pod, at its application hop.
    OfPod(OfPod),
    /// What is said beside that.
    Remark(Remark),
}

/// What is said of a record beside the messages that it holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Remark {
    /// A row.
    Row(RowOfRecord),
    /// A profile of it is applied at this hop, which another shard counts.
    AppliedElsewhere,
}

/// A row that follows from one record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RowOfRecord {
    /// A refused part, and why.
    Rejected(Box<RejectedRow>),
    /// The clock of its sender is wrong.
    Clock(Box<ClockRow>),
}

impl OneOfTwo for Remark {
    type First = RowOfRecord;
    type Second = AppliedElsewhere;

    fn destination(self) -> To<RowOfRecord, AppliedElsewhere> {
        match self {
            Self::Row(row) => To::First(row),
            Self::AppliedElsewhere => To::Second(AppliedElsewhere),
        }
    }
}

/// A profile that another shard counts is applied at this hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AppliedElsewhere;

impl OneOfTwo for RowOfRecord {
    type First = Box<RejectedRow>;
    type Second = Box<ClockRow>;

    fn destination(self) -> To<Box<RejectedRow>, Box<ClockRow>> {
        match self {
            Self::Rejected(row) => To::First(row),
            Self::Clock(row) => To::Second(row),
        }
    }
}

impl OneOfTwo for Content {
    type First = OfPod;
    type Second = Remark;

    fn destination(self) -> To<OfPod, Remark> {
        match self {
            Self::OfPod(news) => To::First(news),
            Self::Remark(remark) => To::Second(remark),
        }
    }
}

impl Arrived {
    /// What the ledger counts: profiles and refused parts.
    fn term(&self) -> Option<Term> {
        match &self.content {
            Content::OfPod(OfPod::Profile(profile)) => Some(Term::received(self.hop, profile)),
            Content::OfPod(OfPod::Requests(_) | OfPod::Seen(_)) => None,
            Content::Remark(Remark::Row(RowOfRecord::Rejected(row))) => Some(Term::rejected(self.hop, row)),
            Content::Remark(Remark::Row(RowOfRecord::Clock(_)) | Remark::AppliedElsewhere) => None,
        }
    }
}

/// An arrival in two parts.
#[derive(Clone)]
enum Booked {
    Content(Content),
    Received(Term),
}

impl OneOfTwo for Booked {
    type First = Content;
    type Second = Term;

    fn destination(self) -> To<Content, Term> {
        match self {
            Self::Content(content) => To::First(content),
            Self::Received(term) => To::Second(term),
        }
    }
}

/// See [`CountIn::count_in`].
pub trait CountIn<'scope> {
    /// The arrivals, and their entries in the ledger.
    fn count_in(self) -> (StreamVec<'scope, u64, Content>, StreamVec<'scope, u64, Term>);
}

impl<'scope> CountIn<'scope> for StreamVec<'scope, u64, Arrived> {
    fn count_in(self) -> (StreamVec<'scope, u64, Content>, StreamVec<'scope, u64, Term>) {
        let booked = |arrived: Arrived| {
            arrived.term().map(Booked::Received).into_iter().chain([Booked::Content(arrived.content)])
        };
        self.flat_map(booked).split()
    }
}
