//! What a run must keep to go on after its end as if it had never ended.
//!
//! A checkpoint is a cut between two hops. An operator saves its state when everything before the boundary is closed and nothing
//! after it has been touched, whenever that is on its worker; since rows of a hop depend only on what was closed before it, these
//! states belong together although no worker waits for another. Sources save, by partition, from where they must be read again so
//! that nothing that is applied from the boundary on is missed.
//!
//! States are saved in parts, each of a pod, cell, service or comparison, with the number by which it is routed. So a run may go on
//! with any number of workers.

mod collected;
mod image;
mod parts;

pub use self::image::Image;
pub use self::parts::{Loading, Saving, Unreadable};

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};

use self::collected::{Collected, States};
use crate::counts::functions::FunctionTable;
use crate::run::readers::Readers;

/// The states of another process, as if they were one.
const OF_ANOTHER: &str = "";

/// What is kept from hop to hop, on one worker.
pub trait State {
    /// Its name in a checkpoint.
    const NAME: &'static str;

    /// Saves it.
    fn save(&self, to: &mut Saving);

    /// Takes what was saved of it by all workers, as far as it belongs to this one.
    ///
    /// # Errors
    /// If something of it cannot be read.
    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable>;
}

/// Everything that a run needs to go on from one hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Everything before this hop is closed, and nothing else.
    pub hop: Hop,
    /// By name of the state.
    states: States,
    /// The names and call paths to whose numbers states refer.
    names: Image,
}

/// A checkpoint within the bytes in which it was found.
#[derive(Deserialize)]
struct Found<'a> {
    hop: Hop,
    #[serde(borrow)]
    states: BTreeMap<String, Vec<parts::Found<'a>>>,
    names: Image,
}

impl Checkpoint {
    /// The layout of states. It grows with every change of what is kept, so that nothing is read as something else.
    pub const FORMAT: u32 = 5;

    /// Writes its bytes.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_to(&self, to: impl Write) -> std::io::Result<()> {
        postcard::to_io(self, to).map(drop).map_err(std::io::Error::other)
    }

    /// From the bytes of a checkpoint of the same [format](Self::FORMAT).
    ///
    /// # Errors
    /// If they are others.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, Unreadable> {
        let whole = bytes.into();
        let Found { hop, states, names } = parts::read("checkpoint", &whole)?;
        let within = |parts: Vec<parts::Found<'_>>| parts.into_iter().map(|part| part.within(&whole)).collect();
        Ok(Self { hop, states: states.into_iter().map(|(name, parts)| (name, within(parts))).collect(), names })
    }

    /// The names of the states that it has.
    pub fn states(&self) -> impl Iterator<Item = &str> {
        self.states.keys().map(String::as_str)
    }

    /// The bytes of each kind of part of each state, and of the names and call paths.
    pub fn sizes(&self) -> BTreeMap<String, usize> {
        let mut sizes = BTreeMap::from([("names".to_owned(), self.names.size())]);
        for (state, parts) in &self.states {
            for part in parts {
                *sizes.entry(format!("{state}, {}", part.kind())).or_default() += part.size();
            }
        }
        sizes
    }

    /// The same with one state as at the beginning, to see what depends on it.
    #[must_use]
    pub fn without(mut self, state: &str) -> Self {
        self.states.remove(state);
        self
    }

    /// The same without names and call paths, for a process that asks another one for them.
    #[must_use]
    pub(crate) fn without_names(&self) -> Self {
        Self { hop: self.hop, states: self.states.clone(), names: Image::default() }
    }

    /// The offset of each partition of a source from which it must be read again.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn offsets(&self, source: &str) -> Result<BTreeMap<i32, i64>, Unreadable> {
        let parts = self.states.get(Readers::NAME).map_or(&[][..], Vec::as_slice);
        let loading = Loading { name: Readers::NAME, hop: self.hop, parts, worker: 0, workers: 1 };
        Readers::offsets(&loading, source)
    }
}

/// Where checkpoints go.
pub trait Keep: Send {
    /// Whether a checkpoint is wanted at this boundary. Asked before event time passes it; one that is not wanted costs nothing.
    fn is_ready(&self, _: Hop) -> bool {
        true
    }

    /// Takes a checkpoint.
    fn keep(&mut self, checkpoint: Checkpoint);

    /// There is none at this boundary, although one was wanted.
    fn refused(&mut self, _: Hop) {}
}

/// The checkpoints of a run: how often they are taken, where they go, and with which one it began. Shared by all workers.
#[derive(Clone, Default)]
pub struct Checkpoints {
    begun_with: Option<Arc<Begun>>,
    taken: Option<Arc<Taken>>,
}

/// The checkpoint with which a run begins.
struct Begun {
    hop: Hop,
    /// Nothing once all workers have taken what belongs to them: it is as large as all that the run holds.
    checkpoint: RwLock<Option<Checkpoint>>,
    /// Workers that have.
    loaded: AtomicUsize,
}

/// How checkpoints are taken.
struct Taken {
    /// Hops between two boundaries.
    every: u64,
    collected: Mutex<Collected>,
}

impl Checkpoints {
    /// Takes a checkpoint at every hop whose number is a multiple of `every`, as far as time stops there.
    #[must_use]
    pub fn taken(self, every: u64, keep: Box<dyn Keep>) -> Self {
        let collected = Collected::new(keep);
        Self { taken: Some(Arc::new(Taken { every: every.max(1), collected: Mutex::new(collected) })), ..self }
    }

    /// Begins with a checkpoint.
    #[must_use]
    pub fn begun_with(self, checkpoint: Checkpoint) -> Self {
        let hop = checkpoint.hop;
        let begun = Begun { hop, checkpoint: RwLock::new(Some(checkpoint)), loaded: AtomicUsize::new(0) };
        Self { begun_with: Some(Arc::new(begun)), ..self }
    }

    /// The first hop that is not in the checkpoint with which the run began.
    pub fn begun_from(&self) -> Option<Hop> {
        self.begun_with.as_ref().map(|begun| begun.hop)
    }

    /// Of a run in so many processes, of which this is the first: each of the others gives its states with [`Self::take_from`].
    #[must_use]
    pub(crate) fn awaiting(self, others: usize) -> Self {
        if let Some(taken) = &self.taken {
            taken.lock().others = others;
        }
        self
    }

    /// A worker of this process, which has so many, has all its states.
    pub fn loaded(&self, workers: usize) {
        if let Some(begun) = &self.begun_with
            && begun.loaded.fetch_add(1, Ordering::AcqRel) + 1 >= workers
        {
            *begun.checkpoint.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Hops between two checkpoints, if they are taken.
    pub fn every(&self) -> Option<u64> {
        self.taken.as_ref().map(|taken| taken.every)
    }

    /// The names and call paths with which the run begins.
    ///
    /// # Errors
    /// If they contradict themselves.
    pub fn table(&self) -> Result<FunctionTable, Unreadable> {
        let held = self.begun_with.as_ref().map(|begun| begun.read());
        let image = held.as_ref().and_then(|held| held.as_ref()).map(|checkpoint| &checkpoint.names);
        image.map_or_else(|| Ok(FunctionTable::default()), Image::table)
    }

    /// Hops before `hop` are about to be closed, and those before `before` may be closed already. Gives the boundary at which there will be a
    /// checkpoint, if one is passed now and another is wanted. Asked in one place of a run, which says it to all workers before it lets
    /// anything close.
    pub(crate) fn decide(&self, before: Hop, hop: Hop) -> Option<Hop> {
        let taken = self.taken.as_ref()?;
        let boundary = taken.boundary(hop);
        // NB: whoever has passed a boundary has no state of it any more, and nothing would ever complete it.
        let is_passed_now = boundary > before.max(self.begun_from().unwrap_or_default());
        (is_passed_now && taken.lock().decide(boundary)).then_some(boundary)
    }

    /// There will be a checkpoint at this boundary.
    pub(crate) fn want(&self, boundary: Hop) {
        if let Some(taken) = &self.taken {
            taken.lock().want(boundary);
        }
    }

    /// The states of another process at a boundary.
    pub(crate) fn take_from(&self, process: usize, of: Checkpoint, table: &FunctionTable) {
        if let Some(taken) = &self.taken {
            taken.lock().give(of.hop, (OF_ANOTHER, process), of.states, table);
        }
    }

    /// Another process has no states at this boundary.
    pub(crate) fn refused_by_another(&self, boundary: Hop) {
        if let Some(taken) = &self.taken {
            taken.lock().refuse(boundary);
        }
    }

    /// What saves the state of that name on a worker, which is given what was saved of it. All names must be asked for before anything
    /// is closed.
    ///
    /// # Errors
    /// If what was saved cannot be read.
    pub fn keeper<S: State>(
        &self,
        (worker, workers): (usize, usize),
        table: &Arc<FunctionTable>,
        state: &mut S,
    ) -> Result<Keeper, Unreadable> {
        if let Some(taken) = &self.taken {
            taken.lock().expect(S::NAME, worker);
        }
        let held = self.begun_with.as_ref().map(|begun| begun.read());
        if let Some(checkpoint) = held.as_ref().and_then(|held| held.as_ref()) {
            let parts = checkpoint.states.get(S::NAME).map_or(&[][..], Vec::as_slice);
            state.load(&Loading { name: S::NAME, hop: checkpoint.hop, parts, worker, workers })?;
        }
        let begun_from = self.begun_from().unwrap_or_default();
        Ok(Keeper { taken: self.taken.clone(), table: Arc::clone(table), worker, begun_from, saved: begun_from })
    }
}

impl Begun {
    fn read(&self) -> RwLockReadGuard<'_, Option<Checkpoint>> {
        self.checkpoint.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last boundary at or before a hop.
    fn boundary(&self, hop: Hop) -> Hop {
        Hop(hop.0 - hop.0 % self.every)
    }
}

/// Saves a state on one worker at the boundaries of checkpoints.
pub struct Keeper {
    taken: Option<Arc<Taken>>,
    table: Arc<FunctionTable>,
    worker: usize,
    begun_from: Hop,
    /// The last boundary.
    saved: Hop,
}

impl Keeper {
    /// The first hop that is not in the checkpoint with which the run began; 0 without one.
    pub fn begun_from(&self) -> Hop {
        self.begun_from
    }

    /// Everything before `hop` is closed, and nothing from it on: saves the state at the boundaries that have been passed since the last
    /// call, at all of which it was as it is now, and gives the last of them.
    pub fn reach<S: State>(&mut self, hop: Hop, state: &S) -> Option<Hop> {
        let taken = self.taken.as_ref()?;
        let last = taken.boundary(hop);
        if last <= self.saved {
            return None;
        }
        let before = std::mem::replace(&mut self.saved, last);
        let passed = taken.lock().wanted(before, last);
        for boundary in passed {
            let mut saving = Saving::new(boundary, self.worker);
            state.save(&mut saving);
            let mut collected = taken.lock();
            match saving.into_parts() {
                Some(parts) => {
                    let of_state = States::from([(S::NAME.to_owned(), parts)]);
                    collected.give(boundary, (S::NAME, self.worker), of_state, &self.table);
                }
                None => collected.refuse(boundary),
            }
        }
        Some(last)
    }
}
