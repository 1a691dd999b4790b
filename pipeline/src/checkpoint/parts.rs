//! Parts of states, as bytes.

use bytes::Bytes;
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::time::Hop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// To which worker a part belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Place {
    /// To all.
    Everywhere,
    /// To the one to which this number is routed.
    Of(u64),
}

/// A part of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Part {
    kind: String,
    place: Place,
    bytes: Bytes,
}

impl Part {
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Takes the parts of a state on one worker.
pub struct Saving {
    boundary: Hop,
    worker: usize,
    parts: Vec<Part>,
    is_refused: bool,
}

impl Saving {
    pub(super) fn new(boundary: Hop, worker: usize) -> Self {
        Self { boundary, worker, parts: Vec::new(), is_refused: false }
    }

    /// The first hop that is not in the checkpoint.
    pub fn boundary(&self) -> Hop {
        self.boundary
    }

    /// A part that belongs to the worker to which this number is routed.
    pub fn routed(&mut self, kind: &'static str, route: u64, part: &impl Serialize) {
        self.put(kind, Place::Of(route), part);
    }

    /// A part that all workers have, equal on each.
    pub fn everywhere(&mut self, kind: &'static str, part: &impl Serialize) {
        if self.worker == 0 {
            self.put(kind, Place::Everywhere, part);
        }
    }

    /// A part that only this worker has, and that whoever needs it shall have.
    pub fn shared(&mut self, kind: &'static str, part: &impl Serialize) {
        self.put(kind, Place::Everywhere, part);
    }

    fn put(&mut self, kind: &'static str, place: Place, part: &impl Serialize) {
        self.parts.push(Part { kind: kind.to_owned(), place, bytes: bytes_of(part).into() });
    }

    /// No run could go on from this state: there is no checkpoint here.
    pub fn refuse(&mut self) {
        self.is_refused = true;
    }

    pub(super) fn into_parts(self) -> Option<Vec<Part>> {
        (!self.is_refused).then_some(self.parts)
    }
}

/// Gives the parts of a state that belong to one worker.
pub struct Loading<'a> {
    pub(super) name: &'static str,
    pub(super) hop: Hop,
    pub(super) parts: &'a [Part],
    pub(super) worker: usize,
    pub(super) workers: usize,
}

impl Loading<'_> {
    /// The first hop that is not in the checkpoint.
    pub fn hop(&self) -> Hop {
        self.hop
    }

    /// The parts of a kind, in a fixed order.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn all<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<T>, Unreadable> {
        let workers = u64::try_from(self.workers.max(1)).unwrap_or(1);
        let is_own = |place: Place| match place {
            Place::Everywhere => true,
            // NB: as timely routes.
            Place::Of(route) => index_of_route(route % workers) == self.worker,
        };
        let own = self.parts.iter().filter(|part| part.kind == kind && is_own(part.place));
        own.map(|part| self.read(part)).collect()
    }

    /// What a part of a kind says cannot be.
    pub fn unreadable(&self, kind: &str, detail: String) -> Unreadable {
        Unreadable { state: self.state(kind), detail }
    }

    /// How messages name the parts of a kind.
    fn state(&self, kind: &str) -> String {
        format!("{}, {kind}", self.name)
    }

    fn read<T: DeserializeOwned>(&self, part: &Part) -> Result<T, Unreadable> {
        read(&self.state(&part.kind), &part.bytes)
    }
}

/// A part whose bytes are not copied from those in which it was found.
#[derive(Deserialize)]
pub(super) struct Found<'a> {
    kind: &'a str,
    place: Place,
    #[serde(with = "serde_bytes")]
    bytes: &'a [u8],
}

impl Found<'_> {
    pub(super) fn within(self, whole: &Bytes) -> Part {
        Part { kind: self.kind.to_owned(), place: self.place, bytes: whole.slice_ref(self.bytes) }
    }
}

pub(super) fn bytes_of(part: &impl Serialize) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "it fails only for types that do not say their lengths, of which no state has any"
    )]
    let mut bytes = postcard::to_stdvec(part).expect("a state has only types that postcard can write");
    // NB: it has grown by doubling, and states are as large as all that the run holds.
    bytes.shrink_to_fit();
    bytes
}

pub(super) fn read<'a, T: Deserialize<'a>>(state: &str, bytes: &'a [u8]) -> Result<T, Unreadable> {
    let unreadable = |detail: String| Unreadable { state: state.to_owned(), detail };
    let (read, rest) = postcard::take_from_bytes(bytes).map_err(|error| unreadable(error.to_string()))?;
    if rest.is_empty() { Ok(read) } else { Err(unreadable(format!("{} bytes too many", rest.len()))) }
}

fn index_of_route(route: u64) -> usize {
    u32::try_from(route).map_or(usize::MAX, index_of)
}

/// A checkpoint cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{state}: {detail}")]
pub struct Unreadable {
    /// Of which state, and what of it.
    pub state: String,
    /// What is wrong.
    pub detail: String,
}
