//! What enters the dataflow, and how it is counted for the ledger.

use fleetdiff_schemas::rows::RejectedRow;
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

/// The content of a record: a message about a pod, or a part that was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Content {
    /// A message about a pod, at its application hop.
    OfPod(OfPod),
    /// A refused part, and why.
    Rejected(Box<RejectedRow>),
}

impl OneOfTwo for Content {
    type First = OfPod;
    type Second = Box<RejectedRow>;

    fn destination(self) -> To<OfPod, Box<RejectedRow>> {
        match self {
            Self::OfPod(news) => To::First(news),
            Self::Rejected(row) => To::Second(row),
        }
    }
}

impl Arrived {
    /// What the ledger counts: profiles and refused parts.
    fn term(&self) -> Option<Term> {
        match &self.content {
            Content::OfPod(OfPod::Profile(profile)) => Some(Term::received(self.hop, profile)),
            Content::OfPod(OfPod::Requests(_) | OfPod::Seen(_)) => None,
            Content::Rejected(row) => Some(Term::rejected(self.hop, row)),
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
