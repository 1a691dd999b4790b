//! How the processes of a run find each other, and make sure that each is one of them.
//!
//! Each process listens at its own address and connects to those before it: over one connection for records to each, and to the first
//! over another one for questions and answers. Both ends of a connection prove that they know the secret of the run, without saying it,
//! and compare what must be the same: the program, the shape of the run, and the settings that decide rows. Whoever cannot is dropped,
//! and the others go on waiting. What is sent later is not encrypted.

mod hello;
mod proof;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

use self::hello::{Purpose, Refusal, Verdict, introduce, receive};
pub use self::proof::Secret;

/// How often a process tries to connect, and looks whether somebody has.
const EVERY: Duration = Duration::from_millis(20);
const RETRY: Duration = Duration::from_millis(250);
/// How often it says for whom it waits.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// How long the other end of a connection may take to introduce itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what was sent may remain without an answer of the other machine, before the connection is broken.
const UNANSWERED: Duration = Duration::from_secs(20);
/// How many connections introduce themselves at a time.
const AT_A_TIME: usize = 64;

/// A process that meets the others of its run.
#[derive(Clone, Debug)]
pub struct Party {
    /// Which of the processes it is.
    pub process: usize,
    /// Workers of each.
    pub workers: usize,
    /// Where each process listens, as HOST:PORT.
    pub hosts: Vec<String>,
    /// What only processes of the run know.
    pub secret: Secret,
    /// The settings that must be the same, as JSON.
    pub settings: String,
    /// The version of the program.
    pub program: String,
}

/// Connections to the other processes, by their number.
#[derive(Debug)]
pub struct Met {
    /// From the first process to each other one, and from each other one to the first.
    pub control: Vec<Option<TcpStream>>,
    /// To each other process.
    pub data: Vec<Option<TcpStream>>,
}

/// Why processes cannot meet.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// The own address cannot be used.
    #[error("cannot listen at {host}: {source}")]
    Listen {
        /// The address.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The other process is of another run, or of this one with other settings.
    #[error("process {process} at {host} is not one of this run: {why}")]
    Refused {
        /// Which process.
        process: usize,
        /// Its address.
        host: String,
        /// What differs.
        why: String,
    },
}

/// What is connected so far.
#[derive(Default)]
struct Connected {
    control: BTreeMap<usize, TcpStream>,
    data: BTreeMap<usize, TcpStream>,
    /// The number of this meeting, which the first process has drawn.
    meeting: Option<u64>,
}

impl Party {
    /// Waits until all processes of the run are connected, and the first one has something to say. `None` if it was stopped before.
    ///
    /// # Errors
    /// See [`MeetingError`]. A process that is not there yet, and connections of strangers, are no errors.
    pub fn meet(&self, stop: &AtomicBool) -> Result<Option<Met>, MeetingError> {
        let host = self.hosts.get(self.process).cloned().unwrap_or_default();
        let listener = TcpListener::bind(&*host).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|source| MeetingError::Listen { host: host.clone(), source })?;
        tracing::info!("process {} of {}: at {host}, waiting for the others", self.process, self.hosts.len());
        loop {
            let connected = Mutex::new(Connected::default());
            if self.process == 0 {
                lock(&connected).meeting = Some(proof::random());
            }
            let ended = AtomicBool::new(false);
            let met = std::thread::scope(|scope| {
                scope.spawn(|| self.accept(&listener, &connected, &ended));
                let met = self.join(&connected, stop);
                ended.store(true, Ordering::Release);
                met
            })?;
            if stop.load(Ordering::Acquire) {
                tracing::info!("stopped while it waited for the other processes");
                return Ok(None);
            }
            if met {
                let Connected { control, data, .. } = connected.into_inner().unwrap_or_else(PoisonError::into_inner);
                return Ok(Some(Met { control: self.by_number(control), data: self.by_number(data) }));
            }
        }
    }

    /// Connects to those before this process and waits for those after it. Whether all are there: otherwise one has ended meanwhile.
    fn join(&self, connected: &Mutex<Connected>, stop: &AtomicBool) -> Result<bool, MeetingError> {
        let mut said = Instant::now();
        let mut tried: Option<Instant> = None;
        while !stop.load(Ordering::Acquire) {
            if tried.is_none_or(|tried| tried.elapsed() >= RETRY) {
                tried = Some(Instant::now());
                self.connect(connected)?;
            }
            let missing = self.missing(&lock(connected));
            match self.first_speaks(&lock(connected)) {
                Some(true) if !missing.is_empty() => {}
                Some(speaks) => return Ok(speaks),
                None => {}
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                let named = missing.iter().map(|one| format!("{one} ({})", self.hosts[*one])).collect::<Vec<_>>();
                match named.is_empty() {
                    true => tracing::info!("waiting for process 0, which waits for others"),
                    false => tracing::info!("waiting for process {}", named.join(", ")),
                }
            }
            std::thread::sleep(EVERY);
        }
        Ok(false)
    }

    fn by_number(&self, mut connections: BTreeMap<usize, TcpStream>) -> Vec<Option<TcpStream>> {
        (0..self.hosts.len()).map(|process| connections.remove(&process)).collect()
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.hosts.len()).filter(|other| *other != self.process)
    }

    fn missing(&self, connected: &Connected) -> Vec<usize> {
        let needs_control = |other: usize| self.process == 0 || other == 0;
        let is_missing = |other: &usize| {
            !connected.data.contains_key(other) || needs_control(*other) && !connected.control.contains_key(other)
        };
        self.others().filter(is_missing).collect()
    }

    /// Whether the first process says something, or has ended; `None` as long as it waits. The first process waits for nobody.
    fn first_speaks(&self, connected: &Connected) -> Option<bool> {
        if self.process == 0 {
            return Some(true);
        }
        let first = connected.control.get(&0)?;
        let mut byte = [0];
        let peeked = first.set_nonblocking(true).and_then(|()| first.peek(&mut byte));
        let peeked = peeked.and_then(|count| first.set_nonblocking(false).map(|()| count));
        match peeked {
            Ok(count) => Some(count > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => Some(false),
        }
    }

    /// Connects to processes before this one that are there.
    fn connect(&self, connected: &Mutex<Connected>) -> Result<(), MeetingError> {
        for other in 0..self.process {
            let (meeting, has_data) = {
                let connected = lock(connected);
                (connected.meeting, connected.data.contains_key(&other))
            };
            let purpose = match (other, meeting) {
                (0, None) => Purpose::Control,
                (_, None) => return Ok(()),
                (_, Some(_)) if has_data => continue,
                (_, Some(meeting)) => Purpose::Data { meeting },
            };
            let refused = |why| MeetingError::Refused { process: other, host: self.hosts[other].clone(), why };
            let Some(stream) = self.reach(other) else { continue };
            match introduce(self, stream, other, purpose) {
                Ok((stream, Verdict::Welcome { meeting })) => {
                    let mut connected = lock(connected);
                    match purpose {
                        Purpose::Control => connected.control.insert(other, stream),
                        Purpose::Data { .. } => connected.data.insert(other, stream),
                    };
                    connected.meeting = Some(meeting);
                }
                Ok((_, Verdict::Later)) => {}
                Ok((_, Verdict::Differs(why))) => return Err(refused(why)),
                Err(Refusal::Differs(why)) => return Err(refused(why)),
                Err(Refusal::Stranger(why)) => {
                    tracing::debug!("process {other} at {} does not answer as it should: {why}", self.hosts[other]);
                }
            }
        }
        Ok(())
    }

    /// A connection to another process; `None` if it is not there.
    fn reach(&self, other: usize) -> Option<TcpStream> {
        let addresses = self.hosts[other].to_socket_addrs().ok()?;
        let mut reached = addresses.filter_map(|address| TcpStream::connect_timeout(&address, PATIENCE).ok());
        reached.next().filter(|stream| prepare(stream).is_ok())
    }

    /// Takes connections of processes after this one.
    fn accept(&self, listener: &TcpListener, connected: &Mutex<Connected>, ended: &AtomicBool) {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !ended.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((stream, from)) if open.load(Ordering::Acquire) < AT_A_TIME => {
                        open.fetch_add(1, Ordering::AcqRel);
                        let open = &open;
                        scope.spawn(move || {
                            self.admit(stream, from, connected);
                            open.fetch_sub(1, Ordering::AcqRel);
                        });
                    }
                    Ok(_) => {}
                    Err(_) => std::thread::sleep(EVERY),
                }
            }
        });
    }

    fn admit(&self, stream: TcpStream, from: SocketAddr, connected: &Mutex<Connected>) {
        let meeting = lock(connected).meeting;
        let received = prepare(&stream).map_err(Refusal::from).and_then(|()| receive(self, stream, meeting));
        match received {
            Ok(Some((stream, other, purpose))) => {
                let mut connected = lock(connected);
                match purpose {
                    Purpose::Control => connected.control.insert(other, stream),
                    Purpose::Data { .. } => connected.data.insert(other, stream),
                };
            }
            // It comes again.
            Ok(None) => {}
            Err(Refusal::Stranger(why) | Refusal::Differs(why)) => {
                tracing::warn!("a connection from {from} was dropped: {why}");
            }
        }
    }
}

/// So that a process that is gone, or cannot be reached any more, is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let every = UNANSWERED / 4;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(every).with_interval(every).with_retries(3))?;
    socket.set_tcp_user_timeout(Some(UNANSWERED))
}

fn lock(connected: &Mutex<Connected>) -> std::sync::MutexGuard<'_, Connected> {
    connected.lock().unwrap_or_else(PoisonError::into_inner)
}
