//! One run in several processes, on one machine or on several.
//!
//! Timely exchanges records between the workers of all processes and knows which hops are closed, as it does within one. What workers of
//! one process share is the first process's here: it gives numbers to names and call paths, writes down decisions, gathers checkpoints
//! and has the sink. Each other process has a connection to it, over which it asks for that, waits for answers, and says that it is alive.
//!
//! A process that is lost ends the run: all others end too, without closing anything more, and start again from the last checkpoint. That
//! is what a process does that is killed, so nothing is lost and nothing comes twice.

mod first;
mod life;
mod link;
mod message;
mod other;
mod wire;

use std::fmt::{self, Debug};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::communication::AllocatorBuilder;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::initialize::{CommsGuard, initialize_networking_from_sockets};
use timely::communication::initialize::Hooks;

use self::first::First;
use self::life::Life;
pub use self::life::Lose;
use self::other::{LogOfFirst, Other, ToFirstProcess};
use self::wire::Line;
use super::pulse::Pulse;
use crate::checkpoint::{Checkpoint, Checkpoints};
use crate::counts::functions::FunctionTable;
use crate::counts::numbers::Elsewhere;
use crate::rules::decisions::{Decision, Decisions};

/// How many processes a run has, and which of them this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// This process, from 0.
    pub process: usize,
    /// All.
    pub processes: usize,
    /// Workers of each.
    pub workers: usize,
}

impl Shape {
    /// Most processes of a run.
    pub const MOST_PROCESSES: usize = 32;
}

/// Connections to the other processes of a run, by their number; none to this one. Whoever is at their other ends is believed.
#[derive(Debug)]
pub struct Connections {
    /// For questions and answers: from the first process to each other one.
    pub control: Vec<Option<TcpStream>>,
    /// For records: between any two.
    pub data: Vec<Option<TcpStream>>,
}

/// What the first process says to the others before a run begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Beginning {
    /// The checkpoint with which the run begins.
    checkpoint: Option<Checkpoint>,
    /// The decisions that are known, as lines of the log.
    decisions: Vec<String>,
    /// The first hop for which something may be decided anew.
    decided_before: Hop,
    /// What the program adds.
    pub more: String,
}

impl Beginning {
    /// Of a run with these decisions that begins with a checkpoint.
    pub fn new(checkpoint: Option<&Checkpoint>, decisions: &Decisions, more: String) -> Self {
        Self {
            // NB: the first process has the names, of which it is asked for those that are needed.
            checkpoint: checkpoint.map(Checkpoint::without_names),
            decisions: decisions.known().iter().map(text_of).collect(),
            decided_before: decisions.decided_before(),
            more,
        }
    }

    /// The checkpoint with which the run begins.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref()
    }
}

/// A decision as a line of the log.
fn text_of(decision: &Decision) -> String {
    #[expect(
        clippy::expect_used,
        reason = "it fails only for maps whose keys are no text, of which a decision has none"
    )]
    serde_json::to_string(decision).expect("a decision can be written as JSON")
}

fn line_of(line: &str) -> Result<Decision, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

/// A process of a run, connected to all others.
#[derive(Debug)]
pub struct Cluster {
    shape: Shape,
    data: Vec<Option<TcpStream>>,
    role: Role,
    life: Arc<Life>,
}

#[derive(Debug)]
enum Role {
    First(Arc<First>),
    Other(Arc<Other>),
}

/// With what a process does what others ask for.
pub(super) struct Doing {
    pub(super) table: Arc<FunctionTable>,
    pub(super) decisions: Decisions,
    pub(super) checkpoints: Checkpoints,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) pulse: Pulse,
    /// Why this process fails, if it does.
    pub(super) failure: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Debug for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doing").finish_non_exhaustive()
    }
}

impl Doing {
    fn failed(&self) -> Option<String> {
        (self.failure)()
    }
}

impl Cluster {
    /// The first process, once all others are connected to it and to each other. `lose` is called if one of them is lost, and must end
    /// this process.
    ///
    /// # Errors
    /// If a connection is broken.
    pub fn first(shape: Shape, connections: Connections, beginning: Beginning, lose: Box<Lose>) -> io::Result<Self> {
        let life = Arc::new(Life::new(lose));
        let Connections { control, data } = connections;
        let others = control.into_iter().enumerate().filter_map(|(process, stream)| Some((process, stream?)));
        let role = Role::First(Arc::new(First::begin(shape, others.collect(), beginning, &life)?));
        Ok(Self { shape, data, role, life })
    }

    /// Another process; waits until the first one says how the run begins.
    ///
    /// # Errors
    /// If a connection is broken.
    pub fn other(shape: Shape, connections: Connections, lose: Box<Lose>) -> io::Result<(Self, Beginning)> {
        let life = Arc::new(Life::new(lose));
        let Connections { control, data } = connections;
        let first = control.into_iter().next().flatten().ok_or(io::ErrorKind::NotConnected)?;
        let (other, beginning) = Other::begin(first, &life)?;
        Ok((Self { shape, data, role: Role::Other(Arc::new(other)), life }, beginning))
    }

    /// The decisions and checkpoints of a process that is not the first one, which has them; `every` hops there is a checkpoint, if at
    /// all. Those of the first process are its own.
    pub fn of_first(&self, beginning: Beginning, every: Option<u64>) -> Result<(Decisions, Checkpoints), String> {
        let Role::Other(other) = &self.role else { return Ok((Decisions::default(), Checkpoints::default())) };
        let Beginning { checkpoint, decisions, decided_before, .. } = beginning;
        let known: Vec<Decision> = decisions.iter().map(|line| line_of(line)).collect::<Result<_, _>>()?;
        let decisions = Decisions::new(Box::new(LogOfFirst(Arc::clone(other))), known);
        let checkpoints = checkpoint.into_iter().fold(Checkpoints::default(), Checkpoints::begun_with);
        let checkpoints = match every {
            Some(every) => checkpoints.taken(every, Box::new(ToFirstProcess(Arc::clone(other)))),
            None => checkpoints,
        };
        Ok((decisions.with_decided_before(decided_before), checkpoints))
    }

    /// How many processes there are, and which one this is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Processes whose states this one gathers.
    pub(super) fn awaited(&self) -> usize {
        match &self.role {
            Role::First(_) => self.shape.processes.saturating_sub(1),
            Role::Other(_) => 0,
        }
    }

    /// Which process gives numbers, if it is not this one.
    pub(super) fn elsewhere(&self) -> Option<Elsewhere> {
        match &self.role {
            Role::First(_) => None,
            Role::Other(other) => {
                Some(Elsewhere { numbers: Arc::<Other>::clone(other), processes: self.shape.processes })
            }
        }
    }

    /// Begins to talk to the others. Gives what makes workers, and what waits for the last records between processes.
    pub(super) fn start(self, doing: Doing) -> io::Result<(Vec<AllocatorBuilder>, Joined)> {
        let Self { shape, data, role, life } = self;
        let doing = Arc::new(doing);
        match &role {
            Role::First(first) => first.start(&doing)?,
            Role::Other(other) => other.start(&doing)?,
        }
        let lines = data.into_iter().enumerate();
        let lines = lines.map(|(peer, stream)| stream.map(|stream| Line::new(stream, peer, &life))).collect();
        let hooks = Hooks::default();
        let within = ProcessBuilder::new_typed_vector(shape.workers, hooks.refill.clone(), None);
        let (builders, comms) = initialize_networking_from_sockets(within, lines, shape.process, shape.workers, hooks)?;
        Ok((builders.into_iter().map(AllocatorBuilder::Tcp).collect(), Joined { comms, role, life }))
    }
}

/// A process whose workers run.
pub(super) struct Joined {
    comms: CommsGuard,
    role: Role,
    life: Arc<Life>,
}

impl Joined {
    /// All workers of this process have ended as they should: waits until those of the others have.
    pub(super) fn end(self) {
        drop(self.comms);
        match &self.role {
            Role::First(first) => first.end(),
            Role::Other(other) => other.end(),
        }
        self.life.ended();
    }

    /// This process has failed, of which the others hear. It ends soon.
    pub(super) fn fail(self, why: &str) {
        // NB: timely would wait for the others, which wait for this one.
        std::mem::forget(self.comms);
        match &self.role {
            Role::First(first) => first.fail(why),
            Role::Other(other) => other.fail(why),
        }
        self.life.ended();
    }
}
