//! As much of HTTP as tests of Pyroscope's API need: one request a connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Names and values.
pub type Headers = Vec<(String, String)>;

#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: Headers,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub form: String,
    pub body: Vec<u8>,
}

/// What a server answers; nothing if there is none. NB: HTTP 1.0, so that the body is what follows the headers.
pub fn send(address: &str, request: &Request<'_>) -> Option<Answer> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    write!(connection, "{} {} HTTP/1.0\r\nHost: localhost\r\n", request.method, request.path).ok()?;
    for (name, value) in &request.headers {
        write!(connection, "{name}: {value}\r\n").ok()?;
    }
    write!(connection, "Content-Length: {}\r\n\r\n", request.body.len()).ok()?;
    connection.write_all(&request.body).ok()?;
    let mut reader = BufReader::new(connection);
    let (line, headers) = head(&mut reader)?;
    let mut body = Vec::new();
    reader.read_to_end(&mut body).ok()?;
    let form = header(&headers, "content-type").unwrap_or_default();
    Some(Answer { status: line.split(' ').nth(1)?.parse().ok()?, form, body })
}

/// The path, headers and body that a client sends.
pub fn receive(connection: &TcpStream) -> Option<(String, Headers, Vec<u8>)> {
    let mut reader = BufReader::new(connection);
    let (line, headers) = head(&mut reader)?;
    let length = header(&headers, "content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line.split(' ').nth(1)?.to_owned(), headers, body))
}

/// Answers a client.
pub fn answer(mut connection: &TcpStream, answer: &Answer) {
    let Answer { status, form, body } = answer;
    let head = format!("HTTP/1.1 {status} -\r\nConnection: close\r\nContent-Type: {form}\r\n");
    // The client may be gone.
    let _ = write!(connection, "{head}Content-Length: {}\r\n\r\n", body.len());
    let _ = connection.write_all(body);
}

/// A header, named in small letters.
pub fn header(headers: &[(String, String)], name: &str) -> Option<String> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

fn head(reader: &mut impl BufRead) -> Option<(String, Headers)> {
    let mut line = || {
        let mut line = String::new();
        (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
    };
    let (first, mut headers) = (line()?, Vec::new());
    loop {
        let next = line()?;
        let Some((name, value)) = next.split_once(':') else { return Some((first, headers)) };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
}
