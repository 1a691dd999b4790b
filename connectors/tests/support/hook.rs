//! A webhook for tests, which answers each request as its script says, and takes all requests after that.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How one request is answered.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// With a status and a body.
    Answer(u16, &'static str),
    /// With 429 and so many seconds in Retry-After.
    Later(u64),
    /// Not at all.
    Hang,
    /// The connection is closed.
    Close,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: Instant,
    pub head: String,
    pub body: String,
    /// Whether it was accepted.
    pub accepted: bool,
}

/// The server, and what it got.
pub struct Hook {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Hook {
    /// Listens on a free port.
    pub fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut script = script.into_iter();
            for connection in listener.incoming() {
                let connection = connection.unwrap();
                let Some((head, body)) = read(&connection) else { continue };
                let act = script.next().unwrap_or(Act::Answer(200, "ok"));
                let accepted = matches!(act, Act::Answer(200, _));
                of_thread.lock().unwrap().push(Request { at: Instant::now(), head, body, accepted });
                answer(connection, act);
            }
        });
        Self { port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(connection: &TcpStream) -> Option<(String, String)> {
    let (mut reader, mut head, mut length) = (BufReader::new(connection), String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

fn answer(mut connection: TcpStream, act: Act) {
    let text = match act {
        Act::Answer(status, body) => {
            format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        }
        Act::Later(seconds) => {
            format!("HTTP/1.1 429 x\r\nRetry-After: {seconds}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        Act::Hang => {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(30));
                drop(connection);
            });
            return;
        }
        Act::Close => return,
    };
    let _ = connection.write_all(text.as_bytes());
}
