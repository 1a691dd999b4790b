//! The sending end of a connection for messages.

use std::io::{self, BufWriter};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::message::write;

/// Sends messages, one at a time.
#[derive(Debug)]
pub(super) struct Link(Mutex<BufWriter<TcpStream>>);

impl Link {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Mutex::new(BufWriter::with_capacity(1 << 16, stream)))
    }

    pub(super) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.send_after(message, || {})
    }

    /// Sends a message, and does something just before that no other message can come between.
    pub(super) fn send_after(&self, message: &impl Serialize, before: impl FnOnce()) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        before();
        write(&mut *stream, message)
    }

    /// Sends it if nothing else is being sent, without waiting.
    pub(super) fn try_send(&self, message: &impl Serialize) -> io::Result<()> {
        match self.0.try_lock() {
            Ok(mut stream) => write(&mut *stream, message),
            Err(_) => Ok(()),
        }
    }
}
