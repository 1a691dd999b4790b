//! What the processes of a run say to each other beside what timely exchanges, and how it is framed.

use std::io::{self, Read, Write};
use std::sync::Arc;

use fleetdiff_schemas::time::Hop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Beginning;
use crate::checkpoint::Checkpoint;
use crate::counts::ids::{FunctionId, PathId};
use crate::counts::numbers::Forgotten;
use crate::counts::paths::Node;

/// What another process says to the first one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToFirst {
    Question(Question),
    LetGo(Forgotten),
    /// All its workers have finished a round, with this hop closed.
    RoundFinished(Hop),
    /// Its states at a boundary.
    States(Checkpoint),
    /// There can be no checkpoint at this boundary.
    Refused(Hop),
    /// It is alive.
    Beat {
        /// It has been asked to stop.
        stop: bool,
    },
    /// All its workers have ended.
    Ended,
    /// It has failed, and why.
    Failed(String),
}

/// What waits for an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// See [`Numbers`](crate::counts::numbers::Numbers).
    NumbersOf(Vec<Arc<str>>),
    Names(Vec<FunctionId>),
    PathsOf(Vec<Vec<FunctionId>>),
    Nodes(Vec<PathId>),
    /// A decision to be logged, as a line of the log.
    Decision(String),
}

/// The answer to a question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Numbers(Vec<FunctionId>),
    Names(Vec<Arc<str>>),
    Paths(Vec<Vec<PathId>>),
    Nodes(Vec<(PathId, Node)>),
    /// The decision is durable.
    Logged,
    /// It could not be done, and why.
    Failed(String),
}

/// What the first process says to another one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromFirst {
    /// How the run begins.
    Beginning(Box<Beginning>),
    Answer(Answer),
    /// It is alive.
    Beat {
        /// The run shall stop.
        stop: bool,
        /// How often files of rows were completed.
        flushes: u64,
        /// The hop that was closed last.
        closed: Option<Hop>,
    },
    /// All its workers have ended.
    Ended,
    /// It has failed, or has lost another process, and why.
    Failed(String),
}

/// Why nothing more can be read from a process, for people.
pub(super) fn why_unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "it has ended without saying so".to_owned(),
        _ => format!("its connection is broken: {error}"),
    }
}

/// Writes a message.
pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(message).map_err(io::Error::other)?;
    to.write_all(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message. Only from processes that have proved that they are of the run.
pub(super) fn read<M: DeserializeOwned>(from: &mut impl Read) -> io::Result<M> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut bytes = Vec::new();
    let length = u64::from_le_bytes(length);
    // NB: memory grows with what has come, not with what is announced.
    if from.take(length).read_to_end(&mut bytes)? < usize::try_from(length).unwrap_or(usize::MAX) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
