//! Pulls profiles from running programs that serve them, Go's `/debug/pprof` and what speaks like it, and from a server that has stored them.
//!
//! [`Targets`] says where programs are, a list or a DNS name; [`Puller::pull`] asks one of them for one profile. [`pyroscope`] asks a server
//! of Grafana Pyroscope for those of many pods.

pub mod pyroscope;
mod targets;

use std::io::Read;
use std::time::Duration;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{ProfileType, Temporality};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::agent::{agent, in_words};

pub use targets::{Target, Targets, TargetsError};

/// Where the profiles of a program are by default.
const PATH: &str = "/debug/pprof";
/// How much longer than a profile takes its answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of a refusal is shown.
const SHOWN: usize = 200;

/// What is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pull {
    /// Time on the processor, over a stretch of time.
    Cpu,
    /// Memory: allocations since the process began, and what is in use.
    Heap,
    /// Waiting for locks since the process began.
    Mutex,
    /// Waiting since the process began.
    Block,
}

impl Pull {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Heap, Self::Mutex, Self::Block];

    /// The type of what comes.
    pub fn profile_type(self) -> ProfileType {
        match self {
            Self::Cpu => ProfileType::Cpu,
            Self::Heap => ProfileType::Heap,
            Self::Mutex => ProfileType::Mutex,
            Self::Block => ProfileType::Block,
        }
    }

    /// Since when it counts: Go's profiles but that of the processor count since the process began.
    pub fn temporality(self) -> Temporality {
        if self == Self::Cpu { Temporality::Delta } else { Temporality::Cumulative }
    }

    /// Whether answering takes as long as the profile.
    pub fn takes_time(self) -> bool {
        self == Self::Cpu
    }

    fn path(self, seconds: u64) -> String {
        match self {
            Self::Cpu => format!("profile?seconds={seconds}"),
            Self::Heap => "heap".to_owned(),
            Self::Mutex => "mutex".to_owned(),
            Self::Block => "block".to_owned(),
        }
    }
}

/// A program that serves profiles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Where, without the name of a profile.
    pub url: String,
    /// Whose its profiles are.
    pub identity: Identity,
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum PullError {
    /// Nobody answered.
    #[error("{0}")]
    Silence(String),
    /// It does not give it.
    #[error("status {status}: {excerpt}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The beginning of what it says.
        excerpt: String,
    },
    /// It is larger than is taken.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// It ended early.
    #[error("the answer ends early: {0}")]
    Cut(String),
    /// It is not what was asked for.
    #[error("the answer is none of Pyroscope's: {0}")]
    Foreign(String),
}

/// Asks endpoints.
#[derive(Clone, Debug)]
pub struct Puller {
    agent: Agent,
    /// The largest profile that is taken, in bytes.
    most: u64,
}

impl Puller {
    /// A client that takes profiles of at most so many bytes.
    pub fn new(most: u64) -> Self {
        Self { agent: agent(), most }
    }

    /// Asks for a profile, one of the processor over so many seconds.
    ///
    /// # Errors
    /// See [`PullError`].
    pub fn pull(&self, endpoint: &Endpoint, what: Pull, seconds: u64) -> Result<Vec<u8>, PullError> {
        let timeout = PATIENCE + if what.takes_time() { Duration::from_secs(seconds) } else { Duration::ZERO };
        let url = format!("{}/{}", endpoint.url, what.path(seconds));
        let request = self.agent.get(&url).config().timeout_global(Some(timeout)).build();
        let silence = |error| PullError::Silence(in_words(&error, timeout.as_secs_f32(), str::to_owned));
        let mut response = request.call().map_err(silence)?;
        body(&mut response, self.most)
    }
}

/// The bytes of an answer, of which at most so many are taken.
fn body(response: &mut Response<Body>, most: u64) -> Result<Vec<u8>, PullError> {
    let status = response.status();
    let mut bytes = Vec::new();
    let read = response.body_mut().as_reader().take(most + 1).read_to_end(&mut bytes);
    if !status.is_success() {
        let text = String::from_utf8_lossy(&bytes);
        let excerpt: String = text.chars().take(SHOWN).collect();
        let excerpt = excerpt.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
        return Err(PullError::Refused { status: status.as_u16(), excerpt });
    }
    read.map_err(|error| PullError::Cut(error.to_string()))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(PullError::TooLarge(most)),
    }
}
