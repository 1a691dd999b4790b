//! A connection between two processes, as timely sends over it and as messages do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use timely::communication::allocator::zero_copy::stream::Stream;

use super::life::{Life, Peer};

/// What timely sends last: a header of six words, all zero.
const GOODBYE: usize = 48;
/// How long the end of a connection waits for the better explanation that the first process gives.
const GRACE: Duration = Duration::from_secs(3);

/// A connection over which timely sends. If it breaks, the run has lost the process at its other end.
pub(super) struct Line {
    stream: TcpStream,
    peer: usize,
    life: Arc<Life>,
    /// Zero bytes at the end of what was read.
    zeros: usize,
}

impl Line {
    pub(super) fn new(stream: TcpStream, peer: usize, life: &Arc<Life>) -> Self {
        Self { stream, peer, life: Arc::clone(life), zeros: 0 }
    }

    /// NB: timely panics in its own threads when a connection breaks, which ends nothing.
    fn broken(&self, why: &str) {
        let until = Instant::now() + GRACE;
        while self.life.is_running() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        if self.life.is_running() {
            self.life.lose(self.peer, why);
        }
    }
}

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into);
        match &read {
            Ok(0) if self.zeros < GOODBYE => self.broken("it has closed its connection"),
            Ok(0) => {}
            Ok(count) => {
                let bytes = into.get(..*count).unwrap_or_default();
                let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
                self.zeros = if zeros == *count { self.zeros + zeros } else { zeros };
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.broken(&error.to_string()),
        }
        read
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.broken(&error.to_string());
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Stream for Line {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(self.stream.try_clone()?, self.peer, &self.life))
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        // NB: whoever has ended first may have closed it already.
        self.stream.shutdown(how).or_else(|error| match error.kind() {
            io::ErrorKind::NotConnected => Ok(()),
            _ => Err(error),
        })
    }
}

/// The reading end of a connection for messages; what comes is a sign of life.
pub(super) struct Heard {
    stream: TcpStream,
    peer: Arc<Peer>,
}

impl Heard {
    pub(super) fn new(stream: TcpStream, peer: Arc<Peer>) -> Self {
        Self { stream, peer }
    }
}

impl Read for Heard {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into).inspect(|_| self.peer.heard())
    }
}
